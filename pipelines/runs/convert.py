"""Run a conversion, from a config to a committed generation; the same command resumes one that stopped.

prepare     list and survey the source, freeze its schema, cut it into tasks       (no Beam)
take over   the tasks that a run of the same command has done which stopped        (no Beam)
run         ReadRows | EncodeExamples | WriteShards                                (on the engine)
tell        the summary, or the error that says why nothing was committed
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...transforms.dataset.commit.accounting import Refusal, read_notes
from ...transforms.dataset.commit.commit_generation import WriteOutcome, empty_warnings, read_outcome
from ...transforms.dataset.commit.publish import prepare_target, replacing_what_is_there, write_generation
from ...transforms.dataset.integrity.garbage import staged_by_dead_runs
from ...transforms.dataset.stage.run_lock import hold_if_dead, hold_run
from ...transforms.dataset.stage.spec import DatasetSpec
from ...transforms.dataset.stage.task_stager import TaskResult, count_results, keep_only, read_done_tasks
from ...transforms.dataset.storage.manifest_files import read_stats
from ...transforms.errors import DamageError, RunError, TooManyRejects, UnseenError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.splits.by_row import FolderSplits, HashSplits
from ...transforms.format.wording.printable import counted
from ...transforms.inputs.contract.selection import typed_path
from ...transforms.inputs.contract.source import Source
from ...transforms.inputs.contract.tasks import Plan
from ...transforms.inputs.files.file_names import FORMATS
from ..engines.engine import Engine
from ..outcomes.reject_groups import RejectedRun, read_head, rejects_text
from ..outcomes.summary import (
    Count,
    PlanReport,
    SplitEstimate,
    Submitted,
    Summary,
    Watch,
    added_records,
    order_note,
    oversize_warnings,
    picture_warnings,
    share_warnings,
    shuffle_note,
)
from ..prepare.conversion import Conversion, prepare
from ..prepare.prepared import Prepared
from ..prepare.proposals import first_of, lines_of_proposals, with_proposals
from ..prepare.staged_plan import PLAN_FILE, cut_of, read_staged_plan
from ..screens.watching import watch_of
from ..workers.worker_processes import WorkerProcesses
from .forecast import forecast, room_notes
from .python_api import What, called, engine_of, warn_of, workers_of

if TYPE_CHECKING:
    from ...transforms.recipe.function import Mapped
    from .python_api import Data


_SHOWN_PROPOSALS: Final = 12
"""Columns that may be read otherwise, for which a summary has a line."""


# Resuming: a run continues where one of the same command stopped.
#
#     .staging/<run>/plan.json              the same in all that bytes depend on?     else start over, and say so
#                    tasks/000003.json      done: goes to the shard plan as it is
#                    parts/000004-…         no result: removed, and task 4 is done (again)
#                    shards/ rejects.jsonl  removed: made from the results
#
# Where all tasks are done, as after too many rejects, the source is not even surveyed again.


def take_over(prepared: Prepared) -> Prepared:
    """Return the run with what is done of it, its staging folder cleared of all else; the caller holds the run."""
    spec = prepared.spec
    done, note = _usable(prepared)
    if prepared.restored and len(done) < len(prepared.plan.tasks):
        raise RunError(f"{spec.path}/{spec.staging} was changed while it was looked at; run again")
    _remove_outdated(prepared)
    keep_only(spec.storage, spec.staging, done, (PLAN_FILE,))
    if not done:
        spec.storage.replace(f"{spec.staging}/{PLAN_FILE}", prepared.plan_document())
    notes = (*prepared.stopped.notes, *([note] if note else []))
    spec = replace(spec, plan_file=PLAN_FILE)
    left = replace(prepared, plan=_without(prepared.plan, done), spec=spec, done=done, notes=notes)
    return left.in_files()


def look_ahead(prepared: Prepared, workers: WorkerProcesses, *, elsewhere: bool = False) -> PlanReport:
    """Return what a run would do, and what it would resume; nothing is changed.

    Some rows are converted, to say how long it takes and what is rejected; `elsewhere` other machines convert.
    """
    done, note = _usable(prepared)
    made = None
    if not prepared.restored:
        prepared, made = forecast(prepared, workers, done=len(done), elsewhere=elsewhere)
    report = replace(prepared.report(), forecast=made)
    notes = (*prepared.stopped.notes, *([note] if note else []), *_rejects_of(done))
    if prepared.restored and report.splits_sampled:  # no row is looked at again, and all are known
        report = replace(report, splits=_staged_splits(done, prepared.spec.shard_size), splits_sampled=False)
    seen = () if made is None else made.warnings
    return replace(report, done_before=len(done), warnings=(*notes, *report.warnings, *seen))


def _staged_splits(done: Sequence[TaskResult], shard_size: int) -> tuple[SplitEstimate, ...]:
    records, sizes = Counter[str](), Counter[str]()
    for result in done:
        for name, split in result.splits.items():
            records[name] += sum(part.records for part in split.parts)
            sizes[name] += sum(part.bytes for part in split.parts)
    return tuple(
        SplitEstimate(name, records[name], size, -(-size // shard_size)) for name, size in sorted(sizes.items())
    )


def _rejects_of(done: Sequence[TaskResult]) -> tuple[str, ...]:
    """Return what to say of rows that finished tasks have rejected: planning does not look at them again."""
    codes: Counter[str] = Counter()
    for result in done:
        codes.update(result.rejects.by_code if result.rejects else {})
    rows = sum(result.rejects.records for result in done if result.rejects)
    by_code = ", ".join(f"{code} {count:,}" for code, count in sorted(codes.items()))
    was = "was" if rows == 1 else "were"
    return (f"{counted(rows, 'row')} of these {was} rejected ({by_code})",) if rows else ()


def _usable(prepared: Prepared) -> tuple[tuple[TaskResult, ...], str | None]:
    spec, plan = prepared.spec, prepared.plan
    total = len(plan.tasks)
    found = count_results(spec.storage, spec.staging)
    staged = read_staged_plan(spec.storage, spec.run_id)
    if not found or spec.run_id in prepared.stopped.outdated:
        moved = any(other.run_id != spec.run_id for other in prepared.stopped.same)
        return (), "starting over: the dataset changed since the interrupted run" if moved else None
    if not prepared.stopped.resume:
        return (), "starting over, as runner.resume is false"
    if staged is None:
        return (), "starting over: the plan of the interrupted run cannot be read"
    differences = staged.mark.differences(prepared.mark)
    if differences:
        return (), f"starting over: {', '.join(differences)} changed since the interrupted run"
    if not prepared.restored and (staged.tasks, staged.cut) != (total, cut_of(plan)):
        return (), "starting over: the interrupted run had cut the source into other tasks"
    if spec.shuffle is not None and staged.bytes != plan.estimate.bytes:  # which the number of buckets follows from
        return (), "starting over: the sample of the source gives another size than in the interrupted run"
    done = read_done_tasks(spec.storage, spec.staging, total)
    first = min(len(done), total)
    second = f", and {len(done) - first:,} of the second pass" if len(done) > first else ""
    return done, f"resuming: {first:,} of {counted(total, 'task')} already done{second}" if done else None


def _without(plan: Plan, done: tuple[TaskResult, ...]) -> Plan:
    if not done:
        return plan
    numbers = {result.task for result in done}
    left = [i for i, task in enumerate(plan.tasks) if task.ordinal not in numbers]
    outputs = tuple(plan.outputs[i] for i in left)
    return replace(plan, tasks=tuple(plan.tasks[i] for i in left), outputs=outputs)


def _remove_outdated(prepared: Prepared) -> None:
    storage, stopped = prepared.spec.storage, prepared.stopped
    moved = [other.run_id for other in stopped.same if other.run_id != prepared.spec.run_id]
    for run_id in (*stopped.outdated, *moved):
        if run_id == prepared.spec.run_id:
            continue  # the caller holds it, and clears it
        with hold_if_dead(storage, run_id) as dead:
            if dead:
                storage.remove_tree(f"{prepared.spec.staging.rpartition('/')[0]}/{run_id}")


# The run.


def convert(
    config: What | None = None,
    *,
    data: Data | None = None,
    output: str | os.PathLike[str] | None = None,
    map: Mapped | None = None,  # noqa: A002
    progress: bool | None = None,
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
        map: a function that is called with every batch of rows (a `pyarrow.RecordBatch`) and returns a batch with as
            many rows, or a dict of arrays; to drop rows, a tuple of the batch and a boolean for each row. Or a step,
            which is an object with `plan` and `apply`; or a list of such.
        progress: show on standard error how the run gets on: a line that changes on a terminal, lines in a log. In a
            notebook it is an output of the cell, and there it is shown by default (None).
        **settings: other values of the config, its dots written as double underscores (`limits__pixels=10**6`); the
            keys of `input` and `output` go without their section (`delimiter=";"`, `shard_size="64MiB"`).

    Returns:
        the summary: its `manifest` states what was written.

    Raises:
        UsageError: the config, the data or the target is wrong.
        RunError: an input is corrupt, or the commit was lost.
        TooManyRejects: more rows were rejected than `max_rejects` allows; nothing was committed.
    """
    with called("convert", config, output, settings, data=data, mapped=map) as conversion:
        summary = run_convert(conversion, watch=watch_of(progress))
    assert isinstance(summary, Summary)
    return warn_of(summary)


def run_convert(
    conversion: Conversion, *, beam_options: Sequence[str] = (), watch: Watch | None = None
) -> Summary | Submitted:
    """Run a conversion; `watch` shows the progress of the staging folder."""
    started = time.monotonic()
    engine = engine_of(conversion.runner, beam_options)
    engine.check()
    with workers_of(conversion.runner) as processes:
        prepared = prepare(conversion, processes)
        with hold_run(prepared.spec):
            engine.end_orphan(prepared.name)
            held = prepare_target(prepared.spec, clear=False)
            if held is not None:
                return summary_of(prepared, held, time.monotonic() - started, nothing_to_do=True)
            first = _first_rows(conversion, prepared)  # before the run lets go of its plan
            prepared = begun(replace(prepared, spec=replacing_what_is_there(prepared.spec)), engine)
            outcome = run_prepared(prepared, engine, watch, processes)
    if isinstance(outcome, Submitted):
        return outcome
    told = () if outcome.refusal is not None or first is None else lines_of_proposals(*first, _SHOWN_PROPOSALS)
    summary = ended(prepared, outcome, started)
    return replace(summary, detected=with_proposals(summary.detected, told))


def _first_rows(conversion: Conversion, prepared: Prepared) -> tuple[Source, Plan, Collection[str]] | None:
    """Return what shows how columns may be read; nothing for data in memory, and for what is no table."""
    if prepared.restored or conversion.input is None or not FORMATS[conversion.input.format].load().shows_columns:
        return None
    return prepared.source, first_of(prepared.plan), conversion.named


def ended(prepared: Prepared, outcome: WriteOutcome, started: float) -> Summary:
    """Return the summary of a run; a run that was refused raises the error of its `Refusal`."""
    if outcome.refusal is not None:
        raise refused(prepared.spec, outcome.refusal)
    assert outcome.manifest is not None
    return summary_of(prepared, outcome.manifest, time.monotonic() - started, notes=outcome.notes)


def begun(prepared: Prepared, engine: Engine) -> Prepared:
    """Return what is left to do of what is prepared; the caller holds the run, and lets go of what it had."""
    return take_over(prepared) if engine.resumes else prepared


def run_prepared(
    left: Prepared, engine: Engine, watch: Watch | None, processes: WorkerProcesses
) -> WriteOutcome | Submitted:
    """Run what is left to do, as `begun` returned it, and return what became of it; the caller holds the run."""
    with _watching(watch if engine.waits else None, left, engine.count(left.name)):
        try:
            submitted = _run_left(left, engine, processes)
        except UnseenError:
            if left.spec.storage.lies_at(f"{left.spec.staging}/{PLAN_FILE}"):
                raise
            submitted = None  # gone from here too: an engine tried a task again after the run, and its folder's end
    return submitted or read_outcome(left.spec)


def _run_left(left: Prepared, engine: Engine, processes: WorkerProcesses) -> Submitted | None:
    if left.done and not left.plan.tasks:
        with ThreadPoolExecutor(processes.workers) as pool:  # an engine takes longer to start
            write_generation(left.spec, left.done, pool.map)
        return None
    return engine.run(left, processes)


def dry_run(conversion: Conversion) -> PlanReport:
    """Return what a conversion would do; nothing is written."""
    with workers_of(conversion.runner) as workers:
        prepared = prepare(conversion, workers)
        report = look_ahead(prepared, workers, elsewhere=conversion.runner.elsewhere)
    first = _first_rows(conversion, prepared)
    return replace(report, detected=with_proposals(report.detected, lines_of_proposals(*first) if first else ()))


def _watching(watch: Watch | None, prepared: Prepared, count: Count | None = None) -> AbstractContextManager[object]:
    spec = prepared.spec
    if watch is None:
        return nullcontext()
    notes = (*prepared.notes, *prepared.cautions, *room_notes(prepared))
    return watch(os.path.join(spec.path, spec.staging), notes, count)


def refused(spec: DatasetSpec, refusal: Refusal) -> Exception:
    """Return the refusal's error; of too many rejects with the first of them."""
    error = refusal.error(typed_path(spec.path))
    if refusal.rejects is None or not isinstance(error, TooManyRejects):
        return error
    in_append = spec.append_to is not None
    run = RejectedRun.of(refusal.rows_read, spec.source_format, spec.conversion, in_append=in_append)
    groups = read_head(spec.path, refusal.rejects, run).groups
    return TooManyRejects(
        f"{error}\n{rejects_text(run.rows, {}, groups)}",  # it has the codes
        os.path.join(spec.path, refusal.rejects),
        {"read": refusal.rows_read, "rejected": refusal.rejected},
        refusal.by_code,
    )


def _class_counts(path: str, manifest: Manifest) -> dict[str, dict[str, Mapping[str, int]]]:
    try:
        found = read_stats(path, manifest) if manifest.labels else None
    except DamageError:  # the records are whole: `verify` says what is wrong
        found = None
    splits = {} if found is None else found.splits
    counts: dict[str, dict[str, Mapping[str, int]]] = {feature: {} for feature in manifest.labels} if splits else {}
    for name, split in splits.items():
        for feature, by_split in counts.items():
            by_split[name] = split.features[feature].classes or {}
    return counts


def summary_of(
    prepared: Prepared,
    manifest: Manifest,
    seconds: float,
    *,
    notes: Mapping[str, int] | None = None,
    nothing_to_do: bool = False,
) -> Summary:
    """Return what a run did, or that a generation holds it; the `notes` of one that was made before are read."""
    spec, survey = prepared.spec, prepared.plan.survey
    in_append = manifest.operation == "append"
    run = RejectedRun.of(manifest.counts.read, manifest.source.format, manifest.conversion, in_append=in_append)
    rejects = read_head(spec.path, manifest.rejects.path, run)
    tasks = len(prepared.plan.tasks) + len(prepared.done)
    noted = read_notes(spec.path, manifest) if notes is None else notes
    return Summary(
        path=spec.path,
        manifest=manifest,
        seconds=seconds,
        choices=survey.choices,
        warnings=(
            *survey.warnings,
            *prepared.cautions,
            *(f"{text}: {count:,}" for text, count in noted.items()),
            *empty_warnings(manifest),
            *oversize_warnings(manifest),
            *picture_warnings(manifest.details.checks),
            *_share_warnings(prepared, manifest),
        ),
        first_rejects=rejects.first,
        reject_groups=rejects.groups,
        nothing_to_do=nothing_to_do,
        done_before=len(prepared.done),
        detected=survey.detected,
        remarks=survey.remarks,
        asked=_asked(prepared),
        class_counts={} if nothing_to_do else _class_counts(spec.path, manifest),
        left_behind=0 if nothing_to_do else staged_by_dead_runs(spec.storage, spec.run_id),
        order_note=shuffle_note(levels=0, in_append=spec.append_to is not None)
        if spec.shuffle is not None
        else order_note(prepared.plan.listing.traits, manifest.order, tasks, _own_shards(manifest)),
    )


def _asked(prepared: Prepared) -> dict[str, float]:
    """Return the fractions of the splits, where several were asked for and what came out of the cut is known."""
    shares = prepared.encoder.split.shares()
    return shares if len(shares) > 1 and not prepared.joined else {}


def _share_warnings(prepared: Prepared, manifest: Manifest) -> list[str]:
    """Return which split a hash has left far from its fraction; an append may be small, and has the dataset's rule."""
    split, asked = prepared.encoder.split, _asked(prepared)
    rule = split.inner if isinstance(split, FolderSplits) else split
    if not isinstance(rule, HashSplits) or prepared.spec.append_to is not None:
        return []
    floats = {feature.name for feature in prepared.encoder.schema if feature.kind == "float"}
    return share_warnings(asked, added_records(manifest, asked), rule.key, classes=rule.key not in floats)


def _own_shards(manifest: Manifest) -> list[int]:
    return [sum(s.generation == manifest.generation for s in split.shards) for split in manifest.splits.values()]
