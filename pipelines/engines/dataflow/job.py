"""A job of Dataflow that is waited for: how far it is, how it ended, and its end where the launcher is interrupted.

submitted ── runs ──────────────────────▶ done, or failed: the error, and where the job is seen
    │          counted by Beam's metrics
    └─ interrupt: cancelled ── ends ──▶ what was committed by then is reported; nothing comes later
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ....transforms.errors import RunError
from ...report.summary import Counted, Submitted
from ..polled_metrics import ThrottledCount
from ..worker_errors import in_one_line, raised_in_worker

if TYPE_CHECKING:
    from apache_beam.runners.dataflow.dataflow_runner import DataflowPipelineResult
    from apache_beam.runners.dataflow.internal.apiclient import DataflowApplicationClient

_CANCEL_SECONDS: Final = 300.0
"""How long a cancelled job may take to end: Dataflow stops its machines first."""

_LOOK_SECONDS: Final = 3.0

_REFUSED_SECONDS: Final = 30.0
"""How long to check whether a job has ended after it could not be cancelled."""


class DataflowJob:
    """The job of one run, from before it is submitted."""

    def __init__(self) -> None:
        self._client: DataflowApplicationClient | None = None
        self._id = ""
        self._ending = False
        self._count = ThrottledCount(self._ask)

    def count(self) -> Counted:
        return replace(self._count(), ending=self._ending)

    def wait(self, result: DataflowPipelineResult, client: DataflowApplicationClient, submitted: Submitted) -> None:
        """Return when a job has ended well; `client` is what it was submitted with.

        An interrupt cancels the job; the text of the KeyboardInterrupt says if it may go on nevertheless.
        """
        from apache_beam.runners.dataflow.dataflow_runner import DataflowRuntimeException

        self._client, self._id = client, result.job_id()
        try:
            result.wait_until_finish()
        except KeyboardInterrupt:
            self._ending = True
            raise KeyboardInterrupt(_cancel(result, client, submitted)) from None
        except DataflowRuntimeException as error:
            raised = raised_in_worker(str(error))
            why = in_one_line(str(error)) if raised is None else f"Dataflow's job failed in a worker: {raised}"
            raise RunError(f"{why}; see the job: {submitted.url}") from error
        except AssertionError as error:  # Beam's, where its thread that asks for the job's state has failed
            raise RunError(f"Dataflow did not answer; the job continues by itself: {submitted.url}") from error
        except troubles() as error:
            raise RunError(f"{in_one_line(str(error))}; the job continues by itself: {submitted.url}") from error

    def _ask(self) -> Counted | None:
        """Ask for Beam's metrics: of each step what is tentative, counting tasks at work, and what is committed."""
        from ....transforms.write import METRICS

        if self._client is None:
            return None
        try:
            found = self._client.get_job_metrics(self._id).metrics
        except troubles():  # the run itself tells failures
            return None
        most: dict[tuple[str, str], int] = {}
        for metric in found:
            name, context = metric.name.name, metric.name.context
            if metric.name.origin == "user" and context.get("namespace") == METRICS:
                key = name, context.get("step", "")
                most[key] = max(most.get(key, 0), int(metric.scalar or 0))
        sums = {kind: sum(count for (name, _), count in most.items() if name == kind) for kind in ("records", "bytes")}
        return Counted(sums["records"], sums["bytes"])


def _cancel(result: DataflowPipelineResult, client: DataflowApplicationClient, submitted: Submitted) -> str:
    """Cancel a job, and wait until it has ended; return what may still come of it, if it does not end."""
    refused = None
    try:
        client.modify_job_state(result.job_id(), "JOB_STATE_CANCELLED")
    except troubles() as error:  # as it is where the job has ended meanwhile
        refused = in_one_line(str(error))
    if _ends(result, _CANCEL_SECONDS if refused is None else _REFUSED_SECONDS):
        return ""
    if refused is not None:
        return f"the job could not be cancelled ({refused}), and may continue: {submitted.url}"
    return f"the job was asked to end, and may still commit until it has: {submitted.url}"


def _ends(result: DataflowPipelineResult, seconds: float) -> bool:
    """Wait until a job has ended, so long at most; each look may be tried again for longer."""
    from apache_beam.runners.runner import PipelineState

    ended = threading.Event()

    def look() -> None:
        with suppress(*troubles()):
            while not PipelineState.is_terminal(result.state):
                time.sleep(_LOOK_SECONDS)
            ended.set()

    looking = threading.Thread(target=look, name="end of the job", daemon=True)
    looking.start()
    looking.join(seconds)
    return ended.is_set()


def troubles() -> tuple[type[Exception], ...]:
    from apache_beam.runners.dataflow.internal.apiclient import DataflowJobAlreadyExistsError
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    return GoogleAPIError, GoogleAuthError, DataflowJobAlreadyExistsError, OSError
