"""The parts of the page on the dataset as a whole: its splits, its shards, and where it is from."""

from __future__ import annotations

import math
import statistics as medians
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from ...transforms.format.wording.printable import counted, printable
from ...transforms.format.wording.sizes import format_size
from ...transforms.observers.figures import FeatureFigures, SplitFigures, Statistics
from ...transforms.observers.time_words import TimeWords
from .facts import ReportFacts
from .markup import NOTHING, Chart, Table, joined, number, number_in_words, share_bar, shown, sizes


def splits_table(facts: ReportFacts) -> Table:
    manifest = facts.manifest
    records = sum(split.records for split in manifest.splits.values())
    rows = [
        [
            shown(name),
            number(split.records),
            share_bar(split.records, records),
            number(len(split.shards)),
            format_size(split.bytes),
            format_size(split.bytes // split.records) if split.records else NOTHING,
        ]
        for name, split in manifest.splits.items()
    ]
    head = ["split", "records", "share", "shards", "bytes", "bytes a record"]
    return Table("Records, shards and bytes of each split", head, rows)


def shard_sizes(facts: ReportFacts) -> dict[str, Chart]:
    """Return the sizes of the shards beside the size that was asked for; of files that were adopted none was."""
    manifest, asked = facts.manifest, not facts.manifest.details.adopted
    charts = {}
    for name, split in manifest.splits.items():
        held = sorted(shard.bytes for shard in split.shards)
        if held:
            median = format_size(int(medians.median(held)))
            words = f"{counted(len(held), 'shard')} of {name}: {format_size(held[0])} to {format_size(held[-1])}"
            words += f", median {median}" + (f"; asked for: {format_size(manifest.shard_size)}" if asked else "")
            charts[name] = sizes(held, manifest.shard_size if asked else 0, words)
    return charts


@dataclass(frozen=True, slots=True)
class Classes:
    """How often each class of a label occurs; `left` are not in the table, `missing` is where there is none."""

    name: str
    table: Table
    left: int
    missing: str


def class_balance(found: Statistics | None, most: int = 50) -> list[Classes]:
    """Return how often each class of a label occurs in each split; `most` are shown, the most frequent ones."""
    splits = [] if found is None else list(found.splits.values())
    labels = [name for name, one in splits[0].features.items() if one.classes is not None] if splits else []
    return [_classes(label, splits, most) for label in labels]


def _classes(label: str, splits: Sequence[SplitFigures], most: int) -> Classes:
    figures = {split.name: split.features[label] for split in splits if label in split.features}
    counts = {name: dict(one.classes or {}) for name, one in figures.items()}
    totals: dict[str, int] = {}
    for classes in counts.values():
        for name, count in classes.items():
            totals[name] = totals.get(name, 0) + count
    order = sorted(totals, key=lambda name: (-totals[name], name))
    rows = [
        [shown(name) or "(empty)", *_cells([(of.get(name, 0), sum(of.values())) for of in counts.values()])]
        for name in order[:most]
    ]
    head = ["class", *(part for name in counts for part in (shown(name), "share"))]
    missing = ", ".join(f"{counted(one.missing, 'record')} of {name}" for name, one in figures.items() if one.missing)
    return Classes(label, Table(f"Classes of {label} by split", head, rows), max(len(order) - most, 0), missing)


def _cells(counts: list[tuple[int, int]]) -> list[str]:
    return [cell for count, total in counts for cell in (number(count), share_bar(count, total))]


def differences_table(facts: ReportFacts) -> Table | None:
    found = [] if facts.statistics is None else differences(facts.statistics)
    if facts.statistics is None or not found:
        return None
    times = {feature.name: TimeWords.of(feature) for feature in facts.manifest.schema or ()}
    rows = [
        [
            shown(one.feature),
            shown(one.words),
            f"{shown(one.one)} and {shown(one.other)}",
            number(one.size) if math.isfinite(one.size) else _two_values(facts.statistics, one, times[one.feature]),
        ]
        for one in found
    ]
    return Table("The greatest differences between two splits", ["feature", "what differs", "between", "by"], rows, 3)


def _two_values(statistics: Statistics, one: Difference, time: TimeWords | None) -> str:
    figures = (statistics.splits[split].features[one.feature].numbers for split in (one.one, one.other))
    values = [found.min for found in figures if found is not None and found.min is not None]
    shown_values = [number(value) if time is None else number_in_words(value, time.value) for value in values]
    return joined(" and ", shown_values)


def lineage_table(facts: ReportFacts) -> Table:
    rows = [
        [
            number(one.generation),
            shown(one.operation or one.problem or ""),
            shown(one.created),
            number(one.records),
            number(one.total_records),
            number(one.rejected),
            shown(f"{one.source_format}, {counted(one.files, 'file')}, {format_size(one.source_bytes)}"),
        ]
        for one in reversed(facts.history)
    ]
    head = ["generation", "operation", "created", "records added", "records in all", "rejected", "made of"]
    return Table("The generations of the dataset, the latest first", head, rows, 3)


def made_by(facts: ReportFacts) -> dict[str, str]:
    manifest, run = facts.manifest, facts.manifest.run
    tools = ", ".join(f"{name} {version}" for name, version in run.tool.items())
    return {
        "made by": f"{tools}, on {run.runner}",
        "schema": manifest.schema_fingerprint or "plain bytes",
        "config": _unless_none(manifest.config_fingerprint),
        "sources": _unless_none(run.source_fingerprint),
    }


def _unless_none(fingerprint: str) -> str:
    """Return a fingerprint, or that there is none: then all its digits are zeros."""
    return fingerprint if fingerprint.removeprefix("sha256:").strip("0") else "none: the files were adopted"


SHOWN: Final = 15


@dataclass(frozen=True, slots=True)
class Difference:
    """The greatest difference of one kind between two splits of a feature, from 0 on; `words` say what it is."""

    feature: str
    size: float
    one: str
    other: str
    words: str


def differences(statistics: Statistics) -> list[Difference]:
    """Return the greatest difference of each feature and kind, the greatest first.

    Of means it is in standard deviations (of the split that has the greater one), and infinite where each split has one
    value alone; of classes the greatest difference of a class's share, known as the L-infinity distance, and of missing
    values that of their shares. Texts are as classes are, where they are counted exactly in both splits.
    """
    found: list[Difference] = []
    splits = [split for split in statistics.splits.values() if split.records]
    for name in splits[0].features if splits else ():
        pairs = [(a, b) for a, b in combinations(splits, 2) if name in a.features and name in b.features]
        each = [
            Difference(name, size, a.name, b.name, words)
            for a, b in pairs
            for size, words in _between(a.features[name], b.features[name])
            if size > 0
        ]
        kinds = {one.words.partition(":")[0] for one in each}
        found += [max((d for d in each if d.words.startswith(kind)), key=lambda d: d.size) for kind in kinds]
    return sorted(found, key=lambda one: (-one.size, one.feature, one.words))[:SHOWN]


def _between(one: FeatureFigures, other: FeatureFigures) -> list[tuple[float, str]]:
    found = []
    if one.classes is not None and other.classes is not None:
        totals = [sum(figures.classes.values()) for figures in (one, other) if figures.classes is not None]
        if all(totals):
            shares = {
                name: one.classes.get(name, 0) / totals[0] - other.classes.get(name, 0) / totals[1]
                for name in {**one.classes, **other.classes}
            }
            name = max(shares, key=lambda name: (abs(shares[name]), name))
            found.append((abs(shares[name]), f"class: share of {name}"))
    elif one.numbers is not None and other.numbers is not None:
        means = one.numbers.mean, other.numbers.mean
        spread = max(one.numbers.deviation or 0.0, other.numbers.deviation or 0.0)
        if means[0] is not None and means[1] is not None and spread > 0:
            found.append((abs(means[0] - means[1]) / spread, "mean: in standard deviations"))
        elif means[0] != means[1] and None not in means and min(one.values, other.values) > 1:
            found.append((math.inf, "mean: constant in each split"))
    else:
        shares_of_texts = [*_texts(one, other), *_texts(other, one)]
        found += [max(shares_of_texts)] if shares_of_texts else []
    missing = [figures.missing / max(figures.missing + figures.present, 1) for figures in (one, other)]
    found.append((abs(missing[0] - missing[1]), "missing: share of records"))
    return found


def _texts(one: FeatureFigures, other: FeatureFigures) -> Iterator[tuple[float, str]]:
    """Yield by how much, at least, the share of a text is greater in the first split; rare texts are not stated."""
    exact = all(figures.distinct is not None and figures.distinct.exact for figures in (one, other))
    if not exact or not one.values or not other.values:
        return
    known = {text.value: text.count for text in other.top}
    whole = other.distinct is not None and other.distinct.count == len(known)
    others = 0 if whole else min(known.values())
    for text in one.top:
        size = text.count / one.values - known.get(text.value, others) / other.values
        yield size, f"value: share of {printable(text.value)}"
