"""Worker processes for the engine of this machine: they stage tasks while Beam drives, and end with the command."""
