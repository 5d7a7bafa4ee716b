"""Arrow IPC files as a source, and so Feather files: record batches with types, in the file or the stream format.

Begin with `source`; `messages` finds the record batches of a file without reading their bodies.
"""
