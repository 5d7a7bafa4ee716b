"""`.npy` and `.npz` files as a source: a file is one record, or the first axis of its arrays are rows.

Headers are parsed here, so that no pickle is ever loaded.
"""
