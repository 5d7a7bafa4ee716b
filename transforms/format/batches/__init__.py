"""What flows from reading to encoding to staging, and its memory: rows, blocks of encoded records, and rejects."""
