"""The manifest: the JSON document that states one generation of a dataset, written, and read strictly.

Large ones are in parts. `naming` has the names of datasets, splits and files.
"""
