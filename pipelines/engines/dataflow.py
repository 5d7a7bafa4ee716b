"""Dataflow: a conversion as a job of Google Cloud, which runs and commits without the process that submitted it.

    launcher                              Dataflow
    config, flags checked
    source listed, surveyed, planned
    plan.json       ── gs://staging ──▶
    the job         ── pipeline ──────▶   ReadRows | EncodeExamples | WriteShards, its last steps the commit
    done, if not `wait`; else waits       ◀─ ends ─
    reports what was committed, or refused

The name of a job is made of the command's fingerprints, so that Dataflow itself refuses a second one of the same
command while the first one runs. What jobs before have staged is never touched: one of them may be at work there.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from ...transforms.dataset.stage.spec import DatasetSpec
from ...transforms.errors import RunError, UsageError
from ...transforms.format.wording.hints import Set, install_line
from ..config.runners import DataflowRunner
from ..outcomes.disk_errors import in_one_line, raised_in_worker
from ..outcomes.summary import Count, Counted, Submitted
from ..prepare.prepared import Prepared
from ..prepare.staged_plan import PLAN_FILE
from .beam_pipeline import add_steps, parse_options, quiet_beam
from .engine import Engine, ThrottledCount

if TYPE_CHECKING:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.dataflow.dataflow_runner import DataflowPipelineResult
    from apache_beam.runners.dataflow.internal.apiclient import DataflowApplicationClient

    from ..workers.worker_processes import WorkerProcesses


# A job of Dataflow that is waited for: how far it is, how it ended, and its end where the launcher is interrupted.
#
# submitted ── runs ──────────────────────▶ done, or failed: the error, and where the job is seen
#     │          counted by Beam's metrics
#     └─ interrupt: cancelled ── ends ──▶ what was committed by then is reported; nothing comes later


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
        from ...transforms.write import METRICS

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


_OURS: Final = {
    "project": "project", "region": "region", "staging_location": "staging", "temp_location": "temp",
    "sdk_container_image": "image", "worker_harness_container_image": "image",
    "service_account_email": "service_account", "max_num_workers": "workers", "runner": "name",
}  # fmt: skip
"""Options of Beam that are keys of `runner`: given twice they could differ."""

_NAME_LENGTH: Final = 40
"""A job's name has room for more, the labels that Dataflow makes of it for 63."""


def check_dataflow(runner: DataflowRunner, beam_args: Sequence[str]) -> None:
    """Check all that can be without a connection, before anything is read."""
    for arg in beam_args:
        flag = arg.removeprefix("--").partition("=")[0]
        if flag in _OURS:
            key = _OURS[flag]
            raise UsageError(f"--{flag}: is runner.{key} here; give it there: {Set(f'runner.{key}', '...')}")
    if not _is_installed():
        raise UsageError(f"runner.name: Dataflow needs packages that are not installed; {install_line('dataflow')}")
    _options(runner, "check", beam_args)


def _is_installed() -> bool:
    try:
        return find_spec("google.cloud.dataflow_v1beta3") is not None
    except ModuleNotFoundError:  # there is no google, or no google.cloud
        return False


def only_builds(beam_args: Sequence[str]) -> bool:
    """Return whether Beam is asked for the graph of a job alone (`-- --dry_run`), so that nothing is sent."""
    return any(arg.partition("=")[0] == "--dry_run" for arg in beam_args)


def job_name(spec: DatasetSpec) -> str:
    """Return the name of a run's job: the same for the same command, though each run stages in a folder of its own.

    >>> job_name(DatasetSpec(path="/out", name="cats_and_dogs", shard_size=65536))
    'shardmill-cats-and-dogs-9dd3c42a'
    """
    command = [spec.path, spec.append_to is not None, spec.config_fingerprint, spec.source_fingerprint]
    digest = hashlib.sha256(json.dumps(command).encode()).hexdigest()
    return f"shardmill-{spec.name.replace('_', '-')}"[: _NAME_LENGTH - 9].rstrip("-") + f"-{digest[:8]}"


def make_job(
    prepared: Prepared, runner: DataflowRunner, beam_args: Sequence[str], *, raise_refusal: bool
) -> beam.Pipeline:
    """Return the pipeline of a job; a job that nobody waits for fails where a run is refused."""
    quiet_beam()
    import apache_beam as beam
    from apache_beam.runners.dataflow import DataflowRunner as Engine

    pipeline = beam.Pipeline(runner=Engine(), options=_options(runner, job_name(prepared.spec), beam_args))
    add_steps(pipeline, prepared, raise_refusal=raise_refusal)
    return pipeline


def submit(
    prepared: Prepared, runner: DataflowRunner, beam_args: Sequence[str], job: DataflowJob | None = None
) -> Submitted:
    """Submit what is prepared; as a `job` that is waited for, return when it has ended well."""
    spec = prepared.spec
    if not only_builds(beam_args):
        spec.storage.replace(f"{spec.staging}/{PLAN_FILE}", prepared.plan_document())
        prepared = prepared.in_files()
    try:
        pipeline = make_job(prepared, runner, beam_args, raise_refusal=job is None)
        result = pipeline.run()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the job {_may_run(prepared.spec, runner)}") from None
    except troubles() as error:
        why = in_one_line(str(error))
        if _was_refused(error):
            raise RunError(f"Dataflow did not take the job: {why}; nothing was started") from error
        raise RunError(f"Dataflow did not answer: {why}; the job {_may_run(prepared.spec, runner)}") from error
    submitted = Submitted(spec.path, job_name(spec), runner.project, runner.region, _id_of(result))
    if job is not None:
        job.wait(result, pipeline.runner.dataflow_client, submitted)
    return submitted


def _was_refused(error: Exception) -> bool:
    """Return whether Dataflow, or the store before it, said no; else the request may have come to it."""
    from google.api_core.exceptions import GoogleAPICallError, RetryError, ServerError

    if isinstance(error, GoogleAPICallError):
        return error.code is not None and not isinstance(error, ServerError)
    return not isinstance(error, (RetryError, OSError))


def _may_run(spec: DatasetSpec, runner: DataflowRunner) -> str:
    where = f"--region {runner.region} --project {runner.project}"
    return f"{job_name(spec)} may have been started, and commit: gcloud dataflow jobs list {where} shows it"


def _options(runner: DataflowRunner, name: str, beam_args: Sequence[str]) -> PipelineOptions:
    ours = [
        "--runner=DataflowRunner",
        f"--project={runner.project}",
        f"--region={runner.region}",
        f"--staging_location={runner.staging}",
        f"--temp_location={runner.temp or f'{runner.staging}/temp'}",
        f"--sdk_container_image={runner.image}",
        "--sdk_location=container",  # Beam is in the image: none is uploaded
        "--experiments=disable_logging_submission_environment",  # nor what is installed here
        "--no_save_main_session",
        f"--job_name={name}",
    ]
    if runner.service_account is not None:
        ours.append(f"--service_account_email={runner.service_account}")
    if runner.workers != "auto":
        ours.append(f"--max_num_workers={runner.workers}")
    given = {arg.partition("=")[0] for arg in beam_args}
    return parse_options([arg for arg in ours if arg.partition("=")[0] not in given - {"--experiments"}], beam_args)


def _id_of(result: Any) -> str | None:
    """Return the id of the job, or None where only its graph was built."""
    return result.job_id() if getattr(result, "has_job", False) else None


@dataclass(frozen=True, slots=True)
class DataflowEngine(Engine):
    """A job of Dataflow for each run; `beam_options` is what came after `--`.

    What jobs before have staged is never taken over: one of them may still be at work there. Dataflow itself refuses a
    second job of the same command.
    """

    runner: DataflowRunner
    beam_options: Sequence[str] = ()
    resumes: bool = False
    sees_this_machine: bool = False
    _job: DataflowJob = field(default_factory=DataflowJob)

    @property
    def waits(self) -> bool:
        return self.runner.wait and not only_builds(self.beam_options)

    def check(self) -> None:
        check_dataflow(self.runner, self.beam_options)

    def run(self, prepared: Prepared, processes: WorkerProcesses) -> Submitted | None:  # noqa: ARG002
        if not self.waits:
            return submit(prepared, self.runner, self.beam_options)
        submit(prepared, self.runner, self.beam_options, self._job)
        return None

    def count(self, name: str) -> Count | None:  # noqa: ARG002
        return self._job.count
