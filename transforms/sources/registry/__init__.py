"""What knows every kind of source: pick one for some paths, survey one for a dataset that is there, tasks as text."""
