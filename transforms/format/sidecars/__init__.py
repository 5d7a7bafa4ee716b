"""The files beside the shards by which other tools open a dataset (TFDS, TFX, DALI); all follow from the manifest."""
