"""Deal records to splits by counts: integers in, integers out.

Each task deals the records of a class as they come, and sets the first `aside_of(splits)` of them aside. The others go
in D'Hondt's order: split s gets its i-th record at the place of i / f_s among those of all splits. After n records
split s then has at most f_s * (n + splits - 1). Within each block of `BLOCK` records the order is random, so a task may
be `BLOCK - 1` records ahead. Those that it set aside are enough to make up for both: of N records of a class, in any
number of tasks, no split was dealt more than f_s * N. So the shard plan, which knows N, gives each split what it lacks:

    task 0   │ aside │ train train val train │ train train ...
    task 1   │ aside │ train val train train │ ...               N and what was dealt ──▶ what each split lacks
    task 2   │ as                                                the records set aside ──▶ dealt to make up for it
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from ..buffers.views import I64

BLOCK: Final = 4
"""Records that are dealt in a random order: sorted data, or every fourth row alike, do not favour a split."""

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)


def aside_of(splits: int) -> int:
    """Return how many records of a class a task sets aside: `splits - 1 + BLOCK - 1`, and one for rounded numbers."""
    return splits + BLOCK - 1


def dealt(fractions: Sequence[Fraction], count: int, seed: int) -> I64:
    """Return the split of each of the first `count` records that are dealt; `seed` says the order in each block.

    More records have the same splits at their beginning.
    """
    blocks = -(-count // BLOCK)
    order = _dhondt(fractions, blocks * BLOCK).reshape(blocks, BLOCK)
    keys = mixed(np.arange(blocks * BLOCK, dtype=np.uint64), seed).reshape(blocks, BLOCK)
    return np.take_along_axis(order, np.argsort(keys, axis=1, kind="stable"), 1).reshape(-1)[:count]


def _dhondt(fractions: Sequence[Fraction], count: int) -> I64:
    """Return the splits of `count` records by D'Hondt; of two splits of one place the first comes first."""
    shares = [float(fraction) for fraction in fractions]
    most = [int(share * (count + len(shares))) + 1 for share in shares]
    places = np.concatenate([np.arange(1, n + 1) / share for n, share in zip(most, shares, strict=True)])
    splits = np.repeat(np.arange(len(shares)), most)
    return splits[np.argsort(places, kind="stable")[:count]]


def mixed(numbers: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """Return numbers that look random, one for each (SplitMix64): the same on every machine."""
    with np.errstate(over="ignore"):
        mix = (numbers + np.uint64(1)) * _GOLDEN + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
        mix = (mix ^ (mix >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mix = (mix ^ (mix >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mix ^ (mix >> np.uint64(31))


def lacking(fractions: Sequence[Fraction], classes: Iterable[tuple[int, Sequence[int]]]) -> list[list[int]]:
    """Return what each split lacks of each class: (records set aside, records dealt to each split) are given.

    A class of N records gets f_s * N in split s, rounded down or up, and the sums over all classes stay near their
    shares: what one class rounds up, another rounds down.
    """
    owed = [Fraction(0)] * len(fractions)
    found = []
    for aside, had in classes:
        total = aside + sum(had)
        exact = [fraction * total for fraction in fractions]
        whole = [max(int(share), have) for share, have in zip(exact, had, strict=True)]
        owed = [debt + share - count for debt, share, count in zip(owed, exact, whole, strict=True)]
        room = [split for split, share in enumerate(exact) if whole[split] < share]
        first = sorted(room, key=lambda split: (-owed[split], split))[: max(total - sum(whole), 0)]
        for split in first:
            whole[split] += 1
            owed[split] -= 1
        found.append([count - have for count, have in zip(whole, had, strict=True)])
    return found


def spread(lacks: Sequence[int], seed: int) -> I64:
    """Return the split of each record of a class that was set aside, in a random order."""
    splits = np.repeat(np.arange(len(lacks)), lacks)
    return splits[np.argsort(mixed(np.arange(len(splits), dtype=np.uint64), seed), kind="stable")]
