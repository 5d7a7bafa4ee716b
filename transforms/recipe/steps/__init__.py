"""The steps that a config names: columns of folders, rows that are kept, other names, labels, constants."""
