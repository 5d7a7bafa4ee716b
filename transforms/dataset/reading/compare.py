"""Compare two generations by their manifests, statistics and lists of sources; no record is read.

    schema      features that were added, removed, or are of another type or shape, or may be absent in one alone
    labels      classes that were added or removed, or have another number
    splits      records, shards, bytes; whether the records are the same, in any order, by their `records_digest`
    figures     where both have statistics: what differs of a feature in a split
    sources     input files that were added, removed, or have another content

Two datasets are equal if schema, labels and the records of each split are: other shards, and other sources of the same
records, are shown and do not count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from ...format.manifest.manifest import Manifest, SplitEntry
from ...format.schema.schema import Feature, Schema, feature_text
from ...format.wording.printable import printable, printable_path
from ...observers.figures import Distinct, FeatureFigures, Level, Statistics
from ..commit.accounting import read_held_sources
from ..storage.manifest_files import list_generations, read_overview, read_stats
from ..storage.opened_generation import open_generation

_GENERATION: Final = re.compile(r"(.+)@([0-9]{1,19})")


@dataclass(frozen=True, slots=True)
class Side:
    """A generation; in `manifest` each part of the list of shards is one shard, and `shards` is how many there are."""

    path: str
    manifest: Manifest
    shards: dict[str, int]

    @classmethod
    def open(cls, name: str) -> Side:
        """Open `FOLDER`, whose latest generation it is, or `FOLDER@3`."""
        match = None if os.path.isdir(name) else _GENERATION.fullmatch(name)
        if match:
            open_generation(match[1], int(match[2]))  # refuses one that was replaced
        return cls._of(match[1], int(match[2])) if match else cls._of(name, None)

    @classmethod
    def _of(cls, path: str, generation: int | None) -> Side:
        found = read_overview(path.rstrip("/") or path, generation)
        return cls(found.path, found.manifest, found.shards)

    @property
    def name(self) -> str:
        return f"{printable_path(self.path)}, generation {self.manifest.generation}"

    @property
    def is_older(self) -> bool:
        """Whether the dataset has a later generation: statistics are those of the latest alone."""
        return any(one > self.manifest.generation for one in list_generations(self.path))

    def statistics(self) -> Statistics | None:
        return read_stats(self.path, self.manifest)

    def sources(self) -> dict[str, str]:
        held = (one for manifest in self._lineage() for one in read_held_sources(self.path, manifest))
        return {one.name: one.fingerprint for one in held}

    def _lineage(self) -> Iterator[Manifest]:
        side = self
        yield side.manifest
        while side.manifest.parent is not None and side.manifest.parent < side.manifest.generation:
            side = Side._of(self.path, side.manifest.parent)
            yield side.manifest


@dataclass(frozen=True, slots=True)
class SplitDifference:
    """One split on both sides: (records, shards, bytes) of each, None where there is no such split."""

    name: str
    a: tuple[int, int, int] | None
    b: tuple[int, int, int] | None
    same_records: bool


@dataclass(frozen=True, slots=True)
class FigureDifference:
    """One figure of a feature in a split, such as `mean` or `missing`, on both sides; `estimated` names sides."""

    split: str
    feature: str
    figure: str
    a: Any
    b: Any
    estimated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """All that differs; what is empty is equal.

    `schema` has the two texts of each feature that differs, None where a side lacks it; `labels` for each label feature
    the number of each class on both sides, where these differ. `figures` is None where a side has no statistics; they
    are of what both `levels` of statistics have, None being that of a side without. `sources`
    is (in A alone, in B alone, changed).
    """

    schema: dict[str, tuple[str | None, str | None]]
    labels: dict[str, dict[str, tuple[int | None, int | None]]]
    splits: tuple[SplitDifference, ...]
    figures: tuple[FigureDifference, ...] | None
    levels: tuple[Level | None, Level | None]
    sources: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]

    @property
    def equal(self) -> bool:
        return not self.schema and not self.labels and all(split.same_records for split in self.splits)

    def to_json(self) -> dict[str, Any]:
        document = asdict(self)
        document["equal"] = self.equal
        document["sources"] = dict(zip(("only_a", "only_b", "changed"), map(list, self.sources), strict=True))
        sizes = ("records", "shards", "bytes")
        for split in document["splits"]:
            for side in ("a", "b"):
                split[side] = None if split[side] is None else dict(zip(sizes, split[side], strict=True))
        return document


def compare(a: Side, b: Side) -> Difference:
    figures = a.statistics(), b.statistics()
    levels = [None if one is None else one.level for one in figures]
    return Difference(
        _schemas(a.manifest.schema, b.manifest.schema),
        _labels(a.manifest.labels, b.manifest.labels),
        tuple(_splits(a, b)),
        _figures(*figures),
        (levels[0], levels[1]),
        _sources(a.sources(), b.sources()),
    )


def _schemas(a: Schema | None, b: Schema | None) -> dict[str, tuple[str | None, str | None]]:
    ours, theirs = ({one.name: _text(one) for one in schema or ()} for schema in (a, b))
    if (a is None) != (b is None):
        ours |= {} if a is not None else {"": "plain bytes"}
        theirs |= {} if b is not None else {"": "plain bytes"}
    names = sorted(ours.keys() | theirs.keys())
    return {name: (ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}


def _text(feature: Feature) -> str:
    return feature_text(feature) + (", may be absent" if feature.nullable else "")


def _labels(
    a: Mapping[str, Sequence[str]], b: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, tuple[int | None, int | None]]]:
    found = {}
    for feature in sorted(a.keys() | b.keys()):
        ours, theirs = ({name: number for number, name in enumerate(side.get(feature, ()))} for side in (a, b))
        names = list(dict.fromkeys([*ours, *theirs]))
        changed = {name: (ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}
        if changed:
            found[feature] = changed
    return found


def _splits(a: Side, b: Side) -> list[SplitDifference]:
    found = []
    for name in sorted(a.manifest.splits.keys() | b.manifest.splits.keys()):
        ours, theirs = a.manifest.splits.get(name), b.manifest.splits.get(name)
        same = ours is not None and theirs is not None and _held(ours) == _held(theirs)
        sizes = [
            None if split is None else (split.records, side.shards[name], split.bytes)
            for side, split in ((a, ours), (b, theirs))
        ]
        found.append(SplitDifference(name, sizes[0], sizes[1], same))
    return found


def _held(split: SplitEntry) -> tuple[int, str]:
    return split.records, split.records_digest


def _figures(a: Statistics | None, b: Statistics | None) -> tuple[FigureDifference, ...] | None:
    if a is None or b is None:
        return None
    found: list[FigureDifference] = []
    for split in sorted(a.splits.keys() & b.splits.keys()):
        ours, theirs = a.splits[split].features, b.splits[split].features
        for name in ours:
            if name in theirs:
                left, right = _flat(ours[name]), _flat(theirs[name])
                keys = [key for key in dict.fromkeys([*left, *right]) if left.get(key) != right.get(key)]
                found += [FigureDifference(split, name, key, left.get(key), right.get(key)) for key in keys]
                if a.level == b.level:
                    found += _distinct(split, name, ours[name].distinct, theirs[name].distinct)
    return tuple(found)


def _distinct(split: str, name: str, a: Distinct | None, b: Distinct | None) -> Iterator[FigureDifference]:
    if a != b:
        counts = [None if one is None else one.count for one in (a, b)]
        estimated = tuple(side for side, one in (("a", a), ("b", b)) if one is not None and not one.exact)
        yield FigureDifference(split, name, "distinct", counts[0], counts[1], estimated)


def _flat(figures: FeatureFigures) -> dict[str, Any]:
    flat: dict[str, Any] = {"missing": figures.missing}
    for what in ("numbers", "sizes", "lengths"):
        group = getattr(figures, what)
        if group is not None:
            prefix = "" if what == "numbers" else f"{what} "
            flat |= {f"{prefix}{one.name}": getattr(group, one.name) for one in fields(group)}
    return flat | {f"class {printable(name)}": count for name, count in (figures.classes or {}).items()}


def _sources(a: dict[str, str], b: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    changed = tuple(sorted(name for name in a.keys() & b.keys() if a[name] != b[name]))
    return tuple(sorted(a.keys() - b.keys())), tuple(sorted(b.keys() - a.keys())), changed
