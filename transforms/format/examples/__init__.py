"""Rows to framed `tf.train.Example`s, and back: the bytes are those of protobuf's deterministic mode.

`RowEncoder` does it all, for a batch at a time: each row is in a split, or a reject. `decode_examples` is its inverse.
"""
