"""Run a pipeline on Flink: start a job server, submit, follow the job, and cancel it on a failure or an interrupt.

    the command ── pipeline ──▶ job server (Java) ── job ──▶ Flink, embedded in it, or a cluster at host:port
        │                                                      │
        └── worker threads, if it is embedded        its worker pool's processes, if it is a cluster

The job server lives as long as the run: it is ended with it, and by the system if the command is killed.

    count       how far the job is, and whether it waits for slots           for the line of progress
    JobWatch    an error that no retry can fix, or a cluster that is gone    ends the run at once
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Self

from ....transforms.errors import RunError, UsageError
from ....transforms.format.wording.printable import escaped
from ...config.runners import FlinkRunner
from ...outcomes.disk_errors import disk_error, in_one_line, lasting_error, raised_in_worker
from ...outcomes.summary import Count, Counted
from ...prepare.prepared import Prepared
from ..beam_pipeline import parse_options, quiet_beam, run_on
from ..engine import Engine, ThrottledCount
from .jars import cache_folder, class_path, java
from .processes import (
    JOB_SERVER,
    LOOPBACK,
    SAID_CHARACTERS,
    FlinkRest,
    Job,
    cause_in,
    java_command,
    kill,
    start,
    wait_for,
)
from .worker_pool import WorkersAsThreads, served

if TYPE_CHECKING:
    import apache_beam as beam

    from ...workers.worker_processes import WorkerProcesses


@dataclass(frozen=True, slots=True)
class FlinkEngine(Engine):
    """A job of Flink for each run; `beam_options` is what came after `--`."""

    runner: FlinkRunner
    beam_options: Sequence[str] = ()

    def check(self) -> None:
        check_flink(self.runner, self.beam_options)

    def end_orphan(self, name: str) -> None:
        end_orphan(self.runner, name)

    def run(self, prepared: Prepared, processes: WorkerProcesses) -> None:
        slots = Slots(processes.workers, 1) if self.runner.is_embedded else slots_of(self.runner)
        pipeline = flink_pipeline(self.runner, slots, len(prepared.plan.tasks), self.beam_options, prepared.name)
        run_on(pipeline, prepared, processes if self.runner.is_embedded else None)

    def count(self, name: str) -> Count | None:
        if self.runner.is_embedded:  # it cannot be asked
            return None
        return ThrottledCount(lambda: counted(FlinkRest(self.runner.master), name))


_FLINK_OPTIONS: Final = frozenset({
    "execution_mode_for_batch", "object_reuse",
    "disable_metrics", "max_bundle_size", "max_bundle_time_mills", "operator_chaining", "use_data_stream_for_batch",
})  # fmt: skip
"""Options of Flink's that have to do with batch jobs; Beam's Python side does not know them."""

_START_SECONDS: Final = 120.0
_CANCEL_SECONDS: Final = 30.0
_ENVIRONMENT_MILLIS: Final = 2000
"""How long Flink keeps a worker that no step uses, and so those of a cancelled job: with Beam's 0, it closes none."""

_SILENCE_SECONDS: Final = 10.0
"""How long a job server that stopped answering may take to be gone."""

_ENDPOINT: Final = re.compile(r"JobService started on \S+:(\d+)")
_JAVA_CAUSE: Final = re.compile(r"^Caused by: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Slots:
    """The share of a Flink that a run has: so many workers, on so many task managers."""

    workers: int
    task_managers: int


def check_flink(runner: FlinkRunner, beam_args: Sequence[str] = ()) -> None:
    """Raise if Java or Flink is not installed, or if a cluster does not answer or is too small."""
    if beam_args:
        quiet_beam()
        parse_options(["--no_save_main_session"], beam_args, _FLINK_OPTIONS)
    java()
    class_path()
    if not runner.is_embedded:
        slots_of(runner)


def slots_of(runner: FlinkRunner) -> Slots:
    overview = FlinkRest(runner.master).overview()
    workers = overview.slots if runner.workers == "auto" else runner.workers
    if not 0 < workers <= overview.slots:
        raise UsageError(
            f"runner.workers: {workers} are asked for, and Flink at {runner.master} has {overview.slots} slots on "
            f"{overview.task_managers} task managers; ask for fewer, or give it more"
        )
    return Slots(workers, max(overview.task_managers, 1))


def end_orphan(runner: FlinkRunner, job: str) -> None:
    """End a cluster's job that works for a run whose command has died: the command that is back resumes it."""
    if not runner.is_embedded and not cancel(runner.master, job):
        raise RunError(
            f"a job of the same command still runs on Flink at {runner.master}, and did not end within "
            f"{_CANCEL_SECONDS:.0f} s: {job}; end it there"
        )


@contextmanager
def flink_pipeline(
    runner: FlinkRunner, slots: Slots, tasks: int, beam_args: Sequence[str], name: str
) -> Iterator[beam.Pipeline]:
    """Yield an empty pipeline, and run it on Flink as the job of a name at the end of the context.

    More workers than `tasks` would idle. A disk error is raised as the engine reports it; the text of another failure
    has its cause, and where the log is.
    """
    quiet_beam()
    workers = min(slots.workers, max(tasks, 1))
    logs = cache_folder() / "flink" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{name}.log"
    log.unlink(missing_ok=True)
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shardmill-flink-")))
        pool, each = runner.worker_pool, -(-workers // slots.task_managers)
        if runner.is_embedded:
            pool, each = f"127.0.0.1:{stack.enter_context(served(WorkersAsThreads()))}", 1
        server = _start_job_server(runner.master, name, work, log)
        stack.callback(kill, server)
        options = _options(_endpoint_of(server, log), name, pool, workers, each)
        pipeline = _pipeline(options, beam_args)
        yield pipeline
        if runner.is_embedded:
            _run(pipeline, runner, name, server, log)
        else:
            with JobWatch(runner.master, name, server.kill) as watch:
                _run(pipeline, runner, name, server, log, watch)
    log.unlink()


def _run(
    pipeline: beam.Pipeline,
    runner: FlinkRunner,
    name: str,
    server: subprocess.Popen[bytes],
    log: Path,
    watch: JobWatch | None = None,
) -> None:
    """Run the pipeline to its end; what a watch found in the meantime goes before what the end looks like."""
    try:
        pipeline.run().wait_until_finish()
    except BaseException as error:
        verdict = None if watch is None else watch.verdict
        failure = verdict or _failure(error, server, log)
        kill(server)  # before the job is looked for, so that none can come later
        _end_job(runner, name, error, failure)
        if not isinstance(error, Exception):
            raise
        if disk_error(failure) is None and disk_error(error) is not None:
            raise
        raise failure from error


def _end_job(runner: FlinkRunner, name: str, error: BaseException, failure: Exception) -> None:
    """End what a cluster still does for a run that failed or was interrupted; raise an error if it may still run."""
    if runner.is_embedded or cancel(runner.master, name):
        return
    left = (
        f"the job {name} may still run on Flink at {runner.master}, and commit: it did not end within "
        f"{_CANCEL_SECONDS:.0f} s, or Flink is out of reach; the same command ends it, and resumes what it did"
    )
    if isinstance(error, KeyboardInterrupt):
        raise KeyboardInterrupt(left) from None
    if not FlinkRest(runner.master).answers():
        raise gone(runner.master, name) from error
    reason = failure if isinstance(failure, RunError) else in_one_line(str(failure))
    raise RunError(f"{reason}; {left}") from error


def cancel(master: str, name: str) -> bool:
    """End the job of a name, if one runs, and wait until it has ended; return whether it has."""
    rest = FlinkRest(master)
    until = time.monotonic() + _CANCEL_SECONDS
    asked = False
    try:
        while (job := rest.job(name)) is not None and not job.is_over:
            if time.monotonic() > until:
                return False
            if not asked:
                rest.cancel(job)
                asked = True
            time.sleep(0.1)
    except RunError:
        return False
    return True


def _start_job_server(master: str, name: str, work: Path, log: Path) -> subprocess.Popen[bytes]:
    for folder in ("artifacts", "tmp", "conf"):
        (work / folder).mkdir()
    (work / "conf" / "flink-conf.yaml").write_text(
        f"io.tmp.dirs: {work / 'tmp'}\nweb.tmpdir: {work / 'tmp'}\nrest.bind-address: {LOOPBACK}\n"
        f"jobmanager.bind-host: {LOOPBACK}\ntaskmanager.bind-host: {LOOPBACK}\n"
    )
    args = {
        "--flink-master": master,
        "--flink-conf-dir": str(work / "conf"),
        "--artifacts-dir": str(work / "artifacts"),
        "--job-host": "127.0.0.1",
        "--job-port": "0",
        "--artifact-port": "0",
        "--expansion-port": "-1",
    }
    flat = [text for pair in args.items() for text in pair]
    settings = [f"-Djava.io.tmpdir={work / 'tmp'}"]
    command = java_command(JOB_SERVER, *flat, heap="768m", mark=f"job-server-{name}", settings=settings)
    return start(command, log, with_us=True)


def _endpoint_of(server: subprocess.Popen[bytes], log: Path) -> str:
    found: list[str] = []

    def is_ready() -> bool:
        match = _ENDPOINT.search(log.read_text(errors="replace"))
        found.extend([match[1]] if match else [])
        return match is not None

    wait_for(is_ready, "Flink's job server", server, log, _START_SECONDS)
    return f"127.0.0.1:{found[0]}"


def _options(endpoint: str, name: str, pool: str, workers: int, each: int) -> list[str]:
    return [
        f"--job_endpoint={endpoint}",
        f"--job_name={name}",
        f"--parallelism={workers}",
        "--environment_type=EXTERNAL",
        f"--environment_config={pool}",
        f"--environment_cache_millis={_ENVIRONMENT_MILLIS}",
        f"--sdk_worker_parallelism={each}",
        "--no_save_main_session",
    ]


def _pipeline(options: Sequence[str], beam_args: Sequence[str]) -> beam.Pipeline:
    import apache_beam as beam
    from apache_beam.runners.portability.portable_runner import PortableRunner

    return beam.Pipeline(runner=PortableRunner(), options=parse_options(options, beam_args, _FLINK_OPTIONS))


def _is_silence(error: BaseException) -> bool:
    import grpc

    return isinstance(error, grpc.RpcError)


def _failure(error: BaseException, server: subprocess.Popen[bytes], log: Path) -> RunError:
    where = f"its log: {log}"
    if _is_silence(error):
        with contextlib.suppress(subprocess.TimeoutExpired):  # its end reaches us after its silence
            server.wait(_SILENCE_SECONDS)
    if server.returncode is not None:
        return RunError(
            f"Flink's job server died (exit code {server.returncode}): {cause_in(log)}; run the command again; {where}"
        )
    text = str(error)
    lasting = lasting_error(text)
    if isinstance(lasting, RunError):
        return lasting
    raised = raised_in_worker(text)
    if raised is not None:
        return RunError(f"Flink's job failed in a worker: {raised}; {where}")
    causes = _JAVA_CAUSE.findall(text)
    why = causes[-1] if causes else text.strip().partition("\n")[0]
    return RunError(f"Flink's job failed: {escaped(why)[:SAID_CHARACTERS]}; {where}")


_LOOK_SECONDS: Final = 2.0
_JOIN_SECONDS: Final = 1.0

_GONE_SECONDS: Final = 8.0
"""A cluster of this machine that refuses connections for so long was stopped: it does not come back by itself."""

_MORE_SLOTS: Final = (
    "start a task manager; or interrupt, and run the same command again: it resumes with the slots that are there"
)


def counted(rest: FlinkRest, name: str) -> Counted | None:
    """Return the metrics of the job with a name, and what it waits for; None without an answer."""
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
