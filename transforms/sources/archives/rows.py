"""Turn samples into rows: bytes of members stay as they are, and text in them is parsed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...format.batches.arrow_memory import array_of, binary_array, raw_values, text_array, true_mask
from ...format.batches.rejects import CellError, CellProblem, Place, Reject
from ...format.batches.rows import Rows
from ...format.wording.hints import Set
from ...format.wording.printable import printable_path
from ...recognise.pictures.layout import FolderRole, Layout, role_of
from ..images.pieces import LABEL
from ..jsonl.parse import LineParser, parse_lines
from .columns import CLASS_TEXT, PICTURE, ArchiveFrozen
from .samples import (
    CLASS,
    KEY,
    Form,
    MemberColumn,
    Naming,
    Sample,
    joined_line,
    lines_of,
    object_line,
    text_of,
    value_of,
)
from .tar import NOT_READ, Kind, MemberError

_AGAIN: Final = (
    'the key "{}" was in this archive before: members of a sample have to follow each other; make the archive again, '
    "sorted by name: tar --sort=name"
)


@dataclass(frozen=True, slots=True)
class SampleOrigin:
    """The origin of samples: their archive, their number in it from 1, their keys, and the offsets of their headers."""

    archive: str
    samples: tuple[tuple[int, bytes, int], ...]

    def place(self, row: int) -> Place:
        number, key, offset = self.samples[row]
        return Place(f"{self.archive}/{printable_path(key)}", row=number, offset=offset)

    def number(self, row: int) -> tuple[str, int]:
        return self.archive, self.samples[row][0]


class Numbered(NamedTuple):
    """A sample and its number, whether its key was there before, and whether it is above a limit."""

    number: int
    sample: Sample
    again: bool
    large: bool


class _SampleError(Exception):
    def __init__(self, column: str | None, code: str, text: str, value: str = "", expected: str = "a sample") -> None:
        super().__init__(text)
        self.error = CellError(column, code, value, expected, text)


@dataclass(slots=True)
class _Row:
    """A sample that may become a row: the bytes and names of its members by column, a line of JSON, and its folder."""

    number: int
    sample: Sample
    data: dict[str, bytes | memoryview] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    line: bytes = b"{}"
    role: FolderRole = field(default_factory=FolderRole)


@dataclass(frozen=True)
class SampleReader:
    """How samples become rows: what all pieces of a source share."""

    frozen: ArchiveFrozen
    naming: Naming
    parser: LineParser | None
    record_bytes: int

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.frozen.members)

    def is_read(self, column: MemberColumn) -> bool:
        return column.name in self.names or (column.form is Form.JSON and self.parser is not None)

    def rows(self, samples: Sequence[Numbered], archive: str, task: int, ordinal: int, entry: int) -> Rows:
        good: list[_Row] = []
        rejects: list[Reject] = []
        for one in samples:
            try:
                good.append(self._row(one))
            except _SampleError as error:
                rejects.append(_reject(entry, archive, one.number, one.sample, error.error))
        parsed, kept, problems = self._parsed(good, archive, entry, rejects)
        good = [good[index] for index in kept]
        arrays = {name: self._members(name, form, good) for name, form in self.frozen.members if name not in parsed}
        wanted = {one.name: one for one in self.frozen.schema}
        if KEY in wanted:
            arrays[KEY] = text_array([row.sample.key.decode() for row in good])
        if LABEL in wanted:
            numbers = {name: number for number, name in enumerate(self.frozen.labels[LABEL])}
            arrays[LABEL] = array_of(np.array([numbers[row.role.class_name or ""] for row in good], np.int64))
        if CLASS_TEXT in wanted:
            arrays[CLASS_TEXT] = text_array([row.role.class_name for row in good])
        arrays |= parsed
        codes = None
        if self.frozen.splits:
            splits = {name: code for code, name in enumerate(self.frozen.splits)}
            codes = np.array([splits[row.role.split or ""] for row in good], np.int64)
        if CLASS in self.frozen.labels and CLASS in arrays:
            arrays[CLASS], more = _classes(arrays[CLASS], len(self.frozen.labels[CLASS]))
            problems += more
        batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
        origin = SampleOrigin(archive, tuple((row.number, row.sample.key, row.sample.header) for row in good))
        rejects.sort(key=lambda one: one.place.row or 0)
        return Rows(task, ordinal, entry, batch, origin, tuple(problems), tuple(rejects), codes)

    def _row(self, one: Numbered) -> _Row:
        number, sample = one.number, one.sample
        if one.again:
            raise _SampleError(None, "BAD_WIDTH", _AGAIN.format(printable_path(sample.key)))
        row = _Row(number, sample)
        values: list[tuple[str, bytes]] = []
        seen: dict[str, bytes] = {}
        for part in sample.parts:
            column, name = self.naming.column_of(part.suffix), _text(part.name)
            if column is None or name is None:
                shown = printable_path(part.name)
                text = f'the name "{shown}" is not UTF-8, so it cannot be a feature; rename it'
                raise _SampleError(None, "BAD_UTF8", text, shown, "a name in UTF-8")
            if column.name in seen:
                raise _twice(column, printable_path(seen[column.name]), printable_path(part.name))
            seen[column.name] = part.name
            kind, value = part.member.kind, part.value
            if kind is not Kind.FILE:
                raise _not_read(column, "NOT_A_FILE", NOT_READ[kind], part.name)
            if isinstance(value, MemberError):
                raise _not_read(column, value.code, value.text, part.name)
            if value is not None:
                self._take(row, column, name, value, values)
        if one.large:
            raise self._too_large(sample)
        if self.frozen.layout != "flat":
            row.role = self._role(sample.key)
        row.line = joined_line(row.line, values)
        return row

    def _too_large(self, sample: Sample) -> _SampleError:
        read = [(self.naming.column_of(part.suffix), part.member.size) for part in sample.parts]
        size = sum(size for column, size in read if column is not None and self.is_read(column))
        text = (
            f'the members of "{printable_path(sample.key)}" have {size:,} bytes together, more than '
            f"limits.record_bytes ({self.record_bytes:,}); keep fewer columns, or, if its members are no single "
            f"sample, let keys end at the last dot: {Set('input.key', 'last_dot')}"
        )
        return _SampleError(None, "RECORD_TOO_LARGE", text, f"{size} bytes", f"at most {self.record_bytes} bytes")

    def _take(
        self, row: _Row, column: MemberColumn, name: str, data: bytes | memoryview, values: list[tuple[str, bytes]]
    ) -> None:
        if column.form in (Form.PICTURE, Form.BYTES):
            row.data[column.name], row.names[column.name] = data, name
            return
        try:
            if column.form is Form.JSON:
                row.line = object_line(bytes(data))
            else:
                values.append((column.name, (value_of if column.form is Form.VALUE else text_of)(bytes(data))))
        except MemberError as error:
            shown = printable_path(name)
            raise _SampleError(column.name, error.code, f'"{shown}" {error.text}', shown, "text in UTF-8") from error

    def _role(self, key: bytes) -> FolderRole:
        frozen = self.frozen
        role = _role_of(key.rpartition(b"/")[0].removeprefix(frozen.root), frozen.layout)
        wanted = [("split", role.split)] if frozen.splits else []
        wanted += [("class", role.class_name)] if LABEL in frozen.labels else []
        lacking = next((what for what, found in wanted if found is None), None)
        if lacking is not None:
            shown = printable_path(key)
            text = f'no {lacking} folder holds "{shown}"; move it into one, or set input.layout to flat'
            raise _SampleError(None, "DECLARED_NOT_NULL", text, shown, f"a picture in a {lacking} folder")
        return role

    def _parsed(
        self, good: Sequence[_Row], archive: str, entry: int, rejects: list[Reject]
    ) -> tuple[dict[str, pa.Array], Sequence[int], list[CellProblem]]:
        """Return the columns that are parsed from text, which rows are in them, and their bad cells."""
        if self.parser is None:
            return {}, range(len(good)), []
        parsed = parse_lines(self.parser, lines_of([row.line for row in good]), archive, entry)
        for one in parsed.rejects:
            row = good[(one.place.row or 1) - 1]
            rejects += [_reject(entry, archive, row.number, row.sample, _of_member(error)) for error in one.errors]
        kept = [int(row) - 1 for row in parsed.origin.rows]
        arrays = dict(zip(parsed.batch.schema.names, parsed.batch.columns, strict=True))
        return arrays, kept, list(parsed.problems)

    def _members(self, name: str, form: Form, rows: Sequence[_Row]) -> pa.Array:
        data = binary_array([row.data.get(name) for row in rows])
        if form is not Form.PICTURE:
            return data
        names = text_array([row.names.get(name) for row in rows])
        there = true_mask(data.is_valid())
        mask = None if there.all() else array_of(~there)
        return pa.StructArray.from_arrays([data, names], fields=list(PICTURE), mask=mask)


@lru_cache(1024)
def _role_of(folder: bytes, layout: Layout) -> FolderRole:
    return role_of(folder, layout)


def _text(name: bytes) -> str | None:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None


def _not_read(column: MemberColumn, code: str, text: str, name: bytes) -> _SampleError:
    shown = printable_path(name)
    return _SampleError(column.name, code, f'"{shown}" {text}', shown, "a file")


def _twice(column: MemberColumn, one: str, other: str) -> _SampleError:
    fix = "leave one out of the archive"
    if column.form is Form.PICTURE:
        fix = f"call pictures by their suffix ({Set('input.pictures', 'suffix')}), or {fix}"
    text = f'"{one}" and "{other}" would both be the column "{column.name}" of one sample; {fix}'
    return _SampleError(column.name, "BAD_WIDTH", text, other, "one member of a kind in each sample")


def _of_member(error: CellError) -> CellError:
    text = error.message.replace("fix the line: each must be", "fix the .json member: it must be")
    text = text.replace("of the line", "of the .json member").replace("the line is", "the .json member is")
    text = text.replace("the line ends", "the .json member ends").replace("; one a line", "")
    return CellError(error.column, error.code, error.value, error.expected, text, error.append_message)


def _classes(numbers: pa.Array, classes: int) -> tuple[pa.Array, list[CellProblem]]:
    values = raw_values(numbers, np.int64)
    bad = true_mask(numbers.is_valid()) & ((values < 0) | (values >= classes))
    if not bad.any():
        return numbers, []
    problems = []
    for row in np.flatnonzero(bad).tolist():
        value = str(values[row])
        text = f'"{value}" is no class: they are 0 to {classes - 1}; fix the member, or leave its sample out'
        problems.append(CellProblem(row, CellError(CLASS, "UNKNOWN_CLASS", value, f"0 to {classes - 1}", text)))
    return pc.if_else(array_of(bad), pa.nulls(1, pa.int64())[0], numbers), problems


def _reject(entry: int, archive: str, number: int, sample: Sample, error: CellError) -> Reject:
    place = SampleOrigin(archive, ((number, sample.key, sample.header),)).place(0)
    return Reject(entry, place, (error,))
