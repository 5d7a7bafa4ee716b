"""How the records of a run are split, ordered and checked as a whole, in words; and what an append leaves unchecked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, Final

from ...transforms.format.batches.observers import Observer
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.wording.hints import Add, Set
from ...transforms.format.wording.printable import printable
from ...transforms.observers.tally import STATISTICS

if TYPE_CHECKING:
    from ...transforms.inputs.contract.source import Traits


_BEYOND_CHANCE: Final = 6.0
"""Standard deviations: by chance one split of 500 million is that far from its fraction."""

_FAR: Final = 0.1
"""Of groups, which may be large: so much of all records."""


FOUND_BY: Final = {
    "folders": "names of folders",
    "roots": "names of folders",
    "names": "names that tools write",
    "readme": "README.md",
    "lists": "lists of pictures",
    "tfds": "dataset_info.json",
    "words": "words in names",
    "globs": "input.splits",
    "off": "none (input.splits)",
    "unused": "not used",
}
"""How files got their splits, by the rule that a dataset remembers."""


def rule_text(rule: Mapping[str, Any]) -> str:
    """Return how rows were cut into splits, by the section `split` of a config or a manifest.

    >>> rule_text({"by": "exact", "stratify": "kind", "fractions": {"train": 0.8, "val": 0.2}})
    'exactly, in each class of kind: train 0.8, val 0.2'
    >>> rule_text({"before": {"column": "day", "train": "2024-02-01", "rest": "val"}})
    'by day: train before 2024-02-01, val the rest'
    """
    if "column" in rule:
        text = f"by the values of {printable(rule['column'])}"
        parts = [f"{printable(value)} is {split}" for value, split in rule.get("names", {}).items()]
    elif "before" in rule:
        bounds = dict(rule["before"])
        text, rest = f"by {printable(bounds.pop('column'))}", bounds.pop("rest", None)
        parts = [f"{split} before {printable(bound)}" for split, bound in bounds.items()]
        parts += [f"{rest} the rest"] if rest is not None else []
    else:
        text = "exactly" if rule.get("by") == "exact" else "by a hash"
        text += f", rows of one {printable(rule['key'])} together" if "key" in rule else ""
        text += f", in each class of {printable(rule['stratify'])}" if "stratify" in rule else ""
        parts = [f"{split} {fraction}" for split, fraction in rule.get("fractions", {}).items()]
        parts += [f"{rule['folds']} folds"] if "folds" in rule else []
    return f"{text}{': ' if parts else ''}{', '.join(parts)}{'; only of ' + rule['of'] if 'of' in rule else ''}"


def shares_of(manifest: Manifest) -> dict[str, float]:
    """Return the part of all records that each split has; nothing of a dataset without records."""
    total = sum(split.records for split in manifest.splits.values())
    return {name: split.records / total for name, split in manifest.splits.items()} if total else {}


def added_records(manifest: Manifest, names: Iterable[str]) -> dict[str, int]:
    found = dict.fromkeys(names, 0)
    for name in found.keys() & manifest.splits.keys():
        shards = manifest.splits[name].shards
        found[name] = sum(shard.records for shard in shards if shard.generation == manifest.generation)
    return found


def share_warnings(
    asked: Mapping[str, float], found: Mapping[str, int], key: str | None, *, classes: bool = True
) -> list[str]:
    """Return which split got nothing by a hash, or what no chance explains; of groups with a key, what is far off.

    `classes` says that the values of the key may be classes.
    """
    total = sum(found.values())
    expected = {name: total * share for name, share in asked.items()}
    counted = f"to split by counts: {Set('split.by', 'exact')}"
    why = "records that a hash has split before, and equal ones, are not split evenly by a hash"
    if key is not None:
        why = f"rows of one {printable(key)} are in one split"
    if key is not None and classes:
        exact = Add(Set("split.by", "exact"), Set("split.stratify", key))
        counted += f"; if its values are classes that every split needs, not --split-key: {exact}"
    empty = [name for name, count in expected.items() if count >= 1 and not found[name]]
    uneven = [name for name, share in asked.items() if _is_far(found[name], total, share, grouped=key is not None)]
    for name in (empty or uneven)[:1]:
        got = f"{found[name]:,} of {total:,} records (about {round(expected[name]):,} expected)"
        return [f"split {name} has {got}{f': {why}' if uneven or key is not None else ''}; {counted}"]
    return []


def _is_far(count: int, total: int, share: float, *, grouped: bool) -> bool:
    chance = _BEYOND_CHANCE * (1 + sqrt(total * share * (1 - share)))
    return abs(count - total * share) > max(chance, total * _FAR if grouped else 0)


def shuffle_note(*, levels: int, in_append: bool) -> str:
    """Return the note on records that are in a random order; `levels` of a run that is still to be made, else 0."""
    order = "records are in a random order"
    note = f"{order} within what is added, after those that were there" if in_append else f"{order} within each split"
    if not levels:
        return note
    spilled = "they are spilled to the staging folder first, which takes as many bytes again"
    twice = (
        ", and since they are more than 100 GB each task of the second pass spills its part once more: 2.1 times in all"
    )
    return f"{note}; {spilled}{twice if levels > 1 else ''}"


def order_note(traits: Traits, order: str, tasks: int, shards: Sequence[int]) -> str:
    """Return the note on tasks that wrote full shards, so that what each had left over is in the last ones.

    `shards` are the shards of each split. With fewer shards than tasks all are made of left over rows, which follow
    the source; so does a single task.
    """
    if not traits.has_order or order != "task" or not 1 < tasks <= max(shards, default=0):
        return ""
    return (
        "rows follow the source within each shard, and the last shards hold rows from between the others; "
        f"to keep the order of the source throughout: {Add('--order', 'source')} (writes some bytes twice)"
    )


def planned_checks(observers: Sequence[Observer]) -> tuple[str, ...]:
    if all(one.name == STATISTICS for one in observers):
        return ()
    from ...transforms.observers.checks import Duplicates, Leaks

    texts = []
    for one in observers:
        if isinstance(one, Duplicates):
            over = f" over {_names(one.columns)}" if one.columns else ", compared as a whole,"
            texts.append(f"duplicate records{over} are {'left out' if one.action == 'drop' else 'reported'}")
        elif isinstance(one, Leaks):
            texts.append(f"values of {_names(one.columns)} that are in several splits are reported")
    return tuple(texts)


def unchecked_append(latest: Manifest, observers: Sequence[Observer]) -> tuple[str, ...]:
    before = latest.details.checks.get("duplicates", {})
    if before.get("action") != "drop" or any(one.name == "duplicates" for one in observers):
        return ()
    columns = [Set("checks.duplicates.columns", before["columns"])] if before["columns"] else []
    compare = Add(*columns, Set("checks.duplicates.action", "drop"))
    return (
        f"generation {latest.generation} left out duplicate records, and new records are not looked at for them; to "
        f"compare new records with each other, and with no earlier ones: {compare}",
    )


def _names(columns: Sequence[str]) -> str:
    return ", ".join(printable(name) for name in columns)
