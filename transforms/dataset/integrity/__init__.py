"""Whether a dataset is whole (`verify`), what of damage can be saved (`salvage`), and what nothing needs (`gc`)."""
