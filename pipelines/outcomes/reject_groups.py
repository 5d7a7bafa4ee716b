"""Group rejects for people: by column and code, with the number of rows, three different values, each fix once.

    a.csv row 4: column "price": BAD_TYPE: "NA" is not a float; declare it: --set ...
    a.csv row 9: column "price": BAD_TYPE: "NA" is not a float; declare it: --set ...
    a.csv row 12: column "price": BAD_TYPE: "-" is not a float; declare it: --set ...
    ──▶  2 rows, a.csv rows 4, 9: column "price": BAD_TYPE: "NA" is not a float; declare it: --set ...
         a.csv row 12: column "price": BAD_TYPE: "-" is not a float

What is wrong with whole rows is grouped by what its message says, but for numbers and quoted values. The counts are
those of all rejects, and the values are the first ones in the order of the source, however the run was cut into tasks.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from ...transforms.dataset.storage.manifest_files import scan_reject_lines
from ...transforms.format.wording.printable import counted, escaped, printable
from ...transforms.inputs.files.file_names import FORMATS

FIRST_REJECTS: Final = 20
"""The number of rejects that a summary lists; all of them are in the reject file."""

SHOWN_GROUPS: Final = 20
"""The number of groups that are shown; all rejects are in the reject file."""

_EXAMPLES: Final = 3
_PLACES: Final = 3
_GROUPS_WITH_EXAMPLES: Final = 7
"""Of more groups one value each is shown, so that all are on one screen."""

_DETAILED: Final = 1_000
"""The most groups that have examples: of 100,000 bad columns the others are only counted."""

MOST_VALUES: Final = 100
"""Different values of a group that are kept, to find the keys that read them."""

_ALL_TEXT: Final = ("csv",)
"""Formats whose cells are all text, so that words and signs can be named."""

_OF_CASTS: Final = {"BAD_TYPE", "INT_OVERFLOW", "PRECISION_LOSS"}
_VARIES: Final = re.compile(r'"[^"]*"|[0-9]+')


class RejectedRun(NamedTuple):
    """What the rejects are of: `rows` that were read, of a format, with the keys of `schema.columns`."""

    rows: int
    file_format: str
    columns: Mapping[str, Any] = {}
    in_append: bool = False

    @classmethod
    def of(cls, rows: int, file_format: str, conversion: Mapping[str, Any], *, in_append: bool) -> RejectedRun:
        return cls(rows, file_format, conversion.get("schema", {}).get("columns", {}), in_append)


@dataclass(frozen=True, slots=True)
class RejectExample:
    """A message of a group: how many `rows` have it, the places of the first three, and the value."""

    rows: int
    first: tuple[str, ...]
    value: str
    message: str


@dataclass(frozen=True, slots=True)
class RejectGroup:
    """Rejects of a column, None for whole rows, with one code: how many `rows`, and the first three different messages.

    `advice` says how to read the column, where most of its rows are rejects.
    """

    column: str | None
    code: str
    rows: int
    examples: tuple[RejectExample, ...]
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        examples = [
            {"rows": one.rows, "first": list(one.first), "value": one.value, "message": one.message}
            for one in self.examples
        ]
        advice = {"advice": self.advice} if self.advice else {}
        return {"column": self.column, "code": self.code, "rows": self.rows, "examples": examples, **advice}


class RejectHead(NamedTuple):
    """A reject file: its `first` lines as JSON, and the groups of all."""

    first: tuple[str, ...] = ()
    groups: tuple[RejectGroup, ...] = ()


def read_head(root: str, path: str | None, run: RejectedRun) -> RejectHead:
    """Read a reject file of a dataset; without a file it is empty."""
    if path is None:
        return RejectHead()
    documents = scan_reject_lines(root, path)
    first = [*islice(documents, FIRST_REJECTS)]
    return RejectHead(tuple(map(json.dumps, first)), group_rejects(chain(first, documents), run))


class SampledRejects(NamedTuple):
    """The rejects of a sample: how many `rows`, how many of them have each code, and their groups."""

    rows: int = 0
    by_code: Mapping[str, int] = {}
    groups: tuple[RejectGroup, ...] = ()

    @classmethod
    def of(cls, documents: Sequence[Mapping[str, Any]], run: RejectedRun) -> SampledRejects:
        codes = Counter(code for document in documents for code in {one["code"] for one in document["errors"]})
        return cls(len(documents), dict(codes), group_rejects(documents, run))


@dataclass(slots=True)
class _Found:
    """What is known of a group so far: by message the rows, the value and the first places; and different values."""

    expected: str
    detailed: bool
    rows: int = 0
    last: int = -1
    messages: dict[str, list[Any]] = field(default_factory=dict)
    values: dict[str, None] = field(default_factory=dict)


def group_rejects(documents: Iterable[Mapping[str, Any]], run: RejectedRun) -> tuple[RejectGroup, ...]:
    """Return lines of a reject file in groups: the largest first, equally large ones in the order of the file."""
    by_line = run.file_format in FORMATS and FORMATS[run.file_format].load().rows_are_lines
    found: dict[tuple[str | None, str, str], _Found] = {}
    for number, document in enumerate(documents):
        for error in document["errors"]:
            column, code, message = error.get("column"), error["code"], error["message"]
            key = column, code, "" if column is not None else _VARIES.sub("", message)
            group = found.get(key)
            if group is None:
                detailed = len(found) < _DETAILED
                key = key if detailed else (column, code, "")
                group = found.setdefault(key, _Found(error.get("expected", ""), detailed))
            if group.last == number:  # two bad values of a list are one row
                continue
            group.rows, group.last = group.rows + 1, number
            known = group.messages.get(message)
            if known is not None:
                known[0] += 1
                if len(known[2]) < _PLACES:
                    known[2].append(_place(document, by_line=by_line))
            elif group.detailed:
                value = error.get("value", "")
                if len(group.values) < MOST_VALUES:
                    group.values[value] = None
                if len(group.messages) < _EXAMPLES:
                    group.messages[message] = [1, value, [_place(document, by_line=by_line)]]
    ordered = sorted(found.items(), key=lambda item: -item[1].rows)
    advice = _advice(ordered, run)
    return tuple(_group(key, one, "" if key[0] is None else advice.pop(key[0], "")) for key, one in ordered)


def _group(key: tuple[str | None, str, str], found: _Found, advice: str) -> RejectGroup:
    examples = tuple(
        RejectExample(rows, _shortened(places), value, message)
        for message, (rows, value, places) in found.messages.items()
    )
    return RejectGroup(key[0], key[1], found.rows, examples, advice)


def _advice(groups: Sequence[tuple[tuple[str | None, str, str], _Found]], run: RejectedRun) -> dict[str, str]:
    columns: dict[str, dict[str, _Found]] = {}
    for (column, code, _), found in groups:
        if column is not None and found.values:
            columns.setdefault(column, {})[code] = found
    advice = {}
    for name, codes in columns.items():
        failing = sum(found.rows for found in codes.values())
        if 2 * failing > run.rows and run.file_format in _ALL_TEXT and _OF_CASTS.issuperset(codes):
            from .column_advice import keys_that_read  # loads Arrow

            values = list(dict.fromkeys(value for found in codes.values() for value in found.values))
            how = {"in_append": run.in_append, "in_all": failing >= run.rows}
            expected, given = next(iter(codes.values())).expected, run.columns.get(name, {})
            advice[name] = keys_that_read(name, expected, values, given, **how)
    return {name: text for name, text in advice.items() if text}


def rejects_text(rows: int, by_code: Mapping[str, int], groups: Sequence[RejectGroup]) -> str:
    """Return the counts of each code and the first 20 groups, a line for each value; a fix is in the first line."""
    counts = ", ".join(
        f"{code} {count:,}" for code, count in sorted(by_code.items(), key=lambda item: (-item[1], item[0]))
    )
    lines = [f"  {counts}"] if counts else []
    reported: set[tuple[str | None, str, str]] = set()
    most = _EXAMPLES if len(groups) <= _GROUPS_WITH_EXAMPLES else 1
    advised = {group.column for group in groups if group.advice}
    for group in groups[:SHOWN_GROUPS]:
        lines += _group_lines(group, reported, most, advised=group.column in advised)
        if group.advice:
            failing = sum(one.rows for one in groups if one.column == group.column)
            what = f'{failing:,} of {counted(rows, "row")} fail in column "{printable(group.column)}"'
            lines.append(f"    {what}; {group.advice}")
    hidden = groups[SHOWN_GROUPS:]
    if hidden:
        lines.append(f"  and {sum(group.rows for group in hidden):,} more, of {counted(len(hidden), 'other kind')}")
    return "\n".join(lines)


def _group_lines(
    group: RejectGroup, reported: set[tuple[str | None, str, str]], most: int, *, advised: bool
) -> Iterator[str]:
    column = f'column "{printable(group.column)}": ' if group.column is not None else ""
    shown = group.examples[:most]
    for one in shown:
        said = _without_fix(one.message) if advised else _said_once(group, one.message, reported)
        count = "" if one.rows == 1 else f"{one.rows:,} rows, {'first ' * (one.rows > _PLACES)}"
        yield f"  {count}{escaped(', '.join(one.first))}: {column}{group.code}: {escaped(said)}"
    others = group.rows - sum(one.rows for one in shown)
    if others:
        which = f"with other values: {column}" if column else "of this kind: "
        yield f"  {counted(others, 'more row' if shown else 'row')} {which}{group.code}"


def _said_once(group: RejectGroup, message: str, reported: set[tuple[str | None, str, str]]) -> str:
    ends = [(group.column, group.code, end) for end in _ends(message)]
    fix = next((end for end in ends if end in reported), None)
    reported.update(ends)
    return message if fix is None else message.removesuffix(fix[2])


def _without_fix(message: str) -> str:
    return message.removesuffix(next(iter(_ends(message)), ""))


def _ends(message: str) -> list[str]:
    """Return how a message ends, from each semicolon on that is in no quoted value: what is to be done.

    >>> _ends('"a; b" is no number; declare it')
    ['; declare it']
    """
    ends = (message[at:] for at in range(1, len(message)) if message.startswith("; ", at))
    return [end for end in ends if end.count('"') % 2 == 0]


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
