"""`stats.json`: the figures for people and programs, and below them what is counted, which an append adds to.

    {"format": "shardmill statistics", "version": 1, "generation": 1, "level": "basic",
     "splits": {"train": {"records": 3, "features": {"price": {...}, ...}}},       figures
     "state": {"train": {"records": 3, "features": {"price": {...}, ...}}}}        exact sums, and what merges

`docs/format.md` describes the members. The same records give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ..format.manifest.strict_json import JsonError, parse_json
from ..format.manifest.strict_members import (
    ManifestProblem,
    Take,
    choice,
    integer,
    items,
    mapping,
    number,
    object_of,
    only,
    optional,
    text,
)
from .figures import (
    Bucket,
    Distinct,
    FeatureFigures,
    ImageFigures,
    LengthFigures,
    Level,
    NumberFigures,
    SplitFigures,
    Statistics,
    ValueCount,
)
from .tally import Tally

STATS_JSON: Final = "stats.json"
STATS_TFDV: Final = "stats.tfdv"
STATS_FILES: Final = (STATS_JSON, STATS_TFDV)

_FORMAT: Final = "shardmill statistics"
_VERSION: Final = 1


class StatsProblem(ValueError):
    """What is wrong with the bytes of a `stats.json`."""


@dataclass(frozen=True, slots=True)
class StatsDocument:
    """What a `stats.json` holds: the generation that it is of, the figures, and what is counted."""

    generation: int
    statistics: Statistics
    state: Mapping[str, Any]

    def tally(self) -> Tally:
        try:
            found = Tally.from_json(self.state, self.statistics.level)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StatsProblem(f"its state cannot be read: {error}") from error
        if found.records != {name: split.records for name, split in self.statistics.splits.items()}:
            raise StatsProblem("its state and its figures disagree")
        return found


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
    found = {name: value for name, value in asdict(figures).items() if value is not None and value != ()}
    del found["name"]
    for name in ("histogram", "top"):
        if name in found:
            found[name] = [list(one.values()) for one in found[name]]
    if "image" in found:
        found["image"] = {name: value for name, value in found["image"].items() if value is not None}
    return found


def parse_stats(data: bytes) -> StatsDocument:
    try:
        return _take(parse_json(data))
    except (JsonError, ManifestProblem) as error:
        raise StatsProblem(str(error)) from error


def _features(found: Mapping[str, Any]) -> dict[str, FeatureFigures]:
    return {name: FeatureFigures(name, **members) for name, members in found.items()}


def _statistics(
    format: str,  # noqa: A002 - the document's key
    version: int,
    generation: int,
    level: Level,
    splits: Mapping[str, Any],
    state: Mapping[str, Any],
) -> StatsDocument:
    del format, version
    found = {name: SplitFigures(name, one["records"], _features(one["features"])) for name, one in splits.items()}
    return StatsDocument(generation, Statistics(level, found), state)


def _pairs(value: Any, make: Any, *takes: Take[Any]) -> Any:
    row = items(lambda one: one)(value)
    if len(row) != len(takes):
        raise ManifestProblem(f" has not {len(takes)} members")
    return make(*(take(one) for take, one in zip(takes, row, strict=True)))


_EXACT: Final = only(lambda value: type(value) in (int, float), "a number")
_SCALAR: Final = only(lambda value: type(value) in (int, float, str), "a number or text")
_COUNTS: Final = mapping(integer())
_NUMBERS: Final = object_of(
    NumberFigures,
    min=optional(_EXACT),
    max=optional(_EXACT),
    mean=optional(number()),
    deviation=optional(number()),
    zeros=integer(),
    nan=integer(),
    infinite=integer(),
)
_LENGTHS: Final = object_of(
    LengthFigures,
    min=optional(integer()),
    max=optional(integer()),
    mean=optional(number()),
    total=integer(),
    empty=integer(),
)
_OPTIONAL: Final = ("numbers", "lengths", "sizes", "classes", "image", "histogram", "quantiles", "distinct", "top")
_FEATURE: Final[Take[dict[str, Any]]] = object_of(
    dict,
    _OPTIONAL,
    kind=choice("int64", "float", "bytes"),
    type=text(),
    present=integer(),
    missing=integer(),
    values=integer(),
    numbers=_NUMBERS,
    lengths=_LENGTHS,
    sizes=_LENGTHS,
    classes=_COUNTS,
    image=object_of(ImageFigures, ("height", "width"), formats=_COUNTS, height=_NUMBERS, width=_NUMBERS),
    histogram=items(lambda value: _pairs(value, Bucket, number(), number(), number())),
    quantiles=items(number()),
    distinct=object_of(Distinct, count=integer(), exact=only(lambda value: isinstance(value, bool), "true or false")),
    top=items(lambda value: _pairs(value, ValueCount, _SCALAR, integer())),
)
_take: Final[Take[StatsDocument]] = object_of(
    _statistics,
    format=choice(_FORMAT),
    version=integer(_VERSION, _VERSION),
    generation=integer(1),
    level=choice("basic", "full"),
    splits=mapping(object_of(dict, features=mapping(_FEATURE), records=integer(1))),
    state=mapping(lambda value: value),
)
