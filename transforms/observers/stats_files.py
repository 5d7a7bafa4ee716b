"""Write and read `stats.json`: figures for people and programs, and the counts that an append adds to.

    {"format": "shardmill statistics", "version": 1, "generation": 1, "level": "basic",
     "splits": {"train": {"records": 3, "features": {"price": {...}, ...}}},       figures
     "state": {"train": {"records": 3, "features": {"price": {...}, ...}}}}        exact sums, and what merges

`docs/format.md` describes the members. The same records give the same bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ..format.batches.arrow_memory import binary_array, varint
from ..format.manifest.strict_json import (
    JsonError,
    ManifestProblem,
    Take,
    choice,
    integer,
    mapping,
    object_of,
    parse_json,
)
from ..format.schema.schema import Schema
from ..format.tfrecord.framing import frame_records
from .figures import FeatureFigures, SplitFigures, Statistics
from .tally import Tally

STATS_JSON: Final = "stats.json"
STATS_TFDV: Final = "stats.tfdv"
STATS_FILES: Final = (STATS_JSON, STATS_TFDV)

_FORMAT: Final = "shardmill statistics"
_VERSION: Final = 1
_UNREADABLE: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What reading counts raises where no writer wrote them."""


class StatsProblem(Exception):
    """What is wrong with the bytes of a `stats.json`."""


def stats_json(tally: Tally, statistics: Statistics, generation: int) -> bytes:
    head = {"format": _FORMAT, "version": _VERSION, "generation": generation, "level": tally.level}
    start = json.dumps(head)[:-1]
    return f'{start},\n "splits": {_lines(figures_of(statistics))},\n "state": {_lines(tally.to_json())}}}\n'.encode()


def figures_of(statistics: Statistics) -> dict[str, dict[str, Any]]:
    return {
        name: {"records": split.records, "features": {one.name: _document(one) for one in split.features.values()}}
        for name, split in statistics.splits.items()
    }


def _lines(splits: Mapping[str, Mapping[str, Any]]) -> str:
    shown = []
    for name, split in splits.items():
        features = ",\n   ".join(f"{json.dumps(one)}: {json.dumps(what)}" for one, what in split["features"].items())
        more = f',\n   "sample": {json.dumps(split["sample"])}' if "sample" in split else ""
        shown.append(f'{json.dumps(name)}: {{"records": {split["records"]}, "features": {{\n   {features}}}{more}}}')
    return "{" + ",\n  ".join(shown) + "}"


def _document(figures: FeatureFigures) -> dict[str, Any]:
    found = {name: value for name, value in _members(figures).items() if value is not None and value != ()}
    del found["name"]
    for name in ("numbers", "lengths", "sizes", "distinct"):
        if name in found:
            found[name] = _members(found[name])
    for name in ("histogram", "top"):
        if name in found:
            found[name] = [list(_members(one).values()) for one in found[name]]
    if figures.image is not None:
        image = {name: value for name, value in _members(figures.image).items() if value is not None}
        found["image"] = {name: value if name == "formats" else _members(value) for name, value in image.items()}
    return found


def _members(one: Any) -> dict[str, Any]:
    """Return the fields of a dataclass: `asdict` copies each value, which takes ten times as long."""
    return {name: getattr(one, name) for name in one.__slots__}


def parse_stats(
    data: bytes, generation: int, schema: Schema, labels: Mapping[str, Sequence[str]]
) -> tuple[Tally, Statistics] | None:
    """Return what is counted of a generation, and the figures that follow from it; None in the file of another one."""
    try:
        document = _take(parse_json(data))
        if document["generation"] != generation:
            return None
        tally = Tally.from_json(document["state"], document["level"])
        statistics = tally.statistics(schema, labels)
        if document["splits"] != json.loads(json.dumps(figures_of(statistics))):
            raise StatsProblem("its state and its figures disagree")
    except (JsonError, ManifestProblem) as error:
        raise StatsProblem(str(error)) from error
    except _UNREADABLE as error:
        raise StatsProblem(f"its state cannot be read: {error}") from error
    return tally, statistics


_ANY: Final[Take[Any]] = mapping(lambda value: value)
_take: Final[Take[dict[str, Any]]] = object_of(
    dict,
    format=choice(_FORMAT),
    version=integer(_VERSION, _VERSION),
    generation=integer(1),
    level=choice("basic", "full"),
    splits=_ANY,
    state=_ANY,
)


# `stats.tfdv`: the figures as TensorFlow Data Validation reads them, a `DatasetFeatureStatisticsList`.
#
#     DatasetFeatureStatisticsList   one dataset for each split
#       DatasetFeatureStatistics     name, num_examples, features
#         FeatureNameStatistics      path, type, and one of num_stats, string_stats, bytes_stats
#
# The message is the one record of a TFRecord, as `tfdv.load_statistics` takes it. It is written field by field: what
# is needed of protobuf's wire format is a tag, a varint, a double, and bytes with their length.
#
# Source: tensorflow/metadata `proto/v0/statistics.proto`, tensorflow/data-validation `utils/stats_util.py`.


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


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value) if value else b""


def _double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def _single(field: int, value: float) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<f", value)


def _field(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data
