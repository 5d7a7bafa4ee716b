"""Columns of paths become columns of the bytes of these files: `schema.columns.NAME.file: path`, or `image: path`.

    clip             clip
    a/1.wav    ──▶   52 49 46 46 ...    the file's own bytes, below `schema.files_root`, or beside the table
    a/2.wav          MISSING_FILE       a reject of its row, as is any path that leads elsewhere
    null             null

A list of paths becomes a list of bytes. Files are read for some rows at a time, so that a batch of many large ones is
never in memory at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from ...errors import SchemaError
from ...format.batches.arrow_memory import binary_array
from ...format.batches.rejects import CellError, CellProblem
from ...format.columns.flatten import stored
from ...format.columns.keys import is_any_list, stored_type
from ...format.wording.hints import set_column
from ...format.wording.printable import NoColumnError, printable
from ...inputs.files.below_root import FileProblem, FilesBelow
from ..step import Column, Step, Stepped, as_text, is_text, with_column

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
    """Return paths of which each ends with a suffix."""

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
