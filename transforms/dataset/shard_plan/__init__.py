"""Which bytes of which parts make which shard, and where parts may be cut: integers in, integers out, no I/O."""
