"""What a run would take and give, from a sample of its rows that is read, run through the recipe and encoded."""
