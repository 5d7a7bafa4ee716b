"""Resuming: a run continues where one of the same command stopped.

    .staging/<run>/plan.json              the same in all that bytes depend on?     else start over, and say so
                   tasks/000003.json      done: goes to the shard plan as it is
                   parts/000004-…         no result: removed, and task 4 is done (again)
                   shards/ rejects.jsonl  removed: made from the results

Where all tasks are done, as after too many rejects, the source is not even surveyed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...transforms.dataset.stage.run_lock import hold_if_dead
from ...transforms.dataset.stage.task_stager import TaskResult, count_results, keep_only, read_done_tasks
from ...transforms.errors import RunError
from ...transforms.format.wording.printable import counted
from ...transforms.inputs.contract.tasks import Plan
from ..outcomes.summary import PlanReport, SplitEstimate
from ..prepare.staged_plan import PLAN_FILE, Prepared, cut_of, read_staged_plan
from ..workers.worker_processes import WorkerProcesses
from .forecast import forecast


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
    """Return the results that this run can use, and a note on what was found."""
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
    """Remove what runs of this command have staged that no run can resume any more."""
    storage, stopped = prepared.spec.storage, prepared.stopped
    moved = [other.run_id for other in stopped.same if other.run_id != prepared.spec.run_id]
    for run_id in (*stopped.outdated, *moved):
        if run_id == prepared.spec.run_id:
            continue  # the caller holds it, and clears it
        with hold_if_dead(storage, run_id) as dead:
            if dead:
                storage.remove_tree(f"{prepared.spec.staging.rpartition('/')[0]}/{run_id}")
