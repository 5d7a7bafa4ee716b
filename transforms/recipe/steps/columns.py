"""Steps on columns: keep, rename, add constants; and what becomes of nulls (`schema.columns.NAME.null`) and lists.

absent      the key is not in the record: how it is unless something else is asked for
fill: v     the value v
mask        a zero, an empty text or an empty list, and NAME/mask beside it: int64, 1 where there is a value, else 0
drop_row    the row is left out, and counted as dropped
error       the row is a reject
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import SchemaError
from ...format.batches.arrow_memory import array_of, true_mask
from ...format.batches.rejects import CellError, CellProblem
from ...format.columns.feature_column import item_for_null, lists_of
from ...format.columns.flatten import empty_array, stored
from ...format.columns.keys import MASK, is_any_list, is_flat, stored_type
from ...format.schema.arrow_types import ColumnLayout, is_list, type_words
from ...format.schema.column_types import is_binary, is_string
from ...format.wording.hints import set_column
from ...format.wording.printable import NoColumnError, counted, printable, quoted
from ...inputs.contract.selection import Selection
from ..step import Column, ColumnStep, Labels, Step, Stepped, Types, as_text, is_text, with_column

FILL: Final = "fill"


@dataclass(frozen=True, slots=True)
class Nulls(ColumnStep):
    """Do with the nulls of a column as `how` says; `fill` is the value of `fill`, `kind` the type in an append.

    A list of `length` is masked by as many zeros.
    """

    how: str
    fill: str | int | float | bool | None = None
    kind: pa.DataType | None = None
    length: int | None = None

    def under(self, dataset: Types, labels: Labels) -> Nulls:
        return self if self.column in labels else replace(self, kind=dataset.get(self.column))

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name: column for column in columns}
        if self.column not in known:
            raise NoColumnError("schema.columns", self.column, list(known))
        column = known[self.column]
        if self.how in (FILL, MASK):
            self._value(self.kind or column.field.type)
        field = column.field.with_nullable(False)
        if self.how in (FILL, MASK):
            field = field.with_type(_plain(empty_array(field.type)).type)
        made = replace(
            column, field=field, origin=None, form=column.origin or column.form, null=self.how, fill=self.fill,
            reason=f"null: {self.how}" + (f" {self.fill}" if self.how == FILL else ""),
        )  # fmt: skip
        planned = [made if one.name == self.column else one for one in columns]
        if self.how == MASK:
            mask = pa.field(f"{self.column}/{MASK}", pa.int64(), nullable=False)
            planned.append(Column(mask, reason=f'1 where "{printable(self.column)}" has a value'))
        return planned

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        values = batch[self.column]
        if self.how == "drop_row":
            return Stepped(batch, values.is_valid() if values.null_count else None)
        if self.how == "error":
            return Stepped(
                batch, None, tuple(map(self._problem, np.flatnonzero(np.asarray(values.is_null())).tolist()))
            )
        values = _plain(values)
        filled = pc.coalesce(values, self._value(values.type)) if values.null_count else values
        batch = with_column(batch, self.column, filled)
        if self.how == MASK:
            batch = with_column(batch, f"{self.column}/{MASK}", values.is_valid().cast(pa.int64()))
        return Stepped(batch)

    def _problem(self, row: int) -> CellProblem:
        text = f"null, and schema.columns.{printable(self.column)}.null is error: give it a value"
        return CellProblem(row, CellError(self.column, "DECLARED_NOT_NULL", "null", "a value", text))

    def _value(self, kind: pa.DataType) -> pa.Scalar:
        """Return the value that stands for null. Raises `SchemaError` where the type has none."""
        kind, name = stored_type(kind), printable(self.column)
        if not is_flat(kind):
            raise SchemaError(
                f'column "{name}": null: {self.how} does not fit {printable(str(kind))}; choose drop_row or error'
            )
        value = zero_of(kind, self.length or 0) if self.how == MASK else self.fill
        try:
            return scalar_of(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SchemaError(
                f'column "{name}": {value!r} is no value of its type, {printable(str(kind))}; '
                f"give one: {set_column(name, 'null', '{fill: VALUE}')}"
            ) from error


@dataclass(frozen=True, slots=True)
class NullWords(ColumnStep):
    """Make some values of a column null: `schema.columns.NAME.null_values`, of numbers and times those they say.

    Those of a nested column are values of its members.

    Words that `may_be_text` beside other values need not be values of the column's type: the source made them null.
    """

    words: tuple[str, ...]
    may_be_text: bool = False

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name: column for column in columns}
        if self.column not in known:
            return columns
        column = known[self.column]
        if not self._fit(column.field.type):
            return columns
        kind = self._without(empty_array(column.field.type)).type
        nullable = column.field.nullable or not types.is_struct(kind)
        field, said = column.field.with_type(kind).with_nullable(nullable), ", ".join(map(printable, self.words))
        reason, form = f"null where it is {said}", column.origin or column.form
        made = replace(column, field=field, origin=None, form=form, reason=reason)
        return [made if one is column else one for one in columns]

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        if self.column not in batch.schema.names:
            return Stepped(batch)
        values = batch[self.column]
        return Stepped(with_column(batch, self.column, self._without(values)) if self._fit(values.type) else batch)

    def _without(self, values: pa.Array) -> pa.Array:
        values = _plain(values)
        if types.is_struct(values.type):
            members = [self._without(values.field(i)) for i in range(values.type.num_fields)]
            pairs = zip(values.type, members, strict=True)
            fields = [pa.field(one.name, to.type, one.nullable or not types.is_struct(to.type)) for one, to in pairs]
            return pa.StructArray.from_arrays(members, fields=fields, mask=values.is_null())
        words = self._values(values.type)
        found = pc.is_in(values, value_set=words) if len(words) else None
        return values if found is None else pc.if_else(found, pa.scalar(None, values.type), values)

    def _fit(self, kind: pa.DataType) -> bool:
        """Return whether words are values of a type or of its members. Raises `SchemaError` where they have to be."""
        kind = _plain(empty_array(kind)).type
        found = any(len(self._values(one)) for one in _members(kind))
        if not found and not self.may_be_text:
            said = ", ".join(map(quoted, self.words))
            raise SchemaError(
                f'column "{printable(self.column)}": null_values: {said}: no value of its type, '
                f"{printable(str(kind))}; leave the key out"
            )
        return found

    def _values(self, kind: pa.DataType) -> pa.Array:
        words = pa.array(self.words, pa.string())
        values = [_cast(words[i], kind) for i in range(len(words))] if is_flat(kind) and not is_list(kind) else []
        found = [one for one in values if one is not None]
        return pa.array(found, kind if found else None)


def _members(kind: pa.DataType) -> list[pa.DataType]:
    return [found for one in kind for found in _members(one.type)] if types.is_struct(kind) else [kind]


def _cast(word: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    try:
        return word.cast(kind)
    except pa.ArrowException:
        return None


def _plain(values: pa.Array) -> pa.Array:
    """Return values of a type whose nulls Arrow can fill: not views of text and bytes."""
    values = stored(values)
    if types.is_string_view(values.type):
        return as_text(values)
    return values.cast(pa.large_binary()) if types.is_binary_view(values.type) else values


def zero_of(kind: pa.DataType, length: int = 0) -> Any:
    """Return the zero of a type: 0, "", b"", false, or as many of them as a list of one length has; else `length`."""
    if is_list(kind):
        return [zero_of(kind.value_type)] * length if length else []
    if types.is_fixed_size_list(kind):
        return [zero_of(kind.value_type)] * kind.list_size
    if is_string(kind):
        return ""
    if is_binary(kind):
        return b""
    return False if types.is_boolean(kind) else 0


def scalar_of(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Text stands for times too. Raises `ValueError` or an error of Arrow's where the type does not hold the value."""
    if isinstance(value, str) and types.is_floating(kind) and value in ("nan", "inf", "-inf"):
        return pa.scalar(float(value), kind)
    if isinstance(value, str) and not is_string(kind):
        if not types.is_temporal(kind):
            raise ValueError(value)
        return pa.scalar(value).cast(kind)
    if isinstance(value, bool) != types.is_boolean(kind) and not isinstance(value, list):
        raise ValueError(value)
    if isinstance(value, float) and types.is_integer(kind):
        raise ValueError(value)  # Arrow would cut it
    return pa.scalar(value, kind)


# What the lists of a column are made of: `schema.columns.NAME.null_item` and `schema.columns.NAME.length`.
#
#     null_item: 0.0   [1.0, null, 3.0]   [1.0, 0.0, 3.0], also in lists of lists
#     length: 3        [1, 2]             a reject; the feature has the shape [3]
#
# A batch has lists of any length, so that a null costs nothing however long the others are.


_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Lists(ColumnStep):
    """Hold the lists of a column to a length, and fill the nulls in them; `kind` is the type in an append."""

    length: int | None = None
    null_item: str | int | float | bool | None = None
    kind: pa.DataType | None = None

    def under(self, dataset: Types, labels: Labels) -> Lists:  # noqa: ARG002
        return replace(self, kind=dataset.get(self.column))

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name: column for column in columns}
        if self.column not in known:
            if self.kind is None:
                raise NoColumnError("schema.columns", self.column, list(known))
            return columns  # a file of an append may lack it
        column = known[self.column]
        kind = stored_type(column.field.type)
        if self.kind is not None and is_any_list(self.kind) and is_text(column):
            kind = pa.large_list(self.kind.value_type)  # so far the column has no value
        self._check_length(column.field.type, kind)
        self._check_item(column.field.type, kind)
        field = column.field.with_type(self._made(empty_array(kind))[0].type)
        made = replace(column, field=field, length=None if types.is_fixed_size_list(kind) else self.length)
        return [made if one is column else one for one in columns]

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        if self.column not in batch.schema.names:
            return Stepped(batch)
        values, problems = self._made(stored(batch[self.column]))
        return Stepped(with_column(batch, self.column, values), None, tuple(problems))

    def _made(self, values: pa.Array) -> tuple[pa.Array, list[CellProblem]]:
        if self.null_item is not None:
            values = _filled(values, self.null_item)
        if self.length is None or types.is_fixed_size_list(values.type):
            return values, []
        cells, there, problems = lists_of(values), true_mask(values.is_valid()), list[CellProblem]()
        assert cells.offsets is not None
        lengths = np.diff(cells.offsets)
        odd = there & (lengths != self.length)
        for row in np.flatnonzero(odd).tolist():
            items = cells.values.slice(int(cells.offsets[row]), min(int(lengths[row]), _SHOWN)).to_pylist()
            problems.append(self._problem(row, items, int(lengths[row])))
        made = pa.LargeListArray.from_arrays(array_of(cells.offsets), cells.values, mask=array_of(odd | ~there))
        return made, problems

    def _check_length(self, given: pa.DataType, kind: pa.DataType) -> None:
        if self.length is None:
            return
        if not (is_any_list(kind) and is_flat(kind)):
            raise self._misfit("length", given)
        shape = list(ColumnLayout.of(self.column, given).shape)
        if -1 not in shape and shape not in ([], [self.length]):
            raise SchemaError(
                f'column "{printable(self.column)}": length is {self.length}, and the file says that each value has '
                f"the shape {shape}; leave the key out"
            )

    def _check_item(self, given: pa.DataType, kind: pa.DataType) -> None:
        if self.null_item is None:
            return
        if not is_any_list(kind):
            raise self._misfit("null_item", given)
        item = stored_type(kind if self.kind is None else self.kind)
        while is_any_list(item):
            item = stored_type(item.value_type)
        try:
            scalar_of(self.null_item, item)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            known = item_for_null(item)
            fix = "leave the key out" if known is None else f"give one: {set_column(self.column, 'null_item', known)}"
            raise SchemaError(
                f'column "{printable(self.column)}": null_item is {self.null_item!r}, which is no value of the items '
                f"of its lists, {printable(type_words(item))}; {fix}"
            ) from error

    def _misfit(self, key: str, given: pa.DataType) -> SchemaError:
        held = printable(type_words(given))
        return SchemaError(
            f'column "{printable(self.column)}": {key} is of lists of plain values, and the column holds {held}; leave '
            f"the key out"
        )

    def _problem(self, row: int, items: Sequence[object], length: int) -> CellProblem:
        words = [repr(item) if isinstance(item, str) else str(item) for item in items]
        shown = printable(f"[{', '.join([*words, '...'] if length > len(items) else words)}]")
        count, key = f'"{shown}" has {counted(length, "item")}', f"schema.columns.{printable(self.column)}.length"
        message = f"{count}, and {key} is {self.length}; fix the row, or leave the key out"
        in_append = f"{count}, and lists of the dataset have {self.length}; fix the file"
        wanted = f"a list of {counted(self.length or 0, 'item')}"
        return CellProblem(row, CellError(self.column, "BAD_WIDTH", shown, wanted, message, in_append))


def _filled(values: pa.Array, item: Any) -> pa.Array:
    """Return lists, at any depth, without nulls among their items; a list that is null stays one."""
    if not is_any_list(values.type):
        plain = _plain(values)
        return pc.fill_null(plain, scalar_of(item, plain.type)) if plain.null_count else plain
    mask = values.is_null() if values.null_count else None
    if types.is_fixed_size_list(values.type):
        size = values.type.list_size
        flat = stored(values.values.slice(values.offset * size, len(values) * size))
        return pa.FixedSizeListArray.from_arrays(_filled(flat, item), size, mask=mask)
    cells = lists_of(values)
    assert cells.offsets is not None
    return pa.LargeListArray.from_arrays(array_of(cells.offsets), _filled(cells.values, item), mask=mask)


# Steps that choose columns, name them and add them: some of them, other names, and columns of one value.


Scalar: TypeAlias = str | bool | int | float


@dataclass(frozen=True, slots=True)
class Keep(Step):
    """Keep some columns only, of a source that reads all of them: names alone say which."""

    reads = ()

    selection: Selection

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        kept = set(self.selection.pick([column.name for column in columns]))
        return [column for column in columns if column.name in kept]

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:  # noqa: ARG002
        return batch.select(self.selection.of_some(batch.schema.names))


@dataclass(frozen=True, slots=True)
class Rename(Step):
    """Give columns other names: pairs of the name in the source and the name in the dataset."""

    reads = ()

    names: tuple[tuple[str, str], ...]

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = [column.name for column in columns]
        for name, _ in self.names:
            if name not in known:
                raise NoColumnError("schema.columns", name, known)
        new = dict(self.names)
        return [column.renamed(new.get(column.name, column.name)) for column in columns]

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:  # noqa: ARG002
        new = dict(self.names)
        return batch.rename_columns([new.get(name, name) for name in batch.schema.names])


@dataclass(frozen=True, slots=True)
class Constants(Step):
    """Add columns whose values are the same in every row: (name, value, Arrow type) each."""

    values: tuple[tuple[str, Scalar, pa.DataType], ...]

    @classmethod
    def of(cls, values: Mapping[str, Scalar]) -> Constants:
        """Take text, bool, int64, or float32 as floats are stored. Raises `SchemaError` for an integer beyond int64."""
        return cls(tuple((name, value, _type_of(name, value)) for name, value in sorted(values.items())))

    def under(self, dataset: Types, labels: Labels) -> Constants:  # noqa: ARG002
        changed = []
        for name, value, kind in self.values:
            wanted = dataset.get(name, kind)
            changed.append((name, value, wanted if _fits(value, wanted) else kind))
        return replace(self, values=tuple(changed))

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name for column in columns}
        for name, _, _ in self.values:
            if name in known:
                raise SchemaError(
                    f'schema.constants names "{printable(name)}", which is a column of the source; leave that out '
                    f"(input.exclude_columns), or choose another name"
                )
        return [
            *columns,
            *(Column(pa.field(name, kind, nullable=False), reason="schema.constants") for name, _, kind in self.values),
        ]

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:  # noqa: ARG002
        added = [pa.repeat(pa.scalar(value, kind), batch.num_rows) for _, value, kind in self.values]
        names = [*batch.schema.names, *(name for name, _, _ in self.values)]
        return pa.RecordBatch.from_arrays([*batch.columns, *added], names=names)


def _type_of(name: str, value: Scalar) -> pa.DataType:
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise SchemaError(f'schema.constants: "{printable(name)}" is {value}, which int64 cannot hold')
        return pa.int64()
    return pa.float32() if isinstance(value, float) else pa.string()


def _fits(value: Scalar, kind: pa.DataType) -> bool:
    if isinstance(value, bool) != pa.types.is_boolean(kind):
        return False
    try:
        return bool(pa.scalar(value, kind).as_py() == value)
    except (pa.ArrowException, OverflowError):
        return False
