"""Which split each file is of: what their paths show, and what the user says."""
