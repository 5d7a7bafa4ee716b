"""How many workers of this machine there are, and whether they are threads or processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal, TypeVar

from ...transforms.sources.contract.source import ParallelMap

T = TypeVar("T")
R = TypeVar("R")

PROCESSES_FROM_BYTES: Final = 128 << 20
"""Input or expected output from which worker processes are faster than threads."""


def count_workers(workers: int | str) -> int:
    """Return the number of threads: as given, or for `auto` the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if workers == "auto" else int(workers)


def wants_processes(asked: Literal[True, False, "auto"], size: int) -> bool:
    """Return whether the local engine's workers are processes: as asked, or for `auto` where that is faster.

    `size` are the bytes of the work: of the input for planning, of the expected output for the conversion.
    """
    return size >= PROCESSES_FROM_BYTES if asked == "auto" else asked


def threads(workers: int) -> ParallelMap:
    """Return a parallel map over threads: Arrow, numpy and zlib release the GIL in what planning calls."""

    def run(function: Callable[[T], R], items: Iterable[T], *, heavy: bool = False) -> list[R]:  # noqa: ARG001
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(function, items))

    return run
