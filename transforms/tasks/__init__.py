"""The life of a task: cut from a source, kept in a file of the plan, read, and staged in one call."""
