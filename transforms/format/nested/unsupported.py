"""Refuse the columns that no features hold, all of them at once, with what to do."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from ...errors import SchemaError
from ..schema.schema import ColumnRule
from ..wording.printable import printable
from .keys import unheld


def refuse_unsupported(columns: Iterable[pa.Field], name: str, leave_out: Callable[[Sequence[str]], str]) -> None:
    """Refuse the columns of a source that no features hold.

    `name` is that of the source, empty where it is not known; `leave_out` says how to leave columns out, given their
    names.

    Raises:
        SchemaError: there are any.
    """
    columns = list(columns)
    found = [(column, why) for column in columns if (why := unheld(column.type)) is not None]
    if not found:
        return
    gone = [column.name for column, _ in found]
    others = len(gone) < len(columns)
    where = f"{name}: " if name else ""
    if len(found) == 1:
        ((column, why),) = found
        fix = (
            f"keep it as JSON text: {_as_json(column.name)}{f'; or leave it out: {leave_out(gone)}' if others else ''}"
        )
        shown = printable(str(column.type))
        raise SchemaError(f'{where}column "{printable(column.name)}": {shown} is not supported, {why}; {fix}')
    lines = "".join(f'  "{printable(c.name)}": {printable(str(c.type))}, {why}\n' for c, why in found)
    fix = f"keep them as JSON text ({_as_json('NAME')}){f', or leave them out: {leave_out(gone)}' if others else ''}"
    raise SchemaError(f"{where}{len(found)} columns are not supported:\n{lines}{fix}")


def without_json(columns: Iterable[pa.Field], rules: Mapping[str, ColumnRule]) -> list[pa.Field]:
    """Return the columns that a config does not keep as JSON text."""
    return [column for column in columns if rules.get(column.name, ColumnRule()).as_ != "json"]


def _as_json(name: str) -> str:
    plain = name.isidentifier()
    return "--set " + shlex.quote(f"schema.columns.{name if plain else json.dumps(name, ensure_ascii=False)}.as=json")
