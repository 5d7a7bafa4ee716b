"""What a new user runs first: `init` looks at data and writes a config, `doctor` says what this machine lacks."""
