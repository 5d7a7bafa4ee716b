"""The conversion, from a config to a committed generation.

prepare     list and survey the source, freeze its schema, cut it into tasks       (no Beam)
run         ReadRows | EncodeExamples | WriteShards                                (on the engine)
tell        the summary, or the error that says why nothing was committed
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..transforms.dataset.outcome import read_outcome
from ..transforms.dataset.refusal import Refusal
from ..transforms.dataset.spec import DatasetSpec, EntryInfo
from ..transforms.dataset.target import prepare_target
from ..transforms.errors import TooManyRejects
from ..transforms.format.encode_rows import RowEncoder
from ..transforms.format.manifest import Manifest
from ..transforms.sources.source import Listing, Source
from ..transforms.sources.task_planning import Plan, make_plan
from .config import load_config
from .config_model import Config
from .config_sources import column_rules, encoder_of, source_of
from .report import FIRST_REJECTS, PlanReport, SplitEstimate, Summary, Watch, rejects_text
from .runners import count_workers, make_pipeline, threads

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    Data = pd.DataFrame | pa.Table | pa.RecordBatch | pa.RecordBatchReader | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A conversion that is ready to run: nothing of it has been written yet."""

    source: Source
    plan: Plan
    encoder: RowEncoder
    spec: DatasetSpec
    workers: int


def convert(
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    data: Data | None = None,
    output: str | os.PathLike[str] | None = None,
    **settings: object,
) -> Summary:
    """Convert what a config names, or data in memory, to a dataset of TFRecord shards.

    Args:
        config: the path of a YAML config, or its content as a mapping.
        data: a pandas DataFrame, an Arrow table, record batch or reader, or a dict of NumPy arrays whose first axis is
            the row; instead of the config's `input`.
        output: the dataset's folder, instead of the config's `output.path`.
        **settings: other values of the config, dots written as double underscores: `output__shard_size="64MiB"`,
            `max_rejects=10`. The keys of `output` go without their section too: `shard_size="64MiB"`.

    Returns:
        the summary: its `manifest` states what was written.

    Raises:
        UsageError: the config, the data or the target is wrong.
        RunError: an input is corrupt, or the commit was lost.
        TooManyRejects: more rows were rejected than `max_rejects` allows; nothing was committed.
    """
    flags = {_dotted(key): (key, value) for key, value in settings.items()}
    if output is not None:
        flags["output.path"] = ("output", os.fspath(output))
    loaded = load_config(config, flags=flags, data_given=data is not None)
    if data is None:
        return run_convert(loaded)
    from ..transforms.sources.memory_source import spool

    folder = os.path.join(loaded.output.path, ".staging")
    os.makedirs(folder, exist_ok=True)
    source = spool(data, folder, rules=column_rules(loaded))
    try:
        return run_convert(loaded, source=source)
    finally:
        os.unlink(source.path)
        _remove_if_empty(folder)


def run_convert(
    config: Config, *, source: Source | None = None, beam_options: Sequence[str] = (), watch: Watch | None = None
) -> Summary:
    """Run a loaded config; `source` stands for the config's input, `watch` shows the progress of the staging folder."""
    started = time.monotonic()
    pipeline = make_pipeline(config.runner.name, count_workers(config.runner.workers), beam_options)
    prepared = prepare(config, source)
    spec = prepared.spec
    held = prepare_target(spec)
    if held is not None:
        return _summary(prepared, held, time.monotonic() - started, nothing_to_do=True)
    spec.storage.replace(f"{spec.staging}/plan.json", _plan_document(prepared))
    with _watching(watch, spec):
        _run_pipeline(pipeline, prepared)
    outcome = read_outcome(spec)
    if outcome.manifest is None:
        assert outcome.refusal is not None
        raise _refused(spec, outcome.refusal)
    return _summary(prepared, outcome.manifest, time.monotonic() - started)


def dry_run(config: Config, *, source: Source | None = None, beam_options: Sequence[str] = ()) -> PlanReport:
    """Return what a conversion would do; nothing is written."""
    del beam_options  # they change how the work is done, and not what comes of it
    prepared = prepare(config, source)
    plan, spec = prepared.plan, prepared.spec
    return PlanReport(
        path=spec.path,
        name=spec.name,
        source_format=plan.listing.format,
        files=plan.listing.files,
        bytes=plan.listing.bytes,
        schema=plan.survey.frozen.schema,
        tasks=len(plan.tasks),
        rows=plan.estimate.rows,
        splits=_split_estimates(prepared),
        shard_size=spec.shard_size,
        compression=spec.compression,
        rows_exact=all(piece.rows is not None for piece in plan.survey.pieces),
        skipped=plan.listing.skipped,
        choices=plan.survey.choices,
        warnings=plan.survey.warnings,
    )


def prepare(config: Config, source: Source | None = None) -> Prepared:
    """List and survey the source, freeze its schema and cut it into tasks; nothing is written."""
    workers = count_workers(config.runner.workers)
    source = source or source_of(config)
    listing = source.list_files()
    survey = source.survey(listing, threads(workers))
    encoder = encoder_of(config, survey.frozen)
    compression = config.output.compression
    plan = make_plan(source, listing, survey, config.output.shard_size, encoder.encode, compression)
    return Prepared(source, plan, encoder, _spec(config, plan), workers)


def _spec(config: Config, plan: Plan) -> DatasetSpec:
    listing, frozen = plan.listing, plan.survey.frozen
    expected = plan.expected_rows()
    config_fingerprint = config.fingerprint()
    source_fingerprint = fingerprint_listing(listing)
    run = hashlib.sha256(f"{config_fingerprint}\n{source_fingerprint}\n".encode()).hexdigest()
    output = config.output
    return DatasetSpec(
        path=output.path,
        name=config.name,
        shard_size=output.shard_size,
        compression=output.compression,
        order=output.order,
        shard_name=output.shard_name,
        sidecars=tuple(output.sidecars),
        if_exists=output.if_exists,
        max_rejects=config.max_rejects,
        schema=frozen.schema,
        labels=frozen.labels,
        tasks=len(plan.tasks),
        source_format=listing.format,
        source_entries=tuple(
            EntryInfo(entry.name, entry.bytes, entry.fingerprint, entry.files, expected.get(index, 0))
            for index, entry in enumerate(listing.entries)
        ),
        source_files=listing.files,
        source_bytes=listing.bytes,
        skipped=listing.skipped,
        config_fingerprint=config_fingerprint,
        source_fingerprint=source_fingerprint,
        run_id=run[:16],
        runner=config.runner.name,
    )


def fingerprint_listing(listing: Listing) -> str:
    """Return `sha256:` and the digest of what was listed: names, sizes, content marks and times of modification."""
    digest = hashlib.sha256()
    for entry in listing.entries:
        fields = [entry.name, entry.bytes, entry.mtime_ns, entry.fingerprint, entry.files]
        digest.update(json.dumps(fields).encode() + b"\n")
    return "sha256:" + digest.hexdigest()


def _run_pipeline(pipeline: Any, prepared: Prepared) -> None:
    from ..transforms.encode import EncodeExamples
    from ..transforms.read import ReadRows
    from ..transforms.write import WriteShards

    with pipeline:
        _ = (
            pipeline
            | "Read" >> ReadRows(prepared.source, prepared.plan)
            # Rows, ..., TaskEnd
            | "Encode" >> EncodeExamples(prepared.encoder)
            # Block, ..., TaskEnd
            | "Write" >> WriteShards(prepared.spec.path, spec=prepared.spec, raise_refusal=False)
        )


def _watching(watch: Watch | None, spec: DatasetSpec) -> AbstractContextManager[object]:
    return nullcontext() if watch is None else watch(os.path.join(spec.path, spec.staging))


def _plan_document(prepared: Prepared) -> bytes:
    """Return `plan.json`: the totals that progress is measured against, and what each task will read."""
    plan, spec = prepared.plan, prepared.spec
    totals = {
        "tasks": len(plan.tasks),
        "records": plan.estimate.rows,
        "bytes": plan.estimate.bytes,
        "shards": _shards(plan.estimate.bytes, spec.shard_size),
    }
    tasks = [
        {"task": task.ordinal, "pieces": len(task.pieces), "bytes": output}
        for task, output in zip(plan.tasks, plan.outputs, strict=True)
    ]
    return json.dumps({"totals": totals, "tasks": tasks}).encode() + b"\n"


def _split_estimates(prepared: Prepared) -> tuple[SplitEstimate, ...]:
    estimate, spec = prepared.plan.estimate, prepared.spec
    estimates = []
    for name, share in prepared.encoder.split_shares().items():
        size = int(estimate.bytes * share)
        estimates.append(SplitEstimate(name, round(estimate.rows * share), size, _shards(size, spec.shard_size)))
    return tuple(estimates)


def _shards(size: int, shard_size: int) -> int:
    return -(-size // shard_size)


def _refused(spec: DatasetSpec, refusal: Refusal) -> Exception:
    """Return the refusal's error; of too many rejects with the first of them."""
    error = refusal.error()
    if refusal.rejects is None or not isinstance(error, TooManyRejects):
        return error
    first = _first_lines(os.path.join(spec.path, refusal.rejects))
    return TooManyRejects(f"{refusal.message}\n{rejects_text(refusal.rejected, refusal.by_code, first)}")


def _summary(prepared: Prepared, manifest: Manifest, seconds: float, *, nothing_to_do: bool = False) -> Summary:
    spec, survey = prepared.spec, prepared.plan.survey
    rejects = manifest.rejects.path
    return Summary(
        path=spec.path,
        manifest=manifest,
        seconds=seconds,
        choices=survey.choices,
        warnings=survey.warnings,
        first_rejects=_first_lines(os.path.join(spec.path, rejects)) if rejects is not None else (),
        nothing_to_do=nothing_to_do,
    )


def _first_lines(path: str) -> tuple[str, ...]:
    with open(path, encoding="utf-8") as file:
        return tuple(line.rstrip("\n") for _, line in zip(range(FIRST_REJECTS), file, strict=False))


def _dotted(key: str) -> str:
    sections = {"shard_size", "compression", "order", "split", "shard_name", "sidecars", "if_exists"}
    return f"output.{key}" if key in sections else key.replace("__", ".")


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:  # a failed run left its work there, or the publish removed the folder already
        return
