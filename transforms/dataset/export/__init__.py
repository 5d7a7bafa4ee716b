"""The whole way back: a dataset as a table (Parquet, Arrow, JSON lines, CSV) or as a folder of pictures."""
