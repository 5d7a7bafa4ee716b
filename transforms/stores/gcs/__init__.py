"""Google Cloud Storage: requests, uploads in chunks that are composed, removals in batches."""
