"""`label_map.pbtxt`: the classes of a label as TensorFlow's Object Detection API reads them, a `StringIntLabelMap`.

    item {
      id: 1
      name: "cat"
    }

Ids are the numbers in the records. Names that only fill the numbers below `input.label_offset` are left out: 0 is the
background's there. Source of the format: tensorflow/models, `object_detection/protos/string_int_label_map.proto`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..schema.schema import Schema
from .tfds import labels_file_name
from .tfx import quoted

ONE: Final = "label_map.pbtxt"
_UNUSED: Final = "_unused_"


def label_maps(schema: Schema, labels: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    """Return the label maps of a dataset by the names of their files: that of the one label, or one named by each."""
    if len(labels) == 1:
        (names,) = labels.values()
        return {ONE: label_map(names)}
    stems = {name: labels_file_name(name, schema).removesuffix("labels.txt") for name in labels}
    return {f"{stem}{ONE}": label_map(labels[name]) for name, stem in stems.items()}


def has_id_0(data: bytes) -> bool:
    """Return whether a label map has the id 0, which TensorFlow's Object Detection API refuses.

    >>> has_id_0(label_map(["cat"])), has_id_0(label_map(["_unused_0", "cat"]))
    (True, False)
    """
    return data.startswith(b"item {\n  id: 0\n")


def label_map(names: Sequence[str]) -> bytes:
    r"""Return the label map of classes, which are numbered from 0.

    >>> label_map(["_unused_0", "cat"])
    b'item {\n  id: 1\n  name: "cat"\n}\n'
    """
    named = [(number, name) for number, name in enumerate(names) if name != f"{_UNUSED}{number}"]
    return "".join(f"item {{\n  id: {number}\n  name: {quoted(name)}\n}}\n" for number, name in named).encode()
