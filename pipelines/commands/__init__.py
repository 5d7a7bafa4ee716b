"""What the commands beside convert and append do; those two are in `cli`.

`session` ends every command: an error is a line, an interrupt too, and both have an exit code.
"""
