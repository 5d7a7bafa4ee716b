"""The progress line of a run, made from what the run leaves in its staging folder.

The engine shows nothing until it ends, so progress is read from what the workers leave behind:

    .staging/<run>/
      plan.json                  {"totals": {"tasks": 64, "records": 8000000, "bytes": 1870000000, "shards": 14}, ...}
      tasks/000003.json          a finished task: its records and bytes, exactly
      parts/000007-…/*.part      a task at work: its files' sizes
      shuffle/                   the plan of a second pass, whose tasks are numbered behind the others

An engine that knows more, by the metrics of its job (`Counted`), is believed.

    Converting  5,120,000 of about 8,000,000 records · 212.4 MB/s · 9 of about 14 shards · 3 s left
    Waiting  for slots: the job wants 4, and Flink at 127.0.0.1:8081 has 2; ...
"""

from __future__ import annotations

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from importlib import import_module
from threading import Event, Thread
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ...transforms.dataset.commit.second_pass import FOLDER
from ...transforms.dataset.storage.object_storage import storage_at
from ...transforms.errors import StoreError
from ...transforms.stores.store_url import is_store_url
from ..outcomes.summary import Count, Counted

_STORE_SECONDS: Final = 3.0
"""The least time between two looks at a store: each is some requests, which are paid for."""

_STALL_SECONDS: Final = 60.0
"""What was written before says nothing of the time left once nothing has been written for so long."""

_SAID_STALL_SECONDS: Final = 300.0
"""Once nothing has been written for so long, the line says so."""

_SHOWN_SECONDS: Final = 24 * 3600
"""A longer estimate is not shown: it comes from a run that has hardly begun, or that has stalled."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals that the plan expects; None if unknown."""

    tasks: int | None = None
    records: int | None = None
    bytes: int | None = None
    shards: int | None = None


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Progress of a run. Records of unfinished tasks are estimated from their bytes; `shards` are full ones."""

    phase: str
    tasks: int = 0
    records: int = 0
    bytes: int = 0
    shards: int = 0
    waiting: str = ""


@dataclass(frozen=True, slots=True)
class _Done:
    records: int
    bytes: int
    shards: int


class StagingReader:
    """Reads how far a run is; a finished task is read once, and nothing is opened that a worker still writes."""

    def __init__(self, staging: str, totals: Totals | None = None, count: Count = Counted) -> None:
        self._staging = staging
        self._totals = totals
        self._count = count
        self._done: dict[str, _Done] = {}

    def totals(self) -> Totals:
        """Return the plan's totals: those given, else those of `plan.json`, as soon as it is there."""
        if self._totals is None:
            document = _read_json(os.path.join(self._staging, "plan.json"))
            if document is None:
                return Totals()
            totals = document.get("totals", {})
            self._totals = Totals(*(totals.get(key) for key in ("tasks", "records", "bytes", "shards")))
        return self._totals

    def read(self) -> RunProgress:
        totals = self.totals()
        if self._totals is None:
            return RunProgress("Planning")
        for name in _names(os.path.join(self._staging, "tasks")):
            if name.endswith(".json") and name not in self._done:
                done = _read_task(os.path.join(self._staging, "tasks", name))
                if done is not None:
                    self._done[name] = done
        first = {name: one for name, one in self._done.items() if not self._is_second(name)}
        shuffling = bool(_names(os.path.join(self._staging, FOLDER)))  # between the passes it gets their plan
        shown = [one for name, one in self._done.items() if name not in first] if shuffling else first.values()
        records = sum(done.records for done in shown)
        finished = sum(done.bytes for done in shown)
        shards = sum(done.shards for done in shown)
        at_work = self._bytes_at_work()
        if at_work:
            known_records, known_bytes = (records, finished) if finished else (totals.records or 0, totals.bytes or 0)
            records += at_work * known_records // known_bytes if known_bytes else 0
        all_done = totals.tasks is not None and len(first) >= totals.tasks
        counted = self._count()
        phase = "Ending" if counted.ending else "Finishing" if all_done else "Converting"
        if shuffling and phase == "Finishing":
            phase = "Shuffling"
        return RunProgress(
            phase,
            len(first),
            max(records, counted.records),
            max(finished + at_work, counted.bytes),
            shards,
            counted.waiting,
        )

    def _is_second(self, name: str) -> bool:
        """Return whether a result is of the second pass of a shuffle: these are numbered behind the tasks."""
        tasks, number = self.totals().tasks, name.removesuffix(".json")
        return tasks is not None and number.isdecimal() and int(number) >= tasks

    def _bytes_at_work(self) -> int:
        """Return the size of the parts of tasks that have not finished; of several attempts, of the largest."""
        parts = os.path.join(self._staging, "parts")
        largest: dict[str, int] = {}
        for folder in _names(parts):
            task = folder.partition("-")[0]
            if f"{task}.json" not in self._done:
                size = _folder_bytes(os.path.join(parts, folder))
                largest[task] = max(largest.get(task, 0), size)
        return sum(largest.values())


def progress_line(progress: RunProgress, totals: Totals, seconds: float, stalled: float = 0) -> str:
    """Return the line for people.

    Records have been written for `seconds`, and nothing was written in the last `stalled` seconds.
    """
    if progress.phase == "Planning":
        return "Planning"
    if progress.phase == "Ending":
        return "Ending the job, so that it commits nothing later; interrupt again to leave it alone"
    if progress.waiting:
        return f"Waiting  {progress.waiting}"
    parts = [f"{progress.records:,}{_of(totals.records)} records"]
    if seconds > 0:
        parts.append(f"{progress.bytes / 1e6 / seconds:.1f} MB/s")
    shards = progress.shards if totals.shards is None else totals.shards
    parts.append(f"{progress.shards:,}{_of(totals.shards)} shard{'' if shards == 1 else 's'}")
    if progress.phase == "Finishing":
        parts.append("assembling and publishing")
    elif stalled >= _SAID_STALL_SECONDS:
        parts.append(f"no progress for {_duration(stalled)}")
    elif totals.bytes and 0 < progress.bytes < totals.bytes and seconds > 0 and stalled < _STALL_SECONDS:
        left = seconds * (totals.bytes - progress.bytes) / progress.bytes
        parts += [f"{_duration(left)} left"] if left <= _SHOWN_SECONDS else []
    return f"{progress.phase}  {' · '.join(parts)}"


class ProgressWatcher:
    """Shows a run's progress on a surface while the context is open; on a console it is live, or in lines of a log."""

    def __init__(
        self,
        staging: str,
        console: Console | Surface,
        *,
        totals: Totals | None = None,
        count: Count = Counted,
        interval: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.staging = staging
        self._surface = surface_of(console) if isinstance(console, Console) else console
        self._reader = StagingReader(staging, totals, count)
        least = _STORE_SECONDS if is_store_url(staging) else 0.0
        self._interval = interval or max(self._surface.interval, least)
        self._clock = clock
        self._first_bytes: tuple[float, int] | None = None
        self._shuffling = False
        self._last: tuple[RunProgress, float] | None = None
        self._begun = 0.0
        self._ended = ""
        self._stop = Event()
        # in the context of the caller, by which a notebook knows the cell
        self._thread = Thread(target=copy_context().run, args=(self._run,), name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._begun = self._clock()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = "Done" if kind is None else "Stopped"
        self._stop.set()
        self._thread.join()

    def line(self) -> str:
        return self._line(self._reader.read())

    def _line(self, progress: RunProgress) -> str:
        now = self._clock()
        if progress.phase == "Shuffling" and not self._shuffling:
            self._shuffling, self._first_bytes = True, None  # what follows is counted from nothing
        if self._last is None or self._last[0] != progress:
            self._last = (progress, now)
        stalled = now - self._last[1]
        if self._first_bytes is None and progress.bytes:
            self._first_bytes = (now, progress.bytes)
        if self._first_bytes is None:
            return progress_line(progress, self._reader.totals(), 0, stalled)
        started, before = self._first_bytes
        # what was there at the first look was written in an unknown time: it counts for neither rate nor rest
        written = progress.bytes - before
        seconds = (now - started) * progress.bytes / written if written > 0 else 0
        return progress_line(progress, self._reader.totals(), seconds, stalled)

    def _run(self) -> None:
        with self._surface as surface:
            if not surface.at_once and self._stop.wait(self._interval):
                return
            while True:
                progress = self._reader.read()
                surface.show(self._line(progress), self._share(progress))
                if self._stop.wait(self._interval):
                    break
            if surface.keeps:
                surface.show(f"{self._ended}  after {_duration(self._clock() - self._begun)}", None)

    def _share(self, progress: RunProgress) -> float | None:
        whole = self._reader.totals().bytes
        return min(progress.bytes / whole, 1.0) if whole else None


def _of(total: int | None) -> str:
    return "" if total is None else f" of about {total:,}"


def _duration(seconds: float) -> str:
    whole = int(seconds) + 1
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _names(folder: str) -> list[str]:
    try:
        if is_store_url(folder):
            return storage_at(folder).list("")
        return os.listdir(folder)
    except (FileNotFoundError, StoreError):  # not made yet, or gone after the publish; the run itself tells failures
        return []


def _folder_bytes(folder: str) -> int:
    size = 0
    if is_store_url(folder):
        return sum(size for name, size in storage_at(folder).files_below("") if name.endswith(".part"))
    for name in _names(folder):
        if name.endswith(".part"):
            try:
                size += os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:  # published meanwhile
                continue
    return size


def _read_json(path: str) -> dict[str, Any] | None:
    try:
        folder, name = os.path.split(path)
        document: dict[str, Any] = json.loads(storage_at(folder).read(name))
    except (FileNotFoundError, StoreError):
        return None
    return document


def _read_task(path: str) -> _Done | None:
    document = _read_json(path)
    if document is None:
        return None
    kinds = [part["kind"] for split in document["splits"].values() for part in split["parts"]]
    return _Done(document["records"], document["bytes"], sum(1 for kind in kinds if kind != "tail"))


# Where the line of a run is shown: live on a terminal, in its place in a notebook, now and then in a log.
#
# terminal    one line that changes, gone in the end
# notebook    one output of the cell that changes, and keeps its last state
# log         a line that stays: at each tenth of the work, of each phase, and once a minute


_LIVE_SECONDS: Final = 0.5

_LOG_SECONDS: Final = 10.0
"""Lines of a log are kept forever: one in ten seconds is enough."""

_SILENT_SECONDS: Final = 60.0
"""So long a log says nothing, at most: a reader sees that the run is alive."""

_WAITING: Final = "Waiting"
"""A line that begins so says what is to be done: it must be read to its end."""


class Surface(ABC):
    """Shows a line again and again, while its context is open; `interval` are the seconds from one to the next.

    With `at_once` the first one is shown at the start, and not after that time. What `keeps` the last line is to show
    how the run ended.
    """

    interval: float
    at_once: bool
    keeps = False

    def __enter__(self) -> Self:
        return self

    def __exit__(  # noqa: B027  (most leave what they have shown)
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave of it what is to stay."""

    @abstractmethod
    def show(self, line: str, share: float | None) -> None:
        """Show the line; `share` is how much of the work is done, from 0 to 1, None where that is unknown."""


class TerminalSurface(Surface):
    """A line of a terminal."""

    interval = _LIVE_SECONDS
    at_once = True

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, line: str, share: float | None) -> None:  # noqa: ARG002
        is_short = not line.startswith(_WAITING)
        self._live.update(Text(line, overflow="ellipsis" if is_short else "fold", no_wrap=is_short), refresh=True)


class LogSurface(Surface):
    """Lines of a file, or of whatever is no terminal."""

    interval = _LOG_SECONDS
    at_once = False

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._last: tuple[str, int] | None = None
        self._shown_at = 0.0

    def show(self, line: str, share: float | None) -> None:
        now = self._clock()
        state = (line if line.startswith(_WAITING) else line.partition(" ")[0], int((share or 0) * 10))
        if state == self._last and now - self._shown_at < _SILENT_SECONDS:
            return
        self._last, self._shown_at = state, now
        self._console.print(Text(line), soft_wrap=True)


class NotebookSurface(Surface):
    """An output of a cell, which is updated; `notes` are above the line."""

    interval = _LIVE_SECONDS
    at_once = True
    keeps = True

    def __init__(self, notes: tuple[str, ...] = ()) -> None:
        self._notes = notes
        self._handle: Any = None

    def show(self, line: str, share: float | None) -> None:
        bar = "" if share is None or line.startswith(_WAITING) else f"  {_bar(share)}"
        content = {"text/plain": "\n".join([*self._notes, f"{line}{bar}"])}
        if self._handle is None:
            self._handle = import_module("IPython.display").display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def surface_of(console: Console) -> Surface:
    return TerminalSurface(console) if console.is_terminal else LogSurface(console)


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook: what is displayed is an output of a cell there."""
    if "IPython" not in sys.modules or "ipykernel" not in sys.modules:
        return False
    shell = import_module("IPython").get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def _bar(share: float, width: int = 20) -> str:
    """Return a share as a bar.

    >>> _bar(0.4, 5)
    '[##...] 40 %'
    """
    done = int(min(max(share, 0.0), 1.0) * width)
    return f"[{'#' * done}{'.' * (width - done)}] {min(max(share, 0.0), 1.0) * 100:.0f} %"
