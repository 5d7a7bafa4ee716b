"""What nothing needs in a dataset's folder: garbage that `gc` removes, and what dead runs left."""
