"""The config of a conversion: its keys, types and defaults. Sections: `sections`, `runners`, `registry/options`.

The models refuse unknown keys and never convert one type into another, so that `header: "no"` is an error and not
True. What they find is put into words by `errors`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PrivateAttr,
    SerializeAsAny,
    StringConstraints,
    create_model,
    model_validator,
)

from ...transforms.format.batches.rejects import parse_max_rejects
from ...transforms.format.columns.keys import LARGEST_GRID
from ...transforms.format.manifest.naming import DEFAULT_SHARD_NAME, check_shard_name
from ...transforms.format.schema.column_types import declarable_names
from ...transforms.format.schema.schema import ColumnRule
from ...transforms.format.wording.hints import Set
from ...transforms.format.wording.printable import DEFAULT_SHARD_SIZE, check_shard_size, parse_size, quoted
from ...transforms.inputs.files.file_names import FORMATS
from ...transforms.pictures.options import Preprocess
from ...transforms.sources.registry.options import STRICT, Count, Options, check_classes, check_path
from ...transforms.sources.registry.settings import Limits
from ...transforms.stores.store_url import is_store_url
from .runners import LocalRunner, RunnerSection
from .sections import ImageConfig as ImageConfig
from .sections import SplitConfig as SplitConfig
from .sections import SplitName

if TYPE_CHECKING:
    from ...transforms.observers.figures import Level

    TypeName = str
else:
    TypeName = Literal[declarable_names()]


# The section `input`: the keys of its format, which the registry knows; of an unknown one those of all.


def _options_of(value: object) -> object:
    if isinstance(value, Options):
        return value
    name = value.get("format") if isinstance(value, dict) else None
    model = FORMATS[name].load().options if name in FORMATS else Options
    return model.model_validate(value)


InputSection: TypeAlias = Annotated[SerializeAsAny[Options], BeforeValidator(_options_of)]


def options_by_format() -> dict[str, type[Options]]:
    return {name: entry.load().options for name, entry in FORMATS.items()}


def input_keys() -> frozenset[str]:
    return frozenset(key for model in options_by_format().values() for key in model.model_fields)


def input_of_any_format() -> type[BaseModel]:
    """Return the model of an input whose format is wrong or unknown: the keys of all formats, each with its bounds."""
    return create_model("InputOfAnyFormat", __base__=tuple(options_by_format().values()), format=(Any, None))


# Values of the config that take several forms: what they may be, and what they are read as.


_YEARS: Final = frozenset("Yy")
_DAYS: Final = frozenset("dmjbB")
_FORMAT_PARTS: Final = _YEARS | _DAYS | frozenset("HIMSpfzaA")
"""The parts of a format that Arrow and Python read alike."""


_EMPTY_CHECKS: Final = {
    "duplicates": "write duplicates: {} to compare whole records",
    "leaks": "write leaks: {columns: [user]} to compare a column",
}


def empty_checks(checks: Mapping[str, object]) -> list[str]:
    """Return what is wrong with checks that are named, and say nothing: such a key would be no check.

    >>> empty_checks({"duplicates": None, "leaks": {"columns": ["user"]}})
    ['duplicates: is empty; write duplicates: {} to compare whole records, or leave the key out']
    """
    empty = [key for key in _EMPTY_CHECKS if key in checks and checks[key] is None]
    return [f"{key}: is empty; {_EMPTY_CHECKS[key]}, or leave the key out" for key in empty]


def check_sign(value: str) -> str:
    if len(value) != 1 or value.isalnum() or value in "+-":
        raise ValueError(f'{quoted(value)} is not one sign, like "," or "."')
    return value


def check_format(value: str | list[str] | None) -> str | list[str] | None:
    for one in [value] if isinstance(value, str) else value or []:
        parts = re.findall(r"%(.?)", one.replace("%%", ""))
        if not parts or not _FORMAT_PARTS.issuperset(parts) or len(set(parts)) < len(parts):
            raise ValueError(
                f'{quoted(one)} is no format of dates and times, like "%d.%m.%Y" or "%Y-%m-%d %H:%M:%S"; its parts, '
                f"each once, are {' '.join(f'%{part}' for part in sorted(_FORMAT_PARTS))}"
            )
        if not _YEARS.intersection(parts) and _DAYS.intersection(parts):
            raise ValueError(f"{quoted(one)} has no year (%Y or %y): a day of no year is no date")
    if value == []:
        raise ValueError('is empty; give at least one, like ["%d.%m.%Y"]')
    return value


def check_null(value: object) -> object:
    words = ("absent", "drop_row", "error", "mask")
    if isinstance(value, str) and value in words:
        return value
    if isinstance(value, dict) and list(value) == ["fill"] and isinstance(value["fill"], str | bool | int | float):
        return value
    raise ValueError(f"{quoted(value)} is none of {', '.join(words)}, and not {{fill: VALUE}}")


def check_label(value: object) -> bool | str | list[str]:
    if isinstance(value, bool) or value == "numeric":
        return value
    if not isinstance(value, list) or not value:
        raise ValueError(f"{quoted(value)} is neither true nor a list of classes, like [cat, dog], and not numeric")
    return check_classes(value)


_LARGEST_RECORD: Final = 2**31 - 1


def _check_positive(size: int) -> int:
    if size < 1:
        raise ValueError("must be at least 1 byte")
    return size


def _check_record_size(size: int) -> int:
    if size > _LARGEST_RECORD:
        raise ValueError(f"{size} bytes is too large; the most is {_LARGEST_RECORD}: no tf.train.Example is longer")
    return size


def _check_output_path(value: str) -> str:
    if not is_store_url(check_path(value)):
        return value
    if re.search(r"[*?\[\]#\\]|//|/\.{1,2}(/|$)", value.partition("://")[2]):
        raise ValueError(f"{quoted(value)}: a dataset's folder has no *, ?, [, ], #, \\ and no empty names in it")
    return value.rstrip("/")


def _check_folder(value: str) -> str:
    if is_store_url(check_path(value)):
        raise ValueError(f"{quoted(value)}: files that columns name are not read from stores yet; copy them here")
    return value


def _check_words(value: list[str]) -> list[str]:
    twice = next((word for word in value if value.count(word) > 1), None)
    if twice is not None:
        raise ValueError(f"{quoted(twice)} appears twice")
    return value


def _level_of(value: object) -> object:
    return {True: "full", False: "none"}[value] if isinstance(value, bool) else value


_SIZE: Final = BeforeValidator(parse_size, json_schema_input_type=int | str)

Size: TypeAlias = Annotated[int, _SIZE, AfterValidator(_check_positive)]
RecordSize: TypeAlias = Annotated[Size, AfterValidator(_check_record_size)]
ShardSize: TypeAlias = Annotated[int, _SIZE, AfterValidator(check_shard_size)]
OutputPath: TypeAlias = Annotated[str, AfterValidator(_check_output_path)]


class _Section(BaseModel):
    model_config = STRICT


class Fill(_Section):
    """The value in the place of nulls."""

    fill: str | bool | int | float


Words: TypeAlias = Annotated[list[str], AfterValidator(_check_words)]


class ColumnConfig(_Section):
    """The declared type of one column; everything else is inferred from the source."""

    type: TypeName | None = None
    as_: Annotated[Literal["bytes", "float", "int64", "json", "list", "scaled"] | None, Field(alias="as")] = None
    unit: Literal["s", "ms", "us", "ns"] | None = None
    timezone: str | None = None
    nullable: bool | None = None
    name: Annotated[str, StringConstraints(min_length=1)] | None = None
    label: Annotated[
        bool | Literal["numeric"] | list[str],
        BeforeValidator(check_label, json_schema_input_type=bool | Literal["numeric"] | list[str | int]),
    ] = False
    format: Annotated[str | list[str] | None, AfterValidator(check_format)] = None
    decimal: Annotated[str, AfterValidator(check_sign)] = "."
    thousands: Annotated[str, AfterValidator(check_sign)] | None = None
    strip: bool | str = False
    negative: Literal["brackets"] | None = None
    escapes: bool = False
    null_values: Words = []
    true_values: Words = []
    false_values: Words = []
    length: Annotated[int, Field(ge=1, le=LARGEST_GRID)] | None = None
    null_item: str | bool | int | float | None = None
    null: Annotated[Literal["absent", "drop_row", "error", "mask"] | Fill, BeforeValidator(check_null)] = "absent"
    file: Literal["path"] | None = None
    image: Literal["path", "bytes", "base64", "none"] | None = None

    @property
    def declared(self) -> ColumnRule:
        return ColumnRule(self.type, self.as_, self.unit, self.timezone, self.nullable, self.nulls)

    @property
    def nulls(self) -> tuple[str, ...]:
        return tuple(self.null_values)

    @property
    def keeps_nulls(self) -> bool:
        """Whether nulls stay absent beside a list of classes: elsewhere they do by default, here where it is said."""
        return isinstance(self.label, list) and self.null == "absent" and "null" in self.model_fields_set

    @model_validator(mode="before")
    @classmethod
    def _a_picture_is_there(cls, given: Any) -> Any:
        """Make a null picture a reject, unless it is said what becomes of it: few readers take an absent one."""
        pictures = isinstance(given, dict) and given.get("image") not in (None, "none") and "null" not in given
        return given | {"null": "error"} if pictures else given

    @model_validator(mode="after")
    def _keys_agree(self) -> ColumnConfig:
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands are both {quoted(self.decimal)}; they must differ")
        if bool(self.true_values) != bool(self.false_values) or {*self.true_values} & {*self.false_values}:
            raise ValueError("true_values and false_values go together, like [yes] and [no], and share no word")
        if self.true_values and (self.type not in (None, "bool") or self.label):
            raise ValueError("true_values and false_values make a bool of text; leave the type and the label out")
        if self.is_list and (self.label or self.format or self.thousands or self.strip or self.negative):
            raise ValueError("as: list does not go with label, strip, thousands, negative and format; leave them out")
        if self.holds_lists and (self.label or self.file or self.is_picture or self.as_ == "json"):
            raise ValueError("length and null_item are of lists: leave them out beside label, file, image and as: json")
        if self.label and self.null == "mask":
            raise ValueError("null: mask does not go with label, since 0 is a class; leave it out, or fill the nulls")
        if self.is_picture and (self.null == "mask" or isinstance(self.null, Fill)):
            raise ValueError("null: fill and mask do not go with image; leave it out, or take drop_row or error")
        for key in ("file", "image"):
            if getattr(self, key) in (None, "none"):
                continue
            given = {
                "type": self.type,
                "as": self.as_,
                "unit": self.unit,
                "timezone": self.timezone,
                "label": self.label,
                "image": self.image if key == "file" else None,
            }
            others = [name for name, value in given.items() if value]
            written = "strip, decimal, thousands, negative, format, true_values or false_values"
            others += [written] if self.is_written and not self.as_ else []
            if others:
                what = "bytes of paths" if key == "file" else "the features of pictures"
                raise ValueError(f"{key} does not go with {' and '.join(others)}: it makes {what}; leave one out")
        return self

    @property
    def is_written(self) -> bool:
        """Whether text is read in a form of its own."""
        written = (self.format, self.thousands, self.strip, self.negative, self.escapes, self.true_values, self.is_list)
        return any(written) or self.decimal != "."

    @property
    def is_list(self) -> bool:
        """Whether each cell of text holds a list."""
        return self.as_ == "list"

    @property
    def holds_lists(self) -> bool:
        """Whether something is said of the lists of a column."""
        return self.length is not None or self.null_item is not None

    @property
    def is_picture(self) -> bool:
        return self.image in ("path", "bytes", "base64")

    @property
    def settles_nulls(self) -> bool:
        """Whether a step says what becomes of nulls: those of pictures are settled where these are read."""
        return self.null != "absent" and not self.is_picture

    @property
    def names_files(self) -> bool:
        return self.file is not None or self.image == "path"


def _not_null(value: object) -> object:
    """Return no columns where all lines below the key are comments."""
    return {} if value is None else value


class SchemaConfig(_Section):
    """How columns get their types."""

    infer: Literal["auto", "full", "none"] = "auto"
    columns: Annotated[dict[str, ColumnConfig], BeforeValidator(_not_null)] = {}
    constants: dict[str, str | bool | int | float] = {}
    classes: dict[str, Annotated[list[str], Field(min_length=1)]] = {}
    boxes: Literal["reject", "clip"] = "reject"
    box_format: Literal["xywh", "xyxy"] = "xywh"
    files_root: Annotated[str, AfterValidator(_check_folder)] | None = None
    files_suffix: Annotated[str, Field(pattern=r"^\.[^/\x00]+$")] | None = None

    @property
    def rules(self) -> dict[str, ColumnRule]:
        """The types that columns are read with: those that are declared, and text for what steps make of text."""
        rules = {}
        for name, rule in self.columns.items():
            if rule.names_files or rule.image == "base64":
                rules[name] = ColumnRule("string", nullable=rule.nullable, nulls=rule.nulls)
            else:
                text = ColumnRule("string", nulls=rule.nulls, decimal=rule.decimal)
                rules[name] = text if rule.is_written else rule.declared
        return {name: rule for name, rule in rules.items() if rule != ColumnRule()}


class ShuffleConfig(_Section):
    """A seeded random order."""

    seed: Annotated[int, Field(ge=0, lt=2**63)]


class DuplicatesConfig(_Section):
    """Which records are alike: in these columns, or in all of them."""

    columns: list[str] = []
    action: Literal["report", "drop"] = "report"


class LeaksConfig(_Section):
    """Which values belong into one split: those of these columns, taken together."""

    columns: Annotated[list[str], Field(min_length=1)]


class ChecksConfig(_Section):
    """What is checked of the records as a whole."""

    duplicates: DuplicatesConfig | None = None
    leaks: LeaksConfig | None = None


class OutputConfig(_Section):
    """What is written, and where."""

    path: OutputPath
    shard_size: ShardSize = parse_size(DEFAULT_SHARD_SIZE)
    compression: Literal["none", "gzip"] = "none"
    order: Literal["task", "source"] = "task"
    split: SplitName = "train"
    shard_name: Annotated[str, AfterValidator(check_shard_name)] = DEFAULT_SHARD_NAME
    sidecars: list[Literal["tfds", "tfx", "croissant", "label_map", "index"]] = ["tfds", "tfx"]
    index: Literal["none", "text", "binary"] = "binary"
    if_exists: Literal["refuse", "replace"] = "refuse"

    @model_validator(mode="after")
    def _an_index_is_of_plain_shards(self) -> OutputConfig:
        if self.compression != "none" and "index" in self.model_fields_set and self.index != "none":
            raise ValueError(
                f"index is {self.index}, and compression {self.compression}: an index says where in its shard a record "
                f"begins, which cannot be said of compressed ones; leave index out, or set compression to none"
            )
        return self

    @property
    def wanted_split(self) -> str | None:
        return self.split if "split" in self.model_fields_set else None

    @property
    def sidecar_groups(self) -> tuple[str, ...]:
        """What is written beside the shards: of the indexes `index` is the text, `offsets` are binary."""
        kinds = {"none": set[str](), "text": {"index"}, "binary": {"offsets"}}[self.index]
        return (*self.sidecars, *sorted(kinds - {*self.sidecars}))


_LIMITS: Final = Limits()


class LimitsConfig(_Section):
    """Limits on single values; beyond them is a reject, or for `columns` an error."""

    field_bytes: Size = _LIMITS.field_bytes
    record_bytes: RecordSize = _LIMITS.record_bytes
    columns: Count = _LIMITS.columns
    pixels: Count = _LIMITS.pixels
    image_bytes: Size = _LIMITS.image_bytes
    batch_bytes: Size = _LIMITS.batch_bytes


class Config(_Section):
    """The config of one conversion, checked.

    Made by `load_config`. `output.path` is absolute; `input.paths` are relative to the folder `base` where they are
    below it. `input` is None only where the data come from Python.
    """

    version: Literal[1] = 1
    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,127}$")]
    input: InputSection | None = None
    schema_: Annotated[SchemaConfig, Field(alias="schema")] = SchemaConfig()
    split: SplitConfig | None = None
    shuffle: ShuffleConfig | None = None
    image: ImageConfig | None = None
    checks: ChecksConfig | None = None
    output: OutputConfig
    stats: Annotated[
        Literal["none", "basic", "full"],
        BeforeValidator(_level_of, json_schema_input_type=Literal["none", "basic", "full"] | bool),
    ] = "basic"
    accept_map: bool = False
    max_rejects: Annotated[int | str, BeforeValidator(parse_max_rejects)] = 0
    limits: LimitsConfig = LimitsConfig()
    runner: RunnerSection = LocalRunner()

    _base: str = PrivateAttr(default="")
    _detected: tuple[str, ...] = PrivateAttr(default=())
    _picture_folders: tuple[str, ...] = PrivateAttr(default=())
    _given: tuple[Set, ...] = PrivateAttr(default=())
    _read_as: dict[str, Any] | None = PrivateAttr(default=None)
    _named: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def statistics(self) -> Level | None:
        """What is counted of the records; of existing ones, which are copied as they are, only what is asked for."""
        copied = self.input is not None and self.input.format == "tfrecord"
        if self.stats == "none" or (copied and "stats" not in self.model_fields_set):
            return None
        return self.stats

    @property
    def drops_records(self) -> bool:
        duplicates = None if self.checks is None else self.checks.duplicates
        return duplicates is not None and duplicates.action == "drop"

    @property
    def counts_shards(self) -> bool:
        """Whether values are counted in finished shards: before, some are in no split yet, or are left out later."""
        copied = self.input is not None and self.input.format == "tfrecord"
        dealt = self.split is not None and not self.split.follows_source
        return copied or dealt or self.drops_records

    @property
    def pictures(self) -> Preprocess:
        return Preprocess() if self.image is None else self.image.options()

    @property
    def detected(self) -> tuple[str, ...]:
        """A value that `load_config` detected in the input and set, with its evidence, for the screen."""
        return self._detected

    @property
    def given(self) -> tuple[Set, ...]:
        """The options that a user typed, for commands that are proposed: all but paths, and where it runs."""
        return self._given

    @property
    def picture_folders(self) -> tuple[str, ...]:
        """The folders of the pictures that rows name, absolute, where a table was found beside them."""
        return self._picture_folders

    @property
    def read_as(self) -> dict[str, Any] | None:
        """The section `input` of pictures, where a table that was found beside them is read in its place."""
        return self._read_as

    @property
    def named(self) -> frozenset[str]:
        """The columns that the user declares: others are the dataset's, in an append."""
        return self._named

    @property
    def base(self) -> str:
        """The folder that input paths are relative to: the config file's, or the working folder; absolute."""
        return self._base or os.getcwd()

    def to_json(self) -> dict[str, Any]:
        """Return every key with its value, defaults included, as plain JSON types under the names of the file.

        Without a check that is not asked for: a file with the empty key is refused.
        """
        document: dict[str, Any] = self.model_dump(mode="json", by_alias=True)
        asked = {key: check for key, check in (document["checks"] or {}).items() if check is not None}
        document["checks"] = asked or None
        return document
