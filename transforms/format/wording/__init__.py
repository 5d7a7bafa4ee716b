"""Words that all floors share: values, sizes and durations as people see them, and names that were probably meant."""
