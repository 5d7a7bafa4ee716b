"""Refuse the columns that no features hold, all of them at once, with what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from ...errors import SchemaError
from ..schema.schema import ColumnRule
from ..wording.hints import Add, set_column
from ..wording.printable import printable
from .as_json import has_json
from .keys import unheld


def refuse_unsupported(columns: Iterable[pa.Field], name: str, leave_out: Callable[[Sequence[str]], str]) -> None:
    """Raise a `SchemaError` with the columns of the source `name` ("" if unknown) that no features hold.

    `leave_out` says how to leave columns out, given their names.
    """
    columns = list(columns)
    found = [(column, why) for column in columns if (why := unheld(column.type)) is not None]
    if not found:
        return
    where = f"{name}: " if name else ""
    fix = _fix([column for column, _ in found], leave_out if len(found) < len(columns) else None)
    if len(found) == 1:
        ((column, why),) = found
        shown = printable(str(column.type))
        raise SchemaError(f'{where}column "{printable(column.name)}": {shown} is not supported, {why}; {fix}')
    lines = "".join(f'  "{printable(c.name)}": {printable(str(c.type))}, {why}\n' for c, why in found)
    raise SchemaError(f"{where}{len(found)} columns are not supported:\n{lines}{fix}")


def _fix(found: Sequence[pa.Field], leave_out: Callable[[Sequence[str]], str] | None) -> str:
    """Return what to do with columns; `leave_out` is None where there are no others."""
    one = len(found) == 1
    them = "it" if one else "them"
    texts = [column.name for column in found if has_json(column.type)]
    ways = []
    if texts:
        of = them if len(texts) == len(found) else ", ".join(f'"{printable(name)}"' for name in texts)
        ways.append(f"keep {of} as JSON text: {Add(*(set_column(name, 'as', 'json') for name in texts))}")
    if leave_out is not None:
        ways.append(f"leave {them} out: {leave_out([column.name for column in found])}")
    return ("; or " if one else ", or ").join(ways) or f"convert {them} before"


def without_json(columns: Iterable[pa.Field], rules: Mapping[str, ColumnRule]) -> list[pa.Field]:
    kept = {name for name, rule in rules.items() if rule.as_ == "json"}
    return [column for column in columns if column.name not in kept or not has_json(column.type)]
