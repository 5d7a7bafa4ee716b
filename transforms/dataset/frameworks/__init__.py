"""Rows for NumPy and for training: in which order, in which batches, and as what each framework takes."""
