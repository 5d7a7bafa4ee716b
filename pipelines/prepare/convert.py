"""Make a conversion ready to run: list and survey the source, freeze its schema, cut it into tasks. No Beam here."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from ...transforms.dataset.storage.manifest_files import list_generations
from ...transforms.errors import TargetError
from ...transforms.format.batches.rows import Block, Rows
from ...transforms.format.examples.encode_rows import RowEncoder
from ...transforms.format.wording.printable import printable_path
from ...transforms.inputs.contract.selection import refuse_columns
from ...transforms.inputs.contract.source import Listing, Survey
from ...transforms.inputs.contract.tasks import Plan, make_plan
from ...transforms.inputs.files.open_file import is_object
from ...transforms.recipe.steps.label import told_by_flags
from ...transforms.recognise.beside.class_names import ClassNames
from ...transforms.recognise.beside.tables import told_by_paths
from ...transforms.recognise.rules import told_by_column
from ...transforms.stores.store_url import is_store_url
from ..workers.worker_processes import WorkerProcesses
from .conversion import Conversion
from .known_inputs import shared_warnings, with_readable_lists
from .staged_plan import Fingerprints, ListedSource, Prepared, find_stopped, mark_of


def prepare(
    conversion: Conversion, workers: WorkerProcesses, operation: Literal["create", "merge"] = "create"
) -> Prepared:
    """List and survey the source, freeze its schema and cut it into tasks; nothing is written.

    `workers` help with planning: processes where the input is large, which are started as soon as that is known. Where
    a run that stopped has done all tasks, its survey is taken over.

    Raises:
        UsageError: a rule or a check does not go with the source, or a column has no feature.
        TargetError: the output is the folder of the source.
        SourceError: a file is corrupt as a whole, or has changed since a run of the same command stopped.
    """
    source, output = conversion.source, conversion.output
    listing, lost = with_readable_lists(source.list_files())
    _refuse_source_folder(conversion, listing)
    prints = Fingerprints.of(conversion.fingerprint, listing)
    mark = mark_of(prints, conversion.reading, operation)
    listed = ListedSource.of(listing, prints.images)
    stopped = find_stopped(output.path, mark, listing, listed, resume=conversion.runner.resume)
    plan = stopped.finished(mark, listing)
    if plan is not None:
        encoder = conversion.encoder_of(plan.survey.frozen)
    else:
        survey = source.survey(listing, workers.planning(listing.bytes))
        detected = tuple(dict.fromkeys((*conversion.detected, *survey.detected)))
        warnings = (*survey.warnings, *lost, *shared_warnings(listing.datasets))
        survey = replace(survey, detected=detected, warnings=warnings)
        refuse_columns("", len(survey.frozen.schema), conversion.limits.columns)
        encoder = conversion.encoder_of(survey.frozen)
        plan = _plan(conversion, listing, survey, encoder)
    spec = conversion.spec_of(plan, prints, run_id_of(output.path, prints), encoder, operation=operation)
    read_by = plan.survey.source or source
    return Prepared(read_by, plan, encoder, spec, mark, listed, stopped, conversion.joined_splits(plan.survey.frozen))


def _plan(conversion: Conversion, listing: Listing, survey: Survey, encoder: RowEncoder) -> Plan:
    """Plan, and say what columns of sampled rows show: files that they name, names of classes, flags, splits."""
    labels = survey.frozen.labels
    named = {name for name, classes in labels.items() if not all(one.isdecimal() for one in classes)}
    told, names = dict[str, None](), ClassNames(listing, named)
    rules: list[Callable[[Rows], Sequence[str]]] = []
    if conversion.input is None or conversion.input.detect is None:
        rules = [
            lambda rows: told_by_paths(rows.batch, listing, rows.entry_of(0)),
            lambda rows: names.told(rows.batch),
            lambda rows: told_by_flags(rows.batch),
        ]
        if conversion.split is None and not survey.frozen.splits:
            rules.append(lambda rows: told_by_column(rows.batch))

    def encode(rows: Rows) -> Block:
        for rule in [*rules] if rows.batch.num_rows else ():
            if lines := rule(rows):
                told.update(dict.fromkeys(lines))
                rules.remove(rule)
        return encoder.encode(rows)

    output = conversion.output
    plan = make_plan(conversion.source, listing, survey, output.shard_size, encode, output.compression)
    return replace(plan, survey=replace(plan.survey, detected=(*plan.survey.detected, *told))) if told else plan


def _refuse_source_folder(conversion: Conversion, listing: Listing) -> None:
    """Refuse to begin a dataset in a folder that holds files of its source, where one would be taken for the other."""
    path, read = conversion.output.path, conversion.input
    if listing.traits.whole_records or not listing.traits.in_files:
        return
    target = _real(path, "")
    named = {_real(name, conversion.base) for name in read.paths} if read is not None else set()
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


def run_id_of(path: str, prints: Fingerprints) -> str:
    """Return the name of a conversion's staging folder: the same of the same command, where a folder can be held."""
    if is_store_url(path):
        return uuid.uuid4().hex[:16]
    return hashlib.sha256(f"{prints.config}\n{prints.listing}\n".encode()).hexdigest()[:16]
