"""Make the conversion that a config describes: the one place that reads a config and knows sources and steps."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from ...transforms.errors import InputError, UsageError
from ...transforms.format.tfrecord.scan import RECORD_BYTES_LIMIT
from ...transforms.format.wording.hints import Set
from ...transforms.format.wording.printable import printable, printable_path, quoted
from ...transforms.inputs.contract.selection import Call, FileSplits, typed_path
from ...transforms.inputs.contract.source import Source
from ...transforms.inputs.files.below_root import is_missing_or_empty
from ...transforms.inputs.files.file_names import FORMATS
from ...transforms.observers.tally import CountValues
from ...transforms.pictures.facts import Check
from ...transforms.pictures.structure import DECODED, READABLE_FORMATS, ImageCheck
from ...transforms.recipe.function import functions_in
from ...transforms.recipe.source import with_steps
from ...transforms.recipe.step import Step, StepByType
from ...transforms.recipe.steps.beside_tables import Files, SplitByFolder, UnnamedPictures
from ...transforms.recipe.steps.boxes import BoxesByType, BoxFormat
from ...transforms.recipe.steps.columns import Constants, Lists, Nulls, NullWords, Rename
from ...transforms.recipe.steps.expression import columns_in, read_expression
from ...transforms.recipe.steps.label import ClassesOfFiles, Flags, Label
from ...transforms.recipe.steps.pictures import ChosenFeatures, ExportedPictures, FromBase64, Pictures, is_feature_of
from ...transforms.recipe.steps.preprocess_pictures import PreprocessByType
from ...transforms.recipe.steps.where import Where
from ...transforms.sources.annotations.source import KINDS
from ...transforms.sources.registry.format import keep_step
from ...transforms.sources.registry.options import Options, TableOptions
from ...transforms.sources.registry.settings import Limits, Settings
from ...transforms.sources.text.cell_lists import CellLists
from ...transforms.sources.text.written import Written
from ...transforms.stores.store_url import is_store_url
from ..config.model import ChecksConfig, ColumnConfig, Config, Fill, SchemaConfig
from ..config.remembered import remembered
from .conversion import Conversion
from .of_dataset import as_held, dataset_in, of_dataset, wanted_splits

if TYPE_CHECKING:
    from ...transforms.format.batches.observers import Observer
    from ...transforms.format.manifest.manifest import Manifest
    from ...transforms.observers.checks import Duplicates, Leaks


def conversion_of(
    config: Config,
    command: Literal["convert", "append", "merge"] = "convert",
    *,
    source: Source | None = None,
    steps: Sequence[Step] = (),
    observers: Sequence[Observer] = (),
    check: Check | None = None,
    writes: bool = False,
) -> Conversion:
    """Return the conversion that a config describes.

    `source` reads data that are given in Python, without a recipe, and `check` is how far pictures in it are checked.
    `steps` are the user's own, after those of the config, and `observers` see the rows beside those of the config.
    `writes` tells the lines of the summary that the dataset will be there.
    The dataset decides what an append leaves open.

    Raises:
        UsageError: keys do not go together, with the format, or with the dataset of an append.
        TargetError: there is no dataset to append to, or none that takes an append.
    """
    wanted, by_dataset, functions = config.output.wanted_split, False, functions_in(steps)
    latest = dataset_in(config.output.path) if command == "append" else None
    if latest is not None:
        config, by_dataset = of_dataset(config, latest, functions)
    options, columns = config.input, config.schema_.columns.values()
    form = None if options is None else FORMATS[options.format].load()
    level: Check = check or ("structure" if options is None else options.check)
    shuffle = None if config.shuffle is None or (form is not None and form.is_shuffled) else config.shuffle.seed
    _refuse(config, steps, in_two_passes=shuffle is not None)
    call = Call(command, typed_path(config.output.path), config.given, writes)
    settings, checks = _settings(config, call, wanted, latest, by_dataset=by_dataset), _checks_of(config.checks)
    counted = () if config.statistics is None or config.counts_shards else (CountValues(config.statistics),)
    made = Conversion(
        name=config.name,
        source=_source_of(config, settings, steps, level, source),
        output=config.output,
        input=options,
        base=config.base,
        split=config.split,
        wanted_split=wanted,
        split_of_dataset=by_dataset,
        shuffle=shuffle,
        checks=checks,
        observers=(*checks, *observers, *counted),
        limits=settings.limits,
        max_rejects=config.max_rejects,
        statistics=config.statistics,
        image={} if config.image is None else config.image.stated(),
        picture_check=level,
        named=config.named,
        by_content=not any(rule.file is not None for rule in columns),
        names_pictures=any(rule.image == "path" for rule in columns),
        runner=config.runner,
        detected=config.detected,
        fingerprint=config_fingerprint(config, steps),
        remembered=remembered(config, functions) if latest is None else {},
    )
    accepted = functions if config.accept_map else None
    return made if latest is None else _of_append(made, latest, config, accepted)


def _of_append(
    made: Conversion,
    latest: Manifest,
    config: Config,
    accepted: Sequence[Mapping[str, str]] | None,
) -> Conversion:
    """Return the conversion of an append, which remembers what its dataset does, but for functions `accepted` now."""
    held = latest.conversion
    kept = {key: value for key, value in held.items() if key != "map" or accepted is None}
    kept |= {"map": accepted} if accepted else {}
    known = {feature.name for feature in latest.schema or ()}
    rules = remembered(config, []).get("schema", {}).get("columns", {})
    new = {name: one for name, one in rules.items() if name in config.named and one.get("name", name) not in known}
    if new:
        schema = kept.get("schema", {})
        kept["schema"] = schema | {"columns": schema.get("columns", {}) | new}
    constants = config.schema_.constants
    named = frozenset(rule.name or name for name, rule in config.schema_.columns.items() if name in config.named)
    others = None if constants == held.get("schema", {}).get("constants", {}) else json.dumps(constants, sort_keys=True)
    return replace(made, held=held, remembered=kept, constants=others, declared=named)


def _settings(config: Config, call: Call, wanted: str | None, latest: Manifest | None, *, by_dataset: bool) -> Settings:
    """Return what a source follows beside its options; `by_dataset` says that the rule of splits is the dataset's."""
    options, rule = config.input, config.split
    anew = rule is not None and rule.of is None and not by_dataset
    if options is None or options.detect == "none":
        looks = options is None or options.detect is None
        splits = FileSplits(None if looks else "none", looks=looks, pictures=() if looks else None, call=call)
    else:
        said = "the rule of split" if wanted is None and anew else "" if wanted is None else f"output.split ({wanted})"
        known, may_differ = wanted_splits(options.splits), isinstance(options, TableOptions)
        pictures, root = config.picture_folders or None, config.schema_.files_root
        begin = "" if pictures is None or root is None else os.path.join(config.base, root)
        splits = FileSplits(
            known, said, may_differ, config.output.split, pictures=pictures, begin=begin, ignored=tuple(options.ignore),
            call=call,
        )  # fmt: skip
        if latest is not None and not said and known is None:
            splits = as_held(splits, latest, has_rule=rule is not None)
    return Settings(
        config.base,
        rules=config.schema_.rules,
        paths=frozenset(name for name, rule in config.schema_.columns.items() if rule.names_files),
        infer=config.schema_.infer,
        seed=None if config.shuffle is None else config.shuffle.seed,
        limits=Limits(**config.limits.model_dump()),
        split=wanted,
        default_split=None if by_dataset else config.output.split,
        looked_at=() if rule is None else rule.looked_at,
        splits_anew=anew,
        detected=config.detected,
        call=call,
        pictures=config.pictures,
        splits=splits,
    )


_OF_ROWS: Final = ("image", *(f"schema.{key}" for key in SchemaConfig.model_fields if key != "infer"))
"""Keys that change rows: they do not go with a format that passes records on."""


def _refuse(config: Config, steps: Sequence[Step], *, in_two_passes: bool) -> None:
    """Refuse keys that do not go together, or with the format unless they are at their defaults.

    Raises:
        UsageError: there are such.
    """
    in_turn, exact = config.output.order == "source", config.split is not None and not config.split.follows_source
    if in_turn and in_two_passes:
        raise UsageError("output.order: source does not go with shuffle; leave one out")
    if in_turn and exact:
        raise UsageError(
            "split.by: exact deals some records last, so that a split does not follow the source throughout; leave "
            "order: source out, or split by: hash"
        )
    if exact and config.drops_records:
        raise UsageError(
            "checks.duplicates.action: drop leaves records out after split.by: exact has counted them; report them, or "
            "split by: hash"
        )
    if config.output.compression == "gzip" and config.limits.record_bytes > RECORD_BYTES_LIMIT:
        raise UsageError(
            f"limits.record_bytes: {config.limits.record_bytes} is more than {RECORD_BYTES_LIMIT}, which is 1GiB, and "
            f"readers believe no longer record of a compressed file; write plain ones: output.compression=none"
        )
    if config.input is None:
        return
    found, default = FORMATS[config.input.format].load(), SchemaConfig()
    given = {"map": steps, "image": config.image, "checks": config.checks} | {
        f"input.{key}": value for key, value in config.input
    }
    given |= {f"schema.{key}": value for key, value in config.schema_ if value != getattr(default, key)}
    for key in found.refused_keys if found.has_rows else (*found.refused_keys, *_OF_ROWS):
        if given.get(key):
            raise UsageError(f"{key}: does not go with {config.input.format} yet; leave the key out")


def _source_of(config: Config, settings: Settings, own: Sequence[Step], check: Check, given: Source | None) -> Source:
    """Return the source with its recipe: the steps of the format, of columns, of pictures, and the user's `own`."""
    options, columns = config.input, sorted(config.schema_.columns.items())
    pictures = tuple((rule.name or name, str(rule.null)) for name, rule in columns if rule.is_picture)
    paths = tuple(name for name, rule in columns if rule.image == "path")
    first = _of_pictures_beside(config, settings, paths) if paths and options is not None else []
    if options is not None:
        form, read = FORMATS[options.format].load(), _columns_to_read(options, [name for name, _ in pictures])
        typed = [name for name in settings.rules if name not in settings.paths]
        if typed and not form.takes_types:
            name = quoted(typed[0])
            raise UsageError(f"schema.columns: types do not go with {options.format} yet; leave those of {name} out")
        given = given or form.source(read, settings)
        if not form.has_rows:
            return given
        first += form.steps(read)
    elif given is None:
        raise UsageError("input: is missing; say what to read: input: {paths: [data/*.csv]}")
    found = _image_check(check, settings)
    steps = [*first, *_steps_of_columns(config, columns)]
    if pictures:
        steps.append(Pictures(pictures, found, noted=not settings.pictures.changes_pictures))
    last = _by_type(config, settings, check, found, [name for name, _ in pictures])
    return with_steps(given, [*steps, *own], None if options is None else options.limit, settings.rules, last)


def _columns_to_read(options: Options, pictures: Sequence[str]) -> Options:
    """Return options by which a source reads the columns of `where` too; a step leaves them out again.

    Features of pictures are none of its columns.
    """
    changes: dict[str, Any] = {}
    for key in ("columns", "exclude_columns"):
        names = getattr(options, key) or []
        changes[key] = [name for name in names if not any(is_feature_of(picture, name) for picture in pictures)]
    wanted = () if options.where is None else columns_in(read_expression(options.where))
    changes["columns"] = None if options.columns is None else list(dict.fromkeys([*changes["columns"], *wanted]))
    changes["exclude_columns"] = [name for name in changes["exclude_columns"] if name not in wanted]
    return options.model_copy(update={key: value for key, value in changes.items() if value != getattr(options, key)})


def _steps_of_columns(config: Config, columns: Sequence[tuple[str, ColumnConfig]]) -> list[Step]:
    """Return the steps that a config gives columns, in the order in which rows pass them."""
    options, features = config.input, [(rule.name or name, rule) for name, rule in columns]
    taken = "" if options is None else FORMATS[options.format].load().takes_null_words
    words = [] if taken == "all" else [(name, rule.nulls) for name, rule in columns if rule.nulls]
    steps: list[Step] = [NullWords(*one, may_be_text=taken == "text") for one in words]
    steps += [_written(name, rule) for name, rule in columns if rule.is_written]
    steps += [Lists(name, rule.length, _in_json(rule.null_item)) for name, rule in columns if rule.holds_lists]
    if options is not None and options.where is not None:
        looked_at = columns_in(read_expression(options.where))
        gone = [name for name in options.exclude_columns if name in looked_at]
        steps += [Where(options.where), *keep_step(options.model_copy(update={"exclude_columns": gone}))]
    names = tuple((name, rule.name) for name, rule in columns if rule.name is not None)
    steps += [Rename(names)] if names else []
    asked = [(name, rule) for name, rule in features if rule.settles_nulls]
    nulls = [(rule.file is not None, _nulls(name, rule.null, rule.length)) for name, rule in asked]
    steps += [step for of_file, step in nulls if not of_file]
    steps += [Constants.of(config.schema_.constants)] if config.schema_.constants else []
    for name, rule in features:
        if rule.label:
            classes = None if isinstance(rule.label, bool) else rule.label
            steps.append(Label.of(name, classes, nulls=rule.keeps_nulls))
    steps += [Flags(name, tuple(names_of)) for name, names_of in config.schema_.classes.items()]
    files = tuple(name for name, rule in features if rule.names_files)
    if files or config.schema_.files_root is not None or config.schema_.files_suffix is not None:
        steps.append(_files(config, files, tuple(name for name, rule in features if rule.image == "path")))
    steps += [step for of_file, step in nulls if of_file]
    return [*steps, *(FromBase64(name) for name, rule in features if rule.image == "base64")]


def _of_pictures_beside(config: Config, settings: Settings, named: tuple[str, ...]) -> list[Step]:
    """Return the steps for a table whose columns name pictures: of their folders, if it was found beside them.

    Pictures that older rows name are none that no row names: an append of a table alone counts none.
    """
    folders, root, suffix = config.picture_folders, config.schema_.files_root, config.schema_.files_suffix or ""
    begin = "" if root is None else os.path.join(config.base, root)
    limited = config.input is not None and config.input.limit is not None  # not all names are read
    all_named = not limited and (folders or settings.call.command != "append")
    unnamed = [UnnamedPictures(named, folders, os.fsencode(begin), suffix)] if all_named else []
    by_folder = folders and settings.splits.wanted in (None, "names")
    return [*unnamed, *([SplitByFolder(named[0])] if by_folder else [])]


def _written(name: str, rule: ColumnConfig) -> Written | CellLists:
    if rule.is_list:
        return CellLists(name, replace(rule.declared, as_=None), nulls=rule.null_item is not None)
    formats = (rule.format,) if isinstance(rule.format, str) else tuple(rule.format or ())
    brackets = rule.negative == "brackets"
    bools = (tuple(rule.true_values), tuple(rule.false_values))
    return Written(
        name, rule.declared, rule.strip, rule.decimal, rule.thousands or "", formats, brackets, bools, rule.escapes
    )


def _nulls(column: str, null: str | Fill, length: int | None) -> Nulls:
    if not isinstance(null, Fill):
        return Nulls(column, null, length=length)
    return Nulls(column, "fill", _in_json(null.fill))


T = TypeVar("T")


def _in_json(value: T) -> T | str:
    """Return a value with text for a number that JSON has not."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _files(config: Config, names: tuple[str, ...], pictures: tuple[str, ...]) -> Files:
    """Return the step that reads the files that columns name; in a store files are not read."""
    root, suffix = config.schema_.files_root, config.schema_.files_suffix
    shown = printable_path(root) if root is not None and config.picture_folders else "schema.files_root"
    if not names:
        key = "files_root" if root is not None else "files_suffix"
        raise UsageError(f"schema.{key}: no column names files; say which: {Set('schema.columns.NAME.file', 'path')}")
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
    most = min(config.limits.field_bytes, config.limits.record_bytes)
    return Files(names, most, root, pictures, suffix or "", shown)


def _image_check(level: Check, settings: Settings) -> ImageCheck:
    if level in DECODED and settings.pictures.changes_pictures:
        level = "structure"  # the step that decodes them checks their pixels
    found = ImageCheck(level, pixels_limit=settings.limits.pixels, by_key=False)
    kept = settings.pictures.format == "keep"
    return found if kept else replace(found, formats=READABLE_FORMATS, loads_others=False)


def _by_type(
    config: Config, settings: Settings, level: Check, found: ImageCheck, pictures: Sequence[str]
) -> tuple[StepByType, ...]:
    """Return which columns are pictures and boxes by themselves, where the config does not say what they are."""
    options, rules = config.input, config.schema_.columns.items()
    declared = frozenset(rule.name or name for name, rule in rules if rule.image is not None or rule.as_ is not None)
    made = settings.pictures
    form = _box_format(config.schema_.box_format, None if options is None else options.format)
    looks = options is None or options.detect is None
    clips = config.schema_.boxes == "clip"
    boxes = BoxesByType(declared, clips, boxes_on=made.boxes_on, form=form, named=looks)
    steps: list[StepByType] = [ExportedPictures(declared, found, noted=not made.changes_pictures)]
    if looks:
        steps.insert(0, ClassesOfFiles(frozenset(name for name, rule in rules if rule.label or rule.type or rule.as_)))
    if config.image is not None:
        decoded: Check = level if level in DECODED else "structure"
        steps.append(PreprocessByType(made, boxes, pixels_limit=settings.limits.pixels, level=decoded))
    steps.append(boxes)
    if options is not None and pictures:
        asked = (options.columns or (), options.exclude_columns)
        keep, exclude = (tuple(n for n in names if any(is_feature_of(one, n) for one in pictures)) for names in asked)
        steps.append(ChosenFeatures(tuple(pictures), keep, exclude))
    return tuple(steps)


def _box_format(asked: BoxFormat, kind: str | None) -> BoxFormat | None:
    if kind not in KINDS:
        return asked
    if asked != "xywh":
        raise UsageError(
            f"schema.box_format: files of {kind} say themselves what boxes are; leave the key out, or "
            f"append with {Set('schema.box_format', 'xywh')}"
        )
    return None


def _checks_of(asked: ChecksConfig | None) -> tuple[Duplicates | Leaks, ...]:
    checks: list[Duplicates | Leaks] = []
    if asked is not None and asked.duplicates is not None:
        from ...transforms.observers.checks import Duplicates  # it takes pandas

        checks.append(Duplicates(tuple(asked.duplicates.columns), asked.duplicates.action))
    if asked is not None and asked.leaks is not None:
        from ...transforms.observers.checks import Leaks

        checks.append(Leaks(tuple(asked.leaks.columns)))
    return tuple(checks)


def _digest_of(path: str, shown: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{printable_path(shown)}: cannot be read: {printable(str(error.strerror))}") from error


def config_fingerprint(config: Config, steps: Sequence[Step] = ()) -> str:
    """Return `sha256:` and the digest of what the bytes of the dataset can depend on.

    In it: everything of `to_json` (defaults included, so that an explicit default changes nothing; paths as they
    are relative to `base`, so that a folder may be moved; of keys what is in their file) but `runner`, `max_rejects`,
    `limits` and `output.path`, as JSON with sorted keys; the order of split fractions matters, so they are pairs.
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
    keys = document["input"].get("drop") if document.get("input") else None
    if keys is not None:
        document["input"]["drop"] = _digest_of(os.path.join(config.base, keys), keys)
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
