"""Rows to framed `tf.train.Example`s, each in a split or a reject, with the bytes of protobuf's deterministic mode.

`RowEncoder` does it all, for a batch at a time.
"""
