"""Files beside those that are read: a line for each that may belong to the data, with the command that reads it."""
