"""The first pass of a shuffle: records go into buckets by a random key, on disk.

- `keys`: the key of a record
- `spill_file`: the file of a (task, split), to write and to read
- `spiller`: what stage hands its records to
"""
