"""The steps that a config names: columns of folders, rows that are kept, labels, pictures and the objects in them."""
