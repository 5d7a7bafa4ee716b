"""The TFRecord file format: CRC32C, frame records, find and check them, search behind damage; plain or gzip."""
