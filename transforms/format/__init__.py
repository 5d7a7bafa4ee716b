"""Bytes and their meaning: Arrow columns, Examples, TFRecord frames, manifests. No Beam and no I/O on this floor."""
