"""Make the conversion that a config describes: the one place that reads a config and knows sources and steps."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from ...transforms.errors import UsageError
from ...transforms.format.schema.schema import ColumnRule
from ...transforms.format.tfrecord.scan import RECORD_BYTES_LIMIT
from ...transforms.format.wording.hints import Set
from ...transforms.format.wording.printable import printable_path, quoted
from ...transforms.pictures.check import DECODED, READABLE_FORMATS, ImageCheck
from ...transforms.pictures.facts import Check
from ...transforms.recipe.function import functions_in
from ...transforms.recipe.picture_steps.boxes import BoxesByType
from ...transforms.recipe.picture_steps.chosen_features import ChosenFeatures, is_feature_of
from ...transforms.recipe.picture_steps.pictures import ExportedPictures, FromBase64, Pictures
from ...transforms.recipe.picture_steps.ready import ReadyByType
from ...transforms.recipe.source import with_steps
from ...transforms.recipe.step import Step, StepByType
from ...transforms.recipe.steps.columns import Constants, Rename
from ...transforms.recipe.steps.expression import columns_in, read_expression
from ...transforms.recipe.steps.files import Files
from ...transforms.recipe.steps.label import Label
from ...transforms.recipe.steps.nulls import Nulls
from ...transforms.recipe.steps.where import Where
from ...transforms.recognise.names import FileSplits
from ...transforms.sources.contract.call import Call, typed_path
from ...transforms.sources.contract.source import Source
from ...transforms.sources.files.below_root import is_missing_or_empty
from ...transforms.sources.image_tables.folder_splits import FolderSplits
from ...transforms.sources.image_tables.unnamed import UnnamedPictures
from ...transforms.sources.registry.format import keep_step
from ...transforms.sources.registry.formats import FORMATS
from ...transforms.sources.registry.options import Options
from ...transforms.sources.registry.settings import Limits, Settings
from ...transforms.sources.text.cell_lists import CellLists
from ...transforms.sources.text.written import Written
from ...transforms.statistics.observe import CountValues
from ...transforms.stores.common.store_url import is_store_url
from ..config.model import ColumnConfig, Config, Fill, SchemaConfig
from ..config.remembered import remembered
from .conversion import Conversion
from .of_dataset import as_held, dataset_in, of_dataset, wanted_splits

if TYPE_CHECKING:
    from ...transforms.checks.duplicates import Duplicates
    from ...transforms.checks.leaks import Leaks
    from ...transforms.format.flow.observers import Observer
    from ...transforms.format.manifest.manifest import Manifest


def conversion_of(
    config: Config,
    command: Literal["convert", "append", "merge"] = "convert",
    *,
    source: Source | None = None,
    steps: Sequence[Step] = (),
    observers: Sequence[Observer] = (),
    check: Check | None = None,
) -> Conversion:
    """Return the conversion that a config describes.

    `source` reads data that are given in Python, without a recipe, and `check` is how far pictures in it are checked.
    `steps` are the user's own, after those of the config, and `observers` see the rows beside those of the config.
    The dataset decides what an append leaves open; what is merged keeps its order.

    Raises:
        UsageError: keys do not go together, with the format, or with the dataset of an append.
        TargetError: there is no dataset to append to, or none that takes an append.
    """
    wanted, split_of_dataset, functions = _named_split(config), False, functions_in(steps)
    latest = dataset_in(config.output.path) if command == "append" else None
    if latest is not None:
        config, split_of_dataset = of_dataset(config, latest, functions)
    elif command == "merge" and config.shuffle is None and (config.split is None or config.split.follows_source):
        config = config.model_copy(update={"output": config.output.model_copy(update={"order": "source"})})
    _refuse_pairs(config)
    level: Check = check or ("structure" if config.input is None else config.input.check)
    form = None if config.input is None else FORMATS[config.input.format].load()
    if config.input is not None:
        _refuse_keys(config, config.input, steps)
    reader = source or _source_of(config, command, wanted, latest, split_of_dataset=split_of_dataset)
    counted = (CountValues(config.statistics),) if config.statistics is not None and _counts_values(config) else ()
    checks, rules = _checks_of(config), config.schema_.columns.values()
    made = Conversion(
        name=config.name,
        source=reader if form is not None and not form.has_rows else _with_recipe(reader, config, steps, level),
        output=config.output,
        input=config.input,
        base=config.base,
        split=config.split,
        wanted_split=wanted,
        split_of_dataset=split_of_dataset,
        shuffle=_seed_of_all(config),
        checks=checks,
        observers=(*checks, *observers, *counted),
        limits=_limits(config),
        max_rejects=config.max_rejects,
        statistics=config.statistics,
        image={} if config.image is None else config.image.stated(),
        picture_check=level,
        named=config.named,
        by_content=not any(rule.file is not None for rule in rules),
        names_pictures=any(rule.image == "path" for rule in rules),
        runner=config.runner,
        detected=config.detected,
        fingerprint=config_fingerprint(config, steps),
        remembered=remembered(config, functions),
    )
    return made if latest is None else _of_append(made, config, latest.conversion, functions)


def _of_append(
    made: Conversion, config: Config, held: Mapping[str, Any], functions: Sequence[Mapping[str, str]]
) -> Conversion:
    """Return the conversion of an append, which remembers what its dataset does, but for functions that it accepts."""
    own, known = config.schema_.constants, held.get("schema", {}).get("constants", {})
    kept = {key: value for key, value in held.items() if key != "map" or not config.accept_map}
    kept |= {"map": functions} if config.accept_map and functions else {}
    constants = None if own == known else json.dumps(own, sort_keys=True)
    return replace(made, held=held, remembered=kept, constants=constants)


def _named_split(config: Config) -> str | None:
    return config.output.split if "split" in config.output.model_fields_set else None


def column_rules(config: Config) -> dict[str, ColumnRule]:
    rules = {name: _rule(rule) for name, rule in config.schema_.columns.items()}
    rules |= {name: ColumnRule("string") for name, rule in config.schema_.columns.items() if rule.is_written}
    rules |= {
        name: ColumnRule("string", nullable=rule.nullable)
        for name, rule in config.schema_.columns.items()
        if rule.names_files or rule.image == "base64"
    }
    return {name: rule for name, rule in rules.items() if rule != ColumnRule()}


def _rule(rule: ColumnConfig) -> ColumnRule:
    return ColumnRule(rule.type, rule.as_, rule.unit, rule.timezone, rule.nullable)


def _source_of(
    config: Config, command: str, named: str | None, latest: Manifest | None, *, split_of_dataset: bool
) -> Source:
    """Return the source that reads `config.input`, without the recipe."""
    options = config.input
    if options is None:
        raise UsageError("input: is missing; say what to read: input: {paths: [data/*.csv]}")
    found = FORMATS[options.format].load()
    splits = _file_splits(config, command, named, latest, split_of_dataset=split_of_dataset)
    settings = _settings(config, command, splits, split_of_dataset=split_of_dataset)
    typed = [name for name in settings.rules if not config.schema_.columns[name].names_files]
    if typed and not found.takes_types:
        name = quoted(typed[0])
        raise UsageError(f"schema.columns: types do not go with {options.format} yet; leave those of {name} out")
    return found.source(_columns_to_read(options, config), settings)


def _refuse_keys(config: Config, options: Options, steps: Sequence[Step]) -> None:
    """Refuse keys that do not go with the format, unless they are at their defaults."""
    found = FORMATS[options.format].load()
    for key in found.refused_keys if found.has_rows else (*found.refused_keys, *_OF_ROWS):
        if steps if key == "map" else _given(config, options, key):
            raise UsageError(f"{key}: does not go with {options.format} yet; leave the key out")


def _columns_to_read(options: Options, config: Config) -> Options:
    """Return options by which a source reads the columns of `where` too; a step leaves them out again.

    Features of pictures are none of its columns.
    """
    pictures = _picture_names(config)
    for key in ("columns", "exclude_columns"):
        names = getattr(options, key) or []
        read = [name for name in names if not any(is_feature_of(picture, name) for picture in pictures)]
        options = options.model_copy(update={key: read}) if len(read) < len(names) else options
    if options.where is None:
        return options
    wanted = columns_in(read_expression(options.where))
    changes: dict[str, object] = {}
    if options.columns is not None:
        changes["columns"] = list(dict.fromkeys([*options.columns, *wanted]))
    if set(options.exclude_columns) & set(wanted):
        changes["exclude_columns"] = [name for name in options.exclude_columns if name not in wanted]
    return options.model_copy(update=changes)


_OF_ROWS: Final = ("image", *(f"schema.{key}" for key in SchemaConfig.model_fields if key != "infer"))
"""Keys that change rows: they do not go with a format that passes records on."""


def _settings(config: Config, command: str, splits: FileSplits, *, split_of_dataset: bool) -> Settings:
    return Settings(
        config.base,
        rules=column_rules(config),
        paths=frozenset(name for name, rule in config.schema_.columns.items() if rule.names_files),
        infer=config.schema_.infer,
        seed=None if config.shuffle is None else config.shuffle.seed,
        limits=_limits(config),
        split=_named_split(config),
        default_split=None if split_of_dataset else config.output.split,
        looked_at=() if config.split is None else config.split.looked_at,
        splits_anew=config.split is not None and config.split.of is None and not split_of_dataset,
        detected=config.detected,
        call=Call(command, typed_path(config.output.path)),
        pictures=config.pictures,
        splits=splits,
    )


def _limits(config: Config) -> Limits:
    return Limits(**config.limits.model_dump())


def _given(config: Config, options: Options, key: str) -> object:
    """Return what a config says at a key that a format may refuse: nothing where it is at its default."""
    section, _, name = key.partition(".")
    if section == "input":
        return getattr(options, name)
    if section == "schema":
        value = getattr(config.schema_, name)
        return None if value == SchemaConfig.model_fields[name].default else value
    return getattr(config, section)


def _with_recipe(source: Source, config: Config, own: Sequence[Step], check: Check) -> Source:
    """Return a source with the recipe of a config: columns of folders, other names, constants, the user's own steps."""
    options, steps = config.input, _of_picture_folders(config)
    if options is not None:
        steps += FORMATS[options.format].load().steps(_columns_to_read(options, config))
    for name, rule in sorted(config.schema_.columns.items()):
        if rule.is_written:
            steps.append(_written(name, rule))
    if options is not None and options.where is not None:
        looked_at = columns_in(read_expression(options.where))
        gone = [name for name in options.exclude_columns if name in looked_at]
        steps += [Where(options.where), *keep_step(options.model_copy(update={"exclude_columns": gone}))]
    names = {name: rule.name for name, rule in config.schema_.columns.items() if rule.name is not None}
    if names:
        steps.append(Rename(tuple(sorted(names.items()))))
    steps += _nulls_of(config, of_files=False)
    if config.schema_.constants:
        steps.append(Constants.of(config.schema_.constants))
    for name, rule in sorted(config.schema_.columns.items()):
        if rule.label:
            classes = None if isinstance(rule.label, bool) else rule.label
            steps.append(Label.of(rule.name or name, classes, nulls=rule.keeps_nulls))
    steps += [*_files(config), *_nulls_of(config, of_files=True), *_pictures(config, check)]
    limit = None if options is None else options.limit
    return with_steps(source, [*steps, *own], limit, column_rules(config), _by_type(config, check))


def _file_splits(
    config: Config, command: str, named: str | None, latest: Manifest | None, *, split_of_dataset: bool
) -> FileSplits:
    """Return how files get their splits; a table beside pictures has a step for that."""
    options, rule, call = config.input, config.split, Call(command, typed_path(config.output.path))
    if options is None or options.detect == "none" or config.picture_folders:
        looks = options is None or options.detect is None
        return FileSplits(None if looks else "none", looks=looks, steps=looks, call=call)
    said = "" if named is None else f"output.split ({named})"
    if not said and rule is not None and rule.of is None and not split_of_dataset:
        said = "the rule of split"
    how = FileSplits(
        wanted_splits(options.splits), said, hasattr(options, "columns_differ"), config.output.split, call=call
    )
    return how if latest is None or said or how.wanted is not None else as_held(how, latest, rule)


def _of_picture_folders(config: Config) -> list[Step]:
    """Return the steps for a table that was found beside the pictures of folders."""
    folders = config.picture_folders
    named = tuple(name for name, rule in config.schema_.columns.items() if rule.image == "path")
    root = config.schema_.files_root
    begin = b"" if root is None else os.fsencode(os.path.join(config.base, root))
    if not folders or not named:
        return []
    limited = config.input is not None and config.input.limit is not None  # not all names are read
    return [*(() if limited else (UnnamedPictures(named, folders, begin),)), FolderSplits(named[0], folders)]


def _written(name: str, rule: ColumnConfig) -> Written | CellLists:
    if rule.is_list:
        return CellLists(name, replace(_rule(rule), as_=None))
    formats = (rule.format,) if isinstance(rule.format, str) else tuple(rule.format or ())
    brackets = rule.negative == "brackets"
    return Written(name, _rule(rule), rule.strip, rule.decimal, rule.thousands or "", formats, brackets)


def _nulls_of(config: Config, *, of_files: bool) -> list[Nulls]:
    """Return the steps for the nulls of columns of files, which are settled when these are read, or of the others."""
    rules = sorted(config.schema_.columns.items())
    chosen = [(name, rule) for name, rule in rules if rule.null != "absent" and (rule.file is not None) == of_files]
    return [_nulls(rule.name or name, rule.null) for name, rule in chosen if not rule.is_picture]


def _files(config: Config) -> tuple[Files, ...]:
    """Return the step that reads the files that columns name, if there are some; in a store files are not read."""
    rules = sorted(config.schema_.columns.items())
    names = tuple(rule.name or name for name, rule in rules if rule.names_files)
    pictures = tuple(rule.name or name for name, rule in rules if rule.image == "path")
    root = config.schema_.files_root
    if not names and root is not None:
        raise UsageError(
            f"schema.files_root: no column names files; say which: {Set('schema.columns.NAME.file', 'path')}"
        )
    if not names:
        return ()
    if root is not None:
        root = os.path.join(config.base, root)
        if is_missing_or_empty(os.fsencode(root)):
            raise UsageError(f"schema.files_root: {printable_path(root)}: no such folder, or it is empty")
    elif config.input is None:
        root = config.base  # data in memory are in no folder
    elif any(is_store_url(path) for path in config.input.paths):
        raise UsageError(
            f"schema.columns: files that a table in a store names ({quoted(names[0])}) are not read from there yet; "
            f"copy them here, and name their folder: {Set('schema.files_root', 'FOLDER')}"
        )
    return (Files(names, min(config.limits.field_bytes, config.limits.record_bytes), root, pictures),)


def _pictures(config: Config, check: Check) -> tuple[FromBase64 | Pictures, ...]:
    rules = sorted(config.schema_.columns.items())
    text = tuple(FromBase64(rule.name or name) for name, rule in rules if rule.image == "base64")
    names = tuple((rule.name or name, str(rule.null)) for name, rule in rules if rule.is_picture)
    noted = not config.pictures.changes_pictures
    return (*text, Pictures(names, _image_check(config, check), noted=noted)) if names else ()


def _picture_names(config: Config) -> tuple[str, ...]:
    return tuple(rule.name or name for name, rule in sorted(config.schema_.columns.items()) if rule.is_picture)


def _by_type(config: Config, check: Check) -> tuple[StepByType, ...]:
    """Return which columns are pictures and boxes by themselves, where the config does not say what they are."""
    rules = config.schema_.columns.items()
    declared = frozenset(rule.name or name for name, rule in rules if rule.image is not None or rule.as_ is not None)
    boxes = BoxesByType(declared, config.schema_.boxes == "clip", boxes_on=config.pictures.boxes_on)
    noted = not config.pictures.changes_pictures
    steps: list[StepByType] = [ExportedPictures(declared, _image_check(config, check), noted=noted)]
    if config.image is not None:
        level = check if check in DECODED else "structure"
        steps.append(ReadyByType(config.pictures, boxes, pixels_limit=config.limits.pixels, level=level))
    steps.append(boxes)
    pictures, options = _picture_names(config), config.input
    if options is not None and pictures:
        asked = (options.columns or (), options.exclude_columns)
        keep, exclude = (tuple(n for n in names if any(is_feature_of(one, n) for one in pictures)) for names in asked)
        steps.append(ChosenFeatures(pictures, keep, exclude))
    return tuple(steps)


def _image_check(config: Config, check: Check) -> ImageCheck:
    if check in DECODED and config.pictures.changes_pictures:
        check = "structure"  # the step that decodes them checks their pixels
    found = ImageCheck(check, pixels_limit=config.limits.pixels, by_key=False)
    kept = config.pictures.format == "keep"
    return found if kept else replace(found, formats=READABLE_FORMATS, loads_others=False)


def _nulls(column: str, null: str | Fill) -> Nulls:
    if not isinstance(null, Fill):
        return Nulls(column, null)
    finite = not isinstance(null.fill, float) or math.isfinite(null.fill)
    return Nulls(column, "fill", null.fill if finite else str(null.fill))  # JSON has no NaN


def _checks_of(config: Config) -> tuple[Duplicates | Leaks, ...]:
    checks: list[Duplicates | Leaks] = []
    duplicates, leaks = (None, None) if config.checks is None else (config.checks.duplicates, config.checks.leaks)
    if duplicates is not None:
        from ...transforms.checks.duplicates import Duplicates  # it takes pandas

        checks.append(Duplicates(tuple(duplicates.columns), duplicates.action))
    if leaks is not None:
        from ...transforms.checks.leaks import Leaks

        checks.append(Leaks(tuple(leaks.columns)))
    return tuple(checks)


def _counts_values(config: Config) -> bool:
    """Return whether values are counted as rows are encoded: each is in its split then, and none is left out later."""
    copied = config.input is not None and config.input.format == "tfrecord"
    dealt = config.split is not None and config.split.by == "exact"
    return config.statistics is not None and not (copied or dealt or _drops_records(config))


def _drops_records(config: Config) -> bool:
    duplicates = None if config.checks is None else config.checks.duplicates
    return duplicates is not None and duplicates.action == "drop"


def _refuse_pairs(config: Config) -> None:
    """Refuse values of keys that do not go together, whatever the source.

    Raises:
        UsageError: there are such.
    """
    in_turn, exact = config.output.order == "source", config.split is not None and not config.split.follows_source
    if in_turn and _seed_of_all(config) is not None:
        raise UsageError("output.order: source does not go with shuffle; leave one out")
    if in_turn and exact:
        raise UsageError(
            "split.by: exact deals some records last, so that a split does not follow the source throughout; leave "
            "order: source out, or split by: hash"
        )
    if exact and _drops_records(config):
        raise UsageError(
            "checks.duplicates.action: drop leaves records out after split.by: exact has counted them; report them, or "
            "split by: hash"
        )
    if config.output.compression == "gzip" and config.limits.record_bytes > RECORD_BYTES_LIMIT:
        raise UsageError(
            f"limits.record_bytes: {config.limits.record_bytes} is more than {RECORD_BYTES_LIMIT}, which is 1GiB, and "
            f"readers believe no longer record of a compressed file; write plain ones: output.compression=none"
        )


def _seed_of_all(config: Config) -> int | None:
    """Return the seed of a shuffle in two passes: a source that reads in a random order needs but one."""
    options = config.input
    if config.shuffle is None or (options is not None and FORMATS[options.format].load().is_shuffled):
        return None
    return config.shuffle.seed


def config_fingerprint(config: Config, steps: Sequence[Step] = ()) -> str:
    """Return `sha256:` and the digest of what the bytes of the dataset can depend on.

    In it: everything of `to_json` (defaults included, so that an explicit default changes nothing; paths as they
    are relative to `base`, so that a folder may be moved) but `runner`, `max_rejects`, `limits` and
    `output.path`, as JSON with sorted keys; the order of split fractions matters, so they are pairs.
    """
    document = config.to_json()
    for key in ("runner", "max_rejects", "limits", "accept_map"):
        del document[key]
    del document["output"]["path"]
    for name, rule in config.schema_.columns.items():  # beside a list of classes nulls may stay absent
        document["schema"]["columns"][name]["keeps_nulls"] = rule.keeps_nulls
    if config.split is not None and config.split.fractions is not None:
        document["split"]["fractions"] = list(config.split.fractions.items())
    if steps:
        document["map"] = [repr(step) for step in steps]
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
