"""What every source does (list, survey, read), and the life of a task: cut from a source, read, staged in one call."""
