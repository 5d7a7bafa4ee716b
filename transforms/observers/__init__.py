"""What looks at all records on their way, and states what it found: checks of the records, and their statistics.

- `checks`: records that are alike, reported or left out, and values that are in several splits
- `groups`: which digests of records are equal, over all tasks, in bounded memory
- `tally`: statistics by split and feature, of `counts`, `distinct` values and a `sample`; `stats_files` writes them
"""
