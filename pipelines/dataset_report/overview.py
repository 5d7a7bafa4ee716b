"""The parts of the page on the dataset as a whole: its splits, its shards, and where it is from."""

from __future__ import annotations

import math
import statistics as medians
from collections.abc import Sequence
from typing import Any

from ...transforms.format.wording.printable import counted
from ...transforms.format.wording.sizes import format_size
from ...transforms.statistics.figures import SplitFigures, Statistics
from ...transforms.statistics.time_words import TimeWords
from ..report.split_rule import rule_text
from .charts import share_bar, sizes
from .differences import Difference, differences
from .facts import ReportFacts
from .markup import NOTHING, note, number, number_in_words, section, table, text_of


def splits_section(facts: ReportFacts) -> str:
    """Return how many records, shards and bytes each split has."""
    manifest = facts.manifest
    records = sum(split.records for split in manifest.splits.values())
    rows = [
        [
            text_of(name),
            number(split.records),
            share_bar(split.records, records),
            number(len(split.shards)),
            format_size(split.bytes),
            format_size(split.bytes // split.records) if split.records else NOTHING,
        ]
        for name, split in manifest.splits.items()
    ]
    rule = manifest.details.split_rule
    words = note(f"Split {text_of(rule_text(rule))}") if rule else ""
    head = ["split", "records", "share", "shards", "bytes", "bytes a record"]
    return section("splits", "Splits", table("Records, shards and bytes of each split", head, rows), words)


def shards_section(facts: ReportFacts) -> str:
    """Return the sizes of the shards beside the size that was asked for; of files that were adopted none was."""
    manifest, asked = facts.manifest, not facts.manifest.details.adopted
    parts = []
    for name, split in manifest.splits.items():
        held = sorted(shard.bytes for shard in split.shards)
        if not held:
            continue
        words = (
            f"{counted(len(held), 'shard')} of {name}: {format_size(held[0])} to {format_size(held[-1])}, median "
            f"{format_size(int(medians.median(held)))}"
        )
        words += f"; asked for: {format_size(manifest.shard_size)}" if asked else ""
        parts.append(
            f"<h3>{text_of(name)}</h3>{sizes(held, manifest.shard_size if asked else 0, words)}{note(text_of(words))}"
        )
    line = note("The line is at the size that was asked for, which no shard exceeds but one of a single larger record.")
    line = line if asked else note("These files were adopted as they are: no size was asked for.")
    return section("shards", "Shard sizes", line, *parts)


def classes_section(facts: ReportFacts, most: int = 50) -> str:
    """Return how often each class of a label occurs in each split; `most` are shown, the most frequent ones."""
    found = facts.statistics
    if found is None or not found.splits:
        return ""
    labels = [name for name, one in next(iter(found.splits.values())).features.items() if one.classes is not None]
    parts = [_classes(label, list(found.splits.values()), most) for label in labels]
    return section("classes", "Class balance", *parts) if parts else ""


def _classes(label: str, splits: Sequence[SplitFigures], most: int) -> str:
    """Return the classes of a label, the most frequent ones first, and in how many records it is missing."""
    figures = {split.name: split.features[label] for split in splits if label in split.features}
    counts = {name: dict(one.classes or {}) for name, one in figures.items()}
    totals: dict[str, int] = {}
    for classes in counts.values():
        for name, count in classes.items():
            totals[name] = totals.get(name, 0) + count
    order = sorted(totals, key=lambda name: (-totals[name], name))
    rows = [
        [text_of(name) or "(empty)", *_cells([(of.get(name, 0), sum(of.values())) for of in counts.values()])]
        for name in order[:most]
    ]
    head = ["class", *(part for name in counts for part in (text_of(name), "share"))]
    left = note(f"and {len(order) - most:,} classes more") if len(order) > most else ""
    missing = [f"{counted(one.missing, 'record')} of {text_of(name)}" for name, one in figures.items() if one.missing]
    without = note(f"Without a class: {', '.join(missing)}; shares are of the others.") if missing else ""
    return f"<h3>{text_of(label)}</h3>{table(f'Classes of {label} by split', head, rows)}{left}{without}"


def _cells(counts: list[tuple[int, int]]) -> list[str]:
    return [cell for count, total in counts for cell in (number(count), share_bar(count, total))]


def differences_section(facts: ReportFacts) -> str:
    """Return in what the splits differ most."""
    if facts.statistics is None or len(facts.statistics.splits) < 2:
        return ""
    found = differences(facts.statistics)
    if not found:
        return section("differences", "Splits side by side", note("No feature differs between the splits."))
    times = {feature.name: TimeWords.of(feature) for feature in facts.manifest.schema or ()}
    rows = [
        [
            text_of(one.feature),
            text_of(one.words),
            f"{text_of(one.one)} and {text_of(one.other)}",
            number(one.size) if math.isfinite(one.size) else _two_values(facts.statistics, one, times[one.feature]),
        ]
        for one in found
    ]
    head = ["feature", "what differs", "between", "by"]
    return section(
        "differences",
        "Splits side by side",
        note("The greatest differences between two splits. All figures of each split are below, feature by feature."),
        table("The greatest differences between two splits", head, rows, numbers_from=3),
    )


def _two_values(statistics: Statistics, one: Difference, time: TimeWords | None) -> str:
    """Return the two values of a feature that has one in each of two splits."""
    figures = (statistics.splits[split].features[one.feature].numbers for split in (one.one, one.other))
    values = [found.min for found in figures if found is not None and found.min is not None]
    return " and ".join(number(value) if time is None else number_in_words(value, time.value) for value in values)


def lineage_section(facts: ReportFacts) -> str:
    """Return which generations there are, what each was made of, and by what."""
    rows = [
        [
            number(one.generation),
            text_of(one.operation or one.problem or ""),
            text_of(one.created),
            number(one.records),
            number(one.total_records),
            number(one.rejected),
            text_of(f"{one.source_format}, {counted(one.files, 'file')}, {format_size(one.source_bytes)}"),
        ]
        for one in reversed(facts.history)
    ]
    run = facts.manifest.run
    head = ["generation", "operation", "created", "records added", "records in all", "rejected", "made of"]
    tools = ", ".join(f"{name} {version}" for name, version in run.tool.items())
    more: dict[str, Any] = {
        "made by": f"{tools}, on {run.runner}",
        "schema": facts.manifest.schema_fingerprint or "plain bytes",
        "config": _unless_none(facts.manifest.config_fingerprint),
        "sources": _unless_none(run.source_fingerprint),
    }
    words = "".join(f"<dt>{text_of(name)}</dt><dd>{text_of(value)}</dd>" for name, value in more.items())
    made = table("The generations of the dataset, the latest first", head, rows, numbers_from=3)
    return section("lineage", "Lineage", made, f"<dl>{words}</dl>")


def _unless_none(fingerprint: str) -> str:
    """Return a fingerprint, or that there is none: then all its digits are zeros."""
    return fingerprint if fingerprint.removeprefix("sha256:").strip("0") else "none: the files were adopted"
