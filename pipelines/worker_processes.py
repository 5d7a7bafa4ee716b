"""Worker processes for the local engine: they read, encode and stage, one task at a time each.

Threads share one interpreter lock, and encoding holds it for two thirds of its time; processes share nothing but the
disk. They load neither Beam nor the config, so that one starts in half a second and is small:

    the command   ── tasks ──▶  worker  ─ reads, encodes, writes parts ─▶  .staging/<run>/parts/
    (Beam, plan,                worker
    commit)       ◀─ TaskResults ──

All tasks are handed over at once, so that a worker that is done takes the next one, whatever its length; a second
attempt at a task is handed over when the engine asks for it. A worker that dies, killed or out of memory, ends the run
at once; workers whose command dies are ended by the system.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from threading import Lock
from typing import Final, Self

from loky.process_executor import ProcessPoolExecutor

from ..transforms.dataset.task_result import TaskResult
from ..transforms.errors import RunError
from ..transforms.sources.source import Task
from ..transforms.stage_task import TaskStaging
from .freed_memory import ARROW_ENVIRONMENT, keep_freed_memory, release_freed_memory

_PR_SET_PDEATHSIG: Final = 1  # <sys/prctl.h>

_running: Final[dict[str, WorkerProcesses]] = {}
"""The pools of this process, by token: an engine pickles the functions it is given, within this one process."""


class WorkerProcesses:
    """A pool of worker processes that begins to stage tasks when it is entered, and is gone when it is left."""

    def __init__(self, staging: TaskStaging, tasks: Sequence[Task], workers: int) -> None:
        self._tasks = tasks
        self._token = uuid.uuid4().hex
        self._first: dict[int, Future[TaskResult]] = {}
        self._lock = Lock()
        self.broken: RunError | None = None
        self._pool = ProcessPoolExecutor(
            workers,
            initializer=_begin_worker,
            initargs=(staging, os.getpid()),
            env={name: value for name, value in ARROW_ENVIRONMENT.items() if name not in os.environ},
        )

    def __enter__(self) -> Self:
        with without_interrupts():
            self._first = {task.ordinal: self._pool.submit(_stage_in_worker, task) for task in self._tasks}
        _running[self._token] = self
        release_freed_memory()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        del _running[self._token]
        self._pool.shutdown(wait=True, kill_workers=kind is not None)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _running_pool, (self._token,)

    def stage(self, task: Task) -> TaskResult:
        """Return what an attempt at a task staged.

        Raises:
            RunError: a worker died.
            Exception: whatever the attempt raised.
        """
        try:
            with self._lock:
                attempt = self._first.pop(task.ordinal, None) or self._pool.submit(_stage_in_worker, task)
            return attempt.result()
        except BrokenProcessPool as error:
            self.broken = RunError(
                "a worker process was ended from outside, as the system does when memory runs out; nothing was "
                "committed. Fewer workers take less memory: --workers 1"
            )
            raise self.broken from error


def _running_pool(token: str) -> WorkerProcesses:
    return _running[token]


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach (it is sent to all of a terminal's): the command ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_staging: Final[list[TaskStaging]] = []
"""In a worker: the one thing that it stages tasks with."""


def _begin_worker(staging: TaskStaging, parent: int) -> None:
    end_with(parent)
    keep_freed_memory()
    _staging.append(staging)


def end_with(parent: int) -> None:
    """Let the system end this process when the thread that started it ends: no worker outlives its command."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that call
        os._exit(1)


def _stage_in_worker(task: Task) -> TaskResult:
    return _staging[0].stage(task)
