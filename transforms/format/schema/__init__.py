"""The schema of a dataset: its features, the Arrow types they come from and read back as, how two schemas differ."""
