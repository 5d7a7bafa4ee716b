"""The command `stats`: the figures of a dataset's records, or of other TFRecord files."""
