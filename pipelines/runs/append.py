"""Run an append: what a dataset lacks of a source becomes its next generation.

finish      publish what an earlier run left half published
prepare     leave out what is held; survey the rest under the dataset's schema          (no Beam)
run         as a conversion, but numbered on, and tried again after an append that was faster
again       from the start, where another append took a class number or a file meanwhile
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ...transforms.dataset.commit.commit_generation import APPEND_TRIES, WriteOutcome, conflict_with
from ...transforms.dataset.commit.publish import finish_publish, prepare_folder
from ...transforms.dataset.stage.run_lock import hold_run, is_held
from ...transforms.dataset.storage.manifest_files import list_generations, read_manifest
from ...transforms.dataset.storage.object_storage import storage_at
from ...transforms.errors import CommitError, UsageError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.manifest.naming import STAGING_FOLDER
from ...transforms.format.wording.printable import printable_path
from ..engines.engine import Engine
from ..outcomes.summary import PlanReport, Submitted, Summary, Watch
from ..prepare.append import AppendPlan, prepare_append
from ..prepare.conversion import Conversion
from ..prepare.of_dataset import dataset_in
from ..prepare.prepared import Prepared
from ..screens.watching import watch_of
from ..workers.worker_processes import WorkerProcesses
from .convert import begun, ended, look_ahead, run_prepared, summary_of
from .python_api import What, called, engine_of, require_waiting, warn_of, workers_of

if TYPE_CHECKING:
    from ...transforms.recipe.function import Mapped
    from .python_api import Data

Report = TypeVar("Report", Summary, PlanReport)


def append(
    config: What | None = None,
    *,
    data: Data | None = None,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    changed: str | None = None,
    map: Mapped | None = None,  # noqa: A002
    progress: bool | None = None,
    **settings: object,
) -> Summary:
    """Append what a config names, or data in memory, to a dataset: new shards, and its next generation.

        append("data/2026-02/*.csv", output="out/people")
        append(data=frame, output="out/people", output__split="val")

    The schema is the dataset's: columns of text are cast to it, other columns must have its types. New classes of
    images get the numbers after the existing ones. Files that the dataset holds unchanged are left out; if that leaves
    nothing, there is nothing to do. Several appends may run at once: all of them are committed.

    Args:
        config: files, folders or globs, or a config, as for `convert`. Compression, order, names and sidecars are the
            dataset's; `shard_size` and the rule of its splits are too, unless they are given.
        data: a DataFrame, Arrow data, arrays or rows, as for `convert`; instead of the config's `input`.
        output: the dataset's folder, instead of the config's `output.path`.
        force: whether files that the dataset holds are appended again.
        changed: what to do with files that have changed since the dataset took them in: `append` all their rows, or
            `skip` them; by default they are refused. New images in a folder are appended, and those that were
            replaced count as changed.
        map: a function over batches of rows, a `Step`, or a list of such, as for `convert`.
        progress: show how the run gets on, as for `convert`.
        **settings: other values of the config, as for `convert`; the split of new rows is `output__split`.

    Returns:
        the summary: its `manifest` states the dataset as it is now.

    Raises:
        UsageError: the config, the data or the dataset's folder is wrong.
        SchemaError: a feature is added, missing or re-typed; the text shows both schemas.
        RunError: an input is corrupt, or ten other appends were faster.
        TooManyRejects: more rows were rejected than `max_rejects` allows; nothing was committed.
    """
    with called("append", config, output, settings, data=data, mapped=map) as conversion:
        watch = watch_of(progress)
        return warn_of(run_append(conversion, force=force, changed=changed, watch=watch), stacklevel=3)


def run_append(
    conversion: Conversion,
    *,
    force: bool = False,
    changed: str | None = None,
    beam_options: Sequence[str] = (),
    watch: Watch | None = None,
) -> Summary:
    """Run the conversion of an append; `watch` shows the progress of the staging folder."""
    started, path = time.monotonic(), conversion.output.path
    _check_changed(changed)
    engine = engine_of(conversion.runner, beam_options)
    require_waiting(engine)
    engine.check()
    unpublished = _died_behind_its_commit(path) if force else None
    for _ in range(APPEND_TRIES):
        latest = _published(path)
        if latest.conversion != conversion.held:
            raise CommitError(
                f"{printable_path(path)}: another command made it in another way meanwhile; run this again"
            )
        with workers_of(conversion.runner) as workers:
            plan = prepare_append(conversion, latest, workers, force=force, changed=changed)
            if plan.prepared is None:
                return _nothing_new(plan, path, time.monotonic() - started)
            if unpublished is not None and _is_run(plan.prepared, unpublished):  # force must not append it twice
                summary = summary_of(plan.prepared, unpublished, time.monotonic() - started)
                return replace(summary, command="append")
            ran = _run(plan, engine, watch, workers)
        if ran is not None:
            return _of_append(ended(*ran, started), plan, conversion.detected)
    raise CommitError(
        f"{printable_path(path)}: {APPEND_TRIES} times others changed what this append builds on (its "
        f"files or its new classes) while it ran; nothing of it was committed; run it again"
    )


def dry_run_append(conversion: Conversion, *, force: bool = False, changed: str | None = None) -> PlanReport | Summary:
    """Return what an append would do, or that there is nothing to do; nothing is written."""
    _check_changed(changed)
    path = conversion.output.path
    with workers_of(conversion.runner) as workers:
        plan = prepare_append(conversion, dataset_in(path), workers, force=force, changed=changed)
    if plan.prepared is None:
        return _nothing_new(plan, path, 0.0)
    ahead = look_ahead(plan.prepared, workers, elsewhere=conversion.runner.elsewhere)
    return _of_append(ahead, plan, conversion.detected)


def _check_changed(changed: str | None) -> None:
    if changed not in (None, "append", "skip"):
        raise UsageError(f'--changed: "{changed}" is not a choice; choices: append, skip')


def _run(
    plan: AppendPlan, engine: Engine, watch: Watch | None, workers: WorkerProcesses
) -> tuple[Prepared, WriteOutcome] | None:
    """Run what was planned; None where another append made the plan void, before it or meanwhile."""
    prepared = plan.prepared
    assert prepared is not None
    spec = prepared.spec
    assert spec.append_to is not None
    with hold_run(spec, wait=True):
        engine.end_orphan(prepared.name)
        if conflict_with(spec, spec.append_to) is not None:
            return None
        prepare_folder(spec, clear=False)
        prepared = begun(prepared, engine)
        outcome = run_prepared(prepared, engine, watch, workers)
        assert not isinstance(outcome, Submitted), "an append is waited for"
        if outcome.refusal is not None and outcome.refusal.kind == "stale":
            spec.storage.remove_tree(spec.staging)  # another plan will have another folder
            return None
        return prepared, outcome


def _published(path: str) -> Manifest:
    dataset_in(path)
    finish_publish(path)
    return read_manifest(path)


def _died_behind_its_commit(path: str) -> Manifest | None:
    """Return the latest generation if its run ended before all was published and its staging folder was removed."""
    storage = storage_at(path)
    if not list_generations(path):
        return None
    latest = read_manifest(path)
    left = storage.list(f"{STAGING_FOLDER}/{latest.run.run_id}")
    return latest if left and not is_held(storage, latest.run.run_id) else None


def _is_run(prepared: Prepared, manifest: Manifest) -> bool:
    spec = prepared.spec
    made = (manifest.operation, manifest.config_fingerprint, manifest.run.source_fingerprint)
    return made == ("append", spec.config_fingerprint, spec.source_fingerprint)


def _nothing_new(plan: AppendPlan, path: str, seconds: float) -> Summary:
    return _of_append(Summary(path, plan.latest, seconds, nothing_to_do=True, listed=plan.listed), plan)


def _of_append(report: Report, plan: AppendPlan, detected: Sequence[str] = ()) -> Report:
    return replace(
        report,
        command="append",
        unchanged=plan.unchanged,
        rejected_before=plan.rejected,
        new_classes=plan.new_classes,
        warnings=(*plan.warnings, *report.warnings),
        detected=tuple(dict.fromkeys((*detected, *report.detected, *plan.detected))),
    )
