"""Existing TFRecord files as a source: shards of a dataset, or anyone's files; records stay the same bytes.

The only source that knows datasets.
"""
