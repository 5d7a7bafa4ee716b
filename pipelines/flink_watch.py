"""What is asked of a cluster while it works for a run: how far the job is, and whether it waits for slots."""

from __future__ import annotations

from typing import Final

from ..transforms.errors import RunError
from .config_runners import FlinkRunner
from .flink_rest import FlinkRest, Job
from .report import Count, Counted
from .seldom_count import SeldomCount

_MORE_SLOTS: Final = (
    "start a task manager; or interrupt, and run the same command again: it resumes with the slots that are there"
)


def count_on(runner: FlinkRunner, job: str) -> Count | None:
    """Return what asks a cluster how far a job is; None for an embedded Flink, which cannot be asked."""
    return None if runner.is_embedded else SeldomCount(lambda: counted(FlinkRest(runner.master), job))


def counted(rest: FlinkRest, name: str) -> Counted | None:
    """Return Beam's metrics of the job of a name, and what it waits for; None where there is none, or no answer.

    Flink has the metrics of the slots that are done with their tasks.
    """
    from ..transforms.write import METRICS

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
