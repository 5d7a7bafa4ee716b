"""Checks of the records: observers of the product's own, whose findings the manifest states.

- `digests`: 128 bits of a hash for each record
- `duplicates`: records that are alike, reported or left out
- `leaks`: values that are in several splits
- `spilled`: what both leave of each batch
- `groups`: which digests are equal, over all tasks, in bounded memory
"""
