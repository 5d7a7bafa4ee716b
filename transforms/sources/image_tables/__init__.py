"""Tables beside pictures, `metadata.csv | jsonl | parquet`: how they are found, and what folders say of rows."""
