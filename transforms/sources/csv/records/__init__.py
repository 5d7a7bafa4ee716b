"""Where the records of CSV text are: any encoding to UTF-8, quotes scanned in parallel, chunks of whole records."""
