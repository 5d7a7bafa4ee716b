"""Stage: the blocks of a task become durable parts and one small result.

Also what all tasks of a run agree on (`spec`), the lock of the run, and what a stopped run left done.
"""
