"""The columns that several Parquet files share, and what is wrong with them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from ..errors import SchemaError
from ..format.printable import printable
from .arrow_checks import meaning
from .parquet_footer import Footer

_NAMED_COLUMNS: Final = 200
"""So many columns stand in a command that can be copied; more are for a config."""


def keep_columns(names: Sequence[str]) -> str:
    r"""Return how to keep some columns only.

    >>> keep_columns(["id", "first name"])
    '--set \'input.columns=["id", "first name"]\''
    """
    if len(names) > _NAMED_COLUMNS:
        return f"name the {len(names)} others in input.columns of a config"
    return f"--set {shlex.quote(f'input.columns={json.dumps(list(names))}')}"


def shared_schema(footers: Sequence[Footer]) -> tuple[pa.Schema, list[str]]:
    """Return the columns that all files have, as the first one has them; nullable where any file's is.

    Raises:
        SchemaError: two files differ; the message names both, the field and its types.
    """
    first = footers[0]
    fields = {column.name: column for column in first.schema}
    reasons = dict(zip(first.schema.names, first.null_reasons, strict=True))
    for other in footers[1:]:
        _compare(first, other)
        for column, reason in zip(other.schema, other.null_reasons, strict=True):
            if column.nullable and not fields[column.name].nullable:
                fields[column.name] = fields[column.name].with_nullable(True)
                reasons[column.name] = f"{reason} ({other.name})"
    return pa.schema(list(fields.values())), list(reasons.values())


def _compare(first: Footer, other: Footer) -> None:
    if other.schema.equals(first.schema):
        return
    theirs = {column.name: column for column in other.schema}
    mend = "convert them apart, or keep the columns that they share with input.columns"
    for column in first.schema:
        twin = theirs.pop(column.name, None)
        field_name = printable(column.name)
        if twin is None:
            raise SchemaError(
                f'{other.name} has no column "{field_name}", and {first.name} has ({column.type}); {mend}'
            )
        if meaning(twin.type) != meaning(column.type):
            raise SchemaError(
                f'column "{field_name}" is {column.type} in {first.name}, and {twin.type} in {other.name}; '
                "write one of them anew with the other's type, or convert them apart"
            )
    for extra in theirs.values():
        raise SchemaError(
            f'{other.name} has a column "{printable(extra.name)}" ({extra.type}), and {first.name} has none; {mend}'
        )
