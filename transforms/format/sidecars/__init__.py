"""What other tools open a dataset with: files beside its shards (TFDS, TFX, DALI), and programs that read it.

All follows from the manifest.
"""
