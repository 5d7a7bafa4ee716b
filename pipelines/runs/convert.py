"""The conversion, from a config to a committed generation.

prepare     list and survey the source, freeze its schema, cut it into tasks       (no Beam)
take over   the tasks that a run of the same command has done which stopped        (no Beam)
run         ReadRows | EncodeExamples | WriteShards                                (on the engine)
tell        the summary, or the error that says why nothing was committed
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from ...transforms.dataset.cleanup.leftovers import staged_by_dead_runs
from ...transforms.dataset.commit.outcome import WriteOutcome, read_outcome
from ...transforms.dataset.commit.target import prepare_target, replacing_what_is_there
from ...transforms.dataset.commit.write_generation import write_generation
from ...transforms.dataset.shards.refusal import Refusal
from ...transforms.dataset.shards.source_list import read_notes
from ...transforms.dataset.stage.run_lock import hold_run
from ...transforms.dataset.stage.spec import DatasetSpec
from ...transforms.errors import TooManyRejects, UnseenError, UsageError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.sources.contract.source import Source
from ...transforms.task_staging import TaskStaging
from ..config.model import Config
from ..config.runners import DataflowRunner, FlinkRunner
from ..engines.beam_pipeline import count_workers, make_pipeline, wants_processes
from ..engines.dataflow.job import DataflowJob
from ..engines.dataflow.submission import check_dataflow, submit, waits
from ..engines.flink.pipeline import check_flink, end_orphan, flink_pipeline, job_name
from ..engines.flink.watch import count_on
from ..prepare.convert import prepare
from ..prepare.prepared import Prepared
from ..prepare.read_encode_write import add_steps, sink
from ..prepare.staged_plan import PLAN_FILE
from ..report.reject_groups import read_head, rejects_text
from ..report.summary import Count, PlanReport, Submitted, Summary, Watch, oversize_warnings
from .python_api import What, load_call, noting, spooled, warn_of
from .resume import look_ahead, take_over

if TYPE_CHECKING:
    import apache_beam as beam

    from ..engines.local.worker_processes import WorkerProcesses
    from .python_api import Data


def convert(
    config: What | None = None,
    *,
    data: Data | None = None,
    output: str | os.PathLike[str] | None = None,
    **settings: object,
) -> Summary:
    """Convert what a config names, or data in memory, to a dataset of TFRecord shards.

        convert("data/*.csv", output="out/sales", delimiter=";")
        convert("configs/csv.yaml", shard_size="64MiB")
        convert(data=frame, output="out/people", split__fractions={"train": 0.9, "val": 0.1}, max_rejects="1%")

    Args:
        config: a file, folder or glob to read, or a list of them; or the path of a YAML config (and paths to read
            instead of its own), or its content as a mapping.
        data: a pandas DataFrame, an Arrow table, record batch or reader, a dict of NumPy arrays whose first axis is
            the row, a list of dicts, or a generator of dicts or tables, whose first rows decide the schema; instead of
            the config's `input`.
        output: the dataset's folder, instead of the config's `output.path`.
        **settings: other values of the config, its dots written as double underscores (`limits__pixels=10**6`); the
            keys of `input` and `output` go without their section (`delimiter=";"`, `shard_size="64MiB"`).

    Returns:
        the summary: its `manifest` states what was written.

    Raises:
        UsageError: the config, the data or the target is wrong.
        RunError: an input is corrupt, or the commit was lost.
        TooManyRejects: more rows were rejected than `max_rejects` allows; nothing was committed.
    """
    loaded = load_call(config, output, settings, data_given=data is not None)
    require_waiting(loaded, ())
    if data is None:
        with noting(loaded):
            ended = run_convert(loaded)
    else:
        with spooled(loaded, data) as source:
            ended = run_convert(loaded, source=source)
    assert isinstance(ended, Summary)
    return warn_of(ended)


def require_waiting(config: Config, beam_options: Sequence[str]) -> None:
    """Refuse a run that is not waited for, where its result is wanted.

    Raises:
        UsageError: `runner.wait` is false, or Beam is asked for the graph alone.
    """
    if isinstance(config.runner, DataflowRunner) and not waits(config.runner, beam_options):
        raise UsageError(
            "runner.wait: what is written is known when the job has ended, so this waits for it; leave the key out, or "
            "submit with the command line: shardmill convert ... --no-wait"
        )


def run_convert(
    config: Config, *, source: Source | None = None, beam_options: Sequence[str] = (), watch: Watch | None = None
) -> Summary | Submitted:
    """Run a loaded config; `source` stands for the config's input, `watch` shows the progress of the staging folder.

    What is submitted and not waited for has no summary.
    """
    from ..engines.local.worker_processes import WorkerProcesses

    started = time.monotonic()
    check_engine(config, beam_options)
    with WorkerProcesses(count_workers(config.runner.planners)) as processes:
        prepared = prepare(config, source, processes)
        spec = prepared.spec
        with hold_run(spec):
            end_job_of_before(config, spec)
            held = prepare_target(spec, clear=False)
            if held is not None:
                return summary_of(prepared, held, time.monotonic() - started, nothing_to_do=True)
            prepared = replace(prepared, spec=replacing_what_is_there(spec))
            if isinstance(config.runner, DataflowRunner) and not waits(config.runner, beam_options):
                return submit(prepared, config.runner, beam_options)
            prepared, outcome = run_prepared(prepared, config, beam_options, watch, processes)
    if outcome.refusal is not None:
        raise refused(spec, outcome.refusal)
    assert outcome.manifest is not None
    return summary_of(prepared, outcome.manifest, time.monotonic() - started)


def check_engine(config: Config, beam_options: Sequence[str]) -> None:
    """Check what is after `--`, and that the engine is available, before anything is read.

    Raises:
        UsageError: Beam has no such option, or packages are not installed.
        RunError: a cluster cannot be reached.
    """
    if isinstance(config.runner, DataflowRunner):
        check_dataflow(config.runner, beam_options)
    elif isinstance(config.runner, FlinkRunner):
        check_flink(config.runner, beam_options)
    elif beam_options:
        make_pipeline(1, beam_options)


def end_job_of_before(config: Config, spec: DatasetSpec) -> None:
    """End the job that a launcher which died left on its cluster: until then it may commit, and publish.

    So this comes before anybody looks what is committed; the caller holds the run.
    """
    if isinstance(config.runner, FlinkRunner):
        end_orphan(config.runner, job_name(spec))


def run_prepared(
    prepared: Prepared,
    config: Config,
    beam_options: Sequence[str],
    watch: Watch | None,
    processes: WorkerProcesses,
) -> tuple[Prepared, WriteOutcome]:
    """Run what is ready to run, and return it, as it was run, and what became of it; the caller holds the run."""
    if isinstance(config.runner, DataflowRunner):
        job = DataflowJob()
        with _watching(watch, prepared, job.count):
            submit(prepared, config.runner, beam_options, job)
        return prepared, read_outcome(prepared.spec)
    count = None
    if isinstance(config.runner, FlinkRunner):
        count = count_on(config.runner, job_name(prepared.spec))
    return watch_run(prepared, watch, lambda left: _run_pipeline(left, config, beam_options, processes), count)


def watch_run(
    prepared: Prepared, watch: Watch | None, run: Callable[[Prepared], object], count: Count | None = None
) -> tuple[Prepared, WriteOutcome]:
    """Let `run` write what is left to do of what is prepared; return that, and what became of it."""
    left = take_over(prepared)
    with _watching(watch, left, count):
        try:
            run(left)
        except UnseenError:
            if left.spec.storage.lies_at(f"{left.spec.staging}/{PLAN_FILE}"):
                raise
            # gone from here too: an engine tried a task again when the run was over, and its folder removed
    return left, read_outcome(left.spec)


def dry_run(config: Config) -> PlanReport:
    """Return what a conversion would do; nothing is written."""
    return look_ahead(prepare(config))


def _run_pipeline(prepared: Prepared, config: Config, beam_options: Sequence[str], processes: WorkerProcesses) -> None:
    plan, runner = prepared.plan, config.runner
    if prepared.done and not plan.tasks:
        with ThreadPoolExecutor(count_workers(runner.planners)) as pool:  # an engine takes longer to start
            write_generation(prepared.spec, prepared.done, pool.map)
        return
    engine: AbstractContextManager[beam.Pipeline]
    if isinstance(runner, FlinkRunner):
        engine = flink_pipeline(runner, len(plan.tasks), beam_options, job_name(prepared.spec))
    else:
        engine = make_pipeline(min(count_workers(runner.planners), max(len(plan.tasks), 1)), beam_options)
    on_a_cluster = isinstance(runner, FlinkRunner) and not runner.is_embedded
    if on_a_cluster or not wants_processes(runner.processes, sum(plan.outputs)):
        with engine as pipeline:
            add_steps(pipeline, prepared)
        return
    staging = TaskStaging.of(prepared.spec, prepared.source, plan.survey.frozen, prepared.encoder)
    processes.begin(staging, plan.tasks)
    try:
        _run_in_processes(prepared, processes, engine)
    except Exception:
        if processes.broken is not None:
            raise processes.broken from None
        raise


def _run_in_processes(
    prepared: Prepared, processes: WorkerProcesses, engine: AbstractContextManager[beam.Pipeline]
) -> None:
    from ...transforms.stage_tasks import StageTasks

    with engine as pipeline:
        _ = (
            pipeline
            | "Stage" >> StageTasks(prepared.plan.tasks, processes.stage)
            # TaskResult
            | "Write" >> sink(prepared)
            # WriteOutcome
        )


def _watching(watch: Watch | None, prepared: Prepared, count: Count | None = None) -> AbstractContextManager[object]:
    spec = prepared.spec
    return nullcontext() if watch is None else watch(os.path.join(spec.path, spec.staging), prepared.notes, count)


def refused(spec: DatasetSpec, refusal: Refusal) -> Exception:
    """Return the refusal's error; of too many rejects with the first of them."""
    error = refusal.error()
    if refusal.rejects is None or not isinstance(error, TooManyRejects):
        return error
    groups = read_head(spec.path, refusal.rejects).groups
    return TooManyRejects(
        f"{refusal.message}\n{rejects_text(refusal.rejected, {}, groups)}",  # it has the codes
        os.path.join(spec.path, refusal.rejects),
        {"read": refusal.rows_read, "rejected": refusal.rejected},
        refusal.by_code,
    )


def summary_of(prepared: Prepared, manifest: Manifest, seconds: float, *, nothing_to_do: bool = False) -> Summary:
    """Return what a run did, or that a generation holds it."""
    spec, survey = prepared.spec, prepared.plan.survey
    rejects = read_head(spec.path, manifest.rejects.path)
    notes = [f"{text}: {count:,}" for text, count in read_notes(spec.path, manifest).items()]
    return Summary(
        path=spec.path,
        manifest=manifest,
        seconds=seconds,
        choices=survey.choices,
        warnings=(*survey.warnings, *notes, *oversize_warnings(manifest)),
        first_rejects=rejects.first,
        reject_groups=rejects.groups,
        nothing_to_do=nothing_to_do,
        done_before=len(prepared.done),
        detected=survey.detected,
        remarks=survey.remarks,
        left_behind=0 if nothing_to_do else staged_by_dead_runs(spec.storage, spec.run_id),
    )
