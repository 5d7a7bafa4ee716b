"""The config of a conversion: file, `--set` and flags laid over each other, and checked as one document.

Errors name the line and the key. `sources` makes the source and the encoder that a config asks for.
"""
