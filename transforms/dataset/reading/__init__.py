"""Open a dataset and read it: records, rows, Arrow batches, NumPy arrays, DataFrames; export it, and compare two."""
