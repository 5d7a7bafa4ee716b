"""Bytes and their meaning: Arrow columns, Examples, TFRecord frames, manifests. No Beam and no I/O on this floor.

A byte of a shard comes from `tfrecord/framing` (lengths and checksums), or from `encode` (the Example in between).
"""
