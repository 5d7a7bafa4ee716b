"""Plan an append: what the dataset decides, which files it lacks, and whether these fit. No Beam here.

the dataset    name, order, compression, shard_name, sidecars, schema, class numbers; shard_size, split unless given
the config     what is read and how, limits, workers
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...transforms.dataset.commit.accounting import read_held_sources
from ...transforms.dataset.commit.commit_generation import append_to
from ...transforms.dataset.storage.manifest_files import lineage
from ...transforms.errors import SchemaError, UsageError
from ...transforms.format.batches.rejects import rejects_allowed
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.schema.schema import Schema
from ...transforms.format.splits.splitter import DEFAULT_SPLIT
from ...transforms.format.wording.hints import Add, Command, set_constant
from ...transforms.format.wording.printable import NoColumnError, first_names, printable, printable_path
from ...transforms.inputs.contract.selection import UNITE, refuse_columns, typed_path
from ...transforms.inputs.contract.source import DatasetSchema, Listing, Survey
from ...transforms.inputs.contract.tasks import make_plan
from ...transforms.inputs.files.open_file import is_object
from ...transforms.recipe.source import RecipeSource
from ...transforms.sources.registry.file_source import survey_under
from ..outcomes.summary import Unchanged, rule_text, unchecked_append
from ..workers.worker_processes import WorkerProcesses
from .conversion import Conversion, run_id_of
from .known_images import RejectedBefore, are_images_known, split_unchanged, without_held_images
from .known_inputs import (
    SortedFiles,
    settle_changed,
    sort_files,
    with_readable_lists,
    without_empty_files,
    without_held_datasets,
)
from .of_dataset import rule_of, schema_of
from .prepared import Prepared
from .staged_plan import Fingerprints, ListedSource, find_stopped, images_digest, mark_of

_SHOWN_SPLITS: Final = 3

_NO_SPLIT: Final = ""
"""In the counts of a survey: rows of no split."""


@dataclass(frozen=True, slots=True)
class AppendPlan:
    """An append: `prepared` is None where nothing is left to append.

    `listed` files were found; `unchanged` are those that the dataset holds, `rejected` those that an earlier generation
    rejected. `detected` is what the user should know of what the dataset decided.
    """

    latest: Manifest
    prepared: Prepared | None
    listed: int
    unchanged: tuple[Unchanged, ...]
    rejected: tuple[Unchanged, ...]
    warnings: tuple[str, ...]
    detected: tuple[str, ...] = ()

    @property
    def new_classes(self) -> dict[str, dict[str, int]]:
        """The classes that the dataset has not had, and their numbers, by feature."""
        new = {}
        for feature, names in (self.prepared.spec.labels if self.prepared else {}).items():
            known = len(self.latest.labels.get(feature, ()))
            if names[known:]:
                new[feature] = {name: number for number, name in enumerate(names[known:], known)}
        return new


def prepare_append(
    conversion: Conversion,
    latest: Manifest,
    workers: WorkerProcesses,
    *,
    force: bool = False,
    changed: str | None = None,
) -> AppendPlan:
    """List and survey what the dataset lacks of a source, under its schema, with `workers`; nothing is written.

    Raises:
        TargetError: the dataset takes no append.
        UsageError: a file has changed and `changed` is None, or nothing says to which split a row goes.
        SchemaError: the source has other features; the text shows both schemas.
    """
    path, source, schema = conversion.output.path, conversion.source, schema_of(conversion.output.path, latest)
    whole, lost = with_readable_lists(source.list_files())
    listing, found = _wanted(conversion, latest, whole, changed, force=force)
    if not found.wanted:
        return AppendPlan(latest, None, whole.files, found.unchanged, found.rejected, found.warnings)
    dataset = _dataset_schema(conversion, latest, schema)
    prints = Fingerprints.of(conversion.fingerprint, listing)
    adds_to = json.dumps([schema.to_json(), latest.labels, conversion.split_of_dataset], sort_keys=True)
    mark = mark_of(prints, conversion.reading, "append", adds_to)
    listed = ListedSource.of(whole, prints.images if whole is listing else images_digest(whole))
    stopped = find_stopped(path, mark, whole, listed, resume=conversion.runner.resume)
    plan = stopped.finished(mark, listing)
    if plan is None:
        try:
            survey = survey_under(source, listing, workers.planning(listing.bytes), dataset)
        except NoColumnError as error:
            if error.key != "schema.columns" or error.name in conversion.named:
                raise
            inner = source.source if isinstance(source, RecipeSource) else source
            raise _missing_column(listing, error.name, dataset, unites=inner.union is False) from error
        except SchemaError as error:
            if not latest.is_of_others:
                raise
            where = printable_path(path)
            raise SchemaError(f"{error}; {where} does not say how it was made: give all options of the rows") from error
        refuse_columns("", len(survey.frozen.schema), conversion.limits.columns)
        conversion = _with_fitting_split(conversion, latest, survey)
        encoder, output = conversion.encoder_of(survey.frozen), conversion.output
        plan = make_plan(source, listing, survey, output.shard_size, encoder.encode, output.compression)
    else:
        conversion = _with_fitting_split(conversion, latest, plan.survey)
        encoder = conversion.encoder_of(plan.survey.frozen)
    run_id = _run_id(run_id_of(path, prints), plan.survey, latest, path)
    to = append_to(latest, conversion.constants, force=force)
    spec = conversion.spec_of(plan, prints, run_id, encoder, append_to=to)
    joined = conversion.joined_splits(plan.survey.frozen)
    prepared = Prepared(plan.survey.source or source, plan, encoder, spec, mark, listed, stopped, joined)
    unlike = _split_warnings(conversion, latest)
    warnings = (*lost, *found.warnings, *unlike, *unchecked_append(latest, encoder.observers))
    notes = _split_notes(conversion, plan.survey)
    return AppendPlan(latest, prepared, whole.files, found.unchanged, found.rejected, warnings, notes)


def _dataset_schema(conversion: Conversion, latest: Manifest, schema: Schema) -> DatasetSchema:
    return DatasetSchema(
        f"{printable_path(conversion.output.path)}, generation {latest.generation}",
        schema,
        latest.labels,
        no_rejects=rejects_allowed(conversion.max_rejects, 1 << 32) == 0,
        wanted_split=conversion.wanted_split,
        columns=latest.columns,
        may_add=conversion.declared,
    )


def _missing_column(listing: Listing, name: str, dataset: DatasetSchema, *, unites: bool) -> SchemaError:
    names = first_names([entry.name for entry in listing.entries], 1)
    what, more = "a column", ""
    if name in dataset.labels:
        what, more = "a label", f", or give all rows one value: {set_constant(name, 'VALUE')}"
    elif unites and name in dataset.may_lack:
        more = f", or read it as nulls: {UNITE}"
    return SchemaError(f'{names}: no column "{printable(name)}", which is {what} of {dataset.name}; add it{more}')


def _refuse_own_shards(listing: Listing, path: str) -> None:
    folder = _real(os.fsencode(path).rstrip(b"/"))
    for entry in listing.entries if listing.traits.whole_records else ():
        if os.path.dirname(_real(entry.path)) == folder:
            raise UsageError(f"{entry.name}: is a shard of the dataset that it is to be appended to; leave it out")


def _real(path: bytes) -> bytes:
    return path if is_object(path) else os.path.realpath(path)


def _wanted(
    conversion: Conversion, latest: Manifest, listing: Listing, how: str | None, *, force: bool
) -> tuple[Listing, SortedFiles]:
    path = conversion.output.path
    _refuse_own_shards(listing, path)
    if force:
        return listing, SortedFiles(tuple(range(len(listing.entries))), (), (), ())
    generations = list(lineage(path, latest))
    held = [source for manifest in generations for source in read_held_sources(path, manifest)]
    made = {manifest.generation: manifest.run.created for manifest in generations}
    by_content, apart = (
        conversion.knows_by_content(listing.traits),
        _of_other_splits(conversion.wanted_split, generations),
    )
    paths = conversion.input.paths if conversion.input is not None else ()
    rows = [source for source in held if source.generation not in apart and source.constants == conversion.constants]
    found = sort_files(listing, held, rows, made, by_content=by_content, paths=paths)
    found = without_held_datasets(listing, without_empty_files(listing, found), held, path)
    before = RejectedBefore.read(path, generations if listing.traits.in_folders else (), rows, conversion.limits)
    unchanged, rejected = split_unchanged(found.unchanged, listing, before)
    if not are_images_known(latest, listing):
        found = settle_changed(listing, found, how)
    changed = {listing.entries[i].name: number for i, number in found.changed}
    moved = {listing.entries[i].name: source for i, source in found.moved}
    kept, images = without_held_images(path, latest, listing.keep(found.wanted), changed, moved, before, how)
    if how == "skip":  # not all of a dataset is appended
        kept = replace(kept, datasets=())
    unchanged, rejected = (*unchanged, *images.unchanged), (*rejected, *images.rejected)
    if not kept.files:
        found = replace(found, wanted=())
    return kept, replace(found, unchanged=unchanged, rejected=rejected, warnings=(*found.warnings, *images.warnings))


def _of_other_splits(wanted: str | None, generations: Sequence[Manifest]) -> set[int]:
    """Return the generations that added to other splits than the user names: equal files there are other rows."""
    splits = {number: set[str]() for number in (manifest.generation for manifest in generations)}
    for name, split in generations[0].splits.items() if wanted is not None else ():
        for shard in split.shards:
            splits[shard.generation].add(name)
    return {number for number, names in splits.items() if names and wanted not in names}


def _run_id(run_id: str, survey: Survey, latest: Manifest, path: str) -> str:
    """Return the run's name: another one than of a conversion of the same, and than of any that has landed.

    Class numbers are in it: where another append took some meanwhile, what was staged is of no use.
    """
    used = {manifest.run.run_id for manifest in lineage(path, latest)}
    text = json.dumps([run_id, "append", latest.schema_fingerprint, sorted(survey.frozen.labels.items())])
    while True:
        text = hashlib.sha256(text.encode()).hexdigest()
        if text[:16] not in used:
            return text[:16]


def _with_fitting_split(conversion: Conversion, latest: Manifest, survey: Survey) -> Conversion:
    """Return the conversion with the rule of the dataset only where its source has rows for it.

    Raises:
        UsageError: nothing says to which split of the dataset a row goes, or its rule would part rows of one key.
    """
    if not conversion.split_of_dataset:
        return conversion
    splits, rule, where = survey.frozen.splits, conversion.split, printable_path(conversion.output.path)
    if rule is not None and rule.of is not None and rule.of not in splits:
        conversion, rule = replace(conversion, split=None), None
    if splits and _NO_SPLIT not in survey.split_rows:
        return conversion
    if rule is None:
        known = list(latest.splits) or [conversion.output.split]
        has = f"the splits {', '.join(known)}" if len(known) > 1 else f"the split {known[0]}"
        raise UsageError(
            f"{where} has {has}, and states no rule for these rows: say where they go: "
            f"{Add('--split', _first(known))}, or a rule, like {Add('--split-fractions', 'train=0.9,val=0.1')}"
            f"{_commands(conversion, known)}"
        )
    if rule.by == "exact" and rule.key is not None:
        raise UsageError(
            f"{where} was split {rule_text(rule.stated)}; {_parts_groups(rule.key)}, or say so: {rule.options}"
        )
    return conversion


def _commands(conversion: Conversion, splits: Sequence[str]) -> str:
    """Return the commands that append the rows of files to one split each."""
    if conversion.input is None:
        return ""
    paths = (path if "://" in path else os.path.join(conversion.base, path) for path in conversion.input.paths)
    call = *map(typed_path, paths), "-o", typed_path(conversion.output.path)
    return "".join(f"\n  {Command('append', *call, '--split', split)}" for split in list(splits)[:_SHOWN_SPLITS])


def _first(splits: Sequence[str]) -> str:
    return DEFAULT_SPLIT if DEFAULT_SPLIT in splits else splits[0]


def _parts_groups(key: str) -> str:
    return (
        f"an append counts its own rows alone, so that rows of one {printable(key)} may be in another split than those "
        f"that the dataset has; to keep them together, convert all sources to a new dataset (-o)"
    )


def _split_notes(conversion: Conversion, survey: Survey) -> tuple[str, ...]:
    rule = conversion.split
    if rule is None or not conversion.split_of_dataset:
        return ()
    if rule.of is None and survey.frozen.splits and _NO_SPLIT not in survey.split_rows:
        return ()  # the source is in splits
    other = Add("--split", "NAME")
    return (f"rows are split as the dataset was, {rule_text(rule.stated)}; to say otherwise: {other}, or a rule",)


def _split_warnings(conversion: Conversion, latest: Manifest) -> tuple[str, ...]:
    rule, found = conversion.split, list[str]()
    if rule is None:
        return ()
    known = rule_of(latest, f"dataset {latest.name} in {printable_path(conversion.output.path)}")
    if known is not None and json.dumps(rule.stated) != json.dumps(known.stated):  # fractions in order
        found.append(
            f"rows are split {rule_text(rule.stated)}, and the dataset was split {rule_text(known.stated)}; to split "
            f"them as it was, leave the rule out"
        )
    if rule.by == "exact" and rule.key is not None:
        found.append(f"split.by: exact: {_parts_groups(rule.key)}")
    return tuple(found)
