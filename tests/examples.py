"""Examples for tests: made by protobuf itself, and by one call of the encoders and decoders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from shardmill.transforms.format.batches.rows import Block, FeatureColumn, Rows
from shardmill.transforms.format.examples.decode_examples import Example, ExampleDecoder, ExampleMessage, FeatureMessage
from shardmill.transforms.format.examples.encode_rows import RowEncoder
from shardmill.transforms.format.examples.example import ExampleEncoder
from shardmill.transforms.format.schema.schema import Schema
from shardmill.transforms.format.tfrecord.framing import Payloads

Values = int | float | bytes | str | Sequence[int] | Sequence[float] | Sequence[bytes] | Sequence[str]
"""What one feature of an Example may be made from; a scalar is a list of one."""


def example_from_values(values: Mapping[str, Values], kinds: Mapping[str, str] | None = None) -> ExampleMessage:
    r"""Return an Example of the given values.

    The kind of a feature is `kinds[name]` (`int64`, `float` or `bytes`), else that of its first value: int and bool
    are int64, float is float, str and bytes are bytes. An empty list needs its kind; kind `none` sets no list at all.

    >>> example_from_values({"a": 1}).SerializeToString(deterministic=True)
    b'\n\x0c\n\n\n\x01a\x12\x05\x1a\x03\n\x01\x01'

    Raises:
        ValueError: an empty list has no kind in `kinds`, or a kind is unknown.
        TypeError: a value does not fit its kind.
    """
    example = Example()
    for name, value in values.items():
        items: list[Any] = [value] if isinstance(value, (int, float, bytes, str)) else list(value)
        kind = (kinds or {}).get(name) or _kind_of(name, items)
        feature = example.features.feature[name]
        if kind == "none":
            continue
        target = _list_of_kind(feature, kind)
        target.SetInParent()  # an empty list is a present one
        target.value.extend([v.encode() if isinstance(v, str) else v for v in items])
    return example


def _kind_of(name: str, items: list[Any]) -> str:
    if not items:
        raise ValueError(f"feature {name!r}: an empty list has no kind; give one in `kinds`")
    first = items[0]
    if isinstance(first, int):
        return "int64"
    return "float" if isinstance(first, float) else "bytes"


def _list_of_kind(feature: FeatureMessage, kind: str) -> Any:
    if kind == "int64":
        return feature.int64_list
    if kind == "float":
        return feature.float_list
    if kind == "bytes":
        return feature.bytes_list
    raise ValueError(f"kind {kind!r} is none of int64, float, bytes, none")


def encode_examples(columns: Sequence[FeatureColumn], rows: int) -> pa.LargeBinaryArray:
    """Return the serialized Example of each row; names of columns are unique."""
    records = ExampleEncoder().lay_out(columns, rows, splice_bytes=None).write()
    offsets = np.concatenate([[0], records.segment_ends[:, 0]]).astype(np.int64)
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), rows, [None, pa.py_buffer(offsets), records.data])


def decode_examples(
    payloads: Payloads | pa.Array | Sequence[bytes], schema: Schema, columns: Sequence[str] | None = None
) -> pa.RecordBatch:
    """Return serialized Examples as one Arrow batch."""
    return ExampleDecoder(schema, columns).decode(payloads)


def encode_rows(rows: Rows | pa.RecordBatch, schema: Schema, **options: Any) -> Block:
    """Encode one batch; the options are those of a `RowEncoder`."""
    return RowEncoder(schema, **options).encode(rows)
