"""What each command of the terminal does, and how an error or an interrupt ends: by a line and an exit code."""
