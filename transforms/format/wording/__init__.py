"""Words that all layers share: values, sizes and durations as people see them, and names that were probably meant."""
