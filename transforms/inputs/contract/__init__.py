"""What every source does (list, survey, read), how its pieces are cut into tasks, and how a task is read."""
