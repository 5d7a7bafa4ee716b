"""`stats.tfdv`: the figures as TensorFlow Data Validation reads them, a `DatasetFeatureStatisticsList`.

    DatasetFeatureStatisticsList   one dataset for each split
      DatasetFeatureStatistics     name, num_examples, features
        FeatureNameStatistics      path, type, and one of num_stats, string_stats, bytes_stats

The message is the one record of a TFRecord, as `tfdv.load_statistics` takes it. It is written field by field: what is
needed of protobuf's wire format is a tag, a varint, a double, and bytes with their length.

Source: tensorflow/metadata `proto/v0/statistics.proto`, tensorflow/data-validation `utils/stats_util.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from ..format.buffers.arrow_memory import binary_array
from ..format.tfrecord.framing import frame_records
from .figures import FeatureFigures, SplitFigures, Statistics

_INT, _FLOAT, _STRING, _BYTES = 0, 1, 2, 3
_STANDARD, _QUANTILES = 0, 1
_TEXT: Final = "string"


def statistics_file(statistics: Statistics) -> bytes:
    message = b"".join(_field(1, _dataset(split)) for split in statistics.splits.values())
    frames = frame_records(binary_array([message]).cast(pa.large_binary()))
    return b"".join(map(bytes, frames.buffers))


def _dataset(split: SplitFigures) -> bytes:
    features = b"".join(_field(3, _feature(feature)) for feature in split.features.values())
    return _field(1, split.name.encode()) + _number(2, split.records) + features


def _feature(feature: FeatureFigures) -> bytes:
    path = _field(8, _field(1, feature.name.encode()))
    if feature.kind == "bytes" and feature.type == _TEXT:
        return path + _number(2, _STRING) + _field(4, _strings(feature))
    if feature.kind == "bytes":
        return path + _number(2, _BYTES) + _field(5, _bytes(feature))
    return path + _number(2, _FLOAT if feature.kind == "float" else _INT) + _field(3, _numbers(feature))


def _common(feature: FeatureFigures) -> bytes:
    lengths, present = feature.lengths, feature.present
    each = feature.values // present if present else 0
    least, most = (each, each) if lengths is None else (lengths.min or 0, lengths.max or 0)
    mean = _single(5, feature.values / present) if present else b""
    counts = _number(1, present) + _number(2, feature.missing) + _number(3, least) + _number(4, most)
    return counts + mean + _number(8, feature.values)


def _numbers(feature: FeatureFigures) -> bytes:
    found = feature.numbers
    parts = [_field(1, _common(feature))]
    if found is not None:
        named = ((2, found.mean), (3, found.deviation), (5, found.min), (6, _median(feature)), (7, found.max))
        parts.append(_number(4, found.zeros))
        parts += [_double(number, value) for number, value in named if value is not None]
    if feature.histogram:
        buckets = [(one.low, one.high, one.count) for one in feature.histogram]
        parts.append(_field(8, _histogram(_STANDARD, buckets, found.nan if found is not None else 0)))
    if len(feature.quantiles) > 1 and found is not None:
        ends = list(zip(feature.quantiles, feature.quantiles[1:], strict=False))
        share = (feature.values - found.nan - found.infinite) / len(ends)
        parts.append(_field(8, _histogram(_QUANTILES, [(low, high, share) for low, high in ends], found.nan)))
    return b"".join(parts)


def _median(feature: FeatureFigures) -> float | None:
    return feature.quantiles[len(feature.quantiles) // 2] if feature.quantiles else None


def _histogram(kind: int, buckets: Iterable[tuple[float, float, float]], nan: int) -> bytes:
    written = (_field(3, _double(1, low) + _double(2, high) + _double(4, count)) for low, high, count in buckets)
    return _number(1, nan) + b"".join(written) + _number(4, kind)


def _strings(feature: FeatureFigures) -> bytes:
    parts = [_field(1, _common(feature))]
    if feature.distinct is not None:
        parts.append(_number(2, feature.distinct.count))
    parts += [_field(3, _field(2, str(one.value).encode()) + _double(3, one.count)) for one in feature.top]
    if feature.sizes is not None and feature.sizes.mean is not None:
        parts.append(_single(4, feature.sizes.mean))
    if feature.top:
        ranks = (
            _number(1, rank) + _number(2, rank) + _field(4, str(one.value).encode()) + _double(5, one.count)
            for rank, one in enumerate(feature.top)
        )
        parts.append(_field(5, b"".join(_field(1, rank) for rank in ranks)))
    return b"".join(parts)


def _bytes(feature: FeatureFigures) -> bytes:
    parts, sizes = [_field(1, _common(feature))], feature.sizes
    if sizes is not None and sizes.min is not None and sizes.max is not None and sizes.mean is not None:
        parts += [_single(3, sizes.mean), _single(4, sizes.min), _single(5, sizes.max), _number(6, sizes.max)]
    return b"".join(parts)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _single(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def _field(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data
