"""Bytes in memory, many at a time and without copies: views, varints, CRC32C, slices, payloads in place."""
