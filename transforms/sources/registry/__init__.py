"""The formats, a line for each in `formats`; what all share: detection, options, settings, appends, tasks as text."""
