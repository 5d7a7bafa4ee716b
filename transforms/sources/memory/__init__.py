"""What a Python caller holds as a source: DataFrames, Arrow data, dicts of arrays, iterators of dicts."""
