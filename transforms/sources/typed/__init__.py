"""What formats of typed columns share: one schema for several files, and the features of their columns."""
