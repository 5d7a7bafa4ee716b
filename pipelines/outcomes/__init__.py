"""What a command has to say, as plain data: `screens` shows it, `--json` prints it, Python calls return it."""
