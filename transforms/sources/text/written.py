"""Text as people write values: `schema.columns.NAME.{strip, decimal, thousands, negative, format}`.

    " 1.234,50 €"   strip: "€", thousands: ".", decimal: ","     1234.5
    "12 %"          strip: "%"                                    12
    "-$268.75"      strip: "$"                                    -268.75
    "($268.75)"     strip: "$", negative: brackets                -268.75
    "31.12.2024"    format: "%d.%m.%Y"                            2024-12-31

A cell that is not written so is a reject: groups of thousands have three digits each, and a day that its month does not
have is none. The cleaned text is then cast as CSV cells are, exactly or as a reject.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import SchemaError
from ...format.flow.rejects import CellProblem
from ...format.schema.column_types import natural_type
from ...format.schema.schema import ColumnRule
from ...format.wording.hints import Add, set_column
from ...format.wording.printable import printable, quoted
from ...recipe.step import Column, Step, Stepped, as_text, is_text, with_column
from .cast import cast_column, number_options, problem_of, type_noun
from .declared import declared_type

_SPECIAL: Final = r"(?i)^[+-]?(nan|inf|infinity)$"
_ONLY_PYTHON: Final = ("%f", "%z")
"""Parts of a format that Arrow's strptime does not read, or reads and forgets."""

_SIGNS: Final = "+-\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0b\uff0d()"
"""What may say whether a number is less than zero."""

_HOURS: Final = ("%H", "%I", "%M", "%S", "%p")
_YEARS: Final = ("%Y", "%y")


@dataclass(frozen=True, slots=True)
class Written(Step):
    """Read a column of text as values of `rule`: stripped, with these signs, in one of these formats of strptime."""

    column: str
    rule: ColumnRule
    strip: bool | str = False
    decimal: str = "."
    thousands: str = ""
    formats: tuple[str, ...] = ()
    brackets: bool = False

    @property
    def keys(self) -> dict[str, str]:
        """The keys of `schema.columns` that make the column read so."""
        strip = self.strip if isinstance(self.strip, str) else "true" if self.strip else ""
        negative = "brackets" if self.brackets else ""
        given = {"strip": strip, "decimal": self.decimal, "thousands": self.thousands, "negative": negative}
        given |= {"format": "".join(self.formats), "type": self.rule.type or ""}
        return {key: value for key, value in given.items() if value and (key, value) != ("decimal", ".")}

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        """Where the type is left out, columns stay as they are."""
        known = {column.name: column for column in columns}
        if self.column not in known:
            return columns
        name, column = printable(self.column), known[self.column]
        if not is_text(column):
            raise SchemaError(
                f'column "{name}": strip, decimal, thousands, negative and format are for text, and it holds '
                f"{printable(str(column.field.type))}; leave them out"
            )
        target = self._target()
        if self.formats and not (types.is_date(target) or types.is_timestamp(target) or types.is_time(target)):
            raise SchemaError(f'column "{name}": a format is that of dates and times, and the type is {target}')
        if (
            self.formats
            and not types.is_time(target)
            and not all(any(y in form for y in _YEARS) for form in self.formats)
        ):
            raise SchemaError(f'column "{name}": a form without a year (%Y or %y) is that of no {type_noun(target)}')
        if types.is_floating(target) or types.is_integer(target):
            self._check_strip()
        elif self.thousands or self.decimal != "." or self.brackets:
            raise SchemaError(
                f'column "{name}": decimal, thousands and negative are for numbers, and the type is {target}'
            )
        made = Column(column.field.with_type(target), reason=self._reason(), rule=self._own_rule())
        return [made if one.name == self.column else one for one in columns]

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        if self.column not in batch.schema.names:
            return Stepped(batch)
        held = as_text(batch[self.column])
        text = self._stripped(held)
        if self.formats:
            values, problems = self._moments(text)
        else:
            values, problems = self._numbers(self._signed(text), held)
        problems = [_as_held(problem, held[problem.row].as_py()) for problem in problems]
        return Stepped(with_column(batch, self.column, values), None, tuple(problems))

    def _check_strip(self) -> None:
        """Raise `SchemaError` where `strip` makes another number: it has a sign, a digit or the decimal sign."""
        given = self.strip if isinstance(self.strip, str) else ""
        bad = [sign for sign in given if sign in _SIGNS or sign == self.decimal or sign.isnumeric()]
        if not bad:
            return
        left = "".join(sign for sign in given if sign not in bad)
        keys = [("strip", left if left.strip() else "true")]
        keys += [("negative", "brackets")] if {"(", ")"} & set(bad) else []
        taken = quoted("".join(bad))
        raise SchemaError(
            f'column "{printable(self.column)}": strip: {quoted(given)} takes {taken} off numbers, which '
            "makes other numbers of them; what strip names is taken off on both sides of a minus: "
            f"{Add(*(set_column(self.column, *key) for key in keys))}"
        )

    def _stripped(self, text: pa.Array) -> pa.Array:
        if self.strip is False:
            return text
        text = pc.utf8_trim_whitespace(text)
        if isinstance(self.strip, str):
            text = pc.utf8_trim_whitespace(pc.utf8_trim(text, characters=self.strip))
        return text

    def _signed(self, text: pa.Array) -> pa.Array:
        target = self._target()
        if not (types.is_floating(target) or types.is_integer(target)):
            return text
        around = rf"[\s\p{{Z}}{re.escape(self.strip)}]*" if isinstance(self.strip, str) else r"[\s\p{Z}]*"
        if isinstance(self.strip, str):
            text = pc.replace_substring_regex(text, rf"(?s)^{around}([+-]?){around}(.*?){around}$", r"\1\2")
        if self.brackets:
            text = pc.replace_substring_regex(text, rf"(?s)^\({around}(.*?){around}\)$", r"-\1")
        return text

    def _numbers(self, text: pa.Array, held: pa.Array) -> tuple[pa.Array, list[CellProblem]]:
        target = self._target()
        bad = np.zeros(0, np.int64)
        if self.thousands or self.decimal != ".":
            good = pc.match_substring_regex(text, f"{self._form()}|{_SPECIAL}")
            bad = np.flatnonzero(np.asarray(pc.invert(good).fill_null(False)))
            shown = text
            if self.thousands:
                text = pc.replace_substring(text, self.thousands, "")
            text = pc.replace_substring(text, self.decimal, ".") if self.decimal != "." else text
        if len(bad):
            text = pc.if_else(pa.array(~np.isin(np.arange(len(text)), bad)), text, pa.scalar(None, text.type))
        cells = text.cast(pa.large_binary()).cast(pa.binary())
        values, problems = cast_column(cells, target, self.column, keys=self.keys)
        example = f"1{self.thousands}234{self.decimal}5" if types.is_floating(target) else f"1{self.thousands}234"
        for row in bad.tolist():
            options = number_options(held[row].as_py(), target, self.column, self.keys)
            fix = f"declare it: {options}" if options else "fix the cell"
            said = f"is not a number that is written like {example}; {fix}"
            cell = shown[row].as_py().encode()
            problems.append(problem_of(row, cell, "BAD_TYPE", said, self.column, type_noun(target)))
        return values, sorted(problems, key=lambda problem: problem.row)

    def _form(self) -> str:
        """Return what a number looks like, as a regular expression: with all its groups, or with none."""
        point = rf"({re.escape(self.decimal)}[0-9]+)?"
        plain = rf"[+-]?[0-9]+{point}([eE][+-]?[0-9]+)?"
        if not self.thousands:
            return rf"^{plain}$"
        return rf"^{plain}$|^[+-]?[0-9]{{1,3}}({re.escape(self.thousands)}[0-9]{{3}})+{point}$"

    def _moments(self, text: pa.Array) -> tuple[pa.Array, list[CellProblem]]:
        target = self._target()
        unit = target.unit if types.is_timestamp(target) else "us"
        found = pa.nulls(len(text), pa.timestamp(unit))
        for form in self.formats:
            if found.null_count == text.null_count:
                break
            found = pc.coalesce(found, self._in_format(text, form, unit))
        missing = np.flatnonzero(np.asarray(pc.and_(found.is_null(), text.is_valid())))
        forms = " or ".join(self.formats)
        said = f"is not a {type_noun(target)} in the form {forms}; add its form to schema.columns.{self.column}.format"
        problems = [
            problem_of(row, text[row].as_py().encode(), "BAD_TYPE", said, self.column, type_noun(target))
            for row in missing.tolist()
        ]
        if types.is_timestamp(target) and target.tz is not None:
            return self._in_zone(text, found, target, problems)
        if types.is_time(target):
            return found.cast(pa.time64("us")).cast(target), problems
        return found.cast(target), problems

    def _in_zone(
        self, text: pa.Array, local: pa.Array, target: pa.DataType, problems: list[CellProblem]
    ) -> tuple[pa.Array, list[CellProblem]]:
        """Return local times as moments; one that is there twice, or never, as a clock is turned, is a problem."""
        first = pc.assume_timezone(local, target.tz, ambiguous="earliest", nonexistent="earliest")
        last = pc.assume_timezone(local, target.tz, ambiguous="latest", nonexistent="latest")
        unclear = np.flatnonzero(np.asarray(pc.not_equal(first, last).fill_null(False)))
        said = f"is there twice or never in {target.tz}, where clocks are turned then; give the time in UTC"
        problems += [
            problem_of(row, text[row].as_py().encode(), "BAD_TYPE", said, self.column, type_noun(target))
            for row in unclear.tolist()
        ]
        return first, sorted(problems, key=lambda problem: problem.row)

    def _in_format(self, text: pa.Array, form: str, unit: str) -> pa.Array:
        """Return the moments of the cells that have a format; Arrow reads them, and what it changed Python reads.

        Arrow takes February 31st for March 2nd: what it read must come back as the same text.
        """
        if any(part in form for part in _ONLY_PYTHON):
            return pa.array([_moment(cell, form) for cell in text.to_pylist()], pa.timestamp(unit))
        found = pc.strptime(text.cast(pa.string()), format=form, unit=unit, error_is_null=True)
        back = (
            pc.strftime(found, format=form) if unit == "s" else pc.strftime(found.cast(pa.timestamp("s")), format=form)
        )
        same = pc.equal(_without_zeros(back.cast(text.type)), _without_zeros(text)).fill_null(False)
        rows = np.flatnonzero(np.asarray(pc.and_(pc.invert(same), text.is_valid())))
        if not len(rows):
            return found
        again = pa.array([_moment(cell, form) for cell in text.take(pa.array(rows)).to_pylist()], pa.timestamp(unit))
        mask = np.ones(len(text), np.bool_)
        mask[rows] = False
        return pc.replace_with_mask(found, pa.array(~mask), again)

    def _target(self) -> pa.DataType:
        rule = self._own_rule()
        return declared_type(self.column, rule)

    def _own_rule(self) -> ColumnRule:
        """Return the rule with a type: numbers are float64, dates and times what their format tells."""
        if self.rule.type is not None:
            return self.rule
        if self.formats:
            timed = any(part in form for form in self.formats for part in _HOURS)
            dated = any(part in form for form in self.formats for part in _YEARS)
            kind = pa.date32() if not timed else pa.timestamp("us") if dated else pa.time64("us")
        else:
            kind = pa.float64() if self.thousands or self.decimal != "." or self.brackets else pa.string()
        known = natural_type(kind)
        assert known is not None
        return ColumnRule(known.name, self.rule.as_, self.rule.unit, self.rule.timezone, self.rule.nullable)

    def _reason(self) -> str:
        said = {"strip": self.strip or "", "thousands": self.thousands, "format": " or ".join(self.formats)}
        said["decimal"] = "" if self.decimal == "." else self.decimal
        said["negative"] = "brackets" if self.brackets else ""
        return ", ".join(f"{key} {value!r}" for key, value in said.items() if value)


def _as_held(problem: CellProblem, held: str) -> CellProblem:
    """Return the problem of a cell with its text as the file holds it: a user looks for that."""
    error, value = problem.error, printable(held)

    def said(message: str) -> str:
        return message.replace(f'"{error.value}"', f'"{value}"', 1)

    own = None if error.append_message is None else said(error.append_message)
    return replace(problem, error=replace(error, value=value, message=said(error.message), append_message=own))


def _moment(cell: Any, form: str) -> datetime | None:
    """Return a moment as Python reads it, of a time zone in UTC; None where the text has not the form."""
    if cell is None:
        return None
    try:
        found = datetime.strptime(cell, form)
    except ValueError:
        return None
    return found if found.utcoffset() is None else (found - found.utcoffset()).replace(tzinfo=None)  # type: ignore[operator]


def _without_zeros(text: pa.Array) -> pa.Array:
    """Return text whose numbers of two digits have no zero in front: `01/02` and `1/2` are one day."""
    return pc.replace_substring_regex(text, r"\b0([0-9])\b", r"\1")
