"""Rows and records by their number: where they are in the shards, and what their columns are."""
