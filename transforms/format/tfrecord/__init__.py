"""The TFRecord file format: frame records, find and check them in bytes, search behind damage; plain or gzip."""
