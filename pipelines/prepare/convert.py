"""Make a conversion ready to run: list and survey the source, freeze its schema, cut it into tasks. No Beam here."""

from __future__ import annotations

import hashlib
import os
import uuid
from dataclasses import replace
from typing import Final, Literal

from ...transforms.dataset.generations.manifest_files import list_generations
from ...transforms.dataset.spill.spiller import Shuffle
from ...transforms.dataset.stage.spec import AppendTo, DatasetSpec, EntryInfo
from ...transforms.errors import TargetError
from ...transforms.format.splits.folders import settling
from ...transforms.format.splits.splitter import Settling
from ...transforms.format.wording.printable import printable_path
from ...transforms.sources.contract.planning import Plan, make_plan
from ...transforms.sources.contract.selection import refuse_columns
from ...transforms.sources.contract.source import Listing, Source, SourceEntry
from ...transforms.sources.files.open_file import is_object
from ...transforms.stores.common.store_url import is_store_url
from ..config.model import Config
from ..workers.worker_processes import WorkerProcesses
from .known_inputs import in_part, shared_warnings, with_readable_lists
from .prepared import Prepared
from .source_and_encoder import encoder_of, observers_of, source_of, spills
from .splitters import joined_splits, most_splits_of
from .staged_plan import Fingerprints, ListedSource, mark_of
from .stopped_runs import find_stopped

_GZIP_RATIO: Final = 4
"""Bytes of records for one of a shard: only how many buckets a shuffle has depends on it."""


def prepare(
    config: Config,
    workers: WorkerProcesses,
    source: Source | None = None,
    operation: Literal["create", "merge"] = "create",
) -> Prepared:
    """List and survey the source, freeze its schema and cut it into tasks; nothing is written.

    `source` stands for the config's own input. `workers` help with planning: processes where the input is large, which
    are started as soon as that is known. Where a run that stopped has done all tasks, its survey is taken over.
    """
    spills(config)
    source = source or source_of(config)
    listing, lost = with_readable_lists(source.list_files())
    _refuse_source_folder(config, listing)
    prints = Fingerprints.of(config, listing)
    mark = mark_of(prints, config, source, operation)
    listed = ListedSource.of(listing, prints.images)
    stopped = find_stopped(config.output.path, mark, listing, listed, resume=config.runner.resume)
    plan = stopped.finished(mark, listing)
    if plan is not None:
        encoder = encoder_of(config, plan.survey.frozen)
    else:
        survey = source.survey(listing, workers.planning(listing.bytes))
        detected = tuple(dict.fromkeys((*config.detected, *survey.detected)))
        warnings = (*survey.warnings, *lost, *shared_warnings(listing.datasets))
        survey = replace(survey, detected=detected, warnings=warnings)
        refuse_columns("", len(survey.frozen.schema), config.limits.columns)
        encoder = encoder_of(config, survey.frozen)
        plan = make_plan(source, listing, survey, config.output.shard_size, encoder.encode, config.output.compression)
    aside = settling(encoder.split)
    spec = spec_of(config, plan, prints, run_id_of(config, prints), operation=operation, aside=aside)
    joined = joined_splits(config, plan.survey.frozen)
    return Prepared(source, plan, encoder, spec, mark, listed, stopped, joined)


def _refuse_source_folder(config: Config, listing: Listing) -> None:
    """Refuse to begin a dataset in a folder that holds files of its source, where one would be taken for the other."""
    path = config.output.path
    if listing.traits.whole_records or not listing.traits.in_files:
        return
    target = _real(path, "")
    named = {_real(name, config.base) for name in config.input.paths} if config.input is not None else set()
    for entry in listing.entries:
        within = target in named or target in (entry.path.rstrip(b"/"), os.path.dirname(entry.path))
        if within and not list_generations(path):
            raise TargetError(
                f"{printable_path(path)} holds the source ({entry.name}), and a dataset needs a folder of its own: "
                f"-o {printable_path(path)}-tfrecords"
            )


def _real(path: str, base: str) -> bytes:
    raw = os.fsencode(path)
    return raw.rstrip(b"/") if is_object(raw) else os.path.abspath(os.path.join(os.fsencode(base), raw))


def _held_as(entry: SourceEntry, index: int, plan: Plan) -> str:
    """Return the fingerprint by which a later append knows a file: one that was read in part is another file."""
    limit = plan.survey.limit
    if limit is None or index not in limit.partial:
        return entry.fingerprint
    return in_part(entry.fingerprint)


def run_id_of(config: Config, prints: Fingerprints) -> str:
    """Return the name of a conversion's staging folder: the same of the same command, where a folder can be held."""
    if is_store_url(config.output.path):
        return uuid.uuid4().hex[:16]
    return hashlib.sha256(f"{prints.config}\n{prints.listing}\n".encode()).hexdigest()[:16]


def _shuffle_of(config: Config, plan: Plan) -> Shuffle | None:
    """Return how all records are shuffled, None where they keep the order in which they are read.

    A run that resumes another must have its buckets: they follow from the estimate, which is staged with the plan.
    """
    if config.shuffle is None or not spills(config):
        return None
    gzip = _GZIP_RATIO if config.output.compression == "gzip" else 1
    return Shuffle.of(config.shuffle.seed, plan.estimate.bytes * gzip)


def spec_of(
    config: Config,
    plan: Plan,
    prints: Fingerprints,
    run_id: str,
    *,
    operation: Literal["create", "merge"] = "create",
    append_to: AppendTo | None = None,
    aside: Settling | None = None,
) -> DatasetSpec:
    listing, frozen, output = plan.listing, plan.survey.frozen, config.output
    expected, shuffle = plan.expected_rows(), _shuffle_of(config, plan)
    return DatasetSpec(
        path=output.path,
        name=config.name,
        shard_size=output.shard_size,
        compression=output.compression,
        order="shuffled" if shuffle is not None else output.order,
        shard_name=output.shard_name,
        sidecars=output.sidecar_groups,
        if_exists=output.if_exists,
        max_rejects=config.max_rejects,
        schema=None if frozen.opaque else frozen.schema,
        labels=frozen.labels,
        columns=frozen.columns,
        tasks=len(plan.tasks),
        source_format=listing.format,
        source_entries=tuple(
            EntryInfo(entry.name, entry.bytes, _held_as(entry, index, plan), entry.files, expected.get(index, 0))
            for index, entry in enumerate(listing.entries)
        ),
        source_files=listing.files,
        source_bytes=listing.bytes,
        skipped=listing.skipped,
        carries=listing.datasets,
        config_fingerprint=prints.config,
        source_fingerprint=prints.listing,
        run_id=run_id,
        runner=config.runner.name,
        append_to=append_to,
        operation=operation,
        observers=observers_of(config),
        split_rule={} if config.split is None else config.split.rule(),
        image={} if config.image is None else config.image.stated(),
        most_splits=most_splits_of(config),
        settling=aside,
        shuffle=shuffle,
        statistics=None if frozen.opaque else config.statistics,
    )
