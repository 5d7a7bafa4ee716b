"""Rows of a dataset: any record by its number, as columns, as NumPy arrays, and as batches of PyTorch and tf.data."""
