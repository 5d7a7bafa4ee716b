"""Parse cells that hold lists as text: `schema.columns.NAME.as: list`, with the `type` of their items.

    "[0.5, 0.25]"  "[0.5 0.25]"  "(0.5, 0.25)"  "0.5;0.25"     0.5, 0.25       one sign, or blanks, between all items
    "70 80 82"                                                 70, 80, 82
    "['a', 'b']"   '["a", "b"]'  "['a' 'b']"                   a, b            text is in brackets and quotes
    '{a,"b c",NULL}'                                           a, b c, null    an array of PostgreSQL
    "[]"                                                       no item

Without a `type` it is the first of int64, float64, bool and string that the most cells of the column are lists of. A
cell that is no list of such items is a reject.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError
from ...format.batches.arrow_memory import array_of, raw_values, text_array, true_mask
from ...format.batches.rejects import CellProblem
from ...format.columns.feature_column import item_for_null
from ...format.schema.arrow_types import is_list
from ...format.schema.column_types import natural_type
from ...format.schema.schema import ColumnRule
from ...format.wording.hints import set_column
from ...format.wording.printable import printable
from ...recipe.step import Column, ColumnStep, Labels, Stepped, Types, as_text, is_text, with_column
from .cast import cast_column, declared_type, problem_of

_ITEMS: Final = {
    "int64": r"-?(?:0|[1-9][0-9]*)",
    "float64": r"(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?i:nan|inf|infinity))",
    "bool": r"(?:true|True|TRUE|false|False|FALSE)",
}
_KINDS: Final = (*_ITEMS, "string")
_INSIDE: Final = r"\s*(?:(.*[^\s,])\s*,?)?\s*"
_BRACKETS: Final = rf"(?s)^\s*(?:\[{_INSIDE}\]|\({_INSIDE}\)|\{{{_INSIDE}\}})\s*$"
_BETWEEN: Final = (r"\s*,\s*", r"\s*;\s*", r"\s*\|\s*", r"\s+")
_ANY_BETWEEN: Final = r"\s*[,;|]\s*|\s+"
_IN_BRACKETS: Final = re.compile(r"\[.*\]|\(.*\)|\{.*\}", re.DOTALL)
_QUOTED: Final = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*""", re.DOTALL)
_OF_POSTGRES: Final = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|([^\s{}",\\]+))(,|\Z)', re.DOTALL)
_NULL: Final = re.compile(r"\b(?:null|NULL|None)\b")
_DAY: Final = re.compile(r"[0-9]{1,2}\. [0-9]{1,2}\. [0-9]{4}|[0-9]{4}\. [0-9]{1,2}\. [0-9]{1,2}\.")
_THOUSANDS: Final = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+")
_LONGEST_TEXT: Final = 1 << 20
_FEW: Final = re.compile(r"[;|]")
"""What is between two numbers of a list without brackets: with a comma or a blank two may be a place, or a range."""


def look_of(cells: Sequence[str], *, nulls: bool = False) -> str:
    """Return the type of items that all of some cells look like lists of, no text where they do not.

    With `nulls` an item may be null.

    >>> look_of(["[0.5, 1]", "[]"]), look_of(["70 80 82"]), look_of(["['a', 'b']"]), look_of(["12 30", "a, b"])
    ('float64', 'int64', 'string', '')
    """
    texts = [cell.strip() for cell in cells if not _THOUSANDS.fullmatch(cell)]
    lists = [
        _IN_BRACKETS.fullmatch(text) or _FEW.search(text) or text.count(" ") + text.count(",") > 1
        for text in texts
        if not _DAY.fullmatch(text)
    ]
    array = text_array(texts)
    kinds = _KINDS if all(lists) and len(lists) == len(texts) > 0 else ()
    found = next((kind for kind in kinds if _lists_in(array, kind, nulls=nulls)[1].all()), "")
    bare = found == "string" and all(
        _IN_BRACKETS.fullmatch(text) and re.fullmatch(r'\{[^",]+\}', text) for text in texts
    )
    return "" if bare else found  # {6F9619FF-8B86-D011-B42D-00C04FC964FF} is one value


@dataclass(frozen=True, slots=True)
class CellLists(ColumnStep):
    """Read a column of text as lists of `rule`'s type; `learned_type` is what all rows say where it names none.

    With `nulls` an item may be `null` or `None`.
    """

    rule: ColumnRule
    learned_type: str | None = None
    nulls: bool = False

    @property
    def learns(self) -> bool:
        return self.rule.type is None and self.learned_type is None

    @property
    def detected(self) -> str:
        kind = self.learned_type
        if kind is None:
            return ""
        declare = set_column(self.column, "type", kind)
        return f'column "{printable(self.column)}": lists of {kind}, as its rows show; to declare it: {declare}'

    def look(self, batch: pa.RecordBatch) -> list[int]:
        """Return how many cells are no lists of each type."""
        if self.column not in batch.schema.names:
            return [0] * len(_KINDS)
        text = as_text(batch[self.column])
        return [int(np.count_nonzero(~_lists_in(text, kind, nulls=self.nulls)[1])) for kind in _KINDS]

    def merge(self, one: list[int], other: list[int]) -> list[int]:
        return [a + b for a, b in zip(one, other, strict=True)]

    def learned(self, summary: list[int] | None) -> CellLists:
        bad = summary or [0]
        return replace(self, learned_type=_KINDS[bad.index(min(bad))])

    def under(self, dataset: Types, labels: Labels) -> CellLists:  # noqa: ARG002
        held = dataset.get(self.column)
        known = natural_type(held.value_type) if held is not None and is_list(held) else None
        if known is None or self.rule.type is not None:
            return self
        # float64 is held as float32, and no other float is learned
        return replace(self, learned_type="float64" if known.name == "float32" else known.name)

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name: column for column in columns}
        if self.column not in known:
            return columns
        column = known[self.column]
        if not is_text(column):
            raise SchemaError(
                f'column "{printable(self.column)}": as: list reads lists in text, and it holds '
                f"{printable(str(column.field.type))}; leave as out"
            )
        made = column.computed(pa.large_list(self._target()))
        made = replace(made, reason="a list in each cell of text", rule=ColumnRule(nullable=self.rule.nullable))
        return [made if one is column else one for one in columns]

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        if self.column not in batch.schema.names:
            return Stepped(batch)
        text, target = as_text(batch[self.column]), self._target()
        kind = {"i": "int64", "f": "float64", "b": "bool"}.get(_letter(target), "string")
        lists, good = _lists_in(text, kind, nulls=self.nulls)
        problems = [self._problem(row, text[row].as_py(), target) for row in np.flatnonzero(~good).tolist()]
        items, found = cast_column(lists.flatten().cast(pa.binary()), target, self.column)
        bad = ~good
        rows = pc.list_parent_indices(lists).to_pylist() if found else []
        for problem in found:
            row = rows[problem.row]
            if not bad[row]:
                problems.append(replace(problem, row=row))
                bad[row] = True
        values = pa.LargeListArray.from_arrays(lists.offsets, items, mask=array_of(bad | true_mask(text.is_null())))
        return Stepped(with_column(batch, self.column, values), None, tuple(sorted(problems, key=lambda one: one.row)))

    def _target(self) -> pa.DataType:
        return declared_type(self.column, replace(self.rule, type=self.rule.type or self.learned_type or "float64"))

    def _problem(self, row: int, cell: str, target: pa.DataType) -> CellProblem:
        shown = "text in brackets and quotes, as ['a', 'b']" if _letter(target) == "s" else f"{target} items"
        said = f"is not a list of {shown}; fix the cell, or declare another type of the items (schema.columns)"
        item = None if self.nulls or _NULL.search(cell) is None else item_for_null(target)
        if item is not None:
            said = (
                f"is not a list of {target} items alone; fill nulls in it: {set_column(self.column, 'null_item', item)}"
            )
        return problem_of(row, cell.encode(), "BAD_TYPE", said, self.column, f"a list of {target}")


def _letter(target: pa.DataType) -> str:
    tests = {"i": pa.types.is_integer, "f": pa.types.is_floating, "b": pa.types.is_boolean}
    return next((letter for letter, test in tests.items() if test(target)), "s")


def _lists_in(text: pa.Array, kind: str, *, nulls: bool = False) -> tuple[pa.LargeListArray, npt.NDArray[np.bool_]]:
    """Return the items in cells of large_string, as text, and which cells are lists, or null; others have no item."""
    if kind == "string":
        return _lists_of_text(text, (str, type(None)) if nulls else str)
    inside = pc.replace_substring_regex(text, _BRACKETS, r"\1\2\3")
    good, null = np.zeros(len(text), bool), true_mask(text.is_null())
    item = f"(?:{_ITEMS[kind]}|{_NULL.pattern})" if nulls else _ITEMS[kind]
    for between in _BETWEEN:
        one = rf"^\s*(?:{item}(?:{between}{item})*)?\s*$"
        good |= true_mask(pc.match_substring_regex(inside, one).fill_null(False))
    inside = pc.if_else(array_of(good), pc.utf8_trim_whitespace(inside), pa.scalar("", inside.type)).fill_null("")
    parts = pc.split_pattern_regex(inside, _ANY_BETWEEN)
    sizes = raw_values(pc.list_value_length(parts), np.int32).astype(np.int64)
    empty = true_mask(pc.equal(inside, ""))
    items = parts.flatten().filter(array_of(~np.repeat(empty, sizes)))
    if nulls:
        items = pc.if_else(pc.match_substring_regex(items, f"^{_NULL.pattern}$"), pa.scalar(None, items.type), items)
    ends = np.concatenate([[0], np.cumsum(np.where(empty, 0, sizes))])
    return pa.LargeListArray.from_arrays(array_of(ends), items), good | null


def _lists_of_text(text: pa.Array, items: type | tuple[type, ...]) -> tuple[pa.LargeListArray, npt.NDArray[np.bool_]]:
    found = [[] if cell is None else _texts_in(cell, items) for cell in text.to_pylist()]
    lists = pa.array([one or [] for one in found], pa.large_list(pa.large_string()))
    return lists, np.array([one is not None for one in found], bool)


def _texts_in(cell: str, items_are: type | tuple[type, ...]) -> list[str | None] | None:
    """Return the texts of a list that JSON, Python or NumPy wrote; None where it is none."""
    cell = cell.strip()
    if _IN_BRACKETS.fullmatch(cell) is None or len(cell) > _LONGEST_TEXT or cell[1:-1].strip() == ",":
        return None
    try:
        known: Any = json.loads(cell)
        known = known if known != {} else []  # of PostgreSQL
        return known if isinstance(known, list) and all(isinstance(one, items_are) for one in known) else None
    except (ValueError, RecursionError):
        pass
    inside, items, gaps, at = cell[1:-1].rstrip().removesuffix(","), list[str | None](), set[str](), 0
    while at < len(inside.rstrip()):
        match = _QUOTED.match(inside, at)
        if match is None:
            return _of_postgres(cell, items_are)
        items.append(ast.literal_eval(match[1]))
        comma = inside[match.end() : match.end() + 1] == ","
        at = match.end() + comma
        if at < len(inside.rstrip()) or comma:
            gaps.add("," if comma else " ")
    return items if len(gaps) <= 1 and inside[-1:] != "," else None


def _of_postgres(cell: str, items_are: type | tuple[type, ...]) -> list[str | None] | None:
    """Return the texts of a PostgreSQL array of one dimension; None where it is none."""
    items, at, inside = list[str | None](), 0, cell[1:-1]
    while cell[0] == "{" and (found := _OF_POSTGRES.match(inside, at)):
        items.append(None if found[2] == "NULL" else found[2] or re.sub(r"(?s)\\(.)", r"\1", found[1]))
        at = found.end()
    whole = at == len(inside) and not inside.endswith(",")
    return items if whole and all(isinstance(one, items_are) for one in items) else None
