"""Worker processes of this machine: they scan files while a run is planned, and then stage a task at a time each.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

from ...transforms.dataset.stage.task_stager import TaskResult
from ...transforms.errors import RunError
from ...transforms.format.splits.shard_plan import MIN_TASK_BYTES
from ...transforms.format.wording.hints import Add
from ...transforms.inputs.contract.source import ParallelMap, Task
from ...transforms.inputs.contract.tasks import TaskStaging
from ...transforms.limits.turns import share_turns, turns_path
from .process_start import ARROW_ENVIRONMENT, collect_rarely, keep_freed_memory, release_freed_memory

if TYPE_CHECKING:
    from loky.process_executor import ProcessPoolExecutor


# How many workers of this machine there are, and a parallel map over threads.


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


# The processes.


_PR_SET_PDEATHSIG: Final = 1  # <sys/prctl.h>

_CHUNK: Final = 4
"""Items of planning that are handed over at once: a block of text is scanned in milliseconds."""


_running: Final[dict[str, WorkerProcesses]] = {}
"""The pools of this process, by token: an engine pickles the functions it is given, within this one process."""


PROCESSES_FROM_BYTES: Final = 128 << 20
"""Input or expected output from which worker processes are faster than threads."""


class WorkerProcesses:
    """A pool of worker processes: started when it is first needed, and gone when its context is left.

    `workers` is how many there are, be they threads or processes; `asked` makes them processes or threads, where
    `auto` takes what is faster for the work.
    """

    def __init__(self, workers: int | str, *, asked: Literal[True, False, "auto"] = "auto") -> None:
        self.workers = count_workers(workers)
        self.asked = asked
        self._token = uuid.uuid4().hex
        self._pool: ProcessPoolExecutor | None = None
        self._first: dict[int, Future[TaskResult]] = {}
        self._staging: TaskStaging | None = None
        self._lock = Lock()
        self._left: set[int] = set()
        self._at_work = 0
        self.broken: RunError | None = None

    def __enter__(self) -> Self:
        _running[self._token] = self
        return self

    def __exit__(self, *_: object) -> None:
        del _running[self._token]
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)  # what they staged is durable, or void

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _running_pool, (self._token,)

    def wanted(self, size: int, from_bytes: int = PROCESSES_FROM_BYTES) -> bool:
        """Return whether workers are processes: as asked, or for `auto` where that is faster.

        `size` are the bytes of the work: of the input for planning, of the expected output for the conversion;
        processes are faster `from_bytes` on.
        """
        return size >= from_bytes if self.asked == "auto" else self.asked

    def start(self, at_most: int | None = None) -> None:
        """Start the processes unless they are running; they load their modules while this process continues."""
        if self._pool is None:
            from loky.process_executor import ProcessPoolExecutor

            with without_interrupts():
                self._pool = ProcessPoolExecutor(
                    min(self.workers, at_most or self.workers),
                    initializer=_begin_worker,
                    initargs=(os.getpid(), turns_path()),
                    env={name: value for name, value in ARROW_ENVIRONMENT.items() if name not in os.environ},
                )
                self._pool.submit(_load)

    def planning(self, size: int) -> ParallelMap:
        """Return a parallel map to plan an input of `size` bytes: threads, and processes for heavy work if `wanted`."""
        light = threads(self.workers)
        if not self.wanted(size):
            return light
        self.start(at_most=max(size // MIN_TASK_BYTES, 2))  # more would find no task

        def run(function: Callable[[T], R], items: Iterable[T], *, heavy: bool = False) -> list[R]:
            if not heavy:
                return light(function, items)
            self.start()
            assert self._pool is not None
            with self._reporting_deaths():
                return list(self._pool.map(function, items, chunksize=_CHUNK))

        return run

    def begin(self, staging: TaskStaging, tasks: Sequence[Task]) -> None:
        self.start()
        assert self._pool is not None
        self._staging = staging
        with self._reporting_deaths():
            self._first = {task.ordinal: self._pool.submit(staging.stage, task) for task in tasks}
        self._left = set(self._first)
        release_freed_memory()

    def stage(self, task: Task) -> TaskResult:
        """Return what an attempt at a task staged; behind the last task the processes end."""
        assert self._staging is not None, "begin comes before stage"
        with self._reporting_deaths():
            with self._lock:
                self.start()  # an engine may try a task again when they have ended
                assert self._pool is not None
                attempt = self._first.pop(task.ordinal, None) or self._pool.submit(self._staging.stage, task)
                self._at_work += 1
            try:
                result = attempt.result()
            finally:
                with self._lock:
                    self._at_work -= 1
            self._end_behind(task)
            return result

    def _end_behind(self, task: Task) -> None:
        """End the processes where nothing is left to stage: what comes next runs here, and needs their memory."""
        with self._lock:
            self._left.discard(task.ordinal)
            if self._left or self._at_work or self._pool is None:
                return
            pool, self._pool = self._pool, None
        pool.shutdown(wait=True, kill_workers=True)

    @contextlib.contextmanager
    def _reporting_deaths(self) -> Iterator[None]:
        try:
            yield
        except BrokenProcessPool as error:
            self.broken = RunError(
                "a worker process was ended from outside, as the system does when memory runs out; nothing was "
                f"committed. Fewer workers take less memory: {Add('--workers', '1')}"
            )
            raise self.broken from error


def _start_trackers() -> None:
    """Start the processes that remove the semaphores of one that was ended, without a warning on the screen."""
    from multiprocessing import resource_tracker as tracker_of_python

    from loky.backend import resource_tracker

    tracker_of_python.ensure_running()
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before, "ignore:resource_tracker:UserWarning")))
    try:
        resource_tracker.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def _running_pool(token: str) -> WorkerProcesses:
    return _running[token]


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach (it is sent to all of a terminal's): the command ends them.

    They inherit that the signal is blocked. The trackers are started before: Python's unblocks it when it starts.
    """
    _start_trackers()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(parent: int, turns: str) -> None:
    end_with(parent)
    share_turns(turns)
    collect_rarely()
    keep_freed_memory()


def end_with(parent: int) -> None:
    """Have the system end this process with the thread that started it: no worker outlives its command."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that call
        os._exit(1)


def _load() -> None:
    """Do nothing: to unpickle this function a worker has loaded what it will need."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A map over files, in as many processes if that is faster; `size` gives the bytes of an item.

    From `from_bytes` on two processes are faster than one: each takes half a second to start, and reads 200 MB/s.
    Without `workers` there are as many as processors.
    """

    size: Callable[[Any], int]
    from_bytes: int = 192 << 20
    workers: int | None = None

    def __call__(self, function: Callable[[T], R], items: Iterable[T]) -> Iterable[R]:
        some = list(items)
        workers = min(self.workers or count_workers("auto"), len(some))
        if workers < 2 or sum(map(self.size, some)) < self.from_bytes:
            return map(function, some)
        return map_in_processes(function, some, workers)


def map_in_processes(function: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
    """Yield what the function gives for each item, in order, from processes of its own; they end with the caller."""
    from loky.process_executor import ProcessPoolExecutor

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
