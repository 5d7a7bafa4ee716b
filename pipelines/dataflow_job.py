"""A job of Dataflow that is waited for: how far it is, how it ended, and its end where the launcher is interrupted.

submitted ── runs ──────────────────────▶ done, or failed: the error, and where the job is seen
    │          counted by Beam's metrics
    └─ interrupt: told to end ── ends ──▶ what is committed by then is told; nothing comes later
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..transforms.errors import RunError
from ..transforms.format.printable import escaped, redacted
from .report import Counted, Submitted
from .seldom_count import SeldomCount

if TYPE_CHECKING:
    from apache_beam.runners.dataflow.dataflow_runner import DataflowPipelineResult
    from apache_beam.runners.dataflow.internal.apiclient import DataflowApplicationClient

_CANCEL_SECONDS: Final = 300.0
"""How long a job that was told to end may take: Dataflow stops its machines first."""

_LOOK_SECONDS: Final = 3.0

_SAID_CHARACTERS: Final = 1000
"""Of an error: Google's begin with the address of what was asked, and end with the reason."""


class DataflowJob:
    """The job of one run, from before it is submitted."""

    def __init__(self) -> None:
        self._client: DataflowApplicationClient | None = None
        self._id = ""
        self._ending = False
        self._count = SeldomCount(self._ask)

    def count(self) -> Counted:
        """Return what the job has staged, as far as Dataflow has told."""
        return replace(self._count(), ending=self._ending)

    def wait(self, result: DataflowPipelineResult, client: DataflowApplicationClient, submitted: Submitted) -> None:
        """Return when a job has ended well; `client` is what it was submitted with.

        Raises:
            RunError: it failed, or Dataflow cannot be asked any more.
            KeyboardInterrupt: so was the launcher, and the job has ended, or the text says that it may go on.
        """
        from apache_beam.runners.dataflow.dataflow_runner import DataflowRuntimeException

        self._client, self._id = client, result.job_id()
        try:
            result.wait_until_finish()
        except KeyboardInterrupt:
            self._ending = True
            raise KeyboardInterrupt(_cancel(result, submitted)) from None
        except DataflowRuntimeException as error:
            raise RunError(f"{one_line(error)}; see the job: {submitted.url}") from error
        except AssertionError as error:  # Beam's, where its thread that asks for the job's state has failed
            raise RunError(f"Dataflow did not answer; the job goes on by itself: {submitted.url}") from error
        except troubles() as error:
            raise RunError(f"{one_line(error)}; the job goes on by itself: {submitted.url}") from error

    def _ask(self) -> Counted | None:
        """Ask for Beam's metrics: of each step what is tentative, counting tasks at work, and what is committed."""
        from ..transforms.write import METRICS

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


def _cancel(result: DataflowPipelineResult, submitted: Submitted) -> str:
    """Tell a job to end, and wait until it has; return what may come of it still, if it does not."""
    from apache_beam.runners.dataflow.dataflow_runner import DataflowRuntimeException
    from apache_beam.runners.runner import PipelineState

    told = False
    try:
        result.cancel()
        told = True
        until = time.monotonic() + _CANCEL_SECONDS
        while not PipelineState.is_terminal(result.state):
            if time.monotonic() > until:
                return f"the job was told to end, and may still commit until it has: {submitted.url}"
            time.sleep(_LOOK_SECONDS)
    except (*troubles(), DataflowRuntimeException) as error:
        if told:
            return f"the job was told to end, and may still commit until it has ({one_line(error)}): {submitted.url}"
        return f"the job could not be cancelled ({one_line(error)}), and goes on: {submitted.url}"
    return ""


def troubles() -> tuple[type[Exception], ...]:
    """Return what Google's libraries raise: refused, not allowed, no connection, no credentials, running already."""
    from apache_beam.runners.dataflow.internal.apiclient import DataflowJobAlreadyExistsError
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    return GoogleAPIError, GoogleAuthError, DataflowJobAlreadyExistsError, OSError


def one_line(error: BaseException) -> str:
    """Return the text of an error of Google's in one line."""
    return escaped(redacted(" ".join(str(error).split())))[:_SAID_CHARACTERS]
