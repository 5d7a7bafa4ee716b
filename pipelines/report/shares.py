"""What each split got of the records, beside what it was to get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import Final

from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.wording.printable import printable

_BEYOND_CHANCE: Final = 6.0
"""Standard deviations: by chance one split of 500 million is that far from its fraction."""


def added_records(manifest: Manifest, names: Iterable[str]) -> dict[str, int]:
    """Return how many records a generation added to each of some splits."""
    found = dict.fromkeys(names, 0)
    for name in found.keys() & manifest.splits.keys():
        shards = manifest.splits[name].shards
        found[name] = sum(shard.records for shard in shards if shard.generation == manifest.generation)
    return found


def share_warnings(asked: Mapping[str, float], found: Mapping[str, int], key: str | None) -> list[str]:
    """Return which split got nothing by a hash, and which got what no chance explains; with a key groups may do so."""
    total, fix = sum(found.values()), "to split by counts: --set split.by=exact"
    expected = {name: total * share for name, share in asked.items()}
    wanted = {name: f"(about {round(count):,} expected)" for name, count in expected.items()}
    empty = next((name for name, count in expected.items() if count >= 1 and not found[name]), None)
    if empty is not None:
        why = "" if key is None else f", as rows of one {printable(key)} are in one split"
        return [f"split {empty} has no record of {total:,} {wanted[empty]}{why}; {fix}"]
    for name, share in asked.items() if key is None else ():
        if abs(found[name] - expected[name]) > _BEYOND_CHANCE * (1 + sqrt(expected[name] * (1 - share))):
            return [
                f"split {name} has {found[name]:,} of {total:,} records {wanted[name]}: records that a hash has split "
                f"before, and equal ones, are not split evenly by a hash; {fix}"
            ]
    return []
