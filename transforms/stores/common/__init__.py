"""What every object store does (`object_store`), and what the clients share: URLs, retries, reading ahead, sending."""
