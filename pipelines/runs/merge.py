"""Merge and rebuild: records of existing datasets and files, byte for byte, in a new dataset.

    find      the datasets and files, their schemas and labels, where to cut        (as for a conversion)
    stage     ranges of files, on threads or in worker processes                    (no engine: no row is encoded)
    commit    the last steps of a conversion

An engine would be started longer than a gigabyte takes. `convert` with `format: tfrecord` runs on the engine.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ...transforms.dataset.commit.target import prepare_target, replacing_what_is_there
from ...transforms.dataset.commit.write_generation import write_generation
from ...transforms.dataset.generations.manifest_files import read_manifest
from ...transforms.dataset.stage.run_lock import hold_run
from ...transforms.dataset.stage.task_result import TaskResult
from ...transforms.errors import RunError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.sources.tfrecord.inputs import is_dataset
from ...transforms.sources.tfrecord.piece_reader import CUT_A_RECORD
from ...transforms.sources.tfrecord.source import TfrecordSource
from ...transforms.task_staging import TaskStaging
from ..config.load import load_config
from ..config.model import Config, TfrecordInput
from ..config.sources import tfrecord_source
from ..engines.beam_pipeline import count_workers, wants_processes
from ..prepare.convert import prepare
from ..prepare.prepared import Prepared
from ..report.summary import PlanReport, Summary, Watch
from .convert import refused, summary_of, watch_run
from .resume import look_ahead

_PROCESSES_FROM_BYTES: Final = 2 << 30
"""Below this, worker processes are started longer than a second of the records takes."""

Command = Literal["merge", "rebuild"]


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge that is ready to run."""

    command: Command
    config: Config
    source: TfrecordSource

    def plan(self) -> PlanReport:
        """Return what would be written."""
        return replace(look_ahead(self._prepared(self.source)), command=self.command)

    def run(self, watch: Watch | None = None) -> Summary:
        """Write the dataset.

        Raises:
            RunError: a file is damaged where records are found, or the commit was lost.
            TooManyRejects: more records are damaged than `max_rejects` allows.
        """
        started = time.monotonic()
        try:
            summary = self._run(self.source, watch, started)
        except RunError as error:
            if CUT_A_RECORD not in str(error):
                raise
            summary = self._run(replace(self.source, shard_size=None), watch, started, again=True)
        return replace(summary, command=self.command)

    def _run(self, source: TfrecordSource, watch: Watch | None, started: float, *, again: bool = False) -> Summary:
        prepared = self._prepared(source)
        spec = prepared.spec
        with hold_run(spec):
            held = prepare_target(spec, clear=again)
            if held is not None:
                return summary_of(prepared, held, time.monotonic() - started, nothing_to_do=True)
            prepared = replace(prepared, spec=replacing_what_is_there(spec))
            prepared, outcome = watch_run(prepared, watch, lambda left: _write(left, self.config))
        if outcome.refusal is not None:
            raise refused(spec, outcome.refusal)
        assert outcome.manifest is not None
        return summary_of(prepared, outcome.manifest, time.monotonic() - started)

    def _prepared(self, source: TfrecordSource) -> Prepared:
        return prepare(self.config, source, operation="merge")


def plan_merge(
    command: Command, paths: Sequence[str], flags: Mapping[str, object], set_values: Sequence[str] = ()
) -> Merge:
    """Return the merge of some datasets and files; `flags` are keys of the config, and beat all else.

    What is rebuilt keeps its name, shard size, compression and shard names, where nothing else is asked for.

    Raises:
        UsageError: a key is wrong, or a path matches nothing.
        DamageError: the manifest of what is rebuilt is damaged.
    """
    manifest = _manifest_of(paths[0]) if command == "rebuild" else None
    known: dict[str, Any] = {"input": {"format": "tfrecord"}, "output": {}}
    if manifest is not None:
        known["name"] = manifest.name
        known["output"] = {
            "shard_size": manifest.shard_size,
            "compression": manifest.compression,
            "shard_name": manifest.shard_name,
        }
    fixed = {"output.order": "source"}
    config = load_config(known, paths=paths, set_values=set_values, flags={**flags, **fixed})
    assert isinstance(config.input, TfrecordInput)
    source = tfrecord_source(config.input, config)
    return Merge(command, config, replace(source, in_turn=True, shard_size=config.output.shard_size))


def _manifest_of(path: str) -> Manifest | None:
    return read_manifest(path) if is_dataset(path.encode("utf-8", "surrogateescape").rstrip(b"/")) else None


def _write(prepared: Prepared, config: Config) -> None:
    """Stage all tasks, and commit what they staged."""
    plan, spec = prepared.plan, prepared.spec
    workers = min(count_workers(config.runner.planners), max(len(plan.tasks), 1))
    staging = TaskStaging.of(spec, prepared.source, plan.survey.frozen, prepared.encoder)
    asked = config.runner.processes
    large = workers > 1 and sum(plan.outputs) >= _PROCESSES_FROM_BYTES
    with ExitStack() as stack:
        pool = ThreadPoolExecutor(workers)
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        results: list[TaskResult]
        if wants_processes(large if asked == "auto" else asked, sum(plan.outputs)):
            from ..engines.local.worker_processes import WorkerProcesses

            with WorkerProcesses(workers) as processes:
                processes.begin(staging, plan.tasks)
                results = [processes.stage(task) for task in plan.tasks]
        else:
            results = list(pool.map(staging.stage, plan.tasks))
        write_generation(spec, [*prepared.done, *results], pool.map)
