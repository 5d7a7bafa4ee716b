"""From a config to what is ready to run: list, survey, plan, and leave out what is held or done already.

`read_encode_write` is the pipeline itself, the one module of this room that has Beam.
"""
