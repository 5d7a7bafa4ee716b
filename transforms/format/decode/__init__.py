"""Serialized Examples back to Arrow record batches, vectorised: the inverse of the encoder."""
