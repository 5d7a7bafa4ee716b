"""Files and generations: staging, the shard plan, the commit, and reading a dataset back. No Beam on this floor."""
