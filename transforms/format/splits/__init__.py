"""Which split a record goes to, a module for each kind of rule, and which shard: integers in, integers out."""
