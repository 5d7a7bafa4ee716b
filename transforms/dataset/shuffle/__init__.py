"""The second pass of a shuffle: buckets that were spilled are sorted, and staged like the records of any task."""
