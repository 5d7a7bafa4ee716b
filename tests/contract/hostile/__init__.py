"""Files that state more than a bound of docs/guarantees.md, and some that state just as much."""
