r"""Read values as people write them: `schema.columns.NAME.{strip, decimal, thousands, negative, format, escapes}`.

    " 1.234,50 €"   strip: "€", thousands: ".", decimal: ","     1234.5
    "12 %"          strip: "%"                                    12
    "5,3 km"        strip: "km", decimal: ","                     5.3
    "-$268.75"      strip: "$"                                    -268.75
    "($268.75)"     strip: "$", negative: brackets                -268.75
    "31.12.2024"    format: "%d.%m.%Y"                            2024-12-31
    "ja"            true_values: [ja], false_values: [nein]       true
    "a\tb"          escapes: true                                 a, a tab, b

A cell that is not written so is a reject: groups of thousands have three digits each, and a day that its month does not
have is none. So is a cell that two forms of a list read as different times: each row is read alone, and no other row
could tell which it is. The cleaned text is then cast as CSV cells are, exactly or as a reject.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import islice, product
from typing import Any, Final
from unicodedata import category, combining, normalize

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import SchemaError
from ...format.batches.arrow_memory import array_of, null_of, text_array, true_mask
from ...format.batches.rejects import CellProblem, may_be_left_out
from ...format.batches.rows import Rows
from ...format.schema.column_types import DEFAULT_UNIT, column_type, natural_type
from ...format.schema.schema import ColumnRule, Feature, Schema, same_feature
from ...format.wording.hints import Add, Set, set_column
from ...format.wording.printable import printable, quoted
from ...inputs.contract.source import DatasetSchema, Frozen, Survey, Task, refuse_others
from ...inputs.contract.tasks import first_pieces
from ...recipe.step import Column, ColumnStep, Stepped, as_text, is_text, with_column
from .cast import (
    FALSE,
    TRUE,
    cast_column,
    declared_type,
    null_fix,
    number_options,
    problem_of,
    turned_clock,
    type_noun,
)

_SPECIAL: Final = r"(?i)^[+-]?(nan|inf|infinity)$"
_ONLY_PYTHON: Final = ("%f", "%z")
"""Parts of a format that Arrow's strptime does not read, or reads and forgets."""

_MINUS: Final = "\u2212"
_SIGNS: Final = "+-\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0b\uff0d()"
"""What may say whether a number is less than zero."""

_BOOLS: Final = ([word.decode() for word in TRUE], [word.decode() for word in FALSE])
_NO_FRACTION: Final = re.compile(r"\.0+$")
_WORD: Final = re.compile(r"[^\W\d_]+[²³]?")
_POWER: Final = re.compile(r"(?<=[^\W\d_])[²³]")
_HOURS: Final = ("%H", "%I", "%M", "%S", "%p")
_YEARS: Final = ("%Y", "%y")


@dataclass(frozen=True, slots=True)
class Written(ColumnStep):
    """Read a column of text as values of `rule`: stripped, with these signs, in one of these formats of strptime.

    `bools` are the words that are true, and those that are false, beside `true` and `false` themselves.
    """

    rule: ColumnRule
    strip: bool | str = False
    decimal: str = "."
    thousands: str = ""
    formats: tuple[str, ...] = ()
    brackets: bool = False
    bools: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    escapes: bool = False

    @property
    def keys(self) -> dict[str, str]:
        """The keys of `schema.columns` that make the column read so."""
        strip = self.strip if isinstance(self.strip, str) else "true" if self.strip else ""
        negative = "brackets" if self.brackets else ""
        given = {"strip": strip, "decimal": self.decimal, "thousands": self.thousands, "negative": negative}
        given |= {"format": "".join(self.formats), "type": self.rule.type or ""}
        return {key: value for key, value in given.items() if value and (key, value) != ("decimal", ".")}

    @property
    def lacks_a_type(self) -> bool:
        """Whether it strips alone: what is left is text, whatever it looks like."""
        return self.keys.keys() == {"strip"}

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name: column for column in columns}
        if self.column not in known:
            return columns
        name, column = printable(self.column), known[self.column]
        if not is_text(column):
            raise SchemaError(
                f'column "{name}": strip, decimal, thousands, negative, format, true_values and false_values are for '
                f"text, and it holds {printable(str(column.field.type))}; leave them out"
            )
        target = self._target()
        if self.formats and not (types.is_date(target) or types.is_timestamp(target) or types.is_time(target)):
            raise SchemaError(f'column "{name}": a format is that of dates and times, and the type is {target}')
        dated = all(any(year in form for year in _YEARS) for form in self.formats)
        if not dated and not types.is_time(target):
            raise SchemaError(f'column "{name}": a form without a year (%Y or %y) is that of no {type_noun(target)}')
        if any("%z" in form for form in self.formats) and getattr(target, "tz", None) is None:
            typed = (
                [] if types.is_timestamp(target) else [set_column(self.column, "type", type_noun(pa.timestamp("us")))]
            )
            fix = Add(*typed, set_column(self.column, "timezone", "UTC")) if dated else "read it with its date"
            raise SchemaError(f'column "{name}": %z is an offset from UTC, and a {type_noun(target)} has none: {fix}')
        if self._is_number:
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
        elif self.bools[0]:
            values, problems = self._bools(text)
        else:
            values, problems = self._numbers(self._signed(text), held)
        problems = [_as_held(problem, held[problem.row].as_py()) for problem in problems]
        return Stepped(with_column(batch, self.column, values), None, tuple(problems))

    def _check_strip(self) -> None:
        """Raise `SchemaError` where `strip` makes another number: it has a sign, a digit or the decimal sign."""
        bad = self._parts_of_numbers
        if not bad:
            return
        given = str(self.strip)
        left = "".join(sign for sign in given if sign not in bad)
        keys = [("strip", left if left.strip() else "true")]
        keys += [("negative", "brackets")] if {"(", ")"} & set(bad) else []
        taken = quoted("".join(bad))
        raise SchemaError(
            f'column "{printable(self.column)}": strip: {quoted(given)} takes {taken} off numbers, which '
            "makes other numbers of them; what strip names is taken off on both sides of a minus: "
            f"{Add(*(set_column(self.column, *key) for key in keys))}"
        )

    @property
    def _parts_of_numbers(self) -> list[str]:
        """The signs, digits and decimal signs in `strip`."""
        given = self.strip if isinstance(self.strip, str) else ""
        return [sign for sign in _POWER.sub("", given) if sign in _SIGNS or sign == self.decimal or sign.isnumeric()]

    def _stripped(self, text: pa.Array) -> pa.Array:
        if self.escapes:
            rows = np.flatnonzero(true_mask(pc.match_substring(text, "\\")))
            said = [_ESCAPED.sub(_meant, one) for one in text.take(array_of(rows)).to_pylist()]
            text = pc.replace_with_mask(text, array_of(np.isin(np.arange(len(text)), rows)), pa.array(said, text.type))
        if self.strip is False:
            return text
        text = pc.utf8_trim_whitespace(text)
        if isinstance(self.strip, str) and not self._is_number:
            text = pc.utf8_trim_whitespace(pc.utf8_trim(text, characters=self.strip))
        return text

    @property
    def _is_number(self) -> bool:
        target = self._target()
        return bool(types.is_floating(target) or types.is_integer(target))

    @property
    def _around(self) -> str:
        """The regular expression of blanks, signs and whole words around a number.

        `m` does not take one letter off `mm`.
        """
        strip = self.strip if isinstance(self.strip, str) else ""
        words = sorted(_WORD.findall(strip), key=len, reverse=True)
        sign = rf"[\s\p{{Z}}{re.escape(_WORD.sub('', strip))}]"
        word = f"(?:{'|'.join(words)})"
        return f"{sign}*(?:{word}{sign}+)*{word}?{sign}*" if words else f"{sign}*"

    def _signed(self, text: pa.Array) -> pa.Array:
        if not self._is_number:
            return text
        around, text = self._around, pc.replace_substring(text, _MINUS, "-")
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
            bad = np.flatnonzero(true_mask(pc.invert(good)))
            shown = text
            if self.thousands:
                text = pc.replace_substring(text, self.thousands, "")
            text = pc.replace_substring(text, self.decimal, ".") if self.decimal != "." else text
        if len(bad):
            text = pc.if_else(array_of(~np.isin(np.arange(len(text)), bad)), text, null_of(text.type))
        cells = text.cast(pa.large_binary()).cast(pa.binary())
        values, problems = cast_column(cells, target, self.column, nulls=self.rule.nulls, keys=self.keys)
        example = f"1{self.thousands}234{self.decimal}5" if types.is_floating(target) else f"1{self.thousands}234"
        for row in bad.tolist():
            options = number_options(held[row].as_py(), target, self.column, self.keys)
            null = null_fix(held[row].as_py(), self.column, self.rule.nulls)
            fix = null or (f"declare it: {options}" if options else "fix the cell")
            said = f"is not a number that is written like {example}; {fix}"
            problems += self._problems(shown, np.array([row]), said)
        return values, sorted(problems, key=lambda problem: problem.row)

    def _bools(self, text: pa.Array) -> tuple[pa.Array, list[CellProblem]]:
        sides = [text_array([*words, *own]).cast(text.type) for words, own in zip(self.bools, _BOOLS, strict=True)]
        is_true, is_false = (pc.is_in(text, value_set=words) for words in sides)
        known = pc.or_(is_true, is_false)
        values = pc.if_else(known, is_true, null_of(pa.bool_()))
        problems = []
        for row in np.flatnonzero(true_mask(pc.and_(pc.invert(known), text.is_valid()))).tolist():
            cell = text[row].as_py()
            said = f"is none of the words in true_values and false_values; {self._fix_of_bool(cell)}"
            problems.append(problem_of(row, cell.encode(), "BAD_TYPE", said, self.column, "bool"))
        return values, problems

    def _fix_of_bool(self, cell: str) -> str:
        for key, words in zip(("true_values", "false_values"), self.bools, strict=True):
            if cell.strip().lower() in {word.lower() for word in words}:
                return f"add it: {set_column(self.column, key, [*words, cell])}"
        return null_fix(cell, self.column, self.rule.nulls) or (
            f"add it to one of them (schema.columns.{printable(self.column)})"
        )

    def _form(self) -> str:
        """Return what a number looks like, as a regular expression: with all its groups, or with none."""
        point = rf"({re.escape(self.decimal)}[0-9]+)?"
        plain = rf"[+-]?([0-9]+{point}|{re.escape(self.decimal)}[0-9]+)([eE][+-]?[0-9]+)?"
        if not self.thousands:
            return rf"^{plain}$"
        return rf"^{plain}$|^[+-]?[0-9]{{1,3}}({re.escape(self.thousands)}[0-9]{{3}})+{point}$"

    def _moments(self, text: pa.Array) -> tuple[pa.Array, list[CellProblem]]:
        target = self._target()
        unit = target.unit if types.is_timestamp(target) else "us"
        read = {form: _as_target(self._in_format(text, form, unit), target) for form in self.formats}
        found = pc.coalesce(*read.values())
        unclear = np.zeros(len(text), np.bool_)
        for one in read.values():
            unclear |= true_mask(pc.not_equal(found, one))
        problems = []
        for row in np.flatnonzero(unclear).tolist():
            said = self._unclear({form: one[row] for form, one in read.items() if one[row].is_valid})
            problems += self._problems(text, np.array([row]), said)
        missing = np.flatnonzero(true_mask(pc.and_(found.is_null(), text.is_valid())))
        forms = " or ".join(self.formats)
        said = f"is not a {type_noun(target)} in the form {forms}"
        other = f"add its form to schema.columns.{self.column}.format"
        for row in missing.tolist():
            fix = null_fix(text[row].as_py(), self.column, self.rule.nulls) or other
            problems += self._problems(text, np.array([row]), f"{said}; {fix}")
        if types.is_timestamp(target) and target.tz is not None:
            with_offset = [one.is_valid() for form, one in read.items() if "%z" in form]
            found, more = self._in_zone(text, found, target, with_offset)
            problems = [*problems, *(one for one in more if not unclear[one.row])]
        return found, sorted(problems, key=lambda problem: problem.row)

    def _unclear(self, read: Mapping[str, pa.Scalar]) -> str:
        """Return what is wrong with a cell that forms read differently, and the options that take one side."""
        one, *others = read
        other = next(form for form in others if read[form] != read[one])
        sides = [[form for form in self.formats if read.get(form, read[side]) == read[side]] for side in (one, other)]
        ways = [str(set_column(self.column, "format", kept[0] if len(kept) == 1 else kept)) for kept in sides]
        shown = [f"{_NO_FRACTION.sub('', str(read[form].cast(pa.string())))} as {form}" for form in (one, other)]
        return f"is {' and '.join(shown)}; name the form that it has: {', or '.join(ways)}"

    def _in_zone(
        self, text: pa.Array, local: pa.Array, target: pa.DataType, with_offset: Sequence[pa.Array]
    ) -> tuple[pa.Array, list[CellProblem]]:
        """Return local times as moments; one that is there twice, or never, as a clock is turned, is a problem."""
        first = pc.assume_timezone(local, target.tz, ambiguous="earliest", nonexistent="earliest")
        last = pc.assume_timezone(local, target.tz, ambiguous="latest", nonexistent="latest")
        for known in with_offset:
            moments = local.cast(pa.timestamp(target.unit, "UTC")).cast(target)
            first, last = (pc.if_else(known, moments, one) for one in (first, last))
        problems = []
        for row in np.flatnonzero(true_mask(pc.not_equal(first, last))).tolist():
            said = f"{turned_clock(local[row], target.tz)}; if the times are UTC: "
            said += str(set_column(self.column, "timezone", "UTC"))
            problems += self._problems(text, np.array([row]), said)
        return first, problems

    def _problems(self, text: pa.Array, rows: npt.NDArray[np.int64], said: str) -> list[CellProblem]:
        cells = [(row, text[row].as_py().encode()) for row in rows.tolist()]
        return [problem_of(*cell, "BAD_TYPE", said, self.column, type_noun(self._target())) for cell in cells]

    def _in_format(self, text: pa.Array, form: str, unit: str) -> pa.Array:
        """Return the moments of the cells that have a format; Arrow reads them, and what it changed Python reads.

        Arrow takes February 31st for March 2nd: what it read must come back as the same text.
        """
        for half, words in _HALVES.items() if "%p" in form else ():
            text = pc.replace_substring_regex(text, words, half)
        if any(part in form for part in _ONLY_PYTHON):
            return _each_moment(text, form, unit)
        found = pc.strptime(text.cast(pa.string()), format=form, unit=unit, error_is_null=True)
        back = pc.strftime(found if unit == "s" else found.cast(pa.timestamp("s")), format=form)
        same = array_of(true_mask(pc.equal(_without_zeros(back.cast(text.type)), _without_zeros(text))))
        if pc.all(pc.or_(same, text.is_null())).as_py():
            return found
        found = pc.if_else(same, found, null_of(found.type))
        like = pc.match_substring_regex(text, _shape(form))
        rows = np.flatnonzero(true_mask(pc.and_(pc.invert(same), like)))
        if not len(rows):
            return found
        again = _each_moment(text.take(array_of(rows)), form, unit)
        mask = np.zeros(len(text), np.bool_)
        mask[rows] = True
        return pc.replace_with_mask(found, array_of(mask), again)

    def _target(self) -> pa.DataType:
        return declared_type(self.column, self._own_rule())

    def _own_rule(self) -> ColumnRule:
        """Return the rule with a type: numbers are float64, dates and times what their format tells."""
        if self.rule.type is not None:
            return self.rule
        if self.bools[0]:
            kind = pa.bool_()
        elif self.formats:
            timed = any(part in form for form in self.formats for part in _HOURS)
            dated = any(part in form for form in self.formats for part in _YEARS)
            kind = pa.date32() if not timed else pa.timestamp("us") if dated else pa.time64("us")
        else:
            kind = pa.float64() if self.thousands or self.decimal != "." or self.brackets else pa.string()
        known = natural_type(kind)
        assert known is not None
        return replace(self.rule, type=known.name)

    def _reason(self) -> str:
        said = {"strip": self.strip or "", "thousands": self.thousands, "format": " or ".join(self.formats)}
        said["decimal"] = "" if self.decimal == "." else self.decimal
        said |= {"negative": "brackets" if self.brackets else "", "escapes": "true" if self.escapes else ""}
        said |= {"true_values": ", ".join(self.bools[0]), "false_values": ", ".join(self.bools[1])}
        return ", ".join(f"{key} {value!r}" for key, value in said.items() if value)


_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_MEANT: Final = {"0": "\0", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "Z": "\x1a"}
"""What dumps of PostgreSQL and MySQL write behind a backslash; any other character there means itself."""


def _meant(escaped: re.Match[str]) -> str:
    return _MEANT.get(escaped[1], escaped[1])


def _as_held(problem: CellProblem, held: str) -> CellProblem:
    """Return the problem of a cell with its text as the file holds it: a user looks for that."""
    error, value = problem.error, printable(held)

    def said(message: str) -> str:
        return message.replace(f'"{error.value}"', f'"{value}"', 1)

    own = None if error.append_message is None else said(error.append_message)
    return replace(problem, error=replace(error, value=value, message=said(error.message), append_message=own))


def _each_moment(text: pa.Array, form: str, unit: str) -> pa.Array:
    cells = text.to_pylist()
    read = {cell: _moment(cell, form) for cell in {*cells}}  # days come again
    return pa.array([read[cell] for cell in cells], pa.timestamp(unit))


_NO_NANOSECONDS: Final = re.compile(r"(?<=\.[0-9]{6})0{1,3}(?![0-9])")
"""What Oracle writes behind microseconds, of which strptime reads six digits."""


def _moment(cell: Any, form: str) -> datetime | None:
    """Return a moment as Python reads it, of a time zone in UTC; None where the text has not the form."""
    if cell is None:
        return None
    try:
        found = datetime.strptime(_NO_NANOSECONDS.sub("", cell) if "%f" in form else cell, form)
    except ValueError:
        english = _in_english(cell, form)
        return _moment(english, form) if english != cell else None
    return found if found.utcoffset() is None else (found - found.utcoffset()).replace(tzinfo=None)  # type: ignore[operator]


_HALVES: Final = {"AM": r"오전|午前|上午|πμ|π\.μ\.|a\. ?m\.", "PM": r"오후|午後|下午|μμ|μ\.μ\.|p\. ?m\."}
"""Words for the halves of a day, beside those that Python reads as `%p`."""

_ERAS: Final = {"令和": 2018, "平成": 1988, "昭和": 1925}
_ERA: Final = re.compile(f"({'|'.join(_ERAS)})([0-9]+|元)年")
"""A year of a Japanese era, which begins behind that year."""

_MONTHS: Final = (
    "january february march april may june july august september october november december",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "januar februar marz april mai juni juli august september oktober november dezember",
    "janner feber maerz april mai juni juli august september oktober november dezember",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "januar februar marts april maj juni juli august september oktober november desember",
    "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia wrzesnia pazdziernika listopada grudnia",
    "styczen luty marzec kwiecien maj czerwiec lipiec sierpien wrzesien pazdziernik listopad grudzien",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "январь февраль март апрель маи июнь июль август сентябрь октябрь ноябрь декабрь",
    "ιανουαριου φεβρουαριου μαρτιου απριλιου μαιου ιουνιου ιουλιου αυγουστου σεπτεμβριου οκτωβριου "
    "νοεμβριου δεκεμβριου",
    "ιανουαριος φεβρουαριος μαρτιος απριλιος μαιος ιουνιος ιουλιος αυγουστος σεπτεμβριος οκτωβριος "
    "νοεμβριος δεκεμβριος",
    "januar februar marcius aprilis majus junius julius augusztus szeptember oktober november december",
    "ledna unora brezna dubna kvetna cervna cervence srpna zari rijna listopadu prosince",
    "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
    "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
    "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesakuuta heinakuuta elokuuta syyskuuta lokakuuta "
    "marraskuuta joulukuuta",
    "ocak subat mart nisan mayis haziran temmuz agustos eylul ekim kasim aralik",
)  # fmt: skip
"""Names of months in lowercase without accents; their beginnings are read as short names."""

_LETTERS: Final = re.compile(r"[^\W\d_]{3,}")
_LONGEST_SHORT: Final = 4


@cache
def _months() -> tuple[dict[str, str], dict[str, str]]:
    """Return the English names of months by their names in other languages, and the short ones by short ones."""
    names, short = dict[str, str](), defaultdict[str, set[str]](set, {"mrt": {"Mar"}, "mrz": {"Mar"}, "szept": {"Sep"}})
    english = [name.capitalize() for name in _MONTHS[0].split()]
    for line in _MONTHS:
        for word, month in zip(line.split(), english, strict=True):
            names[word] = month
            for size in range(3, min(len(word), _LONGEST_SHORT) + 1):
                short[word[:size]].add(month[:3])
    return names, {word: found.pop() for word, found in short.items() if len(found) == 1}


def _in_english(cell: str, form: str) -> str:
    """Return a cell as strptime reads it: months and halves of the day in English, Z for UTC, no Japanese era."""
    for half, words in _HALVES.items() if "%p" in form else ():
        cell = re.sub(words, half, cell)
    cell = _ZONE.sub(lambda zone: _ZONES[zone[0]], cell) if "%z" in form else cell
    cell = _ERA.sub(lambda era: f"{_ERAS[era[1]] + int(era[2].replace('元', '1'))}年", cell) if "年" in form else cell
    for names, part in zip(_months(), ("%B", "%b"), strict=True):
        for found in _LETTERS.finditer(cell) if part in form else ():
            plain = "".join(one for one in normalize("NFKD", found[0].lower()) if not combining(one))
            if month := names.get(plain.replace("\u0131", "i")):
                rest = cell[found.end() :]
                dot = rest[:1] == "." and part == "%b" and "%b." not in form and not rest[1:2].isdigit()
                return f"{cell[: found.start()]}{month}{rest[dot:]}"
    return cell


def _shape(form: str) -> str:
    """Return what all text looks like that Python reads in a form, as a regular expression; some other text too."""
    parts = {"Y": r"(?:\p{N}{4}|\p{L}{2}(?:\p{N}{1,2}|元))"} | dict.fromkeys("dmyHIMSj", r"[ \p{N}]{1,3}")
    pieces = re.findall(r"%(.)|(\s+)|([^%\s]+)", form)
    made = (
        parts.get(part, ".*") if part else r"[\s\p{Z}\x1c-\x1f\x85]*" if gap else re.escape(sign)
        for part, gap, sign in pieces
    )
    return f"(?is)^{''.join(made)}$"


def _as_target(moments: pa.Array, target: pa.DataType) -> pa.Array:
    """Return moments as dates or times of day; those of a time zone stay local."""
    if types.is_timestamp(target):
        return moments
    return (moments.cast(pa.time64("us")) if types.is_time(target) else moments).cast(target)


def _without_zeros(text: pa.Array) -> pa.Array:
    """Return text whose numbers of two digits have no zero in front: `01/02` and `1/2` are one day."""
    return pc.replace_substring_regex(text, r"\b0([0-9])\b", r"\1")


# An append does not know the keys that its dataset was made with. Where no cell of a sample fits the dataset's type,
# the keys that read all of the sample are found by trying.

MOST_VALUES: Final = 100
"""Values of a column that are looked at."""

_FEW_VALUES: Final = 5
"""Values that most ways do not read, before all are looked at."""

_AROUND: Final = re.compile(r"([^0-9]*)[0-9].*?([^0-9]*)", re.DOTALL)
_SIGN: Final = re.compile(r"[^\W\d_]+[²³]?|[^\w\s.+-]")
_IN_A_NAME: Final = re.compile(r"[^\W\d_][.:_-][^\W\d_]")
_MOST_UNITS: Final = 4
_BOTH: Final = (
    (".", ""), (".", ","), (",", ""), (",", "."), (",", " "), (".", " "), (",", "\u00a0"), (".", "'"), (".", "\u2019"),
    (",", "\u202f"),
)  # fmt: skip
"""The decimal sign and that of thousands; `1,234` has thousands, where all values look so."""

_DAYS: Final = (
    *(f"%{a}{sign}%{b}{sign}%{c}" for sign in "./-" for a, b, c in ("dmY", "mdY", "Ymd", "dmy", "mdy")),
    *(f"%d{sign}%b{sign}%Y" for sign in ("", "-", " ", "/", ".")), *("%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
    *(f"%d{sign}%b{sign}%y" for sign in ("-", " ", ".")), "%d. %b %y",
    *(form for name in ("%b", "%B") for form in (f"%d. {name} %Y", f"%d de {name} de %Y", f"%d {name}, %Y")),
    "%d-%B-%Y", "%Y年%m月%d日", "%Y年 %m月 %d日", "%Y년 %m월 %d일", "%Y년%m월%d일", "%Y. %m. %d.", "%Y. %B %d.",
    "%Y. %b %d.", "%b %d %Y", "%d. %m. %Y", "%Y.%m.%d.",
)  # fmt: skip

_TIMES: Final = (
    "%H:%M:%S", "%H:%M", "%I:%M %p", "%I:%M:%S %p", "%H.%M", "%H:%M:%S.%f", "%H時%M分%S秒", "%H時%M分",
    "%H时%M分%S秒", "%H时%M分", "%p %I:%M", "%p %I:%M:%S", "%Hh%M", "%I:%M%p",
)  # fmt: skip
_WHOLE: Final = (
    "%d/%b/%Y:%H:%M:%S", "%d%b%Y:%H:%M:%S", "%d-%b-%y %I.%M.%S.%f %p", "%d-%b-%y %I.%M.%S %p",
    "%d-%b-%Y %I.%M.%S.%f %p", "%Y-%m-%d %H:%M:%S,%f",
)  # fmt: skip
"""Times of web servers, of SAS (`DATETIME.`), of Oracle, and of Python's logs."""

_MOST_FORMS: Final = 4


def refuse_misfits(
    read: Callable[[Task, Frozen], Iterator[Rows]], survey: Survey, cast: Schema, dataset: DatasetSchema
) -> None:
    """Raise `SchemaError` for a column of which no cell, in a sample, can be cast to the dataset's type.

    Single cells that cannot are rejects; but if none can, and no reject is allowed, the column has become another one,
    or keys are missing that the dataset was made with. The text shows both schemas, and the keys.
    """
    if not dataset.no_rejects:
        return
    good, bad, seen = Counter[str](), defaultdict[str, list[str]](list), 0
    for piece in first_pieces(survey):
        for rows in read(Task(0, (piece,)), replace(survey.frozen, schema=dataset.schema)):
            seen += rows.batch.num_rows
            for column, array in zip(rows.batch.schema.names, rows.batch.columns, strict=True):
                good[column] += len(array) - array.null_count
            for problem in rows.problems:
                if problem.error.column is not None:
                    bad[problem.error.column].append(problem.error.value)
            if rows.batch.num_rows:
                break
    inferred = {feature.name: feature for feature in survey.frozen.schema}
    wanted = {feature.name: feature for feature in cast}
    misfits = {
        name: values[:MOST_VALUES]
        for name, values in bad.items()
        if name in wanted and not good[name] and not same_feature(inferred[name], wanted[name])
    }
    found = Schema(tuple(inferred[feature.name] if feature.name in misfits else feature for feature in cast))
    options = missing_keys(misfits, wanted)
    fixes = [f"give the keys that the dataset was made with; these read the values: {Add(*options)}"] if options else []
    if may_be_left_out(max((len(bad[name]) for name in misfits), default=0), seen):
        fixes.append(f"leave its rows out, where others fit: {Add('--max-rejects', 'N')}")
    refuse_others(dataset, found, "; or ".join(fixes))


def missing_keys(values: Mapping[str, Sequence[str]], features: Mapping[str, Feature]) -> list[Set]:
    """Return the options that read text as the features of its columns, none for those where none are found.

    >>> print(*missing_keys({"n": ["12 %", "3 %"]}, {"n": Feature("n", "float", "float64")}))
    --set schema.columns.n.strip=% --set schema.columns.n.type=float64
    """
    options: list[Set] = []
    for name, cells in values.items():
        found = [*islice(ways_to_read(cells, features[name]), 2)]
        unclear = len(found) > 1 and "format" in found[0]  # 1/2 is a day of January, or of February
        keys = (found[0] if found else {}) | ({"format": "FORM"} if unclear else {})
        options += [set_column(name, key, value) for key, value in keys.items()]
    return options


def ways_to_read(cells: Sequence[str], feature: Feature) -> Iterator[dict[str, str]]:
    """Yield the keys of a column that read all cells as the type of a feature, the most usual ones first."""
    may = (one for one in _candidates(feature.name, cells, feature) if _may_read(one, cells))
    ways = (one for one in may if _reads(one, cells[:_FEW_VALUES]))
    return (_keys(one) for one in ways if _reads(one, cells))


def _keys(way: Written) -> dict[str, str]:
    """Return the keys of a column that is read so: its type too, where they do not imply it."""
    keys = {key: value for key, value in way.keys.items() if key != "type"}
    text = [Column(pa.field(way.column, pa.string()))]
    if keys and way.plan(text)[0].field.type != replace(way, rule=ColumnRule()).plan(text)[0].field.type:
        own = {"type": way.rule.type, "unit": way.rule.unit, "timezone": way.rule.timezone}
        keys |= {key: value for key, value in own.items() if value is not None}
    return keys


def _candidates(name: str, cells: Sequence[str], feature: Feature) -> Iterator[Written]:
    target = column_type(feature).arrow(feature.unit or DEFAULT_UNIT, feature.timezone)
    rule = ColumnRule(feature.type, None, feature.unit, feature.timezone, nullable=None)
    if pa.types.is_date(target) or pa.types.is_timestamp(target) or pa.types.is_time(target):
        yield from (Written(name, rule, formats=(form,)) for form in (_forms_of(cells[0], target) if cells else ()))
    elif pa.types.is_integer(target) or pa.types.is_floating(target):
        around = [found for cell in cells if (found := _AROUND.fullmatch(cell.strip().replace(_MINUS, "-")))]
        signs = [*dict.fromkeys(sign for one in around for sign in _SIGN.findall(f"{one[1]} {one[2]}"))]
        in_brackets = sum("(" in one[1] for one in around)
        brackets = 0 < in_brackets < len(cells)  # if all are, they are notes: (1), (2)
        signs = [sign for sign in signs if not (brackets and sign in "()")]
        gap = " " if sum(map(str.isalpha, signs)) > 1 else ""
        ends = {one[2].strip() for one in around if not one[1].strip()}
        end = next(iter(ends)) if len(ends) == 1 and len(around) == len(cells) else ""
        unit = end if len(signs) > 1 or end.endswith(".") else ""
        if _IN_A_NAME.search(unit):  # of `1a.png`
            return
        strip = unit or gap.join(signs) or any(cell != cell.strip() or _MINUS in cell for cell in cells)
        if len(signs) <= _MOST_UNITS and all(map(_is_unit, signs)):
            ways = (Written(name, rule, strip, *both, brackets=brackets) for both in _BOTH)
            yield from (way for way in ways if not way._parts_of_numbers)


def _forms_of(cell: str, target: pa.DataType) -> list[str]:
    """Return the forms of dates or times whose signs a cell has, the most usual ones first."""
    if len(cell) > _LONGEST_MOMENT or not any(map(str.isdigit, cell)):
        return []
    shown = {cell, OFFSET.sub("", cell), *(_in_english(cell, parts) for parts in ("%b", "%p", "%b %p"))}
    signs = {*map(_signs_of, shown)}
    return [form for form, own in _signs_of_forms(target) if own in signs and _may_be(cell, form)]


@cache
def _signs_of_forms(target: pa.DataType) -> list[tuple[str, str]]:
    forms: Sequence[str] = _TIMES if pa.types.is_time(target) else _DAYS
    if pa.types.is_timestamp(target):
        forms = [*map("".join, product(_DAYS, (" ", "T", ""), _TIMES)), *_WHOLE, *_DAYS]
        forms += [f"{form}{gap}%z" for form in forms for gap in ("", " ")] if target.tz is not None else []
    return [(form, _signs_of_form(form)) for form in forms]


def _is_unit(sign: str) -> bool:
    """Return whether a sign is of percent, degrees or a currency, or letters; a backslash is the yen of Shift JIS."""
    return sign in _UNIT_SIGNS or sign.rstrip("²³").isalpha() or (len(sign) == 1 and category(sign) == "Sc")


_UNIT_SIGNS: Final = "%\uff05\u2030°℃℉/\\;" + "".join(map(chr, range(0x3380, 0x33E0)))
"""The last 96 are units that Unicode has as one sign each, as Japanese texts write square metres."""


def forms_together(cells: Sequence[str], feature: Feature) -> dict[str, int]:
    """Return the forms of times that read all cells together, and how many cells each; none where they are many.

    >>> forms_together(["2024/01/10 00:30", "10.01.2024 01:00"], Feature("at", "int64", "timestamp", unit="us"))
    {'%Y/%m/%d %H:%M': 1, '%d.%m.%Y %H:%M': 1}
    """
    left, found = [*cells], dict[str, int]()
    while left and len(found) < _MOST_FORMS:
        forms = (form for way in _candidates(feature.name, left, feature) for form in way.formats)
        of_first = [form for form in forms if _moment(left[0], form)]
        if not of_first:
            return {}
        read = {form: [cell for cell in left if _may_be(cell, form) and _moment(cell, form)] for form in of_first}
        best = max(read, key=lambda form: len(read[form]))
        found[best] = len(read[best])
        left = [cell for cell in left if cell not in {*read[best]}]
    rule = ColumnRule(feature.type, None, feature.unit, feature.timezone, nullable=None)
    way = Written(feature.name, rule, formats=(*found,))
    return found if not left and _reads(way, cells) else {}


def _may_read(way: Written, cells: Sequence[str]) -> bool:
    """Return whether Python reads the first cell in a form of a way: there are many, and Arrow is slow to fail."""
    return not way.formats or any(_moment(cells[0], form) is not None for form in way.formats)


def _may_be(cell: str, form: str) -> bool:
    """Return whether a cell has the signs of a form: Python compiles each form that it tries."""
    return _signs_of(OFFSET.sub("", cell) if "%z" in form else _in_english(cell, form)) == _signs_of_form(form)


def _signs_of(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"[0-9]+|[^\W\d_]+", "", text))


@cache
def _signs_of_form(form: str) -> str:
    return _signs_of(re.sub("%.", "", form.removesuffix(" %z")))


_LONGEST_MOMENT: Final = 60
_ZONES: Final = {
    "UTC": "Z", "GMT": "Z", "WET": "Z", "WEST": "+0100", "CET": "+0100", "MEZ": "+0100", "CEST": "+0200",
    "MESZ": "+0200", "EET": "+0200", "EEST": "+0300", "MSK": "+0300", "JST": "+0900", "KST": "+0900",
}  # fmt: skip
"""Each name means one offset wherever it is used. The one that India and Israel share is left out."""

_ZONE: Final = re.compile(rf"(?:{'|'.join(_ZONES)})\Z")
OFFSET: Final = re.compile(rf"(?<=[0-9])\s?(?:Z|{'|'.join(_ZONES)}|[+-][0-9]{{2}}:?[0-9]{{2}})\Z")
"""The offset from UTC behind a time."""


def _reads(way: Written, cells: Sequence[str]) -> bool:
    batch = pa.RecordBatch.from_arrays([text_array(cells).cast(pa.large_string())], names=[way.column])
    return not way.apply(batch, "").problems
