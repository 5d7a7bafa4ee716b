"""The options of formats, which are the keys of `input`, with their checks: shared ones, and those of each.

Sources hold them; pydantic is loaded where a config is read, and not by workers.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from ...format.wording.printable import quoted
from ...pictures.facts import Check
from ...recipe.steps.expression import read_expression
from ...recognise.evidence.names import MAX_LABEL_OFFSET
from ...stores.store_url import STORES, parse_store_url, places
from .settings import wrong_signs

STRICT: Final = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=False)
"""The base of every section of a config: it refuses unknown keys, and never converts one type into another."""


def check_path(value: str) -> str:
    """Raise `ValueError` where a value is no path and no URL."""
    if not value or "\0" in value:
        raise ValueError(f"{quoted(value)} is not a path")
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", value)
    if scheme is None:
        return value
    if scheme[1] not in STORES:
        raise ValueError(f"{quoted(value)}: {scheme[1]}:// is not supported; give a local path, {places()}")
    parse_store_url(value)
    return value


def check_classes(value: list[object]) -> list[str]:
    """Take text and whole numbers. Raises `ValueError` for another value, or where two classes have one name."""
    for name in value:
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise ValueError(f'{quoted(name)} is no name of a class; put it in quotes: ["no", "yes"]')
    names = [str(name) for name in value]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"{quoted(twice)} appears twice")
    return names


def check_where(value: str) -> str:
    """Raise `ValueError` where a value is no expression over columns."""
    read_expression(value)
    return value


def _check_encoding(value: str) -> str:
    try:
        "".encode(value)
    except (LookupError, ValueError) as error:
        raise ValueError(
            f"{quoted(value)} is not an encoding that Python knows, like utf-8, latin-1, utf-16"
        ) from error
    return value


Encoding: TypeAlias = Annotated[str, AfterValidator(_check_encoding)]
InputPath: TypeAlias = Annotated[str, AfterValidator(check_path)]
SplitName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
SplitGlobs: TypeAlias = Annotated[dict[SplitName, str | list[str]], Field(min_length=1, max_length=64)]
"""The files of each split: globs of their names, or with a `/` of their paths below the folder that is read.

There are at most as many as a rule of splits may name."""
Count: TypeAlias = Annotated[int, Field(ge=1)]
Columns: TypeAlias = Annotated[list[str], Field(min_length=1)] | None
Partitions: TypeAlias = Literal["none"] | None
"""How to treat columns in the names of folders (`year=2024`): leave them out, or by default read them."""
ColumnsDiffer: TypeAlias = Literal["refuse", "union"]
"""How to treat files whose columns differ: refuse them, or read the columns of all, null where a file lacks one."""


class SharedOptions(BaseModel):
    """The keys of every format."""

    model_config = STRICT

    paths: Annotated[list[InputPath], Field(min_length=1)]
    columns: Columns = None
    exclude_columns: list[str] = []
    limit: Count | None = None
    where: Annotated[str, AfterValidator(check_where)] | None = None
    ignore: list[Annotated[str, StringConstraints(min_length=1)]] = []
    splits: Literal["names", "none"] | SplitGlobs | None = None
    detect: Literal["none"] | None = None
    check: Check = "structure"

    @model_validator(mode="after")
    def _columns_differ(self) -> SharedOptions:
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            twice = next(name for name in self.columns if self.columns.count(name) > 1)
            raise ValueError(f'columns: "{twice}" appears twice')
        return self


class Options(SharedOptions):
    """The options of one format, whose name is the only value of `format`; those of a format derive from this."""

    format: str


class FileOptions(Options):
    """The options of files below folders whose names say something of their rows."""

    partitions: Partitions = None


class TableOptions(FileOptions):
    """The options of files whose columns may differ."""

    columns_differ: ColumnsDiffer = "refuse"


class InputOfUnknownFormat(SharedOptions):
    """An input whose format is not known: only what all formats have is checked."""

    model_config = ConfigDict(extra="ignore")


_BY_NAME: Final = {"\\t": "\t", "tab": "\t", "space": " "}
"""Characters as they are typed on a command line."""


def _check_one_byte(value: str) -> str:
    value = _BY_NAME.get(value, value)
    if re.fullmatch(r"\\x[0-7][0-9a-fA-F]", value):
        value = chr(int(value[2:], 16))
    if len(value) != 1 or not value.isascii() or value in "\r\n\0":
        raise ValueError(f"{quoted(value)} is not one ASCII character")
    return value


OneByte: TypeAlias = Annotated[str, AfterValidator(_check_one_byte)]


ShortRows: TypeAlias = Annotated[
    Literal["reject"] | None,
    BeforeValidator(
        lambda value: None if value == "null" else value, json_schema_input_type=Literal["reject", "null"] | None
    ),
]
"""What a row with too few cells is; YAML reads `null` as None."""


class CsvInput(TableOptions):
    """CSV files; `names` are the column names where there is no header, or instead of it; no `quote` is null.

    `skip_lines` are before the header, and lines that begin with `comment` are no rows; the character after an `escape`
    means itself; `trim` takes blanks around cells away; rows with too few cells are rejects, or have null ones more.
    With `repeated_header: drop` rows that are the header again are left out, as in files that were joined.
    `row_names` is the name of the first column, where the header lacks one for it, as headers that R writes do.

    `load_config` sets `delimiter` where it is left out, as the first records show it.
    """

    format: Literal["csv"] = "csv"
    delimiter: OneByte = ","
    quote: OneByte | None = '"'
    header: bool = True
    names: Columns = None
    row_names: Annotated[str, StringConstraints(min_length=1)] | None = None
    encoding: Encoding = "utf-8"
    null_values: list[str] = Field([""])
    skip_lines: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    comment: OneByte | None = None
    escape: OneByte | None = None
    trim: bool = False
    short_rows: ShortRows = "reject"
    repeated_header: Literal["keep", "drop"] = "keep"

    @model_validator(mode="after")
    def _signs_differ(self) -> CsvInput:
        if why := wrong_signs(self.delimiter, self.quote, self.escape, self.comment, self.null_values, self.trim):
            raise ValueError(why)
        if self.repeated_header == "drop" and (not self.header or self.limit is not None):
            raise ValueError("repeated_header: drop goes with a header, and without limit; leave one out")
        if self.row_names is not None and not self.header:
            raise ValueError("row_names goes with a header that lacks one name; without a header give all in names")
        return self


class ParquetInput(TableOptions):
    """Parquet files; `checksums` verifies the pages that carry one."""

    format: Literal["parquet"] = "parquet"
    checksums: bool = True


class ArrowInput(TableOptions):
    """Arrow IPC files, which Feather files are too."""

    format: Literal["arrow"] = "arrow"


class JsonLinesInput(FileOptions):
    """Files with a JSON object in each line."""

    format: Literal["jsonl"] = "jsonl"


class TextInput(FileOptions):
    """Files whose lines are the records."""

    format: Literal["txt"] = "txt"


class NumpyInput(Options):
    """`.npy` and `.npz` files; with `rows`, the first axis of an array is the batch."""

    format: Literal["numpy"] = "numpy"
    rows: bool = False
    feature: str = "array"


class TfrecordInput(Options):
    """TFRecord files; `opaque` records need not be Examples. Some may be left out, by keys or by an expression."""

    format: Literal["tfrecord"] = "tfrecord"
    records: Literal["example", "opaque"] = "example"
    columns_differ: ColumnsDiffer = "refuse"
    drop: InputPath | None = None
    drop_where: Annotated[str, AfterValidator(check_where)] | None = None


class ArchiveInput(FileOptions):
    """Archives of samples, or of pictures alone."""

    layout: Literal["auto", "label", "split", "split_label", "inner_label", "flat"] = "auto"
    labels: Literal["numeric"] | None = None
    key: Literal["first_dot", "last_dot"] | None = None
    pictures: Literal["image", "suffix"] = "image"
    json_: Annotated[Literal["columns", "text"], Field(alias="json")] = "columns"


class TarInput(ArchiveInput):
    """Tar archives, compressed or not."""

    format: Literal["tar"] = "tar"


class ZipInput(ArchiveInput):
    """Zip archives; `encoding` is that of names that are not marked as UTF-8."""

    format: Literal["zip"] = "zip"
    encoding: Encoding | None = None


def _check_labels(value: object) -> list[str] | str | None:
    if value is None:
        return None
    if value == "numeric":
        return "numeric"
    if not isinstance(value, list) or not value:
        raise ValueError(f"{quoted(value)} is no list of classes, like [cat, dog], and not numeric")
    return check_classes(value)


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


_Files: TypeAlias = Annotated[
    list[InputPath], BeforeValidator(_as_list, json_schema_input_type=str | list[str]), Field(min_length=1)
]


ANNOTATION_KINDS: Final = ("coco", "boxes", "voc", "yolo")


class Annotations(BaseModel):
    """The files that say what is in pictures; segmentations are read as `masks` where they are asked for."""

    model_config = STRICT

    coco: _Files | None = None
    boxes: _Files | None = None
    voc: InputPath | None = None
    yolo: InputPath | None = None
    masks: bool = False
    classes: Literal["dense", "numeric"] | list[str] | None = None

    @model_validator(mode="after")
    def _of_one_kind(self) -> Annotations:
        given = [key for key in ANNOTATION_KINDS if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError("annotations are of one kind: coco or boxes (a list of files), voc or yolo (a folder)")
        if self.classes not in (None, "dense") and self.coco is not None:
            raise ValueError(
                "classes go with voc and yolo and boxes; files of coco list theirs: leave the key out, or number them "
                "from 0 with classes: dense"
            )
        if self.classes == "dense" and self.coco is None:
            raise ValueError("classes: dense goes with coco; those of other files have no gaps: leave it out")
        if self.classes == "numeric" and self.yolo is not None:
            raise ValueError("classes: numeric goes with voc and boxes; files of yolo have numbers: leave it out")
        return self


class ImagesInput(Options):
    """Folders of images."""

    format: Literal["images"] = "images"
    layout: Literal["auto", "label", "split", "split_label", "inner_label", "flat"] = "auto"
    label_offset: Annotated[int, Field(ge=0, le=MAX_LABEL_OFFSET)] = 0
    labels: Annotated[
        Literal["numeric"] | list[str] | None,
        BeforeValidator(_check_labels, json_schema_input_type=Literal["numeric"] | list[str | int] | None),
    ] = None
    sha256: bool = False
    formats: list[str] = Field(["jpeg", "png", "gif", "webp", "bmp"], min_length=1)
    metadata: Literal["none"] | None = None
    annotations: Annotations | None = None

    @model_validator(mode="after")
    def _splits_are_said_once(self) -> ImagesInput:
        if self.layout in ("split", "split_label") and self.splits is not None:
            raise ValueError(
                f"layout: {self.layout} says that folders are splits, and splits says it too; leave one out"
            )
        return self


class AnnotationInput(Options):
    """Files that say what is in pictures, which are below `schema.files_root`.

    `images` are the folders of the pictures of each of `paths`, in their order, where these are several folders.
    """

    images: list[InputPath] | None = None


class CocoInput(AnnotationInput):
    """COCO's JSON files; `dense` classes are numbered from 0 in the order of their ids."""

    format: Literal["coco"] = "coco"
    classes: Literal["dense"] | None = None
    masks: bool = False


class NamedClassesInput(AnnotationInput):
    """Files that name classes, and do not number them; `classes` are in the order of their numbers."""

    label_offset: Annotated[int, Field(ge=0, le=1000)] = 0
    classes: Literal["numeric"] | list[str] | None = None


class VocInput(NamedClassesInput):
    """VOC's XML files, one for each picture."""

    format: Literal["voc"] = "voc"


class BoxesInput(NamedClassesInput):
    """Tables with a row for each box."""

    format: Literal["boxes"] = "boxes"


class YoloInput(AnnotationInput):
    """YOLO's text files, one for each picture of the folders `images`; `classes` are their names by number.

    Polygons are boxes alone where no `masks` are asked for.
    """

    format: Literal["yolo"] = "yolo"
    label_offset: Annotated[int, Field(ge=0, le=1000)] = 0
    classes: list[str] | None = None
    masks: bool = False
