"""The columns that several typed files share, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from ...errors import SchemaError
from ...format.schema.arrow_checks import common_type, meaning, promoted_type
from ...format.wording.printable import printable
from ..contract.lacking import files_apart, lacking_files
from ..contract.selection import UNITE, exclude_columns


class FileColumns(Protocol):
    """The columns of a file: its footer, or what else planning reads of it."""

    @property
    def name(self) -> str:
        """The name of the file."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""

    @property
    def schema(self) -> pa.Schema:
        """The chosen columns, in the order of the file."""

    @property
    def null_reasons(self) -> tuple[str, ...]:
        """The reason why each chosen column may hold nulls, or not."""

    @property
    def in_ns(self) -> frozenset[str]:
        """The columns whose values are known to hold nanoseconds."""


@dataclass(frozen=True, slots=True)
class SharedColumns:
    """The columns of all files, why each may hold nulls or not, and the first file that has it, all in one order.

    `apart` are files that have none of the columns of any other one.
    """

    schema: pa.Schema
    reasons: tuple[str, ...]
    files: tuple[str, ...]
    apart: tuple[str, ...] = ()


def shared_columns(footers: Sequence[FileColumns], *, union: bool = False) -> SharedColumns:
    """Return the columns that all files have, in the order of the first, and what is known of the nulls of each.

    A column is nullable where any file's is, and of the type that holds the values of all exactly. With `union` they
    are the columns of any file, as they come first, and null where a file lacks one; integers and floats are promoted.

    Raises:
        SchemaError: two files differ; the message names both, the field and its types.
    """
    first = footers[0]
    fields: dict[str, pa.Field] = {}
    reasons: dict[str, str] = {}
    seen_in: dict[str, str] = {}
    widened: dict[str, str] = {}
    for other in footers:
        if other is not first and other.schema.equals(first.schema):
            continue
        if other is not first and not union:
            _check_names(first, other)
        for column, reason in zip(other.schema, other.null_reasons, strict=True):
            name = column.name
            if name not in fields:
                fields[name], reasons[name], seen_in[name] = column, reason, other.name
                continue
            kind = _common_type(fields[name], seen_in[name], column, other.name, union=union)
            if kind != meaning(fields[name].type):
                widened.setdefault(name, f"{fields[name].type} in {seen_in[name]}")
                fields[name] = fields[name].with_type(kind)
            elif kind != meaning(column.type):
                widened.setdefault(name, f"{column.type} in {other.name}")
            if column.type != fields[name].type and "list_view" in str(fields[name].type):
                fields[name] = fields[name].with_type(kind)  # Arrow casts no list to a view
            if column.nullable and not fields[name].nullable:
                fields[name] = fields[name].with_nullable(True)
                reasons[name] = f"{reason} ({other.name})"
    of_files = [(file.name, file.schema.names) for file in footers if union]
    lacking = lacking_files(of_files)
    why = [
        "; ".join([reasons[name], *(table[name] for table in (widened, lacking) if name in table)]) for name in fields
    ]
    schema = pa.schema([one.with_nullable(True) if one.name in lacking else one for one in fields.values()])
    return SharedColumns(schema, tuple(why), tuple(seen_in.values()), files_apart(of_files))


def _check_names(first: FileColumns, other: FileColumns) -> None:
    """Check that two files have the same columns, in any order.

    Raises:
        SchemaError: one has a column that the other lacks.
    """
    for one, two in ((first, other), (other, first)):
        column = next((column for column in one.schema if column.name not in two.schema.names), None)
        if column is None:
            continue
        shown = printable(column.name)
        if one is first:
            differ = f'{other.name} has no column "{shown}", and {first.name} has ({column.type})'
        else:
            differ = f'{other.name} has a column "{shown}" ({column.type}), and {first.name} has none'
        raise SchemaError(
            f"{differ}; read the columns of all files, null where a file lacks one: {UNITE}; "
            f"or leave the column out: {exclude_columns([column.name])}; or convert them apart"
        )


def _common_type(known: pa.Field, file: str, column: pa.Field, other: str, *, union: bool) -> pa.DataType:
    """Return the type that holds the values of a column in the files so far, and in another one.

    Raises:
        SchemaError: there is none.
    """
    if known.type == column.type:
        return meaning(known.type)
    kind = (promoted_type if union else common_type)(known.type, column.type)
    if kind is None:
        both = None if union else promoted_type(known.type, column.type)
        unite = "" if both is None else f"; or read both as {both}, where that is exact: {UNITE}"
        raise SchemaError(
            f'column "{printable(known.name)}" is {known.type} in {file}, and {column.type} in {other}; '
            f"write one of them again with the other's type, or convert them apart{unite}"
        )
    return kind
