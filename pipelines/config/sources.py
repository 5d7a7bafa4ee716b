"""Build the source and the encoder that a config describes."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, assert_never

from ...transforms.errors import UsageError
from ...transforms.format.encode.encode_rows import RowEncoder
from ...transforms.format.encode.splits import SplitRule
from ...transforms.format.schema.schema import ColumnRule
from ...transforms.format.tfrecord.scan import RECORD_BYTES_LIMIT
from ...transforms.recipe.columns import Constants, Rename
from ...transforms.recipe.partitions import Partitions
from ...transforms.recipe.recipe import Recipe
from ...transforms.recipe.source import RecipeSource
from ...transforms.recipe.step import Step
from ...transforms.sources.contract.call import Call, typed_path
from ...transforms.sources.contract.selection import Selection
from ...transforms.sources.contract.source import Frozen, Source
from .model import Config, CsvInput, ImagesInput, NumpyInput, ParquetInput, SplitConfig, TfrecordInput

if TYPE_CHECKING:
    from ...transforms.sources.tfrecord.source import TfrecordSource


def column_rules(config: Config) -> dict[str, ColumnRule]:
    """Return what `schema.columns` declares, by column."""
    return {
        name: ColumnRule(rule.type, rule.as_, rule.unit, rule.timezone, rule.nullable)
        for name, rule in config.schema_.columns.items()
        if rule.model_dump(exclude={"name"}, exclude_none=True)
    }


def source_of(config: Config, command: str = "convert") -> Source:
    """Return the source that reads `config.input`; `command` is the call that an error of it proposes.

    Raises:
        UsageError: there is no input, or a key does not go with it.
    """
    section = config.input
    if section is None:
        raise UsageError("input: is missing; say what to read: input: {paths: [data/*.csv]}")
    if isinstance(section, CsvInput):
        return with_recipe(_csv_source(section, config, command), config)
    if isinstance(section, ParquetInput):
        return with_recipe(_parquet_source(section, config, command), config)
    if isinstance(section, ImagesInput):
        return with_recipe(_image_source(section, config), config)
    if isinstance(section, NumpyInput):
        return with_recipe(_numpy_source(section, config, command), config)
    if isinstance(section, TfrecordInput):
        return tfrecord_source(section, config)
    assert_never(section)


def with_recipe(source: Source, config: Config) -> Source:
    """Return a source with the recipe of a config: columns of folders, other names, constants, the user's own steps.

    Where there is none, it is the source itself.
    """
    section, steps = config.input, list[Step]()
    if isinstance(section, CsvInput | ParquetInput) and section.partitions is None:
        selection = Selection(_columns(section), tuple(section.exclude_columns))
        steps.append(Partitions(tuple(section.paths), selection))
    names = {name: rule.name for name, rule in config.schema_.columns.items() if rule.name is not None}
    if names:
        steps.append(Rename(tuple(sorted(names.items()))))
    if config.schema_.constants:
        steps.append(Constants.of(config.schema_.constants))
    steps += config.steps
    limit = None if section is None else section.limit
    return RecipeSource(source, Recipe(tuple(steps)), limit) if steps or limit is not None else source


def encoder_of(config: Config, frozen: Frozen) -> RowEncoder:
    """Return the encoder of what the source froze, with the config's split and limits.

    Raises:
        UsageError: the config splits what the source's folders split already, or allows records that cannot be read.
        SchemaError: the key of the split is not a scalar feature.
    """
    if config.split is not None and frozen.splits:
        raise UsageError(_split_twice(config, config.split, frozen))
    if config.output.compression == "gzip" and config.limits.record_bytes > RECORD_BYTES_LIMIT:
        raise UsageError(
            f"limits.record_bytes: {config.limits.record_bytes} is more than {RECORD_BYTES_LIMIT}, which is 1GiB, and "
            f"readers believe no longer record of a compressed file; write plain ones: output.compression=none"
        )
    if config.split is None:
        rule = SplitRule.fixed(config.output.split)
    else:
        rule = SplitRule.by_fraction(config.split.fractions, config.split.key)
    return RowEncoder(
        frozen.schema,
        rule,
        splits_by_code=frozen.splits,
        record_bytes_limit=config.limits.record_bytes,
        field_bytes_limit=_field_bytes(config),
        observers=config.observers,
    )


def _split_twice(config: Config, split: SplitConfig, frozen: Frozen) -> str:
    """Return what to do about fractions of a source that is in splits: of images, cut one folder, append the others."""
    known = ", ".join(frozen.splits)
    section = config.input
    if not isinstance(section, ImagesInput):
        return f"split: the source is in splits already ({known}); leave split out"
    root = section.paths[0] if len(section.paths) == 1 else "FOLDER"
    if os.path.isdir(os.path.join(config.base, root)):
        root = typed_path(os.path.join(config.base, root))
    cut, *others = sorted(frozen.splits, key=lambda name: (name != "train", name))
    fractions = ",".join(f"{name}={share}" for name, share in split.fractions.items())
    to = f"-o {shlex.quote(typed_path(config.output.path))}"
    lines = [f"shardmill convert {shlex.quote(f'{root}/{cut}')} {to} --split-fractions {shlex.quote(fractions)}"]
    lines += [f"shardmill append {shlex.quote(f'{root}/{name}')} {to} --split {shlex.quote(name)}" for name in others]
    return (
        f"split: the folders split the source already ({known}); leave split out, or set "
        f"input.layout={'label' if frozen.labels else 'flat'}; or cut one folder, and append the others:\n  "
        + "\n  ".join(lines)
    )


def _field_bytes(config: Config) -> int:
    """Return the largest value of one feature: an image and an array have limits of their own."""
    if isinstance(config.input, ImagesInput):
        return config.limits.image_bytes
    if isinstance(config.input, NumpyInput):
        return config.limits.record_bytes
    return config.limits.field_bytes


def _csv_source(section: CsvInput, config: Config, command: str) -> Source:
    from ...transforms.sources.csv.parse import CsvLimits
    from ...transforms.sources.csv.source import CsvSource

    return CsvSource(
        tuple(section.paths),
        config.base,
        delimiter=section.delimiter,
        quote=section.quote,
        header=section.header,
        names=None if section.names is None else tuple(section.names),
        columns=_columns(section),
        exclude=tuple(section.exclude_columns),
        encoding=section.encoding,
        null_values=tuple(section.null_values),
        infer=config.schema_.infer,
        rules=column_rules(config),
        limits=CsvLimits(config.limits.field_bytes, config.limits.record_bytes, config.limits.columns),
        partitions=section.partitions or "read",
        check_header="header" not in section.model_fields_set,
        detected=config.detected,
        call=_call(config, command),
    )


def _parquet_source(section: ParquetInput, config: Config, command: str) -> Source:
    from ...transforms.sources.parquet.source import ParquetSource

    return ParquetSource(
        tuple(section.paths),
        config.base,
        columns=_columns(section),
        exclude=tuple(section.exclude_columns),
        checksums=section.checksums,
        rules=column_rules(config),
        partitions=section.partitions or "read",
        call=_call(config, command),
    )


def _image_source(section: ImagesInput, config: Config) -> Source:
    from ...transforms.sources.images.source import ImageSource

    _refuse("schema.columns", config.schema_.columns, "images")
    return ImageSource(
        tuple(section.paths),
        config.base,
        layout=section.layout,
        check=section.check,
        label_offset=section.label_offset,
        sha256=section.sha256,
        formats=tuple(section.formats),
        columns=_columns(section),
        exclude=tuple(section.exclude_columns),
        seed=None if config.shuffle is None else config.shuffle.seed,
        pixels_limit=config.limits.pixels,
        bytes_limit=config.limits.image_bytes,
        ignore=tuple(section.ignore),
    )


def _numpy_source(section: NumpyInput, config: Config, command: str) -> Source:
    from ...transforms.sources.numpy.source import NumpySource

    return NumpySource(
        tuple(section.paths),
        config.base,
        rows=section.rows,
        feature=section.feature,
        columns=_columns(section),
        exclude=tuple(section.exclude_columns),
        rules=column_rules(config),
        record_bytes=config.limits.record_bytes,
        as_records="rows" in section.model_fields_set and not section.rows,
        call=_call(config, command),
    )


def tfrecord_source(section: TfrecordInput, config: Config) -> TfrecordSource:
    """Return the source of existing records, which are passed on unchanged: nothing can be picked out of them.

    Raises:
        UsageError: a key asks for other records.
    """
    from ...transforms.sources.tfrecord.source import TfrecordSource

    for key, value in (
        ("input.columns", section.columns),
        ("input.exclude_columns", section.exclude_columns),
        ("input.limit", section.limit),
        ("schema.columns", config.schema_.columns),
        ("schema.constants", config.schema_.constants),
        ("map", config.steps),
        ("split", config.split),
        ("shuffle", config.shuffle),
    ):
        _refuse(key, value, "tfrecord")
    named = "split" in config.output.model_fields_set
    return TfrecordSource(
        tuple(section.paths),
        config.base,
        records=section.records if "records" in section.model_fields_set else "auto",
        split=config.output.split if named else None,
        default_split=config.output.split,
        record_bytes=config.limits.record_bytes,
    )


def _call(config: Config, command: str) -> Call:
    return Call(command, typed_path(config.output.path))


def _columns(section: CsvInput | ParquetInput | ImagesInput | NumpyInput) -> tuple[str, ...] | None:
    return None if section.columns is None else tuple(section.columns)


def _refuse(key: str, value: object, kind: str) -> None:
    if value:
        raise UsageError(f"{key}: does not go with {kind} yet; leave the key out")
