"""Rejects as people want them: equal ones together, with how many rows, the first of them, and each fix once.

    a.csv row 4: column "price": BAD_TYPE: "NA" is not a float; declare it: --set ...
    a.csv row 9: column "price": BAD_TYPE: "NA" is not a float; declare it: --set ...
    ──▶  2 rows, a.csv rows 4, 9: column "price": BAD_TYPE: "NA" is not a float; declare it: --set ...

Rows are equal if all their bad cells have the same columns, codes and messages; a message names the value.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ...transforms.dataset.storage.manifest_files import read_reject_lines
from ...transforms.format.wording.printable import escaped, printable
from ...transforms.inputs.files.formats import FORMATS

FIRST_REJECTS: Final = 20
"""The number of rejects that a summary lists; all of them are in the reject file."""

SHOWN_GROUPS: Final = 20
"""The number of groups that are shown; all rejects are in the reject file."""

GROUPED_ROWS: Final = 10_000
GROUPED_CELLS: Final = 100_000
"""So much of a reject file is looked at: it may have millions of rows, and a row as many bad cells as columns."""

_PLACES: Final = 3
_ALIKE: Final = 5
_QUOTED: Final = re.compile(r'"[^"]*"')


class Cell(NamedTuple):
    """An error in a cell, or in the whole row if `column` is None."""

    column: str | None
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class RejectGroup:
    """Rejects that are wrong in the same way: how many `rows`, the places of the first three, their bad cells."""

    rows: int
    first: tuple[str, ...]
    cells: tuple[Cell, ...]

    def to_json(self) -> dict[str, Any]:
        return {"rows": self.rows, "first": list(self.first), "errors": [cell._asdict() for cell in self.cells]}


class RejectHead(NamedTuple):
    """The start of a reject file: its `first` lines as JSON, and its groups."""

    first: tuple[str, ...] = ()
    groups: tuple[RejectGroup, ...] = ()


def read_head(root: str, path: str | None, file_format: str) -> RejectHead:
    """Read the start of a reject file of a dataset, as far as it is looked at; without a file it is empty.

    `file_format` is that of the source.
    """
    if path is None:
        return RejectHead()
    first: list[str] = []

    def documents() -> Iterator[dict[str, Any]]:
        for number, document in read_reject_lines(root, path):
            if number <= FIRST_REJECTS:
                first.append(json.dumps(document))
            yield document

    groups = group_rejects(_some(documents()), file_format)
    return RejectHead(tuple(first), groups)


def group_rejects(documents: Iterable[Mapping[str, Any]], file_format: str) -> tuple[RejectGroup, ...]:
    """Return lines of a reject file in groups: the largest first, equally large ones in the order of the file."""
    by_line = file_format in FORMATS and FORMATS[file_format].load().rows_are_lines
    found: dict[tuple[Cell, ...], list[Any]] = {}
    for document in documents:
        cells = tuple(Cell(e.get("column"), e["code"], e["message"]) for e in document["errors"])
        known = found.setdefault(cells, [0])
        known[0] += 1
        if len(known) <= _PLACES:
            known.append(_place(document, by_line=by_line))
    groups = [RejectGroup(rows, _shortened(places), cells) for cells, (rows, *places) in found.items()]
    return tuple(sorted(groups, key=lambda group: -group.rows))


def rejects_text(total: int, by_code: Mapping[str, int], groups: Sequence[RejectGroup]) -> str:
    """Return the counts of each code and the first 20 groups, one a line; a fix is in the first that needs it.

    After five groups that differ in quoted values alone come those that differ in more.
    """
    counts = ", ".join(
        f"{code} {count:,}" for code, count in sorted(by_code.items(), key=lambda item: (-item[1], item[0]))
    )
    shown = _varied(groups)[:SHOWN_GROUPS]
    reported: set[tuple[str | None, str, str]] = set()
    lines = [f"  {counts}"] if counts else []
    for group in shown:
        cells = [_cell_text(cell, reported) for cell in group.cells]
        reported.update((cell.column, cell.code, end) for cell in group.cells for end in _ends(cell.message))
        first = ", ".join(group.first)
        rows = "" if group.rows == 1 else f"{group.rows:,} rows, {'first ' * (group.rows > _PLACES)}"
        lines.append(f"  {rows}{escaped(first)}: {'; '.join(cells)}")
    hidden = total - sum(group.rows for group in shown)
    if hidden > 0:
        lines.append(f"  and {hidden:,} more")
    return "\n".join(lines)


def codes_of(groups: Iterable[RejectGroup]) -> dict[str, int]:
    codes: Counter[str] = Counter()
    for group in groups:
        codes[group.cells[0].code] += group.rows
    return dict(codes)


def _varied(groups: Iterable[RejectGroup]) -> list[RejectGroup]:
    """Return the groups, at their end those of which enough come before that differ in quoted values alone."""
    kinds: Counter[tuple[Cell, ...]] = Counter()
    first, rest = list[RejectGroup](), list[RejectGroup]()
    for group in groups:
        kind = tuple(cell._replace(message=_QUOTED.sub("", cell.message)) for cell in group.cells)
        kinds[kind] += 1
        (first if kinds[kind] <= _ALIKE else rest).append(group)
    return first + rest


def _cell_text(cell: Cell, reported: Container[tuple[str | None, str, str]]) -> str:
    column = f'column "{printable(cell.column)}": ' if cell.column is not None else ""
    fix = next((end for end in _ends(cell.message) if (cell.column, cell.code, end) in reported), "")
    return f"{column}{cell.code}: {escaped(cell.message.removesuffix(fix))}"


def _ends(message: str) -> list[str]:
    """Return how a message ends, from each semicolon on that is in no quoted value: what is to be done.

    >>> _ends('"a; b" is no number; declare it')
    ['; declare it']
    """
    ends = (message[at:] for at in range(1, len(message)) if message.startswith("; ", at))
    return [end for end in ends if end.count('"') % 2 == 0]


def _some(documents: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    cells = 0
    for number, document in enumerate(documents, 1):
        yield document
        cells += len(document["errors"])
        if number == GROUPED_ROWS or cells >= GROUPED_CELLS:
            return


def _place(document: Mapping[str, Any], *, by_line: bool) -> tuple[str, str]:
    """Return where a reject came from: the file with all that comes before the row, and the row or its line."""
    file = str(document["source"])
    if document.get("row_group") is not None:
        file += f" row group {document['row_group']}"
    if by_line and document.get("line") is not None:
        return f"{file} line", str(document["line"])
    if document.get("row") is not None:
        return f"{file} row", str(document["row"])
    if document.get("record") is not None:
        offset = document.get("offset")
        return f"{file} record", f"{document['record']}{f' at byte {offset}' if offset is not None else ''}"
    if document.get("picture") is not None:
        return f"{file} picture", str(document["picture"])
    return file, ""


def _shortened(places: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return places as texts; several rows of one file name it once.

    >>> _shortened([("a.csv row", "4"), ("a.csv row", "9"), ("b.csv row", "1")])
    ('a.csv rows 4, 9', 'b.csv row 1')
    """
    files: dict[str, list[str]] = {}
    for file, row in places:
        files.setdefault(file, []).append(row)
    return tuple(
        f"{file}{'s' * (len(rows) > 1)} {', '.join(rows)}" if rows[0] else file for file, rows in files.items()
    )
