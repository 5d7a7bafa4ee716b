"""`stats.json`: the figures for people and programs, and below them what is counted, which an append adds to.

    {"format": "shardmill statistics", "version": 1, "generation": 1, "level": "basic",
     "splits": {"train": {"records": 3, "features": {"price": {...}, ...}}},       figures
     "state": {"train": {"records": 3, "features": {"price": {...}, ...}}}}        exact sums, and what merges

`docs/format.md` describes the members. The same records give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

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
from .figures import FeatureFigures, Statistics
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
