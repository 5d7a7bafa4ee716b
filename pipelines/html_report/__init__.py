"""The report of a dataset: one HTML page that says what is in it, which any browser shows without a network."""
