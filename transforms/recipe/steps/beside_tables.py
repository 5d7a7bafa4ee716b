"""Steps for tables that name files: read the files, count pictures without a row, take splits and columns from folders.

Files              a/1.wav in a cell            the bytes of the file, below the folder of the table
UnnamedPictures    pictures that no row names   counted, and said
SplitByFolder      train/metadata.csv           split train
Partitions         year=2024/a.parquet          a column `year`
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError
from ...format.batches.arrow_memory import binary_array
from ...format.batches.rejects import CellError, CellProblem
from ...format.columns.flatten import stored
from ...format.columns.keys import is_any_list, stored_type
from ...format.wording.hints import Set, set_column
from ...format.wording.printable import NoColumnError, printable, printable_path
from ...inputs.contract.selection import EVERY_COLUMN, Selection
from ...inputs.contract.source import Listing
from ...inputs.files.below_root import FileProblem, FilesBelow
from ...inputs.files.file_names import pictures_below, suffixes_of
from ...recognise.evidence.names import partition_values, split_above, split_of_folder
from ..step import Column, ColumnStep, Labels, Step, Stepped, Types, as_text, is_text, with_column

# Columns of paths become columns of the bytes of these files: `schema.columns.NAME.file: path`, or `image: path`.
#
#     clip             clip
#     a/1.wav    ──▶   52 49 46 46 ...    the file's own bytes, below `schema.files_root`, or beside the table
#     a/2.wav          MISSING_FILE       a reject of its row, as is any path that leads elsewhere
#     null             null
#
# A list of paths becomes a list of bytes. Files are read for some rows at a time, so that a batch of many large ones is
# never in memory at once.


PATH: Final = "path"
FILENAME: Final = "filename"

_PART_BYTES: Final = 8 << 20
"""Rows that are read at a time end with the file that reaches this: writing more at once is no faster."""

_NEVER_EMPTY: Final = (
    ".wav", ".flac", ".mp3", ".ogg", ".m4a", ".mp4", ".avi", ".mov", ".webm", ".jpg", ".jpeg", ".png", ".gif", ".webp",
    ".bmp", ".tif", ".tiff", ".npy", ".npz", ".pdf", ".zip", ".gz",
)  # fmt: skip
"""Suffixes of files that begin with a header; pictures have a check of their own."""

_PATHS: Final = 256
"""Paths that are made Python's own values at a time."""


@dataclass(frozen=True, slots=True)
class Files(Step):
    """Read the files that `columns` name, of at most `most` bytes each.

    Paths are relative to the folder `root`, which messages call `shown`, or, where it is None, to that of the file
    which holds the row; where they lack the `suffix`, it is added. Those of `pictures` are kept as `NAME/filename`.
    """

    takes_parts = True

    columns: tuple[str, ...]
    most: int
    root: str | None = None
    pictures: tuple[str, ...] = ()
    suffix: str = ""
    shown: str = field(default="schema.files_root", repr=False, compare=False)
    part_bytes: int = field(default=_PART_BYTES, repr=False, compare=False)
    _table: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def is_of_file(self) -> bool:
        return self.root is None

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name: column for column in columns}
        for name in self.columns:
            if name not in known:
                raise NoColumnError("schema.columns", name, list(known))
            if not is_text(known[name]) and name not in self.pictures:
                option = set_column(name, "type", "binary")
                raise SchemaError(
                    f'column "{printable(name)}": file reads the files that paths name, which are text, and it holds '
                    f"{printable(str(known[name].field.type))}; leave file out; in an append to a dataset that was "
                    f"made with it, say that bytes are there: {option}"
                )
        read = {name for name in self.columns if holds_paths(known[name])}  # others are pictures, which are there
        paths = [known[name].renamed(f"{name}/{FILENAME}") for name in self.pictures if name in read]
        return [*(self._planned(one) if one.name in read else one for one in columns), *paths]

    def at(self, path: bytes) -> Files:
        return self if self.root is not None else replace(self, _table=path)

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        stepped, _ = replace(self, part_bytes=1 << 62).take(batch)
        return stepped

    def take(self, batch: pa.RecordBatch) -> tuple[Stepped, int]:
        names = [name for name in self.columns if holds_paths(Column(batch.schema.field(name)))]
        if not names:
            return Stepped(batch), batch.num_rows
        for name in names if self.suffix else ():
            batch = with_column(batch, name, with_suffix(batch[name], self.suffix))
        files = {name: self._files() for name in names}
        values: dict[str, list[Any]] = {name: [] for name in names}
        problems, size, rows = list[CellProblem](), 0, 0
        for row, cells in enumerate(_paths(batch, names)):
            for name, cell in zip(names, cells, strict=True):
                read = []
                for path in cell if isinstance(cell, list) else [cell]:
                    try:
                        read.append(None if path is None else self._read(name, path, files[name]))
                    except FileProblem as problem:
                        problems.append(CellProblem(row, _cell_error(name, path, problem)))
                        read.append(None)
                values[name].append(read if isinstance(cell, list) else read[0])
                size += sum(len(data or b"") for data in read)
            rows = row + 1
            if size >= self.part_bytes:
                break
        batch = batch.slice(0, rows)
        for name in values.keys() & set(self.pictures):
            batch = with_column(batch, f"{name}/{FILENAME}", batch[name])
        for name, column in values.items():
            kind = _bytes_for(batch.schema.field(name).type)
            data = pa.array(column, kind) if is_any_list(kind) else binary_array(column, large=True)
            batch = with_column(batch, name, data)
        return Stepped(batch, None, tuple(problems)), rows

    def _read(self, name: str, path: str, files: FilesBelow) -> bytes:
        data = files.read(path)
        if not data and name not in self.pictures and path.lower().endswith(_NEVER_EMPTY):
            raise FileProblem(
                "TRUNCATED", "the file is empty; copy it again, or make the path null", "a file with data"
            )
        return data

    def _planned(self, column: Column) -> Column:
        kind = pa.field(column.name, _bytes_for(column.field.type), column.field.nullable)
        file = None if column.name in self.pictures else PATH
        return Column(kind, reason="the bytes of the files that it names", file=file)

    def _files(self) -> FilesBelow:
        if self.root is not None:
            return FilesBelow(os.fsencode(self.root), self.most, self.shown)
        assert self._table is not None  # rows of several files at once are arrays and pictures, which name no files
        return FilesBelow(os.path.dirname(self._table), self.most, "the folder of the table")


def _paths(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
    for start in range(0, batch.num_rows, _PATHS):
        some = batch.slice(start, _PATHS)
        yield from zip(*(texts_of(some[name]).to_pylist() for name in names), strict=True)


def with_suffix(paths: pa.Array, suffix: str) -> pa.Array:
    def ended(path: str | None) -> str | None:
        return path if path is None or path.lower().endswith(suffix.lower()) else path + suffix

    texts = texts_of(paths)
    if is_any_list(texts.type):
        return pa.array([None if some is None else [*map(ended, some)] for some in texts.to_pylist()], texts.type)
    return pa.array(map(ended, texts.to_pylist()), texts.type)


def texts_of(values: pa.Array) -> pa.Array:
    return stored(values) if is_any_list(values.type) else as_text(values)


def holds_paths(column: Column) -> bool:
    kind = stored_type(column.field.type)
    return is_text(Column(pa.field("item", kind.value_type))) if is_any_list(kind) else is_text(column)


def _bytes_for(kind: pa.DataType) -> pa.DataType:
    return pa.large_list(pa.large_binary()) if is_any_list(stored_type(kind)) else pa.large_binary()


def _cell_error(name: str, path: str | None, problem: FileProblem) -> CellError:
    return CellError(name, problem.code, printable(path or ""), problem.expected, str(problem))


# The split of a row, by folders.


@dataclass(frozen=True, slots=True)
class SplitByFolder(ColumnStep):
    """Give each row the split that the folder of its table has the name of, or that of the picture in its `column`.

        pets/train/metadata.csv    0.jpg                train
        pets/metadata.csv          test/7.jpg           test
        pets/metadata.csv          images/test/7.jpg    test
        pets/metadata.csv          7.jpg                a reject, as other rows have a split

    `splits` are found by `of_files`.
    """

    is_of_file = True

    splits: tuple[str, ...] = ()

    @property
    def detected(self) -> str:
        return f"splits {', '.join(self.splits)}, from the names of folders" if self.splits else ""

    def of_files(self, listing: Listing) -> SplitByFolder | None:
        splits = listing.recognised.of_rows
        return replace(self, splits=splits) if splits else None

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:
        known: dict[str | None, int] = {split: code for code, split in enumerate(self.splits)}
        table = known.get(split_above(file))
        if table is not None:
            return Stepped(batch, split_codes=np.full(batch.num_rows, table, np.int64))
        paths = [path[0] if isinstance(path, list) and path else path for path in batch[self.column].to_pylist()]
        codes = np.array([known.get(_split_of(path), -1) for path in paths], np.int64)
        problems = tuple(CellProblem(row, self._no_split(paths[row])) for row in np.flatnonzero(codes < 0).tolist())
        return Stepped(batch, None, problems, codes)

    def _no_split(self, path: object) -> CellError:
        shown = "null" if not path else printable(str(path))
        known = ", ".join(self.splits)
        text = (
            f'"{shown}" is in no folder of a split ({known}), as other pictures are; move it into one, or read all '
            f"rows as one split: {Set('input.splits', 'none')}"
        )
        return CellError(self.column, "DECLARED_NOT_NULL", shown, "a picture in a split folder", text)


def _split_of(path: object) -> str | None:
    parts = [part for part in str(path or "").split("/") if part not in ("", ".")]
    return next(filter(None, map(split_of_folder, parts[:-1][:_LEVELS])), None)


_LEVELS: Final = 2
"""The folders of splits are the first of a path, or in these: `images/train/7.jpg`."""


# Count the pictures of folders that no row of their table names: they become no records, which may be a mistake.


_AT_ONCE: Final = 1 << 16
"""Paths that are compared at once."""


@dataclass(frozen=True, slots=True)
class UnnamedPictures(Step):
    """Look at the paths in some columns, and count the pictures without one.

    Paths begin in the folder `begin`, or where it is empty in that of their table; where they lack the `suffix`, it is
    added. `roots` are the folders of pictures, absolute; without them those are looked at that hold the pictures of
    rows, but not what is below. `count` are those that no row names, `example` is one of them. `masks` counts the files
    that are masks by their names or folders, `mask` is one of them. Files without a picture's suffix are not counted.
    """

    columns: tuple[str, ...]
    roots: tuple[str, ...]
    begin: bytes = b""
    suffix: str = ""
    count: int | None = None
    example: str = ""
    masks: int = 0
    mask: str = ""

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns

    @property
    def learns(self) -> bool:
        return self.count is None

    @property
    def is_of_file(self) -> bool:
        return not self.begin

    @property
    def detected(self) -> str:
        said = list[str]()
        if self.count:
            pictures, are = ("1 picture", "is") if self.count == 1 else (f"{self.count:,} pictures", "are")
            said.append(f"{pictures} {are} named by no row or annotation, and {are} left out, such as {self.example}")
        if self.masks:
            masks, are = ("1 mask", "is") if self.masks == 1 else (f"{self.masks:,} masks", "are")
            said.append(f"{masks}, by the names of files or folders, {are} not read, such as {self.mask}")
        return "; ".join(said)

    def at(self, path: bytes) -> UnnamedPictures:
        return self if self.begin else replace(self, begin=os.path.dirname(path))

    def look(self, batch: pa.RecordBatch) -> pa.Array:
        fields = {field.name: field for field in batch.schema}
        there = [name for name in self.columns if name in fields and holds_paths(Column(fields[name]))]
        paths = [with_suffix(batch[name], self.suffix) if self.suffix else texts_of(batch[name]) for name in there]
        texts = [(some.flatten() if is_any_list(some.type) else some).cast(pa.large_binary()) for some in paths]
        return pc.unique(_absolute(self.begin, pa.concat_arrays(texts))) if texts else pa.nulls(0, pa.large_binary())

    def merge(self, one: pa.Array, other: pa.Array) -> pa.Array:
        return pc.unique(pa.concat_arrays([one, other]))

    def learned(self, summary: pa.Array | None) -> UnnamedPictures:
        named = summary if summary is not None else pa.nulls(0, pa.large_binary())
        counts, first = Counter[bool](), dict[bool, bytes]()
        roots = list(map(os.fsencode, self.roots)) or _folders_of(named)
        for root, paths in ((one, paths) for one in roots for paths in _pictures_of(one, deep=bool(self.roots))):
            for path in filter(_PICTURE.search, paths.filter(pc.invert(pc.is_in(paths, value_set=named))).to_pylist()):
                is_mask = _MASK.search(path, len(root)) is not None
                counts[is_mask] += 1
                first.setdefault(is_mask, path)
        shown = {is_mask: printable_path(os.path.relpath(path)) for is_mask, path in first.items()}
        return replace(
            self, count=counts[False], example=shown.get(False, ""), masks=counts[True], mask=shown.get(True, "")
        )


def _absolute(folder: bytes, paths: pa.Array) -> pa.Array:
    """Return paths as those of the walk are: below the folder, without empty parts and dots between slashes."""
    for pattern, by in ((r"/(?:\.?/)+", "/"), (r"^(?:\.?/)+", "")):
        paths = pc.replace_substring_regex(paths, pattern, by)
    start, slash = binary_array([folder, b"/"]).cast(pa.large_binary())
    return pc.binary_join_element_wise(start, paths, slash)


_PICTURE: Final = re.compile(
    rb"(?:%s|/[^/.]+)\Z" % b"|".join(map(re.escape, map(str.encode, suffixes_of("images")))), re.I
)
"""A path with the suffix of a picture, or without any."""

_MASK: Final = re.compile(
    rb"/(?:[^/]*masks?|segmentations?|segmentation(?:class|object)|gt|ground_?truth|panoptic[^/]*|annotations?)/|"
    rb"[_-]masks?\.[a-z]+\Z",
    re.IGNORECASE,
)
"""A path below the root, of a mask."""


def _folders_of(paths: pa.Array) -> list[bytes]:
    folders = pc.unique(pc.replace_substring_regex(paths.drop_null(), r"/[^/]*\z", ""))
    return sorted(filter(os.path.isdir, folders.to_pylist()))


def _pictures_of(root: bytes, *, deep: bool) -> Iterator[pa.Array]:
    paths = pictures_below(root, deep=deep)
    while some := list(islice(paths, _AT_ONCE)):
        yield pa.array(some, pa.large_binary())


# The columns in the names of folders, as Hive and Spark write them: `country=de/year=2024/part-0.parquet`.
#
# Values are percent-decoded; `__HIVE_DEFAULT_PARTITION__` is null. A column is int64 where all its values are written
# as integers are, `7` and not `007`; else it is text. The same is what pyarrow, DuckDB and Spark read.


_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_REASON: Final = "from the names of folders"
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class Partitions(Step):
    """Add the columns that the folders of a file name, for files found below `paths`, as these were typed.

    `told_by_files` are the columns of all folders, `columns` those that are kept, with their Arrow types and whether
    they hold nulls.
    """

    is_of_file = True

    reads = ()

    paths: tuple[str, ...]
    selection: Selection = EVERY_COLUMN
    columns: tuple[tuple[str, pa.DataType, bool], ...] = ()
    told_by_files: tuple[str, ...] = ()

    @property
    def detected(self) -> str:
        shown = ", ".join(printable(name) for name, _, _ in self.columns)
        return f"columns {shown}, from the names of folders (input.partitions)"

    def of_files(self, listing: Listing) -> Partitions | None:
        found, files = dict[str, set[str | None]](), [entry.name for entry in listing.entries]
        first: tuple[str, ...] | None = None
        for file in files:
            values = _values(file, self.paths)
            if first is None:
                first = tuple(values)
            elif set(values) != set(first):
                raise SchemaError(_difference(files[0], first, file, tuple(values)))
            for name, value in values.items():
                found.setdefault(name, set()).add(value)
        if not found:
            return None
        kept = self.selection.of_some(list(found))
        columns = tuple((name, _type_of(found[name]), None in found[name]) for name in kept)
        return replace(self, columns=columns, told_by_files=tuple(found))

    def under(self, dataset: Types, labels: Labels) -> Partitions:  # noqa: ARG002
        """Return the step whose columns are text where the dataset's are: new folders may all have numbers."""
        text = {name for name, kind in dataset.items() if pa.types.is_string(kind)}
        return replace(
            self,
            columns=tuple((name, pa.string() if name in text else kind, null) for name, kind, null in self.columns),
        )

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name for column in columns}
        for name, _, _ in self.columns:
            if name in known:
                raise SchemaError(
                    f'the files hold a column "{printable(name)}", and their folders name it too; to read the columns '
                    f"of the files alone: {Set('input.partitions', 'none')}"
                )
        return [
            *columns,
            *(Column(pa.field(name, kind, nullable=null), reason=_REASON) for name, kind, null in self.columns),
        ]

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:
        values = _values(file, self.paths)
        added = []
        for name, kind, _ in self.columns:
            text = values[name]
            value = int(text) if text is not None and pa.types.is_int64(kind) else text
            added.append(pa.repeat(pa.scalar(value, kind), batch.num_rows))
        names = [*batch.schema.names, *(name for name, _, _ in self.columns)]
        return pa.RecordBatch.from_arrays([*batch.columns, *added], names=names)


def _values(file: str, paths: Sequence[str]) -> dict[str, str | None]:
    values = {unquote(name): unquote(value) for name, value in partition_values(file, paths).items()}
    return {name: None if value == _NULL else value for name, value in values.items()}


def _type_of(values: set[str | None]) -> pa.DataType:
    whole = all(value is None or (_INTEGER.fullmatch(value) and -(2**63) <= int(value) < 2**63) for value in values)
    return pa.int64() if whole and values != {None} else pa.string()


def _difference(one: str, names: Sequence[str], other: str, others: Sequence[str]) -> str:
    def shown(found: Sequence[str]) -> str:
        return ", ".join(f'"{printable(name)}"' for name in found) or "no columns"

    return (
        f"the folders of {one} name {shown(names)}, and those of {other} {shown(others)}; convert them apart, or leave "
        f"these columns out: {Set('input.partitions', 'none')}"
    )
