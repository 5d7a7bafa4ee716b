"""What `shardmill init` writes: a commented config of what it sees in the data, and the JSON Schema beside it."""
