"""Text files as a source: each line is a record with one feature, `text`, and lines without text are records too."""
