"""The commands between this project's datasets and what others have: `export`, `snippet`, `diff` and `adopt`."""
