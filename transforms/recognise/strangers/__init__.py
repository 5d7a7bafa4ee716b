"""What is not read, and is refused by its name with what to do instead."""
