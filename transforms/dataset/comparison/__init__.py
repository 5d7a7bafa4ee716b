"""Two datasets, or two generations of one, side by side: by what their manifests state, and record by record."""
