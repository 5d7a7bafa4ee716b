"""What the dataset of an append decides of its config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from ...transforms.dataset.commit.append_commit import sidecar_groups
from ...transforms.dataset.generations.manifest_files import copy_in_part, list_generations, read_manifest
from ...transforms.dataset.generations.statistics_file import read_stats
from ...transforms.errors import DamageError, TargetError, UsageError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.manifest.naming import dataset_name, names_its_count
from ...transforms.format.schema.schema import Schema
from ...transforms.format.wording.printable import printable_path, shell_path
from ...transforms.sources.registry.formats import FORMATS
from ..config.model import ColumnConfig, Config, Fill, SchemaConfig, ShuffleConfig, SplitConfig, settled_pictures

_DECIDED = ("compression", "order", "shard_name")
"""Keys of `output` that are the dataset's, whatever a config that was written for another one says."""


def dataset_in(path: str) -> Manifest:
    """Return the latest generation of a dataset.

    Raises:
        TargetError: there is none.
    """
    if not list_generations(path):
        raise TargetError(
            copy_in_part(path)
            or f"{printable_path(path)}: holds no dataset to append to; make one: shardmill convert SOURCE... -o "
            f"{shell_path(path)}"
        )
    return read_manifest(path)


def schema_of(path: str, latest: Manifest) -> Schema:
    where = printable_path(path)
    if names_its_count(latest.shard_name):
        raise TargetError(
            f"{where}: its shards are named by their count ({latest.shard_name}), so that it takes no append; convert "
            f"all sources to a new dataset, or merge datasets"
        )
    if latest.schema is None:
        raise TargetError(f"{where}: its records are plain bytes without a schema, to which no rows are appended")
    return latest.schema


def settled(config: Config, latest: Manifest) -> tuple[Config, bool]:
    """Return the config with what the dataset decides, and whether the rule of splits is the dataset's too.

    Raises:
        UsageError: the config says otherwise.
    """
    schema, output, given = schema_of(config.output.path, latest), config.output, config.output.model_fields_set
    where = f"dataset {latest.name} in {printable_path(output.path)}"
    for key in _DECIDED:
        if key in given and getattr(output, key) != getattr(latest, key):
            raise UsageError(
                f'output.{key} is "{getattr(output, key)}", and "{getattr(latest, key)}" in {where}: an append cannot '
                f"change it; leave it out, or convert to a new dataset (-o)"
            )
    passes_once = config.input is not None and FORMATS[config.input.format].load().is_shuffled
    if config.shuffle is not None and not passes_once and latest.order != "shuffled":
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
        image = settled_pictures(settled.image, latest.details.image, where)
        settled = settled.model_copy(update={"image": image})
    return (settled, False) if "split" in given or config.split is not None else _with_split_of(settled, latest)


def _with_split_of(config: Config, latest: Manifest) -> tuple[Config, bool]:
    """Return the config of an append that says nothing of splits with the rule of the dataset, or its one split."""
    rule = _rule_of(config, latest)
    if rule is not None or len(latest.splits) > 1:
        return config.model_copy(update={"split": rule}), True
    split = next(iter(latest.splits), config.output.split)
    return config.model_copy(update={"output": config.output.model_copy(update={"split": split})}), False


def _rule_of(config: Config, latest: Manifest) -> SplitConfig | None:
    stated = latest.details.split_rule
    if not stated or stated["by"] == "folders":
        return None
    try:
        rule = SplitConfig.of_rule(stated)
    except ValidationError as error:
        raise DamageError(
            f"{printable_path(config.output.path)}: details.split_rule of generation {latest.generation} is no rule "
            f"({error.errors()[0]['msg']}); say the split of the rows: --split {next(iter(latest.splits), 'train')}"
        ) from None
    records = config.input is not None and config.input.format == "tfrecord"
    if records and rule.of is not None:
        return None  # the splits of existing records are no folders
    return rule if rule.follows_source or latest.order != "source" else None  # another writer made both


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
