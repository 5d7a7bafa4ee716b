"""Checks of the records: observers of the product's own, whose findings the manifest states.

- `digests`: 128 bits of a hash for each record
- `duplicates`: records that are alike, reported or left out
- `groups`: which digests are equal, over all tasks, in bounded memory
"""
