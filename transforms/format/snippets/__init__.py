"""Programs that read one dataset, with its own features, types, shapes and paths; each runs as it is printed."""
