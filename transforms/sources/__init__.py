"""What comes in: listing, surveying and reading of CSV, Parquet, image and NumPy files. No Beam on this floor."""
