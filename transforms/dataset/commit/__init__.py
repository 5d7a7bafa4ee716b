"""From staged shards to a generation, all or nothing: one manifest, put if absent, is the commit (`put_manifest`).

Publishing then gives files their final names.
"""
