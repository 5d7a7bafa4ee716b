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

from ..schema.schema import Feature, Schema

_TYPES: Final = {"int64": "INT", "float": "FLOAT", "bytes": "BYTES"}

_INT_RANGES: Final = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint8": (0, (1 << 8) - 1),
    "uint16": (0, (1 << 16) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 63) - 1),
}
"""int64 has no bounds to state; a uint64 above 2**63 - 1 never becomes an Example."""

_TIME_FORMATS: Final = {
    "s": "UNIX_SECONDS",
    "ms": "UNIX_MILLISECONDS",
    "us": "UNIX_MICROSECONDS",
    "ns": "UNIX_NANOSECONDS",
}

_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def schema_text(schema: Schema, labels: Mapping[str, Sequence[str]] | None = None) -> bytes:
    """Return `schema.pbtxt`; `labels` are the class names of each label feature."""
    blocks = [_block("feature", _feature_lines(feature, labels or {})) for feature in schema]
    return "".join(f"{line}\n" for block in blocks for line in block).encode()


def _feature_lines(feature: Feature, labels: Mapping[str, Sequence[str]]) -> list[str]:
    lines = [f"name: {_quoted(feature.name)}", f"type: {_TYPES[feature.kind]}"]
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
        name = _quoted(feature.name)
        return _block("int_domain", [f"name: {name}", "min: 0", f"max: {classes - 1}", "is_categorical: true"])
    if feature.kind == "int64" and feature.type == "bool":
        return ["bool_domain { }"]
    if feature.kind == "int64" and feature.type in _INT_RANGES:
        low, high = _INT_RANGES[feature.type]
        return [f"int_domain {{ min: {low} max: {high} }}"]
    if feature.type == "date":
        return ["time_domain { integer_format: UNIX_DAYS }"]
    if feature.type == "timestamp" and feature.unit in _TIME_FORMATS:
        return [f"time_domain {{ integer_format: {_TIME_FORMATS[feature.unit]} }}"]
    if feature.type == "image":
        return ["image_domain { }"]
    return []


def _block(name: str, lines: Iterable[str]) -> list[str]:
    body = [f"  {line}" for line in lines]
    return [f"{name} {{", *body, "}"] if body else [f"{name} {{ }}"]


def _quoted(text: str) -> str:
    """Return a string literal of protobuf's text format; control characters are octal escapes."""
    return '"' + "".join(_ESCAPES.get(c, f"\\{ord(c):03o}" if ord(c) < 32 or ord(c) == 127 else c) for c in text) + '"'
