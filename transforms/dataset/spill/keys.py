"""The key of a record, by which a split is sorted: a bijection of its place, so that no two records have the same.

The place is the number of its task and its number among what the task wrote for the split, which say the file and the
row: how a source is cut into tasks depends on nothing but the source and the config. The bijection is the finalizer of
SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014) on `place + mixed seed`: it
passes for random, and sorting by it is a random permutation.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ...errors import RunError
from ...format.buffers.checksum import split_mix

_TASK_SHIFT: Final = 36
MOST_RECORDS: Final = (1 << 32) - 1
"""The records of one task and split: their numbers are 32 bits in a file."""

_MOST_TASKS: Final = 1 << (64 - _TASK_SHIFT)
_GAMMA: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1


def row_keys(seed: int, task: int, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the keys of records of a task and split, given by their numbers there."""
    if task >= _MOST_TASKS:
        raise RunError(f"a shuffle takes at most {_MOST_TASKS:,} tasks; raise output.shard_size")
    start = (int(split_mix(np.array([(seed + 1) * _GAMMA & _MASK], np.uint64))[0]) + (task << _TASK_SHIFT)) & _MASK
    return split_mix(numbers + np.uint64(start))


def bucket_of(keys: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint32]:
    """Return the bucket of each key: its leading bits, so buckets are in key order."""
    if not bits:
        return np.zeros(len(keys), np.uint32)
    return (keys >> np.uint64(64 - bits)).astype(np.uint32)
