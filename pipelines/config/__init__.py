"""The config of a conversion: file, `--set` and flags laid over each other, and checked as one document.

Errors name the line and the key. `prepare/from_config` makes the conversion that a config
describes.
"""
