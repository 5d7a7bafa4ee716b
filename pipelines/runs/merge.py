"""Merge and rebuild: copy records into a new dataset, also split or shuffled, byte for byte but for class numbers.

    find      the datasets and files, their schemas and labels, where to cut        (as for a conversion)
    stage     ranges of files, on threads or in worker processes                    (no engine: no row is encoded)
    commit    the last steps of a conversion

Beam takes longer to start than a gigabyte takes to copy. `convert` with `format: tfrecord` runs on the engine.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...transforms.dataset.commit.publish import prepare_target, replacing_what_is_there
from ...transforms.dataset.stage.run_lock import hold_run
from ...transforms.dataset.storage.manifest_files import read_manifest, read_tally
from ...transforms.dataset.storage.opened_generation import OpenedGeneration
from ...transforms.errors import DamageError, RunError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.observers.tally import Tally
from ...transforms.sources.registry.options import TfrecordInput
from ...transforms.sources.tfrecord.pieces import CUT_A_RECORD
from ...transforms.sources.tfrecord.schema import Stated, is_dataset, joined_labels, renumbered
from ...transforms.sources.tfrecord.source import TfrecordSource
from ..config.load import load_config
from ..config.remembered import shared
from ..engines.engine import PlainEngine
from ..outcomes.summary import PlanReport, Submitted, Summary, Watch
from ..prepare.conversion import Conversion, prepare
from ..prepare.from_config import conversion_of
from ..prepare.prepared import Prepared
from ..workers.worker_processes import WorkerProcesses
from .convert import begun, ended, look_ahead, run_prepared, summary_of
from .python_api import workers_of

Command = Literal["merge", "rebuild"]


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge that is ready to run."""

    command: Command
    conversion: Conversion
    source: TfrecordSource
    counted: Tally | None = None

    def plan(self) -> PlanReport:
        with workers_of(self.conversion.runner) as workers:
            return replace(look_ahead(self._prepared(self.source, workers), workers), command=self.command)

    def run(self, watch: Watch | None = None) -> Summary:
        started = time.monotonic()
        try:
            summary = self._run(self.source, watch, started)
        except RunError as error:
            if CUT_A_RECORD not in str(error):
                raise
            summary = self._run(replace(self.source, shard_size=None), watch, started, again=True)
        return replace(summary, command=self.command)

    def _run(self, source: TfrecordSource, watch: Watch | None, started: float, *, again: bool = False) -> Summary:
        with workers_of(self.conversion.runner) as workers:
            prepared = self._prepared(source, workers)
            spec = prepared.spec
            with hold_run(spec):
                held = prepare_target(spec, clear=again)
                if held is not None:
                    return summary_of(prepared, held, time.monotonic() - started, nothing_to_do=True)
                engine = PlainEngine()
                prepared = begun(replace(prepared, spec=replacing_what_is_there(spec)), engine)
                outcome = run_prepared(prepared, engine, watch, workers)
        assert not isinstance(outcome, Submitted)
        return ended(prepared, outcome, started)

    def _prepared(self, source: TfrecordSource, workers: WorkerProcesses) -> Prepared:
        prepared = prepare(replace(self.conversion, source=source), workers, operation="merge")
        spec = prepared.spec
        if self.counted is not None and spec.statistics in (None, self.counted.level):
            spec = replace(spec, counted=self.counted)
        return replace(prepared, spec=spec)


def plan_merge(
    command: Command, paths: Sequence[str], flags: Mapping[str, object], set_values: Sequence[str] = ()
) -> Merge:
    """Return the merge of some datasets and files; `flags` are keys of the config, and beat all else.

    What is rebuilt keeps its name, shard size, compression, shard names and the rule of its splits, where nothing else
    is asked for.
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
    config = load_config(known, paths=paths, set_values=set_values, flags=flags)
    if config.shuffle is None and (config.split is None or config.split.follows_source):
        config = config.model_copy(update={"output": config.output.model_copy(update={"order": "source"})})
    counted = None
    if config.stats != "none" and (config.split is None or config.split.follows_source):
        counted = _counted_of(paths)
    asked = config.input
    assert isinstance(asked, TfrecordInput)
    manifests = [_manifest_of(path) for path in paths]
    other = asked.where or asked.drop or asked.drop_where or _change_classes(manifests)
    if counted is not None and other:  # what is counted is of other records
        stats = counted.level if "stats" not in config.model_fields_set else config.stats
        config, counted = config.model_copy(update={"stats": stats}), None
    conversion = _remembering(conversion_of(config, "merge"), manifests)
    assert isinstance(conversion.source, TfrecordSource)
    source = replace(conversion.source, in_turn=True, shard_size=conversion.output.shard_size)
    return Merge(command, conversion, source, counted)


def _remembering(conversion: Conversion, manifests: Sequence[Manifest | None]) -> Conversion:
    """Return a merge that remembers what the conversions of all its datasets share, and its own options."""
    known = [{} if one is None else one.conversion for one in manifests]
    own = {key: value for key, value in conversion.remembered.items() if key != "input"}
    kept = {key: value for key, value in shared(known).items() if key not in ("shuffle", "output")}
    if "split" in own:
        kept.pop("recognised", None)  # the rule is for all rows
    image = next((one.details.image for one in manifests if one is not None), {}) if "image" in kept else {}
    return replace(conversion, remembered=kept | own, image=image)


def _change_classes(manifests: Sequence[Manifest | None]) -> bool:
    stated = [Stated("", None, one.labels) for one in manifests if one is not None]
    labels = joined_labels(stated)
    return any(renumbered(one, labels) for one in stated)


def _counted_of(paths: Sequence[str]) -> Tally | None:
    """Return what is counted of the records of some datasets, None where it is not counted of all, and in one way."""
    total: Tally | None = None
    for path in paths:
        manifest = _manifest_of(path)
        tally = None if manifest is None else _tally_of(path, manifest)
        if tally is None or not (total is None or total.is_like(tally)):
            return None
        if total is not None:
            total.merge(tally)
        total = total or tally
    return total


def _tally_of(path: str, manifest: Manifest) -> Tally | None:
    try:
        with OpenedGeneration(path.rstrip("/"), manifest).unchanged():
            return read_tally(path.rstrip("/"), manifest)
    except DamageError:  # the records may be whole
        return None


def _manifest_of(path: str) -> Manifest | None:
    return read_manifest(path) if is_dataset(path.encode("utf-8", "surrogateescape").rstrip(b"/")) else None
