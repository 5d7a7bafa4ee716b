"""What flows from reading to encoding to staging: rows, blocks of encoded records, and rejects; the memory they are in."""
