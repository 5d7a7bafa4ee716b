"""Bytes and their meaning: Arrow columns, Examples, TFRecord frames, manifests. No Beam and no I/O in this layer.

A byte of a shard comes from `tfrecord/framing` (lengths and checksums), or from `encode` (the Example in between).
"""
