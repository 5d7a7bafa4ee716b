"""Make an append ready to run: what the dataset decides, which files it lacks, whether they fit. No Beam here.

the dataset    name, order, compression, shard_name, sidecars, schema, class numbers; shard_size, split unless given
the config     what is read and how, limits, workers
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...transforms.dataset.commit.append_commit import append_to, sidecar_groups
from ...transforms.dataset.generations.manifest_files import lineage
from ...transforms.dataset.generations.statistics_file import read_stats
from ...transforms.dataset.shards.source_list import read_held_sources
from ...transforms.dataset.stage.max_rejects import rejects_allowed
from ...transforms.errors import DamageError, SchemaError, TargetError, UsageError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.manifest.naming import dataset_name, names_its_count
from ...transforms.format.schema.schema import Schema
from ...transforms.format.splits.folders import settling
from ...transforms.format.wording.nearest import NoColumnError, first_names
from ...transforms.format.wording.options import set_constant
from ...transforms.format.wording.printable import printable, printable_path, shell_path
from ...transforms.sources.contract.planning import make_plan
from ...transforms.sources.contract.selection import refuse_columns
from ...transforms.sources.contract.source import Listing, Source, Survey
from ...transforms.sources.files.open_file import is_object
from ...transforms.sources.registry.conform import DatasetSchema, survey_under
from ...transforms.sources.registry.formats import FORMATS
from ..config.model import ColumnConfig, Config, Fill, SchemaConfig, ShuffleConfig
from ..report.planned_checks import unchecked_append
from ..report.unchanged import Unchanged
from ..workers.worker_processes import WorkerProcesses
from .config_fingerprints import options_fingerprint, same_options
from .convert import run_id_of, spec_of
from .known_images import are_images_known, without_held_images
from .known_inputs import (
    SortedFiles,
    settle_changed,
    sort_files,
    with_readable_lists,
    without_empty_files,
    without_held_datasets,
)
from .prepared import Prepared
from .rejected_images import RejectedBefore, split_unchanged
from .source_and_encoder import encoder_of, source_of, spills, with_recipe
from .splitters import joined_splits, split_notes, split_warnings, with_fitting_split, with_split_of
from .staged_plan import Fingerprints, ListedSource, images_digest, mark_of
from .stopped_runs import find_stopped

_DECIDED = ("compression", "order", "shard_name")
"""Keys of `output` that are the dataset's, whatever a config that was written for another one says."""


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
    config: Config,
    latest: Manifest,
    workers: WorkerProcesses,
    *,
    source: Source | None = None,
    force: bool = False,
    changed: str | None = None,
) -> AppendPlan:
    """List and survey what the dataset lacks of a source, under its schema, with `workers`; nothing is written.

    `source` reads data that are given in Python, without the recipe: the dataset decides a part of it. A `SchemaError`
    shows both schemas.
    """
    path = config.output.path
    schema = _schema_of(path, latest)
    named = frozenset(config.schema_.columns)
    wanted_split = config.output.split if "split" in config.output.model_fields_set else None
    config = _settled(config, latest, schema)
    source = source_of(config, "append") if source is None else with_recipe(source, config)
    whole, lost = with_readable_lists(source.list_files())
    listing, found = _wanted(config, latest, whole, changed, force=force)
    if not found.wanted:
        return AppendPlan(latest, None, whole.files, found.unchanged, found.rejected, found.warnings)
    dataset = _dataset_schema(config, latest, schema, wanted_split)
    prints = Fingerprints.of(config, listing)
    adds_to = json.dumps([schema.to_json(), latest.labels, config.split_of_dataset], sort_keys=True)
    mark = mark_of(prints, config, source, "append", adds_to)
    listed = ListedSource.of(whole, prints.images if whole is listing else images_digest(whole))
    stopped = find_stopped(path, mark, whole, listed, resume=config.runner.resume)
    plan = stopped.finished(mark, listing)
    if plan is None:
        try:
            source, survey = survey_under(source, listing, workers.planning(listing.bytes), dataset)
        except NoColumnError as error:
            if error.key != "schema.columns" or error.name in named:
                raise
            raise _missing_column(listing, error.name, dataset) from error
        refuse_columns("", len(survey.frozen.schema), config.limits.columns)
        split = with_fitting_split(config, latest, survey)
        encoder = encoder_of(split, survey.frozen)
        plan = make_plan(source, listing, survey, config.output.shard_size, encoder.encode, config.output.compression)
    else:
        split = with_fitting_split(config, latest, plan.survey)
        encoder = encoder_of(split, plan.survey.frozen)
    to = append_to(latest, options_fingerprint(config), force=force)
    run_id, aside = _run_id(run_id_of(config, prints), plan.survey, latest, path), settling(encoder.split)
    spec = spec_of(config, plan, prints, run_id, append_to=to, aside=aside)
    prepared = Prepared(source, plan, encoder, spec, mark, listed, stopped, joined_splits(split, plan.survey.frozen))
    warnings = (*lost, *found.warnings, *split_warnings(split, latest), *unchecked_append(latest, encoder.observers))
    notes = split_notes(split, plan.survey)
    return AppendPlan(latest, prepared, whole.files, found.unchanged, found.rejected, warnings, notes)


def _dataset_schema(config: Config, latest: Manifest, schema: Schema, wanted_split: str | None) -> DatasetSchema:
    return DatasetSchema(
        f"{printable_path(config.output.path)}, generation {latest.generation}",
        schema,
        latest.labels,
        no_rejects=rejects_allowed(config.max_rejects, 1 << 32) == 0,
        wanted_split=wanted_split,
        columns=latest.columns,
    )


def _missing_column(listing: Listing, name: str, dataset: DatasetSchema) -> SchemaError:
    names = first_names([entry.name for entry in listing.entries], 1)
    what = "a label" if name in dataset.labels else "a column"
    return SchemaError(
        f'{names}: no column "{printable(name)}", which is {what} of {dataset.name}; add it, or give all rows one '
        f"value: {set_constant(name, 'VALUE')}"
    )


def _refuse_own_shards(listing: Listing, path: str) -> None:
    folder = _real(os.fsencode(path).rstrip(b"/"))
    for entry in listing.entries if listing.traits.whole_records else ():
        if os.path.dirname(_real(entry.path)) == folder:
            raise UsageError(f"{entry.name}: is a shard of the dataset that it is to be appended to; leave it out")


def _real(path: bytes) -> bytes:
    return path if is_object(path) else os.path.realpath(path)


def _schema_of(path: str, latest: Manifest) -> Schema:
    where = printable_path(path)
    if names_its_count(latest.shard_name):
        raise TargetError(
            f"{where}: its shards are named by their count ({latest.shard_name}), so that it takes no append; convert "
            f"all sources to a new dataset, or merge datasets"
        )
    if latest.schema is None:
        raise TargetError(f"{where}: its records are plain bytes without a schema, to which no rows are appended")
    return latest.schema


def _settled(config: Config, latest: Manifest, schema: Schema) -> Config:
    """Return the config with what the dataset decides; it is an error if the config says otherwise."""
    output, given = config.output, config.output.model_fields_set
    where = f"dataset {latest.name} in {printable_path(output.path)}"
    for key in _DECIDED:
        if key in given and getattr(output, key) != getattr(latest, key):
            raise UsageError(
                f'output.{key} is "{getattr(output, key)}", and "{getattr(latest, key)}" in {where}: an append cannot '
                f"change it; leave it out, or convert to a new dataset (-o)"
            )
    if spills(config) and latest.order != "shuffled":
        raise UsageError(f"shuffle: {where} is not shuffled; leave the key out, or convert to a new dataset (-o)")
    if config.name not in (latest.name, dataset_name(output.path)):
        raise UsageError(f'name is "{config.name}", but that is {where}; leave the name out, or choose another -o')
    changes: dict[str, Any] = {key: getattr(latest, key) for key in _DECIDED}
    groups = sidecar_groups(latest)
    changes |= {"sidecars": [group for group in groups if group != "offsets"], "if_exists": "refuse"}
    changes["index"] = "binary" if "offsets" in groups else "none"
    if "shard_size" not in given:
        changes["shard_size"] = latest.shard_size
    updates: dict[str, Any] = {"name": latest.name, "output": output.model_copy(update=changes)}
    updates["stats"] = _settled_statistics(config, latest, where)
    if config.input is not None:
        found = FORMATS[config.input.format].load()
        updates["input"] = found.settled(config.input, schema, latest.labels, where)
    if config.input is None or "schema.columns" not in FORMATS[config.input.format].load().refused_keys:
        labels = [feature.name for feature in schema if feature.type == "label" and feature.shape == ()]
        numbered = () if config.input is None else FORMATS[config.input.format].load().numbered
        updates["schema_"] = _settled_columns(_settled_labels(config.schema_, labels, numbered), latest)
    if latest.order == "shuffled" and config.shuffle is None:
        updates["shuffle"] = ShuffleConfig(seed=latest.details.shuffle["seed"])
    settled = config.model_copy(update=updates)
    has_pictures = config.image is not None or any(feature.type == "image" for feature in schema)
    if has_pictures and (config.input is None or FORMATS[config.input.format].load().has_rows):
        settled = settled.with_pictures_of(latest.details.image, where)
    return settled if "split" in given or config.split is not None else with_split_of(settled, latest)


def _settled_statistics(config: Config, latest: Manifest, where: str) -> str:
    """Return what is counted of new records: what is counted of those that the dataset has, or nothing."""
    try:
        known = read_stats(config.output.path, latest)
    except DamageError:  # what cannot be read is not added to
        known = None
    level = "none" if known is None else known.level
    if "stats" in config.model_fields_set and config.stats != level:
        raise UsageError(
            f'stats is "{config.stats}", and "{level}" in {where}: an append adds to what is counted; leave it out, or '
            f"count all of it: shardmill stats {shell_path(config.output.path)} --write"
            f"{' --full' if config.stats == 'full' else ''}"
        )
    return level


def _settled_labels(section: SchemaConfig, labels: Sequence[str], numbered: Sequence[str]) -> SchemaConfig:
    """Return the columns with those as labels that are labels in the dataset, where the config does not say.

    Lists of classes are none of these: the source of boxes names them. Nor are columns that are `numbered` by the
    source itself.
    """
    named = {rule.name or name: name for name, rule in section.columns.items()}
    columns = dict(section.columns)
    for feature in labels:
        name = named.get(feature, feature)
        rule = columns.get(name, ColumnConfig())
        if not rule.label and name not in numbered:
            columns[name] = rule.model_copy(update={"label": True})
    return section.model_copy(update={"columns": columns})


def _settled_columns(section: SchemaConfig, latest: Manifest) -> SchemaConfig:
    """Return the columns with what becomes of nulls, paths and pictures in the dataset, where the config is silent."""
    named = {rule.name or name: name for name, rule in section.columns.items()}
    columns = dict(section.columns)
    features = {feature.name for feature in latest.schema or ()}
    pictures = {one.name: one.name.removesuffix("/encoded") for one in latest.schema or () if one.type == "image"}
    for picture in pictures.values():
        name = named.get(picture, picture)
        rule = columns.get(name, ColumnConfig())
        if rule.image is None and rule.file is None and rule.type is None:
            columns[name] = rule.model_copy(update={"image": "path" if f"{picture}/filename" in features else "bytes"})
    for entry in latest.columns:
        feature = pictures.get(entry.name, entry.name)
        name = named.get(feature, feature)
        rule = columns.get(name, ColumnConfig())
        if entry.null not in ("absent", "present") and rule.null == "absent":
            null = entry.null if entry.fill is None else Fill(fill=entry.fill)
            rule = columns[name] = rule.model_copy(update={"null": null})
        if entry.file is not None and rule.file is None and rule.type is None:
            columns[name] = rule.model_copy(update={"file": entry.file})
    return section.model_copy(update={"columns": columns})


def _wanted(
    config: Config, latest: Manifest, listing: Listing, how: str | None, *, force: bool
) -> tuple[Listing, SortedFiles]:
    _refuse_own_shards(listing, config.output.path)
    if force:
        return listing, SortedFiles(tuple(range(len(listing.entries))), (), (), ())
    path = config.output.path
    generations = list(lineage(path, latest))
    held = [source for manifest in generations for source in read_held_sources(path, manifest)]
    made = {manifest.generation: manifest.run.created for manifest in generations}
    options = same_options(config, latest.schema or Schema(()))
    by_content = listing.traits.in_files and not _names_files(config, listing) and not config.schema_.constants
    apart = _of_other_splits(config, generations)
    paths = config.input.paths if config.input is not None else ()
    found = sort_files(listing, held, options, made, by_content=by_content, apart=apart, paths=paths)
    found = without_held_datasets(listing, without_empty_files(listing, found), held, path)
    same = [source for source in held if source.options is None or source.options in options]
    before = RejectedBefore.read(path, generations if listing.traits.in_folders else (), same, config.limits)
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


def _of_other_splits(config: Config, generations: Sequence[Manifest]) -> set[int]:
    """Return the generations that added nothing to the split that a user names: equal files there are other rows."""
    if "split" not in config.output.model_fields_set:
        return set()
    splits = {number: set[str]() for number in (manifest.generation for manifest in generations)}
    for name, split in generations[0].splits.items():
        for shard in split.shards:
            splits[shard.generation].add(name)
    return {number for number, names in splits.items() if config.output.split not in names}


def _names_files(config: Config, listing: Listing) -> bool:
    """Return whether rows are also made of files that are not listed, so that no fingerprint is of all of a row."""
    rules, named = config.schema_.columns.values(), listing.traits.names_pictures
    pictures = any(rule.image == "path" for rule in rules) if named is None else named
    return pictures or any(rule.file is not None for rule in rules)


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
