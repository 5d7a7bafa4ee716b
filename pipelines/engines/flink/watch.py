"""Questions to a cluster while it works for a run.

count_on    how far the job is, and whether it waits for slots           for the line of progress
JobWatch    an error that no retry can fix, or a cluster that is gone    ends the run at once
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Final, Self

from ....transforms.errors import RunError
from ...config.runners import FlinkRunner
from ...outcomes.disk_errors import lasting_error
from ...outcomes.summary import Count, Counted
from ..engine import ThrottledCount
from .rest import FlinkRest, Job

_LOOK_SECONDS: Final = 2.0
_JOIN_SECONDS: Final = 1.0

_GONE_SECONDS: Final = 8.0
"""A cluster of this machine that refuses connections for so long was stopped: it does not come back by itself."""

_MORE_SLOTS: Final = (
    "start a task manager; or interrupt, and run the same command again: it resumes with the slots that are there"
)


def count_on(runner: FlinkRunner, job: str) -> Count | None:
    """Return what asks a cluster how far a job is; None for an embedded Flink, which cannot be asked."""
    return None if runner.is_embedded else ThrottledCount(lambda: counted(FlinkRest(runner.master), job))


def counted(rest: FlinkRest, name: str) -> Counted | None:
    """Return Beam's metrics of the job of a name, and what it waits for; None where there is none, or no answer.

    Flink has the metrics of the slots that are done with their tasks.
    """
    from ....transforms.write import METRICS

    try:
        job = rest.job(name)
        if job is None or job.is_over:  # one of before
            return None
        waiting = _waiting(rest, job)
        counters = rest.counters(job, METRICS)
    except RunError:  # the run itself tells failures
        return None
    return Counted(counters.get("records", 0), counters.get("bytes", 0), waiting=waiting)


def _waiting(rest: FlinkRest, job: Job) -> str:
    """Return what a job waits for; the empty text where something of it runs, or there are slots enough."""
    work = rest.work(job)
    if work.running or not work.wanted:
        return ""
    slots = rest.overview().slots
    if slots >= work.wanted:
        return ""
    return f"for slots: the job wants {work.wanted}, and Flink at {rest.master} has {slots}; {_MORE_SLOTS}"


class JobWatch:
    """Looks at a job while the context is open; `end` is called once, when there is a `verdict`.

    The verdict is what ends the run: an error that no retry can fix, of which Flink knows nothing and tries again, or
    that the cluster is gone, which Beam's job server takes a minute to notice.
    """

    def __init__(
        self,
        master: str,
        name: str,
        end: Callable[[], object],
        seconds: float = _LOOK_SECONDS,
        gone_seconds: float = _GONE_SECONDS,
    ) -> None:
        self.verdict: Exception | None = None
        self._rest = FlinkRest(master)
        self._name = name
        self._end = end
        self._seconds, self._gone_seconds = seconds, gone_seconds
        self._refused_since: float | None = None
        self._over = Event()
        self._thread = Thread(target=self._run, name="job watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(_JOIN_SECONDS)  # it may wait for an answer

    def _run(self) -> None:
        while not self._over.wait(self._seconds):
            found = self._look()
            if found is not None and not self._over.is_set():
                self.verdict = found
                self._end()
                return

    def _look(self) -> Exception | None:
        try:
            job = self._rest.job(self._name)
            self._refused_since = None
            failures = [] if job is None or job.is_over else self._rest.failures(job)
        except RunError as error:
            return self._gone() if is_refused(error) and is_of_this_machine(self._rest.master) else None
        lasting = (lasting_error(text) for text in failures)
        return next((error for error in lasting if error is not None), None)

    def _gone(self) -> RunError | None:
        now = time.monotonic()
        if self._refused_since is None:
            self._refused_since = now
        return gone(self._rest.master, self._name) if now - self._refused_since >= self._gone_seconds else None


def gone(master: str, name: str) -> RunError:
    return RunError(
        f"Flink at {master} does not answer any more: it was stopped, or cannot be reached. Start it, and run the same "
        f"command again: it resumes, and first ends the job {name}, should that still run"
    )


def is_refused(error: RunError) -> bool:
    return isinstance(getattr(error.__cause__, "reason", None), ConnectionRefusedError)


def is_of_this_machine(master: str) -> bool:
    host = master.rpartition(":")[0].strip("[]")
    return host in ("localhost", "::1") or host.startswith("127.")
