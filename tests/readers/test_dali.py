"""NVIDIA DALI reads the shards with their index, and decodes the images, on the CPU."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali import tfrecord as tfrec
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import Dataset

from ..label_numbers import in_numbers


def test_dali_reads_and_decodes_every_image(sample: Callable[..., Dataset]) -> None:
    dataset = sample("images", sidecars=["tfds", "tfx", "index"])
    shards = dataset.shard_paths("train")
    indexes = [str(Path(shard).parent / "index" / Path(shard).name.replace(".tfrecord", ".idx")) for shard in shards]

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def read() -> Any:
        inputs = fn.readers.tfrecord(
            path=shards,
            index_path=indexes,
            features={
                "image/encoded": tfrec.FixedLenFeature([], tfrec.string, ""),
                "image/class/label": tfrec.FixedLenFeature([1], tfrec.int64, -1),
            },
        )
        images = fn.decoders.image(inputs["image/encoded"], device="cpu", output_type=types.RGB)
        return images, inputs["image/class/label"]

    pipeline = read()
    pipeline.build()
    rows = in_numbers(dataset.to_arrow("train")).to_pylist()
    assert rows
    for row in rows:
        images, labels = pipeline.run()
        found = np.asarray(images.at(0))
        assert int(labels.at(0)[0]) == row["image/class/label"]
        assert found.shape == (row["image/height"], row["image/width"], 3)
        if row["image/format"] == "png":
            wanted = np.asarray(Image.open(io.BytesIO(row["image/encoded"])).convert("RGB"))
            np.testing.assert_array_equal(found, wanted)
