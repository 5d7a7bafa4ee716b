"""What becomes of the nulls of a column: `schema.columns.NAME.null`.

absent      the key is not in the record: how it is unless something else is asked for
fill: v     the value v
mask        a zero, an empty text or an empty list, and NAME/mask beside it: int64, 1 where there is a value, else 0
drop_row    the row is left out, and counted as dropped
error       the row is a reject
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import SchemaError
from ...format.batches.rejects import CellError, CellProblem
from ...format.nested.flatten import empty_array, stored
from ...format.nested.keys import MASK, is_flat, stored_type
from ...format.schema.arrow_types import is_list
from ...format.schema.column_types import is_binary, is_string
from ...format.wording.hints import set_column
from ...format.wording.printable import NoColumnError, printable, quoted
from ..step import Column, Labels, Step, Stepped, Types, as_text, with_column

FILL: Final = "fill"


@dataclass(frozen=True, slots=True)
class Nulls(Step):
    """Do with the nulls of a column as `how` says; `fill` is the value of `fill`, `kind` the type in an append."""

    column: str
    how: str
    fill: str | int | float | bool | None = None
    kind: pa.DataType | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

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
        value = zero_of(kind) if self.how == MASK else self.fill
        try:
            return scalar_of(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SchemaError(
                f'column "{name}": {value!r} is no value of its type, {printable(str(kind))}; '
                f"give one: {set_column(name, 'null', '{fill: VALUE}')}"
            ) from error


@dataclass(frozen=True, slots=True)
class NullWords(Step):
    """Make some values of a column null: `schema.columns.NAME.null_values`, of numbers and times those they say."""

    column: str
    words: tuple[str, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        """Where the column is left out, columns stay as they are."""
        known = {column.name: column for column in columns}
        if self.column not in known:
            return columns
        column = known[self.column]
        kind = _plain(empty_array(column.field.type)).type
        self._values(kind)
        field, said = column.field.with_type(kind).with_nullable(True), ", ".join(map(printable, self.words))
        reason, form = f"null where it is {said}", column.origin or column.form
        made = replace(column, field=field, origin=None, form=form, reason=reason)
        return [made if one is column else one for one in columns]

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        if self.column not in batch.schema.names:
            return Stepped(batch)
        values = _plain(batch[self.column])
        found = pc.is_in(values, value_set=self._values(values.type))
        return Stepped(with_column(batch, self.column, pc.if_else(found, pa.scalar(None, values.type), values)))

    def _values(self, kind: pa.DataType) -> pa.Array:
        """Return the words as values of a type. Raises `SchemaError` where none of them is one."""
        words = pa.array(self.words, pa.string())
        values = [_cast(words[i], kind) for i in range(len(words))] if is_flat(kind) and not is_list(kind) else []
        found = [one for one in values if one is not None]
        if not found:
            said = ", ".join(map(quoted, self.words))
            raise SchemaError(
                f'column "{printable(self.column)}": null_values: {said}: no value of its type, '
                f"{printable(str(kind))}; leave the key out"
            )
        return pa.array(found, kind)


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


def zero_of(kind: pa.DataType) -> Any:
    """Return the zero of a type: 0, "", b"", false, or as many of them as a list of one length has; else no values."""
    if is_list(kind):
        return []
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
