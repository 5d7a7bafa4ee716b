"""A folder of TFDS, made without it; `tests/readers/test_tfds_folders.py` compares it with a real one."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.format.examples.decode_examples import Example

CLASSES = "tensorflow_datasets.core.features."


def feature(kind: str, **content: Any) -> dict[str, Any]:
    return {"pythonClassName": CLASSES + kind, **content}


def tensor(dtype: str, *sizes: int, kind: str = "tensor_feature.Tensor") -> dict[str, Any]:
    shape = {"dimensions": list(map(str, sizes))} if sizes else {}
    return feature(kind, tensor={"dtype": dtype, "encoding": "none", "shape": shape})


def label(names: int) -> dict[str, Any]:
    return feature("class_label_feature.ClassLabel", classLabel={"numClasses": str(names)})


def features_dict(**features: Any) -> dict[str, Any]:
    return feature("features_dict.FeaturesDict", featuresDict={"features": features})


def sequence(inner: Any) -> dict[str, Any]:
    return feature("sequence_feature.Sequence", sequence={"feature": inner, "length": "-1"})


BOX = feature(
    "bounding_boxes.BBoxFeature",
    boundingBox={"bboxFormat": "REL_YXYX", "dtype": "float32", "shape": {"dimensions": ["4"]}},
)
FEATURES = features_dict(
    age=tensor("uint8", kind="scalar.Scalar"),
    deep=sequence(sequence(tensor("int8"))),
    half=tensor("float16"),
    image=feature("image_feature.Image", image={"dtype": "uint8", "shape": {"dimensions": ["4", "6", "3"]}}),
    label=label(3),
    name=feature("text_feature.Text", text={}),
    nest=features_dict(a=features_dict(b=tensor("int8"))),
    numbers=tensor("int16", -1),
    objects=sequence(features_dict(bbox=BOX, label=label(2))),
    ok=tensor("bool", kind="scalar.Scalar"),
    pair=tensor("int32", 2, 3),
    raw=tensor("string"),
)
"""`features.json` as TFDS 4.9 writes it."""

LABELS = {"label": ["cat", "dog", "a bird"], "objects/label": ["near", "far"]}


def picture(number: int) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (6, 4), (number, 100, 200)).save(data, "PNG")
    return data.getvalue()


def example(number: int, **changed: Any) -> bytes:
    """Return a record as TFDS writes one; every feature that is changed has these values."""
    count = number % 3
    values: dict[str, list[Any]] = {
        "age": [number],
        "deep/ragged_flat_values": [1] * count + [2],
        "deep/ragged_row_lengths_0": [count, 1],
        "half": [number / 2],
        "image": [picture(number)],
        "label": [count],
        "name": [f"näme {number}".encode()],
        "nest/a/b": [-number],
        "numbers": list(range(count)),
        "objects/bbox": [0.25, 0.5, 0.75, 1.0] * count,
        "objects/label": [1] * count,
        "ok": [number % 2],
        "pair": list(range(6)),
        "raw": [b"\xff"],
    }
    made = Example()
    for name, some in (values | changed).items():
        floats = name in ("half", "objects/bbox")
        kind = "float_list" if floats else "bytes_list" if name in ("image", "name", "raw") else "int64_list"
        made.features.feature[name].SetInParent()
        one = getattr(made.features.feature[name], kind)
        one.SetInParent()
        one.value.extend(some)
    return bytes(made.SerializeToString())


def write_tfds(
    folder: Path, splits: Mapping[str, list[list[bytes]]], *, name: str = "pets", template: str | None = None
) -> list[Path]:
    """Write a folder of these shards of each split; return the paths of all shards."""
    folder.mkdir(parents=True, exist_ok=True)
    template = template or "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    stated, paths = [], []
    for split, shards in splits.items():
        for index, records in enumerate(shards):
            place = {"SHARD_INDEX": f"{index:05d}", "NUM_SHARDS": f"{len(shards):05d}"}
            place["SHARD_X_OF_Y"] = "{SHARD_INDEX}-of-{NUM_SHARDS}".format(**place)
            paths.append(folder / template.format(DATASET=name, SPLIT=split, FILEFORMAT="tfrecord", **place))
            write_records(str(paths[-1]), iter(records), "none")
        lengths = [str(len(records)) for records in shards]
        stated.append({"name": split, "filepathTemplate": template, "shardLengths": lengths, "numBytes": "1"})
    info = {"name": name, "version": "1.0.0", "fileFormat": "tfrecord", "splits": stated}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    (folder / "features.json").write_text(json.dumps(FEATURES))
    for key, names in LABELS.items():
        (folder / f"{key.replace('/', '-')}.labels.txt").write_text("\n".join(names) + "\n")
    return paths
