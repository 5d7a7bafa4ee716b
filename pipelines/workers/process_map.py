"""A map over worker processes, for work that holds the interpreter's lock: what is sent and returned is small."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from loky.process_executor import ProcessPoolExecutor

from ...transforms.errors import RunError
from .worker_processes import end_with, without_interrupts

T = TypeVar("T")
R = TypeVar("R")


def map_in_processes(function: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
    """Yield what the function gives for each item, in order; the workers end with the caller, however it ends.

    Raises:
        RunError: a worker was ended from outside.
    """
    with without_interrupts():
        pool = ProcessPoolExecutor(workers, initializer=end_with, initargs=(os.getpid(),))
    done = False
    try:
        with without_interrupts():
            futures: list[Future[R]] = [pool.submit(function, item) for item in items]
        for future in futures:
            yield future.result()
        done = True
    except BrokenProcessPool as error:
        raise RunError(
            "a worker process was ended from outside, as the system does when memory runs out; run the command again"
        ) from error
    finally:
        pool.shutdown(wait=True, kill_workers=not done)
