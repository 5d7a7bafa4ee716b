"""How many pieces make a task: ranges of pieces that are as even as they can be, from their bytes alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

MIN_TASK_BYTES: Final = 8 << 20
"""A task of a small conversion has at least 8 MiB of output: below that, starting it costs more than it saves."""

MOST_SHARDS: Final = 8
"""A task fills at most so many shards, so that a large output has many tasks."""

SMALL_TASKS: Final = 16
"""A conversion of less than 8 shards is cut into 16 tasks at most, so that a few workers have even loads."""


def shards_of_a_task(output: int, shard_size: int, most: int = MOST_SHARDS) -> int:
    """Return how many shards a task should fill, of so many bytes of output: a 128th of all, and at most `most`."""
    return min(max(round(output / (128 * shard_size)), 1), most)


def plan_tasks(
    outputs: Sequence[int] | npt.NDArray[np.int64],
    shard_size: int,
    most_shards: int = MOST_SHARDS,
    at_least: int | None = None,
) -> list[range]:
    """Group pieces, whose expected bytes of output are given, into tasks: ranges of piece indices, in order.

    From 8 shards of output on, a task aims at 1.03 m shards with m = clamp(round(output / 128 shards), 1, most_shards);
    below that at a sixteenth of the output and `at_least` so many bytes, by default 8 MiB. The number of tasks is
    rounded down.

    >>> plan_tasks([10 << 20] * 4, 128 << 20)
    [range(0, 1), range(1, 2), range(2, 3), range(3, 4)]
    >>> plan_tasks([1 << 20] * 4, 128 << 20)
    [range(0, 4)]
    """
    before = np.cumsum(np.asarray(outputs, np.int64))
    if not len(before):
        return []
    total = int(before[-1])
    if total >= 8 * shard_size:
        goal = shard_size * shards_of_a_task(total, shard_size, most_shards) * 103 // 100
    else:
        goal = max(total // SMALL_TASKS, MIN_TASK_BYTES if at_least is None else at_least)
    count = max(total // goal, 1)
    # Task k begins with the first piece that has at least k / count of the output before it; for k = count that are
    # pieces at the end that give nothing.
    shares = np.array([-(-k * total // count) for k in range(1, count + 1) if total], np.int64)
    starts = np.unique(np.append(0, 1 + np.searchsorted(before, shares)))
    bounds = [*starts[starts < len(before)].tolist(), len(before)]
    return [range(start, stop) for start, stop in pairwise(bounds)]
