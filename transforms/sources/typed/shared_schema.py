"""The columns that several typed files share, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from ...errors import SchemaError
from ...format.schema.arrow_checks import common_type, meaning
from ...format.wording.printable import printable
from ..contract.selection import exclude_columns


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


def shared_schema(footers: Sequence[FileColumns]) -> tuple[pa.Schema, list[str]]:
    """Return the columns that all files have, in the order of the first, and what is known of the nulls of each.

    A column is nullable where any file's is, and of the type that holds the values of all exactly.

    Raises:
        SchemaError: two files differ; the message names both, the field and its types.
    """
    first = footers[0]
    fields = {column.name: column for column in first.schema}
    reasons = dict(zip(first.schema.names, first.null_reasons, strict=True))
    widened: dict[str, str] = {}
    for other in footers[1:]:
        if other.schema.equals(first.schema):
            continue
        common = _common_types(first, fields, other)
        for column, reason in zip(other.schema, other.null_reasons, strict=True):
            name = column.name
            if common[name] != meaning(fields[name].type):
                widened.setdefault(name, f"{fields[name].type} in {first.name}")
                fields[name] = fields[name].with_type(common[name])
            elif common[name] != meaning(column.type):
                widened.setdefault(name, f"{column.type} in {other.name}")
            if column.nullable and not fields[name].nullable:
                fields[name] = fields[name].with_nullable(True)
                reasons[name] = f"{reason} ({other.name})"
    return pa.schema(list(fields.values())), [
        f"{reason}; {widened[name]}" if name in widened else reason for name, reason in reasons.items()
    ]


def _common_types(first: FileColumns, fields: Mapping[str, pa.Field], other: FileColumns) -> dict[str, pa.DataType]:
    """Return the type of each column that holds what the files have, and what another one has."""
    theirs = {column.name: column for column in other.schema}
    fix = "convert them apart, or leave the column out"
    common: dict[str, pa.DataType] = {}
    for name, column in fields.items():
        twin = theirs.pop(name, None)
        if twin is None:
            raise SchemaError(
                f'{other.name} has no column "{printable(name)}", and {first.name} has ({column.type}); '
                f"{fix}: {exclude_columns([name])}"
            )
        kind = meaning(column.type) if twin.type == column.type else common_type(column.type, twin.type)
        if kind is None:
            raise SchemaError(
                f'column "{printable(name)}" is {column.type} in {first.name}, and {twin.type} in {other.name}; '
                "write one of them again with the other's type, or convert them apart"
            )
        common[name] = kind
    for extra in theirs.values():
        raise SchemaError(
            f'{other.name} has a column "{printable(extra.name)}" ({extra.type}), and {first.name} has none; '
            f"{fix}: {exclude_columns([extra.name])}"
        )
    return common
