"""Single TFRecord files, with or without a manifest: write one, read its records, scan runs of them, wherever it is."""
