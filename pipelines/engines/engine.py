"""The contract of an engine, which runs a prepared conversion; and the two engines of this machine."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Final

from ...transforms.dataset.commit.publish import write_generation
from ...transforms.inputs.contract.tasks import TaskStaging
from ..outcomes.summary import Count, Counted, Submitted
from ..prepare.prepared import Prepared
from .beam_pipeline import make_pipeline, run_on

if TYPE_CHECKING:
    from ..workers.worker_processes import WorkerProcesses


class Engine(ABC):
    """Runs what is prepared: this machine, Flink or Dataflow. What is not abstract here holds for this machine.

    A command calls `check` before anything is read, `end_orphan` when it holds the run, and `run` with what is left to
    do. Every engine keeps the same promises: a run ends with its generation committed or refused, with an error, or
    with a job that nobody waits for; tasks may be attempted again at any time.
    """

    __slots__ = ()

    @property
    def waits(self) -> bool:
        """Whether `run` returns when the run has ended; if not, it returns what was submitted."""
        return True

    @property
    def resumes(self) -> bool:
        """Whether tasks that a stopped run has done are taken over: not where that run may still work."""
        return True

    @property
    def sees_this_machine(self) -> bool:
        """Whether the workers see files that are on this machine alone."""
        return True

    @abstractmethod
    def check(self) -> None:
        """Check Beam's options, and that the engine is there.

        Raises:
            UsageError: Beam has no such option, or packages are not installed.
            RunError: a cluster cannot be reached.
        """

    def end_orphan(self, name: str) -> None:  # noqa: B027
        """End the job of a launcher that died, by its run's name, unless it ended with it: it may commit, and publish.

        Raises:
            RunError: it does not end.
        """

    @abstractmethod
    def run(self, prepared: Prepared, processes: WorkerProcesses) -> Submitted | None:
        """Stage the tasks of a plan and end its generation; `processes` are there to stage on this machine.

        Raises:
            RunError: a worker or the engine failed, or the source changed; the staged work can be resumed.
        """

    def count(self, name: str) -> Count | None:  # noqa: ARG002
        """Return what says how far the run of a name is, or None where its staging folder says it."""
        return None


# The engine of a job is asked at most every few seconds, because each question is a request.
# Neither the live line nor the end of a run waits long for an engine that does not answer.


_SECONDS: Final = 3.0
_PATIENCE_SECONDS: Final = 1.0


class ThrottledCount:
    """A `Count` that remembers the last answer; `ask` returns None if the engine does not answer."""

    def __init__(self, ask: Callable[[], Counted | None]) -> None:
        self._ask = ask
        self._known = Counted()
        self._asked = float("-inf")
        self._asking: Thread | None = None

    def __call__(self) -> Counted:
        under_way = self._asking is not None and self._asking.is_alive()
        if not under_way and time.monotonic() - self._asked >= _SECONDS:
            self._asked = time.monotonic()
            self._asking = Thread(target=self._look, name="count", daemon=True)
            self._asking.start()
            self._asking.join(_PATIENCE_SECONDS)
        return self._known

    def _look(self) -> None:
        self._known = self._ask() or self._known


# This machine as the engine: Beam's local runner or none, with threads or worker processes.
#
# Without Beam: for records that need no encoding, Beam takes longer to start than a gigabyte takes to copy.


@dataclass(frozen=True, slots=True)
class LocalEngine(Engine):
    """Beam's engine of this process; `beam_options` is what came after `--`."""

    beam_options: Sequence[str] = ()

    def check(self) -> None:
        if self.beam_options:
            make_pipeline(1, self.beam_options)

    def run(self, prepared: Prepared, processes: WorkerProcesses) -> None:
        workers = min(processes.workers, max(len(prepared.plan.tasks), 1))
        run_on(make_pipeline(workers, self.beam_options), prepared, processes)


_PROCESSES_FROM_BYTES: Final = 2 << 30
"""Below this, worker processes are started longer than a second of the records takes."""


@dataclass(frozen=True, slots=True)
class PlainEngine(Engine):
    """Threads, or worker processes, that stage; the generation is ended by the functions that Beam's steps call."""

    def check(self) -> None:
        """Do nothing: there are no options."""

    def run(self, prepared: Prepared, processes: WorkerProcesses) -> None:
        plan, spec = prepared.plan, prepared.spec
        workers = min(processes.workers, max(len(plan.tasks), 1))
        staging = TaskStaging.of(spec, prepared.source, plan.survey.frozen, prepared.encoder)
        with ExitStack() as stack:
            pool = ThreadPoolExecutor(workers)
            stack.callback(pool.shutdown, wait=False, cancel_futures=True)
            if processes.wanted(plan.work if workers > 1 else 0, _PROCESSES_FROM_BYTES):
                processes.begin(staging, plan.tasks)
                results = [processes.stage(task) for task in plan.tasks]
            else:
                results = list(pool.map(staging.stage, plan.tasks))
            write_generation(spec, [*prepared.done, *results], pool.map)
