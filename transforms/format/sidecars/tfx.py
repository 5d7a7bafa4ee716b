"""`schema.pbtxt`: the schema as TFX and TensorFlow Data Validation read it, a `tensorflow.metadata.v0.Schema` as text.

What a feature becomes (tensorflow/metadata, `proto/v0/schema.proto`):

    scalar or fixed shape      `shape`, present in every example: a FixedLenFeature
    nullable                   `value_count`, since `shape` demands presence: a VarLenFeature
    list of any length         `value_count { min: 0 }` without presence: an empty list counts as missing there
    bool, labels, integers narrower than int64, dates and timestamps, images      the domain that says so
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..schema.column_types import column_type
from ..schema.schema import Feature, Schema

_TYPES: Final = {"int64": "INT", "float": "FLOAT", "bytes": "BYTES"}

_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def schema_text(schema: Schema, labels: Mapping[str, Sequence[str]] | None = None) -> bytes:
    blocks = [_block("feature", _feature_lines(feature, labels or {})) for feature in schema]
    return "".join(f"{line}\n" for block in blocks for line in block).encode()


def _feature_lines(feature: Feature, labels: Mapping[str, Sequence[str]]) -> list[str]:
    lines = [f"name: {quoted(feature.name)}", f"type: {_TYPES[feature.kind]}"]
    values = math.prod(feature.shape)
    if -1 in feature.shape:
        lines += ["presence { min_count: 0 }", "value_count { min: 0 }"]
    elif feature.nullable:
        lines += ["presence { min_count: 0 }", f"value_count {{ min: {values} max: {values} }}"]
    else:
        lines += ["presence { min_fraction: 1.0 min_count: 1 }"]
        lines += _block("shape", [f"dim {{ size: {size} }}" for size in feature.shape])
    return lines + _domain_lines(feature, len(labels.get(feature.name, ())))


def _domain_lines(feature: Feature, classes: int) -> list[str]:
    """Return what the values of a feature may be, where its kind does not say it all."""
    if feature.kind == "int64" and classes:
        name = quoted(feature.name)
        return _block("int_domain", [f"name: {name}", "min: 0", f"max: {classes - 1}", "is_categorical: true"])
    domain = column_type(feature).domains.get(feature.unit or "")
    return [] if domain is None else [domain]


def _block(name: str, lines: Iterable[str]) -> list[str]:
    body = [f"  {line}" for line in lines]
    return [f"{name} {{", *body, "}"] if body else [f"{name} {{ }}"]


def quoted(text: str) -> str:
    """Return a string literal of protobuf's text format; control characters are octal escapes."""
    return '"' + "".join(_ESCAPES.get(c, f"\\{ord(c):03o}" if ord(c) < 32 or ord(c) == 127 else c) for c in text) + '"'
