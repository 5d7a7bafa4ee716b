"""What one value, record or file may take, and how what is large takes turns over all workers of a run."""
