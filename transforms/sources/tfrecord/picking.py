"""Which existing records are kept: by expressions over columns, and by a table of keys.

where         records for which it is true stay
drop_where    records for which it is true go
drop          records that have a key of a CSV file go: its header names columns, a row is a value of each

  id               user,day                   a record goes if it has all values of a row
  17               u7,2024-01-31
  42               u9,2024-02-01
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...dataset.rows.numbered_rows import SourceColumns
from ...errors import InputError, UsageError
from ...format.batches.arrow_memory import I64, true_mask
from ...format.columns.flatten import stored
from ...format.columns.keys import stored_type
from ...format.schema.arrow_types import type_words
from ...format.wording.printable import NoColumnError, counted, printable
from ...inputs.contract.source import Frozen
from ...recipe.step import Column
from ...recipe.steps.where import Where

if TYPE_CHECKING:
    from ..registry.options import TfrecordInput


@dataclass(frozen=True, slots=True)
class Picking:
    """Which records of a schema are kept: `columns` are made of the features that have to be decoded for it."""

    columns: SourceColumns
    where: Where | None
    drop_where: Where | None
    keys: Keys | None

    @classmethod
    def plan(cls, frozen: Frozen, options: TfrecordInput, keys: Keys | None) -> Picking | None:
        """Return what the options ask for, None where they keep all.

        Raises:
            UsageError: records are plain bytes.
            SchemaError: an expression names no column, or does not fit its type.
        """
        where = None if options.where is None else Where(options.where, declares=False)
        drop_where = (
            None if options.drop_where is None else Where(options.drop_where, "input.drop_where", declares=False)
        )
        if where is None and drop_where is None and keys is None:
            return None
        every = columns_of(frozen).schema
        for one in (where, drop_where):
            if one is not None:
                one.plan([Column(column, column.name) for column in every])
        names = [name for one in (where, drop_where) if one is not None for name in one.reads]
        names += [one.name for one in keys.columns] if keys is not None else []
        return cls(columns_of(frozen, list(dict.fromkeys(names))), where, drop_where, keys)

    def left_out(self, decoded: pa.RecordBatch, file: str) -> npt.NDArray[np.bool_]:
        """Return which records go; `decoded` are the features of the columns."""
        batch = self.columns.batch(decoded.select(self.columns.features), file)
        gone = np.zeros(batch.num_rows, np.bool_)
        if self.where is not None:
            gone |= ~_holds(self.where, batch, file)
        if self.drop_where is not None:
            gone |= _holds(self.drop_where, batch, file)
        if self.keys is not None:
            gone |= self.keys.numbers(batch) >= 0
        return gone


def columns_of(frozen: Frozen, names: Sequence[str] | None = None) -> SourceColumns:
    """Return the columns of records. Raises `UsageError` where they are plain bytes."""
    if frozen.opaque:
        raise UsageError("input.where, drop and drop_where look at columns, and these records are plain bytes")
    return SourceColumns.of(frozen.schema, frozen.columns, frozen.labels, names, "these records")


def _holds(step: Where, batch: pa.RecordBatch, file: str) -> npt.NDArray[np.bool_]:
    keep = step.apply(batch, file).keep
    assert keep is not None
    return true_mask(keep)


_SIGNS: Final = ",;\t|"
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class KeyColumn:
    """The values of a column in the keys, each once; `pairs` are those with the columns before it, ascending.

    A pair is the number of what the columns before it hold, times the number of values, plus that of the value.
    """

    name: str
    values: pa.Array
    pairs: I64


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The keys of a file, in the types of the columns: `lines` are those of the different keys, by number."""

    file: str
    columns: tuple[KeyColumn, ...]
    lines: tuple[int, ...]

    @property
    def none(self) -> npt.NDArray[np.bool_]:
        return np.zeros(len(self.lines), np.bool_)

    def numbers(self, batch: pa.RecordBatch) -> I64:
        """Return the number of the key that each row has, -1 where it has none."""
        found = np.zeros(batch.num_rows, np.int64)
        for one in self.columns:
            values = pc.index_in(stored(batch[one.name]).cast(one.values.type), one.values)
            places = values.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            wanted = found * len(one.values) + places
            found = np.minimum(np.searchsorted(one.pairs, wanted), len(one.pairs) - 1)
            found[(one.pairs[found] != wanted) | (places < 0)] = -1
            missed = found < 0
            found[missed] = len(one.pairs)  # beyond all pairs of the next column
        found[missed] = -1
        return found

    def warnings(self, seen: npt.NDArray[np.bool_]) -> list[str]:
        """Return in words which keys no record has, where `seen` says it of each by its number."""
        lines = sorted(self.lines[number] for number in np.flatnonzero(~seen).tolist())
        if not lines:
            return []
        names = ", ".join(printable(one.name) for one in self.columns)
        shown = ", ".join(map(str, lines[:_SHOWN])) + (f" and {len(lines) - _SHOWN:,} more" if lines[_SHOWN:] else "")
        count = f"{len(lines):,} of {counted(len(seen), 'key')}"
        return [f"{self.file}: no record has {count} ({names}; line {shown})"]


def read_keys(path: str, file: str, columns: pa.Schema) -> Keys:
    """Return the keys of a CSV file, shown as `file`; its delimiter is the sign that makes columns of its header.

    Raises:
        InputError: the file cannot be read, has no keys, or a value is not of the type of its column.
        NoColumnError: its header names something else.
    """
    names, numbered = _rows_of(path, file, columns.names)
    other = next((name for name in names if name not in columns.names), None)
    if other is not None:
        raise NoColumnError(f"{file}: the first line", other, columns.names)
    if not numbered or len(set(names)) < len(names):
        raise InputError(f"{file}: the first line names columns, each once, and each other line is a key; it has none")
    for line, row in numbered:
        if len(row) != len(names) or "" in row:
            wanted = ", ".join(map(printable, names))
            raise InputError(f"{file} line {line}: a key has a value for each of {wanted}, and this one has not")
    lines = [line for line, _ in numbered]
    made, found = [], np.zeros(len(lines), np.int64)
    for at, name in enumerate(names):
        typed = _typed(f"{file} line", lines, columns.field(name), [row[at] for _, row in numbered])
        values = pc.unique(typed)
        wanted = found * len(values) + pc.index_in(typed, values).to_numpy().astype(np.int64)
        pairs, first, found = np.unique(wanted, return_index=True, return_inverse=True)
        made.append(KeyColumn(name, values, pairs))
    return Keys(file, tuple(made), tuple(lines[place] for place in first.tolist()))


def _rows_of(path: str, file: str, known: Sequence[str]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as opened:
            lines = opened.readlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {printable(str(error))}; give a CSV file in UTF-8") from error
    heads = {sign: next(csv.reader(lines[:1], delimiter=sign), []) for sign in _SIGNS}
    sign = next((sign for sign, names in heads.items() if set(names) <= set(known)), _SIGNS[0])
    rows = csv.reader(lines, delimiter=sign, strict=True)
    try:
        return next(rows, []), [(rows.line_num, row) for row in rows if row]
    except csv.Error as error:
        raise InputError(f"{file} line {rows.line_num}: {printable(str(error))}") from error


def _typed(where: str, lines: Sequence[int], column: pa.Field, values: Sequence[str]) -> pa.Array:
    """Return the values of a column of keys in the type that the dataset has."""
    kind = stored_type(column.type)
    name, words = printable(column.name), type_words(kind)
    if types.is_nested(kind):
        raise InputError(f'{where} 1: column "{name}" is {words} in the dataset, and a key is one value')
    try:
        return pa.array(values, pa.large_string()).cast(kind)
    except pa.ArrowInvalid:
        odd = next(place for place, value in enumerate(values) if not _is_of(value, kind))
        raise InputError(
            f'{where} {lines[odd]}: column "{name}": "{printable(values[odd])}" is not {words}, as the dataset has it'
        ) from None


def _is_of(value: str, kind: pa.DataType) -> bool:
    try:
        pa.scalar(value, pa.large_string()).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
