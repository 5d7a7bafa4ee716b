"""Build the source and the encoder that a config describes."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...transforms.errors import UsageError
from ...transforms.format.encode.encode_rows import RowEncoder
from ...transforms.format.schema.schema import ColumnRule
from ...transforms.format.splits.splitter import DEFAULT_SPLIT
from ...transforms.format.tfrecord.scan import RECORD_BYTES_LIMIT
from ...transforms.format.wording.printable import printable_path, quoted
from ...transforms.pictures.check import DECODED, READABLE_FORMATS, ImageCheck
from ...transforms.recipe.picture_steps.boxes import BoxesByType
from ...transforms.recipe.picture_steps.chosen_features import ChosenFeatures, is_feature_of
from ...transforms.recipe.picture_steps.pictures import ENCODED, ExportedPictures, Pictures
from ...transforms.recipe.picture_steps.ready import ReadyByType
from ...transforms.recipe.source import with_steps
from ...transforms.recipe.step import Step, StepByType
from ...transforms.recipe.steps.columns import Constants, Rename
from ...transforms.recipe.steps.expression import columns_in, read_expression
from ...transforms.recipe.steps.files import Files
from ...transforms.recipe.steps.label import Label
from ...transforms.recipe.steps.nulls import Nulls
from ...transforms.recipe.steps.where import Where
from ...transforms.sources.contract.call import Call, typed_path
from ...transforms.sources.contract.source import Frozen, Source
from ...transforms.sources.files.below_root import is_missing_or_empty
from ...transforms.sources.image_tables.folder_splits import FolderSplits
from ...transforms.sources.image_tables.unnamed import UnnamedPictures
from ...transforms.sources.registry.format import keep_step
from ...transforms.sources.registry.formats import FORMATS
from ...transforms.sources.registry.options import Options
from ...transforms.sources.registry.settings import Limits, Settings
from ...transforms.sources.text.written import Written
from ...transforms.statistics.observe import CountValues
from ...transforms.stores.common.store_url import is_store_url
from ..config.model import ColumnConfig, Config, Fill, SchemaConfig
from .splitters import splitter_of

if TYPE_CHECKING:
    from ...transforms.checks.duplicates import Duplicates
    from ...transforms.checks.leaks import Leaks
    from ...transforms.format.flow.observers import Observer


def column_rules(config: Config) -> dict[str, ColumnRule]:
    rules = {name: _rule(rule) for name, rule in config.schema_.columns.items()}
    rules |= {name: ColumnRule("string") for name, rule in config.schema_.columns.items() if rule.is_written}
    rules |= {
        name: ColumnRule("string", nullable=rule.nullable)
        for name, rule in config.schema_.columns.items()
        if rule.names_files
    }
    return {name: rule for name, rule in rules.items() if rule != ColumnRule()}


def _rule(rule: ColumnConfig) -> ColumnRule:
    return ColumnRule(rule.type, rule.as_, rule.unit, rule.timezone, rule.nullable)


def source_of(config: Config, command: str = "convert") -> Source:
    """Return the source that reads `config.input`; `command` is the call that an error of it proposes."""
    options = config.input
    if options is None:
        raise UsageError("input: is missing; say what to read: input: {paths: [data/*.csv]}")
    found = FORMATS[options.format].load()
    for key in found.refused_keys if found.has_rows else (*found.refused_keys, *_OF_ROWS):
        if _given(config, options, key):
            raise UsageError(f"{key}: does not go with {options.format} yet; leave the key out")
    settings = _settings(config, command)
    typed = [name for name in settings.rules if not config.schema_.columns[name].names_files]
    if typed and not found.takes_types:
        name = quoted(typed[0])
        raise UsageError(f"schema.columns: types do not go with {options.format} yet; leave those of {name} out")
    source = found.source(_columns_to_read(options, config), settings)
    return with_recipe(source, config) if found.has_rows else source


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


def _settings(config: Config, command: str) -> Settings:
    return Settings(
        config.base,
        rules=column_rules(config),
        paths=frozenset(name for name, rule in config.schema_.columns.items() if rule.names_files),
        infer=config.schema_.infer,
        seed=None if config.shuffle is None else config.shuffle.seed,
        limits=_limits(config),
        split=config.output.split if "split" in config.output.model_fields_set else None,
        default_split=None if config.split_of_dataset else config.output.split,
        looked_at=() if config.split is None else config.split.looked_at,
        splits_anew=config.split is not None and config.split.of is None and not config.split_of_dataset,
        detected=config.detected,
        call=Call(command, typed_path(config.output.path)),
        pictures=config.pictures,
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
    return config.steps if section == "map" else getattr(config, section)


def with_recipe(source: Source, config: Config) -> Source:
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
            classes = None if rule.label is True else rule.label
            steps.append(Label.of(rule.name or name, classes, nulls=rule.keeps_nulls))
    steps += [*_files(config), *_nulls_of(config, of_files=True), *_pictures(config)]
    limit = None if options is None else options.limit
    return with_steps(source, [*steps, *config.steps], limit, column_rules(config), _by_type(config))


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


def _written(name: str, rule: ColumnConfig) -> Written:
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
        raise UsageError("schema.files_root: no column names files; say which: --set schema.columns.NAME.file=path")
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
            f"copy them here, and name their folder: --set schema.files_root=FOLDER"
        )
    return (Files(names, min(config.limits.field_bytes, config.limits.record_bytes), root, pictures),)


def _pictures(config: Config) -> tuple[Pictures, ...]:
    rules = sorted(config.schema_.columns.items())
    names = tuple((rule.name or name, str(rule.null)) for name, rule in rules if rule.is_picture)
    return (Pictures(names, _image_check(config)),) if names else ()


def _picture_names(config: Config) -> tuple[str, ...]:
    return tuple(rule.name or name for name, rule in sorted(config.schema_.columns.items()) if rule.is_picture)


def _by_type(config: Config) -> tuple[StepByType, ...]:
    """Return which columns are pictures and boxes by themselves, where the config does not say what they are."""
    rules = config.schema_.columns.items()
    declared = frozenset(rule.name or name for name, rule in rules if rule.image is not None or rule.as_ is not None)
    boxes = BoxesByType(declared, config.schema_.boxes == "clip")
    steps: list[StepByType] = [ExportedPictures(declared, _image_check(config))]
    if config.image is not None:
        level = config.picture_check if config.picture_check in DECODED else "structure"
        steps.append(ReadyByType(config.pictures, boxes, pixels_limit=config.limits.pixels, level=level))
    steps.append(boxes)
    pictures, options = _picture_names(config), config.input
    if options is not None and pictures:
        asked = (options.columns or (), options.exclude_columns)
        keep, exclude = (tuple(n for n in names if any(is_feature_of(one, n) for one in pictures)) for names in asked)
        steps.append(ChosenFeatures(pictures, keep, exclude))
    return tuple(steps)


def _image_check(config: Config) -> ImageCheck:
    level = config.picture_check
    if level in DECODED and config.pictures.changes_pictures:
        level = "structure"  # the step that decodes them checks their pixels
    check = ImageCheck(level, pixels_limit=config.limits.pixels, by_key=False)
    kept = config.pictures.format == "keep"
    return check if kept else replace(check, formats=READABLE_FORMATS, loads_others=False)


def _nulls(column: str, null: str | Fill) -> Nulls:
    if not isinstance(null, Fill):
        return Nulls(column, null)
    finite = not isinstance(null.fill, float) or math.isfinite(null.fill)
    return Nulls(column, "fill", null.fill if finite else str(null.fill))  # JSON has no NaN


def encoder_of(config: Config, frozen: Frozen) -> RowEncoder:
    """Return the encoder of what the source froze, with the config's split and limits."""
    _refuse_check_of_nothing(config, frozen)
    if config.split is not None and config.split.of is None and frozen.splits and not config.split_of_dataset:
        raise UsageError(_split_twice(config, frozen))
    if config.output.compression == "gzip" and config.limits.record_bytes > RECORD_BYTES_LIMIT:
        raise UsageError(
            f"limits.record_bytes: {config.limits.record_bytes} is more than {RECORD_BYTES_LIMIT}, which is 1GiB, and "
            f"readers believe no longer record of a compressed file; write plain ones: output.compression=none"
        )
    for check in checks_of(config):
        check.check(frozen.schema)
    return RowEncoder(
        frozen.schema,
        splitter_of(config, frozen),
        splits_by_code=frozen.splits,
        record_bytes_limit=config.limits.record_bytes,
        field_bytes_limit=_field_bytes(config),
        observers=observers_of(config),
    )


def _refuse_check_of_nothing(config: Config, frozen: Frozen) -> None:
    form = None if config.input is None else config.input.format
    if config.picture_check == "structure" or form == "images":
        return
    copied = form == "tfrecord"
    if copied or not any(feature.name.endswith(f"/{ENCODED}") for feature in frozen.schema):
        why = "existing records are copied as they are" if copied else "there are no pictures"
        raise UsageError(f"input.check is {config.picture_check}, and {why}; leave the key out")


def checks_of(config: Config) -> tuple[Duplicates | Leaks, ...]:
    checks: list[Duplicates | Leaks] = []
    duplicates, leaks = (None, None) if config.checks is None else (config.checks.duplicates, config.checks.leaks)
    if duplicates is not None:
        from ...transforms.checks.duplicates import Duplicates  # it takes pandas

        checks.append(Duplicates(tuple(duplicates.columns), duplicates.action))
    if leaks is not None:
        from ...transforms.checks.leaks import Leaks

        checks.append(Leaks(tuple(leaks.columns)))
    return tuple(checks)


def observers_of(config: Config) -> tuple[Observer, ...]:
    """Return all that observes the rows of a config: its checks, what was given in Python, and what counts values."""
    observers: list[Observer] = [*checks_of(config), *config.observers]
    if config.statistics is not None and _passes_once(config):
        observers.append(CountValues(config.statistics))
    return tuple(observers)


def _passes_once(config: Config) -> bool:
    copied = config.input is not None and config.input.format == "tfrecord"
    dealt = config.split is not None and config.split.by == "exact"
    dropped = config.checks is not None and any(getattr(one, "action", "") == "drop" for one in checks_of(config))
    return not (copied or dealt or dropped)


def spills(config: Config) -> bool:
    """Return whether all records are shuffled, in two passes: a source that reads in a random order needs but one."""
    options = config.input
    if config.shuffle is None or (options is not None and FORMATS[options.format].load().is_shuffled):
        return False
    if config.output.order == "source":
        raise UsageError("output.order: source does not go with shuffle; leave one out")
    return True


def _split_twice(config: Config, frozen: Frozen) -> str:
    """Return what to do about a rule for a source that is in splits."""
    known = ", ".join(frozen.splits)
    options = config.input
    if options is not None:
        text = FORMATS[options.format].load().split_twice(options, frozen)
        if text is not None:
            return f"split: the folders split the source already ({known}); {text}"
    cut = DEFAULT_SPLIT if DEFAULT_SPLIT in frozen.splits else frozen.splits[0]
    return f"split: the source is in splits already ({known}); leave split out, or cut one: --set split.of={cut}"


def _field_bytes(config: Config) -> int:
    limits = _limits(config)
    return limits.field_bytes if config.input is None else FORMATS[config.input.format].load().field_bytes(limits)
