"""What each split got of the records, beside what it was to get."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from math import sqrt
from typing import Final

from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.wording.printable import printable

_BEYOND_CHANCE: Final = 6.0
"""Standard deviations: by chance one split of 500 million is that far from its fraction."""

_FAR: Final = 0.1
"""Of groups, which may be large: so much of all records."""


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
    counted = "to split by counts: --set split.by=exact"
    why = "records that a hash has split before, and equal ones, are not split evenly by a hash"
    if key is not None:
        why = f"rows of one {printable(key)} are in one split"
    if key is not None and classes:
        name = shlex.quote(f"split.stratify={key}")
        counted += (
            f"; if its values are classes that every split needs, not --split-key: --set split.by=exact --set {name}"
        )
    empty = [name for name, count in expected.items() if count >= 1 and not found[name]]
    uneven = [name for name, share in asked.items() if _is_far(found[name], total, share, grouped=key is not None)]
    for name in (empty or uneven)[:1]:
        got = f"{found[name]:,} of {total:,} records (about {round(expected[name]):,} expected)"
        return [f"split {name} has {got}{f': {why}' if uneven or key is not None else ''}; {counted}"]
    return []


def _is_far(count: int, total: int, share: float, *, grouped: bool) -> bool:
    chance = _BEYOND_CHANCE * (1 + sqrt(total * share * (1 - share)))
    return abs(count - total * share) > max(chance, total * _FAR if grouped else 0)
