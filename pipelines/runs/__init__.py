"""Convert, append, merge and rebuild from start to end: prepare, run on an engine, commit, sum up.

`python_api` is what Python callers get; `convert` resumes a run that stopped.
"""
