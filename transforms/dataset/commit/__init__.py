"""From the results of all tasks to a generation, all or nothing: accounts, a plan, shards, one manifest.

That manifest, put if absent, is the commit (`Documents.put`). Publishing then gives files their final names.
"""
