"""Files and generations: staging, the shard plan, the commit, reading back, and whether all is whole. No Beam here."""
