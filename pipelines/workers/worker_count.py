"""How many workers of this machine there are, and a parallel map over threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ...transforms.inputs.contract.source import ParallelMap

T = TypeVar("T")
R = TypeVar("R")


def count_workers(workers: int | str) -> int:
    """Return the number of threads: as given, or for `auto` the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if workers == "auto" else int(workers)


def threads(workers: int) -> ParallelMap:
    """Return a parallel map over threads: Arrow, numpy and zlib release the GIL in what planning calls."""

    def run(function: Callable[[T], R], items: Iterable[T], *, heavy: bool = False) -> list[R]:  # noqa: ARG001
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(function, items))

    return run
