"""Which split a record goes to: a contract, and a module for each kind of rule."""
