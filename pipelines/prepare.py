"""Make a conversion ready to run: list and survey the source, freeze its schema, cut it into tasks. No Beam here."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..transforms.dataset.spec import DatasetSpec, EntryInfo
from ..transforms.errors import SchemaError
from ..transforms.format.encode_rows import RowEncoder
from ..transforms.sources.source import Listing, Source, Survey
from ..transforms.sources.task_planning import MIN_TASK_BYTES, Plan, make_plan
from .config_model import Config
from .config_sources import encoder_of, source_of
from .report import PlanReport, SplitEstimate
from .runners import count_workers, threads, wants_processes

if TYPE_CHECKING:
    from .worker_processes import WorkerProcesses


@dataclass(frozen=True, slots=True)
class Prepared:
    """A conversion that is ready to run: nothing of it has been written yet."""

    source: Source
    plan: Plan
    encoder: RowEncoder
    spec: DatasetSpec

    def report(self) -> PlanReport:
        """Return what the conversion would do."""
        plan, spec = self.plan, self.spec
        return PlanReport(
            path=spec.path,
            name=spec.name,
            source_format=plan.listing.format,
            files=plan.listing.files,
            bytes=plan.listing.bytes,
            schema=plan.survey.frozen.schema,
            tasks=len(plan.tasks),
            rows=plan.estimate.rows,
            splits=self._split_estimates(),
            shard_size=spec.shard_size,
            compression=spec.compression,
            rows_exact=all(piece.rows is not None for piece in plan.survey.pieces),
            skipped=plan.listing.skipped,
            choices=plan.survey.choices,
            warnings=plan.survey.warnings,
        )

    def plan_document(self) -> bytes:
        """Return `plan.json`: the totals that progress is measured against, and what each task will read."""
        plan, spec = self.plan, self.spec
        totals = {
            "tasks": len(plan.tasks),
            "records": plan.estimate.rows,
            "bytes": plan.estimate.bytes,
            "shards": _count_shards(plan.estimate.bytes, spec.shard_size),
        }
        tasks = [
            {"task": task.ordinal, "pieces": len(task.pieces), "bytes": output}
            for task, output in zip(plan.tasks, plan.outputs, strict=True)
        ]
        return json.dumps({"totals": totals, "tasks": tasks}).encode() + b"\n"

    def _split_estimates(self) -> tuple[SplitEstimate, ...]:
        estimate = self.plan.estimate
        counted = self.plan.survey.split_rows
        shares = self.encoder.split_shares()
        if counted:
            shares = {name: rows / sum(counted.values()) for name, rows in sorted(counted.items())}
        estimates = []
        for name, share in shares.items():
            size = int(estimate.bytes * share)
            shards = _count_shards(size, self.spec.shard_size)
            estimates.append(SplitEstimate(name, round(estimate.rows * share), size, shards))
        return tuple(estimates)


def prepare(config: Config, source: Source | None = None, processes: WorkerProcesses | None = None) -> Prepared:
    """List and survey the source, freeze its schema and cut it into tasks; nothing is written.

    `source` stands for the config's own input. `processes` help with planning where the input is large, and are
    started as soon as that is known.

    Raises:
        UsageError: the config does not go with the source, or a column has no feature.
        SourceError: a file is corrupt as a whole.
    """
    source = source or source_of(config)
    listing = source.list_files()
    run = threads(count_workers(config.runner.workers))
    if processes is not None and wants_processes(config.runner.processes, listing.bytes):
        processes.start(at_most=max(listing.bytes // MIN_TASK_BYTES, 2))  # more would find no task
        run = processes.planning(run)
    survey = source.survey(listing, run)
    check_columns(survey, config.limits.columns)
    encoder = encoder_of(config, survey.frozen)
    plan = make_plan(source, listing, survey, config.output.shard_size, encoder.encode, config.output.compression)
    return Prepared(source, plan, encoder, spec_of(config, plan))


def fingerprint_listing(listing: Listing) -> str:
    """Return `sha256:` and the digest of what was listed: names, sizes, content marks and times of modification."""
    digest = hashlib.sha256()
    for entry in listing.entries:
        fields = [entry.name, entry.bytes, entry.mtime_ns, entry.fingerprint, entry.files]
        digest.update(json.dumps(fields).encode() + b"\n")
    return "sha256:" + digest.hexdigest()


def check_columns(survey: Survey, most: int) -> None:
    """Refuse too many columns.

    Raises:
        SchemaError: there are more than `most`.
    """
    count = len(survey.frozen.schema)
    if count > most:
        raise SchemaError(
            f"{count} columns are more than limits.columns ({most}); keep some: input.columns, or raise it: "
            f"--set limits.columns={count}"
        )


def spec_of(config: Config, plan: Plan) -> DatasetSpec:
    """Return what the run of a plan is to make."""
    listing, frozen, output = plan.listing, plan.survey.frozen, config.output
    expected = plan.expected_rows()
    config_fingerprint, source_fingerprint = config.fingerprint(), fingerprint_listing(listing)
    run = hashlib.sha256(f"{config_fingerprint}\n{source_fingerprint}\n".encode()).hexdigest()
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
        schema=None if frozen.opaque else frozen.schema,
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


def _count_shards(size: int, shard_size: int) -> int:
    return -(-size // shard_size)
