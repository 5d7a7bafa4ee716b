"""The config of an append: what its dataset decides, and what is refused. Columns: `sources/registry/file_source`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from ...transforms.dataset.commit.commit_generation import sidecar_groups
from ...transforms.dataset.storage.manifest_files import copy_in_part, list_generations, read_manifest, read_stats
from ...transforms.errors import DamageError, TargetError, UsageError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.manifest.naming import dataset_name, names_its_count
from ...transforms.format.schema.schema import Schema
from ...transforms.format.splits.splitter import DEFAULT_SPLIT
from ...transforms.format.wording.hints import Add, Command, Python, Set
from ...transforms.format.wording.printable import printable, printable_path
from ...transforms.inputs.contract.selection import FileSplits, shown_path, typed_path
from ...transforms.inputs.files.file_names import FORMATS
from ...transforms.recognise.splits.find import held_by, is_of_files
from ..config.model import Config, ImageConfig, ShuffleConfig, SplitConfig
from ..config.remembered import differences
from ..config.sections import image_shown

ModelT = TypeVar("ModelT", bound=BaseModel)

_DECIDED = ("compression", "order", "shard_name")
"""Keys of `output` that are the dataset's, whatever a config that was written for another one says."""

_SHOWN_INPUTS = 3


def dataset_in(path: str) -> Manifest:
    """Return the latest generation of a dataset.

    Raises:
        TargetError: there is none.
    """
    if not list_generations(path):
        raise TargetError(
            copy_in_part(path)
            or f"{printable_path(path)}: holds no dataset to append to; make one: "
            f"{Command('convert', 'SOURCE', '-o', path)}"
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


def of_dataset(config: Config, latest: Manifest, functions: Sequence[Mapping[str, str]]) -> tuple[Config, bool]:
    """Return the config of an append with what its dataset decides, and whether the rule of splits is the dataset's.

    `functions` are the user's own steps. What the dataset decides of `input` and `schema` is in the config already.

    Raises:
        UsageError: the config says otherwise.
        DamageError: the conversion that the manifest states is none.
    """
    output, given = config.output, config.output.model_fields_set
    schema = schema_of(output.path, latest)
    where = f"dataset {latest.name} in {printable_path(output.path)}"
    _refuse_others(config, latest, where)
    has_rows = config.input is None or FORMATS[config.input.format].load().has_rows
    if has_rows and not config.accept_map:
        _refuse_other_functions(functions, latest, config)
    changes: dict[str, Any] = {key: getattr(latest, key) for key in _DECIDED}
    groups = sidecar_groups(latest)
    changes |= {"sidecars": [group for group in groups if group != "offsets"], "if_exists": "refuse"}
    changes["index"] = "binary" if "offsets" in groups else "none"
    if "shard_size" not in given:
        changes["shard_size"] = latest.shard_size
    updates: dict[str, Any] = {"name": latest.name, "output": output.model_copy(update=changes)}
    updates["stats"] = _statistics_of(config, latest, where)
    if config.shuffle is None and "shuffle" in latest.conversion:
        updates["shuffle"] = _section(ShuffleConfig, latest, "shuffle", where)
    if has_rows and (config.image is not None or any(feature.type == "image" for feature in schema)):
        updates["image"] = _image_of(config, latest, where)
    settled = config.model_copy(update=updates)
    return (settled, False) if "split" in given or config.split is not None else _with_split_of(settled, latest, where)


def _refuse_others(config: Config, latest: Manifest, where: str) -> None:
    """Refuse values that are not the dataset's, of keys that the dataset decides."""
    output = config.output
    others = [(f"output.{key}", getattr(output, key), getattr(latest, key)) for key in _DECIDED]
    unlike = [one for one in others if one[0].partition(".")[2] in output.model_fields_set and one[1] != one[2]]
    try:
        unlike += differences(config, latest.conversion)
    except ValidationError as error:
        raise _damage(error, "conversion", latest, where) from None
    for key, mine, known in unlike:
        raise UsageError(
            f"{key} is {_said(mine)}, and {_said(known)} in {where}: an append cannot change it; leave it out, or "
            f"convert to a new dataset (-o)"
        )
    passes_once = config.input is not None and FORMATS[config.input.format].load().is_shuffled
    if config.shuffle is not None and not passes_once and latest.order != "shuffled":
        raise UsageError(f"shuffle: {where} is not shuffled; leave the key out, or convert to a new dataset (-o)")
    if config.name not in (latest.name, dataset_name(output.path)):
        raise UsageError(f'name is "{config.name}", but that is {where}; leave the name out, or choose another -o')


def _refuse_other_functions(functions: Sequence[Mapping[str, str]], latest: Manifest, config: Config) -> None:
    known = latest.conversion.get("map", [])
    if list(functions) == known:
        return
    where, names = shown_path(config.output.path), ", ".join(printable(one["name"]) for one in known)
    fix = (
        f"convert to a new dataset (-o); or from now on with it: {Set('accept_map', True)} (in Python accept_map=True)"
    )
    if not known:
        raise UsageError(f"map: {where} was made without a function; leave it out; {fix}")
    if not functions:
        call = Python(f"append({_inputs(config)}, output={typed_path(config.output.path)!r}, map=[{names}])")
        raise UsageError(
            f"{where} was made with {names}, which its rows go through; append from Python: "
            f"from shardmill.pipelines import append; {call}; or from now on without it: {Set('accept_map', True)}"
        )
    mine = ", ".join(printable(one["name"]) for one in functions)
    if [one["name"] for one in functions] == [one["name"] for one in known]:
        changed = [one["name"] for one, before in zip(functions, known, strict=True) if one != before]
        raise UsageError(
            f"map: {', '.join(map(printable, changed))}: its text, or a value that it uses, is not what {where} was "
            f"made with; append with the function as it was; {fix}"
        )
    raise UsageError(f"map: {where} was made with {names}, and not {mine}; append with these; {fix}")


def _inputs(config: Config) -> str:
    """Return the inputs of an append as arguments in Python."""
    if config.input is None:
        return "data=DATA"
    paths = [typed_path(path if "://" in path else os.path.join(config.base, path)) for path in config.input.paths]
    return "FILES" if len(paths) > _SHOWN_INPUTS else repr(paths[0] if len(paths) == 1 else paths)


def _said(value: object) -> str:
    """Return a value as an error shows it.

    >>> _said("gzip"), _said(True), _said(None), _said({"fill": 0})
    ('"gzip"', 'true', 'null', '{"fill": 0}')
    """
    return printable(json.dumps(value, ensure_ascii=False))


def _section(model: type[ModelT], latest: Manifest, key: str, where: str) -> ModelT:
    try:
        return model.model_validate(latest.conversion[key])
    except ValidationError as error:
        raise _damage(error, f"conversion.{key}", latest, where) from None


def _damage(error: ValidationError, key: str, latest: Manifest, where: str) -> DamageError:
    said, split = error.errors()[0]["msg"], next(iter(latest.splits), "train")
    fix = f"; say the split of the rows: {Add('--split', split)}" if key == "conversion.split" else ""
    return DamageError(f"{where}: {key} of generation {latest.generation} is not valid ({said}){fix}")


def _image_of(config: Config, latest: Manifest, where: str) -> ImageConfig | None:
    """Return what an append does to pictures: what was done to those of the dataset.

    Raises:
        UsageError: something else is asked for.
    """
    known = _section(ImageConfig, latest, "image", where) if "image" in latest.conversion else None
    asked, steps = (None if one is None else one.options().to_json() for one in (config.image, known))
    if asked is not None and asked != (steps or {}):
        raise UsageError(
            f"image: the pictures of {where} are {image_shown(steps or {})}, and would be {image_shown(asked)} now: an "
            f"append cannot change it; leave image out, or convert to a new dataset (-o)"
        )
    return known


def _with_split_of(config: Config, latest: Manifest, where: str) -> tuple[Config, bool]:
    """Return the config of an append that says nothing of splits with the rule of the dataset, or its one split."""
    rule = rule_of(latest, where)
    if rule is not None:
        no_folders = config.input is not None and config.input.format == "tfrecord"  # existing records have splits
        by_other = not rule.follows_source and latest.order == "source"  # another writer made both
        rule = None if by_other or (no_folders and rule.of is not None) else rule
    seen = latest.conversion.get("recognised", {}).get("rule")
    if rule is not None or len(latest.splits) > 1 or is_of_files(seen):
        return config.model_copy(update={"split": rule}), True
    split = next(iter(latest.splits), config.output.split)
    return config.model_copy(update={"output": config.output.model_copy(update={"split": split})}), False


def rule_of(latest: Manifest, where: str) -> SplitConfig | None:
    """Return the rule by which the rows of a dataset were split. Raises `DamageError` where it is not valid."""
    return _section(SplitConfig, latest, "split", where) if "split" in latest.conversion else None


class _Recognised(BaseModel):
    """How files got their splits, as a manifest states it."""

    rule: Literal["folders", "roots", "names", "readme", "lists", "tfds", "words", "globs", "off", "unused"]
    arguments: dict[str, Any] = {}


def as_held(how: FileSplits, latest: Manifest, *, has_rule: bool) -> FileSplits:
    """Return how the files of an append that says nothing of splits get theirs: by the rule of its dataset.

    Raises:
        DamageError: the rule that the manifest states is none.
    """
    conversion, splits = latest.conversion, list(latest.splits)
    if not has_rule and len(splits) > 1:
        how = replace(how, as_one=Add("--split", DEFAULT_SPLIT if DEFAULT_SPLIT in splits else splits[0]))
    if "recognised" not in conversion:
        alone = len(splits) == 1 and "input" in conversion and "split" not in conversion
        return replace(how, held="none" if alone else "")
    where = f"dataset {latest.name} in {printable_path(how.call.output)}"
    found = _section(_Recognised, latest, "recognised", where)
    return held_by(how, found.rule, wanted_splits(found.arguments) if found.rule == "globs" else ())


def wanted_splits(said: Literal["names", "none"] | Mapping[str, str | list[str]] | None) -> Any:
    """Return what `input.splits` says, as sources take it."""
    if not isinstance(said, Mapping):
        return said
    return tuple((split, (one,) if isinstance(one, str) else tuple(one)) for split, one in said.items())


def _statistics_of(config: Config, latest: Manifest, where: str) -> str:
    """Return what is counted of new records: what is counted of those that the dataset has, or nothing."""
    try:
        known = read_stats(config.output.path, latest)
    except DamageError:  # what cannot be read is not added to
        known = None
    level = "none" if known is None else known.level
    if "stats" in config.model_fields_set and config.stats != level:
        full = ["--full"] if config.stats == "full" else []
        raise UsageError(
            f'stats is "{config.stats}", and "{level}" in {where}: an append adds to what is counted; leave it out, or '
            f"count all of it: {Command('stats', config.output.path, '--write', *full)}"
        )
    return level
