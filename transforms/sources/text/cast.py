"""Cast the text cells of a column to its type, and prove every cast.

Arrow's own cast takes `007`, `-0`, `0x1F` as integers, `1e400` as infinity and `1e-400` as zero, and says nothing. So a
cast counts only if it is proven:

    fast path    cast the whole column; then prove the result with a few passes over arrays
                     integer   the first byte is 1 to 9, or `-` before 1 to 9, or the text is `0`: given that the cast
                               took it, the text then has as many digits as the number
                     float     every value is finite, or its text says nan or inf; every zero's text has no digit 1 to 9
                               and an integer beyond 2**53 is one that float64 holds
    slow path    only where that fails: classify each cell of this column by its text, and say what is wrong with it

Text that is taken:

    integers     0, or an optional `-`, a digit 1 to 9, and digits
    floats       decimal digits with an optional sign, point and exponent; nan, inf, infinity in any case
    bool         true, True, TRUE, false, False, FALSE
    date         YYYY-MM-DD
    timestamp    date, `T` or a space, HH:MM[:SS[.fraction]], and an offset (`Z`, `+01:00`, ` +01:00`, ` UTC`, ` GMT`)
                 only if its column has a time zone: without an offset it is then a local time of that zone
    time         HH:MM[:SS[.fraction]]
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final
from unicodedata import category

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError
from ...format.batches.arrow_memory import (
    array_of,
    binary_array,
    bitmap_of,
    raw_values,
    text_array,
    true_mask,
    valid_mask,
)
from ...format.batches.rejects import TYPE_IS_THE_DATASETS, CellError, CellProblem
from ...format.schema.column_types import DEFAULT_UNIT, column_type, named_type, natural_type
from ...format.schema.schema import ColumnRule, Feature, Schema
from ...format.wording.hints import Add, set_column
from ...format.wording.printable import printable
from ...inputs.contract.source import DatasetSchema

_INTEGER: Final = r"^(0|-?[1-9][0-9]*)$"
_FINITE: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_SPECIAL: Final = r"(?i)^[+-]?(nan|inf|infinity)$"
NUMBER: Final = rf"{_FINITE}|{_SPECIAL}"
_LONG_INTEGER: Final = r"^[+-]?[0-9]{16,}$"
_EXACT: Final = 2.0**53
"""Up to here float64 holds every integer."""

_NOT_ZERO: Final = r"^[^eE]*[1-9]"
TRUE: Final = (b"true", b"True", b"TRUE")
FALSE: Final = (b"false", b"False", b"FALSE")
_TIME: Final = re.compile(rb"[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?")

_NO_ZONE: Final = "has an offset from UTC, and its column has no time zone"
_NEVER: Final = "does not exist in"
_TWICE: Final = "comes twice in"
_OFFSET: Final = "write its offset behind it, like +01:00"
_EPOCHS: Final = {
    "s": "^[1-9][0-9]{8,9}$",
    "ms": "^[1-9][0-9]{11,12}$",
    "us": "^[1-9][0-9]{14,15}$",
    "ns": "^[1-9][0-9]{17,18}$",
}
"""What whole numbers look like that count the time since 1970 in a unit."""

_SECONDS: Final = "^[1-9][0-9]{8,9}[.][0-9]{1,9}$"
"""Seconds since 1970 with a fraction, in columns of a finer unit."""

_FRACTION: Final = re.compile(rb"-?[0-9]+[.][0-9]+([eE][+-]?[0-9]+)?")
_COMMAS_AS_POINTS: Final = str.maketrans(",.", ".,")
_LONGEST_NUMBER: Final = 60
_LONG_BYTES: Final = 1 << 20
_NO_NUMBER: Final = re.compile(rb"[^0-9eE.+-]")

_SLICE_ROWS: Final = 64

Problem = tuple[str, str]
"""A code and what is wrong, without the value in front."""


def cast_column(
    cells: pa.Array,
    target: pa.DataType,
    column: str,
    *,
    nulls: Sequence[str] | None = (),
    keys: Mapping[str, str] = MappingProxyType({}),
) -> tuple[pa.Array, list[CellProblem]]:
    """Cast binary cells to `target`; a cell that is not exactly such a value becomes null and a problem.

    `column` is the name that the problems bear; `nulls` are its words that are null, None where a config cannot name
    them; `keys` say how the column's numbers are written. Strings are taken to be checked for UTF-8 unless the cells
    are not.
    """
    proven = prove_column(cells, target)
    if proven is not None:
        return proven, []
    array, found = _find_problems(cells, target)
    return array, [
        _cell_problem(row, cells[row].as_py(), problem, target, column, keys, nulls) for row, problem in found
    ]


def prove_column(cells: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Cast binary cells to `target`, or return None where one of them is not exactly such a value."""
    if not pa.types.is_string(target) and not pa.types.is_binary(target) and _has_long_text(cells):
        return None
    try:
        return _prover(target)(cells, target)
    except pa.ArrowInvalid:  # how Arrow says that some cell does not parse
        return None


def _has_long_text(cells: pa.Array) -> bool:
    """Return whether a long cell is no number: Arrow's message would hold copies of it."""
    offsets = _offsets(cells)
    if offsets[-1] - offsets[0] <= _LONG_BYTES:
        return False
    text = memoryview(cells.buffers()[2])
    long = np.flatnonzero((np.diff(offsets) > _LONG_BYTES) & true_mask(cells.is_valid())).tolist()
    return any(_NO_NUMBER.search(text[offsets[row] : offsets[row + 1]]) for row in long)


def first_problem(cells: pa.Array, target: pa.DataType) -> tuple[int, str] | None:
    """Return the row and the code of the first cell that is not exactly a value of `target`, or None."""
    start, size = 0, _SLICE_ROWS  # a column of text mostly shows it in its first cells
    while start < len(cells):
        part = cells.slice(start, size)
        if prove_column(part, target) is None:
            row, (code, _) = _find_problems(part, target)[1][0]
            return start + row, code
        start, size = start + size, 4 * size
    return None


def nullify(cells: pa.Array, rows: npt.NDArray[np.int64]) -> pa.Array:
    """Return binary cells of which some rows are null, without a copy of their text."""
    keep = true_mask(cells.is_valid())
    keep[rows] = False
    _, offsets, data = cells.buffers()
    bounds = offsets.slice(4 * cells.offset, 4 * len(cells) + 4) if len(cells) else offsets
    return pa.Array.from_buffers(cells.type, len(cells), [bitmap_of(keep), bounds, data])


def without_words(cells: pa.Array, words: Sequence[str]) -> pa.Array:
    """Return binary cells of which those that are one of these words are null."""
    if not words:
        return cells
    found = true_mask(pc.is_in(cells, value_set=binary_array([word.encode() for word in words])))
    return nullify(cells, np.flatnonzero(found)) if found.any() else cells


def cell_bytes(cells: pa.Array) -> npt.NDArray[np.int64]:
    """Return the length of each binary cell; 0 where it is null."""
    lengths, valid = raw_values(pc.binary_length(cells), np.int32).astype(np.int64), valid_mask(cells)
    return lengths if valid is None else np.where(valid, lengths, 0)


def leading_zeros(cells: pa.Array) -> npt.NDArray[np.int64]:
    """Return the rows whose text begins, after a sign, with a zero and another digit."""
    offsets = _offsets(cells)
    if offsets[0] == offsets[-1]:  # no row, or no text in any
        return np.empty(0, np.int64)
    begins, ends = offsets[:-1], offsets[1:]
    text = np.frombuffer(cells.buffers()[2], np.uint8)
    first = text.take(begins, mode="clip")
    begins = begins + ((first == ord("-")) | (first == ord("+")))
    zero, digit = (
        text.take(begins, mode="clip") == ord("0"),
        text.take(begins + 1, mode="clip") - np.uint8(ord("0")) < 10,
    )
    found = np.flatnonzero(zero & digit & (ends - begins > 1))
    return found[true_mask(cells.is_valid())[found]] if cells.null_count else found


def type_noun(target: pa.DataType) -> str:
    """Return the word for a type in `"12,50" is not a ...`."""
    found = natural_type(target)
    return "float" if found is None or found.forms[0].kind == "float" else found.name


def _offsets(cells: pa.Array) -> npt.NDArray[np.int32]:
    if not len(cells):
        return np.zeros(1, np.int32)
    whole = np.frombuffer(cells.buffers()[1], np.int32)
    return whole[cells.offset : cells.offset + len(cells) + 1]


def _prover(target: pa.DataType) -> Callable[[pa.Array, pa.DataType], pa.Array | None]:
    if pa.types.is_integer(target):
        return _prove_integers
    if pa.types.is_floating(target):
        return _prove_floats
    if pa.types.is_boolean(target):
        return _prove_bools
    if pa.types.is_timestamp(target):
        return _prove_timestamps
    if pa.types.is_time(target):
        return _prove_times
    if pa.types.is_string(target):
        return _prove_strings
    return _cast


def _cast(cells: pa.Array, target: pa.DataType) -> pa.Array:
    return cells if cells.type.equals(target) else pc.cast(cells.view(pa.string()), target)


def _prove_integers(cells: pa.Array, target: pa.DataType) -> pa.Array | None:
    values = pc.cast(cells, target)
    offsets = _offsets(cells)
    begins, ends = offsets[:-1], offsets[1:]
    if not len(cells) or offsets[0] == offsets[-1]:  # no row, or nulls only
        return values
    text = np.frombuffer(cells.buffers()[2], np.uint8)
    # a null may take no bytes; at the end of the data its offset points after them, and is clipped
    first = text.take(begins, mode="clip")
    odd = np.flatnonzero((first - np.uint8(ord("1")) > 8) & (begins < ends))
    if len(odd) and cells.null_count:
        odd = odd[true_mask(cells.is_valid())[odd]]
    if len(odd):
        first, begins, ends = first[odd], begins[odd], ends[odd]
        second = text.take(begins + 1, mode="clip")
        zero = (first == ord("0")) & (ends - begins == 1)
        negative = (first == ord("-")) & (second - np.uint8(ord("1")) <= 8)
        if not (zero | negative).all():
            return None
    return values


def _prove_floats(cells: pa.Array, target: pa.DataType) -> pa.Array | None:
    values = pc.cast(cells, target)
    numbers = raw_values(values, f"f{target.bit_width // 8}")
    if (valid := valid_mask(values)) is not None:
        numbers = np.where(valid, numbers, 1)
    finite = np.isfinite(numbers)
    if not finite.all() and not _all_match(cells, np.flatnonzero(~finite), _SPECIAL):
        return None
    zeros = np.flatnonzero(numbers == 0)
    if len(zeros):
        text = cells.take(array_of(zeros))
        if pc.any(pc.match_substring_regex(text, _NOT_ZERO)).as_py():
            return None
    return None if len(_rounded_integers(cells, numbers)) else values


def _rounded_integers(cells: pa.Array, numbers: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.int64]:
    """Return the rows whose text is an integer that float64 rounds; narrower floats are declared, and round."""
    none = np.empty(0, np.int64)
    with np.errstate(invalid="ignore"):
        large = np.flatnonzero(np.abs(numbers) >= _EXACT) if numbers.dtype == np.float64 else none
    if not len(large):
        return none
    texts = cells.take(array_of(large))
    whole = np.flatnonzero(true_mask(pc.match_substring_regex(texts, _LONG_INTEGER)))
    return np.array([large[row] for row in whole if not holds_integer(texts[int(row)].as_py().decode())], np.int64)


def holds_integer(text: str) -> bool:
    """Return whether float64 holds an integer exactly; a number beyond float64 is another problem."""
    digits = text.lstrip("+-0") or "0"
    return len(digits) > 310 or float(digits) == float("inf") or int(float(digits)) == int(digits)


def _all_match(cells: pa.Array, rows: npt.NDArray[np.int64], pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(cells.take(array_of(rows)), pattern)).as_py())


def _prove_bools(cells: pa.Array, target: pa.DataType) -> pa.Array | None:
    del target
    index = pc.index_in(cells, value_set=binary_array([*TRUE, *FALSE]), skip_nulls=True)
    if index.null_count != cells.null_count:
        return None
    return pc.less(index, array_of(np.array([len(TRUE)], np.int32))[0])


def _prove_strings(cells: pa.Array, target: pa.DataType) -> pa.Array | None:
    texts = cells.view(target)
    texts.validate(full=True)
    return texts


def _prove_timestamps(cells: pa.Array, target: pa.DataType) -> pa.Array:
    texts = cells.view(pa.string())
    try:
        return pc.cast(texts, target)
    except pa.ArrowInvalid:
        if pc.all(pc.match_substring_regex(texts, _EPOCHS[target.unit])).as_py():
            return pc.cast(pc.cast(texts, pa.int64()), target)
        if target.unit != "s" and pc.all(pc.match_substring_regex(texts, _SECONDS)).as_py():
            padded = pc.replace_substring_regex(texts, "$", "00000000")
            nanoseconds = pc.cast(pc.replace_substring_regex(padded, "[.]([0-9]{9})0*$", r"\1"), pa.int64())
            return pc.cast(pc.cast(nanoseconds, pa.timestamp("ns", target.tz)), target)
        if target.tz is None:
            raise
        # some cell has no offset: then none may have one, or the slow path sorts them out
        texts = pc.replace_substring_regex(texts, r"([0-9]) ([+-][0-9]{2}:[0-9]{2})$", r"\1\2")  # of SQL Server
        texts = pc.replace_substring_regex(texts, "([0-9]) ?(UTC|GMT)$", r"\1Z")
        with suppress(pa.ArrowInvalid):
            return pc.cast(texts, target)
        return pc.assume_timezone(pc.cast(texts, pa.timestamp(target.unit)), target.tz)


def _prove_times(cells: pa.Array, target: pa.DataType) -> pa.Array | None:
    if not pc.all(pc.match_substring_regex(cells, f"^({_TIME.pattern.decode()})$")).as_py():
        return None if cells.null_count < len(cells) else pa.nulls(len(cells), target)
    dated = pc.binary_join_element_wise(text_array(["1970-01-01T"])[0], cells.view(pa.string()), text_array([""])[0])
    return pc.cast(dated, pa.timestamp(target.unit)).view(pa.int64()).view(target)


def _find_problems(cells: pa.Array, target: pa.DataType) -> tuple[pa.Array, list[tuple[int, Problem]]]:
    if pa.types.is_integer(target):
        found = _integer_problems(cells, target)
    elif pa.types.is_floating(target):
        found = _float_problems(cells, target)
    elif pa.types.is_boolean(target):
        good = pc.is_in(cells, value_set=binary_array([*TRUE, *FALSE]))
        found = dict.fromkeys(_failing(cells, good), ("BAD_TYPE", "is not true or false"))
    elif pa.types.is_string(target):
        found = _utf8_problems(cells)
    else:
        return _find_each(cells, target)
    array = prove_column(nullify(cells, np.array(sorted(found), np.int64)), target)
    assert array is not None, f"a cell of {target} passed the slow check and failed the fast one"
    return array, sorted(found.items())


def _failing(cells: pa.Array, good: pa.Array) -> list[int]:
    return np.flatnonzero(true_mask(cells.is_valid()) & ~true_mask(good)).tolist()


def _integer_problems(cells: pa.Array, target: pa.DataType) -> dict[int, Problem]:
    well_formed = pc.match_substring_regex(cells, _INTEGER)
    found: dict[int, Problem] = dict.fromkeys(_failing(cells, well_formed), ("BAD_TYPE", f"is not an {target}"))
    signed = pa.types.is_signed_integer(target)
    low = -(2 ** (target.bit_width - 1)) if signed else 0
    high = 2 ** (target.bit_width - signed) - 1
    overflow = ("INT_OVERFLOW", f"is beyond {target} ({low} to {high})")
    # only a text with as many characters as the bound, or any sign on an unsigned number, can be beyond it
    shortest = len(str(high)) if signed else 1
    for row in np.flatnonzero(cell_bytes(cells) >= shortest).tolist():
        if row not in found and not _within(cells[row].as_py(), low, high):
            found[row] = overflow
    return found


def _within(text: bytes | None, low: int, high: int) -> bool:
    # 20 characters hold any 64-bit number: longer ones are not parsed, which would take quadratic time
    return text is None or (len(text) <= 20 and low <= int(text) <= high)


def _float_problems(cells: pa.Array, target: pa.DataType) -> dict[int, Problem]:
    finite = pc.match_substring_regex(cells, _FINITE)
    special = pc.match_substring_regex(cells, _SPECIAL)
    found: dict[int, Problem] = dict.fromkeys(_failing(cells, pc.or_(finite, special)), ("BAD_TYPE", "is not a float"))
    cast = pc.cast(nullify(cells, np.flatnonzero(~true_mask(finite))), target)
    values, mask = raw_values(cast, f"f{target.bit_width // 8}"), true_mask(finite)
    with np.errstate(invalid="ignore"):
        infinite = np.flatnonzero(mask & np.isinf(values))
        zero = np.flatnonzero(mask & (values == 0))
    found.update(dict.fromkeys(infinite.tolist(), ("FLOAT_OVERFLOW", f"is beyond what a {_width(target)} can hold")))
    rounded = _rounded_integers(cells, np.where(mask, values, 0))
    found.update(dict.fromkeys(rounded.tolist(), ("PRECISION_LOSS", "has more digits than a float64 can hold")))
    lost = zero[true_mask(pc.match_substring_regex(cells.take(array_of(zero)), _NOT_ZERO))]
    found.update(dict.fromkeys(lost.tolist(), ("FLOAT_UNDERFLOW", f"would become 0 as a {_width(target)}")))
    return found


def _width(target: pa.DataType) -> str:
    return f"float{target.bit_width}"


def _utf8_problems(cells: pa.Array) -> dict[int, Problem]:
    found: dict[int, Problem] = {}
    for row, cell in enumerate(cells.to_pylist()):
        try:
            (cell or b"").decode()
        except UnicodeDecodeError as error:
            found[row] = ("BAD_UTF8", f"is not UTF-8 at byte {error.start} of the cell")
    return found


def _find_each(cells: pa.Array, target: pa.DataType) -> tuple[pa.Array, list[tuple[int, Problem]]]:
    """Try each distinct date, time or timestamp by itself: here well-formed and bad texts differ by the calendar."""
    encoded = cells.dictionary_encode()
    values: list[pa.Scalar] = []
    problems: dict[int, Problem] = {}
    for index in range(len(encoded.dictionary)):
        value = _one_moment(encoded.dictionary.slice(index, 1), target)
        if isinstance(value, pa.Scalar):
            values.append(value)
        else:
            values.append(pa.scalar(None, target))
            problems[index] = value
    array = pa.array([v.as_py() if v.type == pa.int64() else None for v in map(_as_int64, values)], pa.int64())
    storage = pc.cast(array, pa.int32()) if target.bit_width == 32 else array
    taken = storage.view(target).take(encoded.indices)
    rows = [(row, problems[i]) for row, i in enumerate(encoded.indices.to_pylist()) if i in problems]
    return taken, rows


def _as_int64(value: pa.Scalar) -> pa.Scalar:
    array = pa.array([value.as_py()], value.type) if not value.is_valid else pa.repeat(value, 1)
    storage = array.view(pa.int32() if value.type.bit_width == 32 else pa.int64())
    return pc.cast(storage, pa.int64())[0]


def _one_moment(cell: pa.Array, target: pa.DataType) -> pa.Scalar | Problem:
    proven = prove_column(cell, target)
    if proven is not None:
        return proven[0]
    noun = type_noun(target)
    bad = "BAD_TYPE", _why_no_moment(cell, target)
    if pa.types.is_date(target) or target.unit == "ns":
        return bad
    finer = pa.timestamp("ns", target.tz) if pa.types.is_timestamp(target) else pa.time64("ns")
    exact = prove_column(cell, finer)
    if exact is None:
        return bad
    try:
        return pc.cast(exact, target)[0]
    except pa.ArrowInvalid:
        return "PRECISION_LOSS", f"has more digits than a {noun} in {target.unit} can hold"


def _why_no_moment(cell: pa.Array, target: pa.DataType) -> str:
    if pa.types.is_timestamp(target) and (unit := _epoch_unit(cell[0].as_py())):
        return f"is no timestamp in {target.unit}, and may count {unit} since 1970"
    if pa.types.is_timestamp(target) and target.tz is None and _as_timestamp(cell, "UTC") is not None:
        return _NO_ZONE
    local = _as_timestamp(cell, None) if pa.types.is_timestamp(target) and target.tz is not None else None
    return f"is not a {type_noun(target)}" if local is None else turned_clock(local[0], target.tz)


def _epoch_unit(cell: bytes) -> str:
    return next((unit for unit, form in _EPOCHS.items() if re.search(form.encode(), cell)), "")


def _as_timestamp(cell: pa.Array, zone: str | None) -> pa.Array | None:
    found = (prove_column(cell, pa.timestamp(unit, zone)) for unit in ("us", "ns"))
    return next((one for one in found if one is not None), None)


def turned_clock(local: pa.Scalar, zone: str) -> str:
    """Return why a local time is no moment of a time zone, or two.

    >>> import datetime as dt
    >>> turned_clock(pa.scalar(dt.datetime(2024, 3, 31, 2, 30)), "Europe/Berlin")
    'does not exist in Europe/Berlin: clocks are set forward then'
    """
    moment = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    twice = pc.local_timestamp(moment) == local
    return f"{_TWICE if twice else _NEVER} {zone}: clocks are set {'back' if twice else 'forward'} then"


def _cell_problem(
    row: int,
    cell: bytes,
    problem: Problem,
    target: pa.DataType,
    column: str,
    keys: Mapping[str, str],
    nulls: Sequence[str] | None,
) -> CellProblem:
    code, text = problem
    value, shown, also = printable(cell), cell.decode("utf-8", "replace"), ""
    is_bad, may_be_named = code == "BAD_TYPE", code == "BAD_TYPE" and nulls is not None
    how: str | Add = set_column(column, "type", "string")
    lead = ""
    if code == "PRECISION_LOSS" and not pa.types.is_floating(target):
        how = set_column(column, "unit", "ns")
    elif code == "BAD_UTF8":
        how, also = f"{set_column(column, 'type', 'binary')}, or input.encoding", ", or set input.encoding"
    elif nulls is not None and (null := null_fix(shown, column, nulls) if is_bad else ""):
        lead, also = f"{null}; or ", f", or, {null}"
    elif may_be_named and pa.types.is_boolean(target) and (words := bool_words([shown])):
        named = zip(("true_values", "false_values"), words, strict=True)
        how = Add(*(set_column(column, key, value) for key, value in named))
        also = f", or read it: {how}"
    elif is_bad and pa.types.is_timestamp(target) and (unit := _epoch_unit(cell)):
        how = set_column(column, "unit", unit)
    elif text == _NO_ZONE:
        how = set_column(column, "timezone", "UTC")
    elif text.startswith((_NEVER, _TWICE)):
        how, lead, also = (
            set_column(column, "timezone", "UTC"),
            f"{_OFFSET}, or, if the times are UTC, ",
            f", or {_OFFSET}",
        )
    elif is_bad and pa.types.is_date(target) and (zone := _zone_of(cell)) is not None:
        zoned = [set_column(column, "timezone", "UTC")] if zone else []
        how = Add(set_column(column, "type", type_noun(pa.timestamp("us"))), *zoned)
    elif is_bad and pa.types.is_integer(target) and _FRACTION.fullmatch(cell):
        how = set_column(column, "type", "float64")
    elif is_bad and (options := number_options(shown, target, column, keys)):
        how, also = options, f", or read it: {options}"
    elif is_bad:
        lead = "fix the cell, or "
    message = f'"{value}" {text}'
    in_append = f"{message}; {TYPE_IS_THE_DATASETS}{also}"
    return CellProblem(
        row, CellError(column, code, value, type_noun(target), f"{message}; {lead}declare it: {how}", in_append)
    )


def null_fix(cell: str, column: str, nulls: Sequence[str]) -> str:
    """Return how a cell becomes null that looks like a word or a number for it; empty for others."""
    if not means_null(cell) and not is_null_number(cell):
        return ""
    return f"if it means null, {set_column(column, 'null_values', [*nulls, cell])}"


def _zone_of(cell: bytes) -> str | None:
    """Return the time zone that a timestamp in a cell needs, which is empty for none; None for other text."""
    cells = pa.array([cell], pa.binary())
    return next((zone or "" for zone in (None, "UTC") if _as_timestamp(cells, zone) is not None), None)


def number_options(cell: str, target: pa.DataType, column: str, keys: Mapping[str, str]) -> str:
    """Return the options that read a cell as a number with a currency, percent or brackets; none where it is unclear.

    `keys` are those of the column in `schema.columns` that are set.

    >>> print(number_options("-$1,268.75", pa.float64(), "price", {"type": "float64"}))
    --set 'schema.columns.price.strip=$' --set schema.columns.price.thousands=,
    """
    if not (pa.types.is_integer(target) or pa.types.is_floating(target)) or len(cell) > _LONGEST_NUMBER:
        return ""
    known = "" if keys.get("strip") == "true" else keys.get("strip", "")
    units = "".join(dict.fromkeys(sign for sign in cell if sign == "%" or category(sign) == "Sc" or sign in known))
    around = rf"[\s{re.escape(units)}]*"
    plain = cell.translate(_COMMAS_AS_POINTS) if keys.get("decimal") == "," else cell
    number = r"(?P<whole>[0-9]{1,3}(,[0-9]{3})+|[0-9]*)(?P<fraction>\.[0-9]+)?(?<=[0-9])"
    found = re.fullmatch(rf"{around}((?P<open>\(){around}|[+-]?){around}{number}{around}(?P<close>\))?{around}", plain)
    if found is None or (found["open"] is None) != (found["close"] is None) or not (units or found["open"]):
        return ""
    wanted = {"strip": known + "".join(sign for sign in units if sign not in known)}
    wanted["thousands"] = ("." if plain != cell else ",") if "," in found["whole"] else ""
    wanted["negative"] = "brackets" if found["open"] else ""
    natural = natural_type(target)
    wanted["type"] = (
        "float64" if natural is None or (found["fraction"] and pa.types.is_integer(target)) else natural.name
    )
    options = (set_column(column, key, value) for key, value in wanted.items() if value and value != keys.get(key))
    return str(Add(*options))


def problem_of(row: int, cell: Any, code: str, text: str, column: str, expected: str) -> CellProblem:
    value = printable(cell)
    return CellProblem(row, CellError(column, code, value, expected, f'"{value}" {text}'))


def text_type(feature: Feature) -> pa.DataType:
    return column_type(feature).arrow(feature.unit or DEFAULT_UNIT, feature.timezone)


def declared_type(name: str, rule: ColumnRule) -> pa.DataType:
    """Raise `SchemaError` where text cannot be read as the declared type, or the time zone is not known."""
    declared = named_type(rule.type)
    if declared is None or not declared.text:
        raise SchemaError(
            f'column "{printable(name)}": type {printable(rule.type)} cannot be read from text; declare it int64 '
            "or string"
        )
    target = declared.arrow(rule.unit or DEFAULT_UNIT, rule.timezone)
    if pa.types.is_timestamp(target) and target.tz is not None:
        try:
            pc.assume_timezone(array_of(np.zeros(1, np.int64)).view(pa.timestamp(target.unit)), target.tz)
        except pa.ArrowInvalid as error:
            raise SchemaError(
                f'column "{printable(name)}": there is no time zone "{printable(target.tz)}"; a name is Europe/Berlin'
            ) from error
    return target


def as_cast(rules: Mapping[str, ColumnRule], found: Schema, dataset: DatasetSchema) -> Schema:
    """Return the schema of text whose columns, but for those that the config declares, are cast to the dataset's."""
    wanted = {feature.name: feature for feature in dataset.schema}
    features = []
    for feature in found:
        wanted_feature = wanted.get(feature.name)
        declared = rules.get(feature.name, ColumnRule()).type is not None
        castable = wanted_feature is not None and wanted_feature.shape == () and column_type(wanted_feature).text
        features.append(wanted_feature if castable and not declared and wanted_feature is not None else feature)
    return Schema(tuple(features))


# Words that people write for null, true and false: they are proposed, and never taken unless they are declared.


_ANSWERS: Final = frozenset(
    """
don't know;dont know;do not know;not sure;unsure;unknown;refused;refuse;refusal;declined;declined to answer;
prefer not to say;prefer not to answer;no answer;no response;not answered;not applicable;does not apply;weiß nicht;
weiss nicht;ich weiß nicht;keine antwort;keine angabe;keine angaben;verweigert;antwort verweigert;nicht zutreffend;
trifft nicht zu;entfällt;unbekannt;ne sait pas;je ne sais pas;nsp;refus;sans réponse;pas de réponse;non-réponse;
ne se prononce pas;sans objet;non applicable;ne s'applique pas;non concerné;inconnu;no sabe;no sé;no contesta;
no responde;sin respuesta;ns/nc;ns/nr;rehúsa;se niega;prefiero no decir;no aplica;no procede;no corresponde;
desconocido;non so;non sa;non risponde;nessuna risposta;rifiuta;rifiuto;non applicabile;non pertinente;sconosciuto;
não sabe;não sei;não respondeu;não responde;sem resposta;recusou;recusa;prefiro não dizer;não se aplica;não aplicável;
desconhecido;weet niet;weet ik niet;weet het niet;geen antwoord;geweigerd;weigert;wil niet zeggen;niet van toepassing;
onbekend;vet ej;vet inte;ej svar;inget svar;vägrar;vill ej svara;vill inte svara;ej tillämpligt;ej aktuellt;okänt;
okänd;ved ikke;intet svar;ønsker ikke at svare;vil ikke svare;nægter;ikke relevant;ukendt;vet ikke;ikke svar;
ikke svart;ubesvart;ønsker ikke å svare;ikke aktuelt;ukjent;ei osaa sanoa;en osaa sanoa;eos;en tiedä;ei tiedä;
ei vastausta;ei vastannut;kieltäytyi;ei halua vastata;ei koske;ei sovellu;tuntematon;nie wiem;trudno powiedzieć;
brak odpowiedzi;odmowa;odmowa odpowiedzi;nie dotyczy;nieznane;nieznany;nevím;neví;bez odpovědi;neodpověděl;odmítl;
odmítla;odmítl odpovědět;netýká se;nehodící se;neznámé;neznámý;nem tudja;nem tudom;nt/nv;nem válaszolt;nincs válasz;
megtagadta;válaszmegtagadás;nem vonatkozik;nem értelmezhető;nem alkalmazható;ismeretlen;nu știu;nu ştiu;nu stiu;
nu știe;nu răspunde;nu răspund;fără răspuns;refuz;refuză;a refuzat;nu se aplică;nu e cazul;nu este cazul;necunoscut;
δεν ξέρω;δεν γνωρίζω;δεν απαντώ;δεν απάντησε;δξ/δα;δγ/δα;άρνηση;αρνήθηκε;δεν ισχύει;δεν εφαρμόζεται;άγνωστο;bilmiyorum;
bilmiyor;fikrim yok;cevap yok;cevapsız;yanıt yok;reddetti;cevap vermek istemiyor;geçerli değil;uygulanamaz;bilinmiyor;
не знаю;затрудняюсь ответить;нет ответа;отказ;отказ от ответа;отказался;не применимо;неприменимо;неизвестно;
важко відповісти;важко сказати;немає відповіді;відмова;відмовився;не стосується;не застосовується;невідомо;모름;
모르겠음;잘 모르겠음;모르겠다;무응답;미응답;응답 거부;응답거부;거부;거절;해당없음;해당 없음;해당사항 없음;알 수 없음;
わからない;分からない;不明;無回答;未回答;回答拒否;答えたくない;回答しない;該当なし;非該当;不知道;不清楚;不详;不詳;拒绝;
拒绝回答;拒答;拒絕回答;未作答;无回答;不适用;不適用;未知;لا أعرف;لا اعرف;رفض;رفض الإجابة;لا إجابة;بدون إجابة;لا ينطبق;
غير معروف;לא יודע;לא יודעת;סירב;סירבה;מסרב;אין תשובה;לא ענה;לא רלוונטי;לא ישים;לא ידוע
""".replace("\n", "").split(";")
)
"""Answers that are none of numbers, dates, or yes and no: do not know, refuse, do not answer, does not apply."""

_NULLS: Final = _ANSWERS | frozenset((
    "", "-", "--", "---", "----", "\u2013", "\u2014", ".", "?", "??", "na", "n/a", "n.a.", "n.a", "#n/a", "nan",
    "null", "nil", "none", "missing", "(null)", "<na>", "<null>", "\\n",
    "n/d", "n.d.", "s/d", "s.d.", "b.d.", "b/d", "k.a.", "k. a.", "k.a", "nc", "n/c", "n.c.", "n.v.t.", "nvt", "u.å.",
    "not available", "no data", "not stated", "keine daten", "fehlt", "nicht angegeben", "manquant", "non renseigné",
    "néant", "non disponible", "sin datos", "sin dato", "no disponible", "mancante", "non disponibile", "sem dados",
    "não informado", "não disponível", "ontbreekt", "geen gegevens", "niet ingevuld", "saknas", "uppgift saknas",
    "ingen uppgift", "mangler", "ingen data", "uoplyst", "ikke oplyst", "ikke oppgitt", "puuttuu", "ei tietoa",
    "brak", "brak danych", "nie podano", "neuvedeno", "nezadáno", "chybí", "nincs adat", "nincs", "nincs megadva",
    "hiányzik", "lipsă", "nespecificat", "fără date", "veri yok", "belirtilmemiş", "нет данных", "не указано", "н/д",
    "н.д.", "н. д.", "немає даних", "не вказано", "δ/υ", "μ/δ", "χωρίς στοιχεία", "결측", "미상", "미입력", "없음",
    "자료 없음", "データなし", "欠測", "欠損", "未入力", "无", "缺失", "缺测", "暂无", "暂无数据", "无数据", "未填写",
    "غير متوفر", "غير متاح", "لا توجد بيانات", "אין נתונים", "חסר", "לא זמין", "לא צוין", "#div/0!", "#¡div/0!",
    "#nv", "#n/v", "#value!", "#¡valor!", "#valor!", "#wert!", "#ref!", "#num!", "#null!", "0000-00-00",
    "0000-00-00 00:00:00", *(f".{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"),  # Stata and SAS
))  # fmt: skip
"""Words, in lowercase, that mostly mean null: also where they are many."""

_LONGEST_NULL: Final = max(map(len, _NULLS)) + len(" (-999)")
_CODE_BEHIND: Final = re.compile(r"\s+\(-?[0-9]{1,4}\)$")

CLEAR_BOOLS: Final = (
    ("yes", "no"), ("y", "n"), ("t", "f"), ("ja", "nein"), ("j", "n"), ("oui", "non"), ("sí", "no"), ("si", "no"),
    ("sì", "no"), ("sim", "não"), ("sim", "nao"), ("tak", "nie"), ("ja", "nee"), ("ja", "nej"), ("ja", "nei"),
    ("ano", "ne"), ("áno", "nie"), ("igen", "nem"), ("kyllä", "ei"), ("да", "нет"), ("wahr", "falsch"),
    ("vrai", "faux"), ("prawda", "fałsz"), ("はい", "いいえ"), ("済", "未"), ("有", "無"), ("是", "否"),
    ("예", "아니오"), ("true", "false"), ("예", "아니요"), ("on", "off"), ("有", "无"), ("○", "\u00d7"),
    ("\u3007", "\u00d7"), ("✓", "✗"), ("evet", "hayır"), ("evet", "hayir"), ("ναι", "όχι"), ("ναι", "οχι"),
    ("да", "не"), ("так", "ні"), ("da", "nu"), ("já", "nei"), ("jah", "ei"), ("jā", "nē"), ("taip", "ne"),
    ("כן", "לא"), ("نعم", "لا"), ("ya", "tidak"), ("có", "không"), ("ใช่", "ไม่ใช่"), ("vero", "falso"),
    ("verdadero", "falso"), ("verdadeiro", "falso"), ("waar", "onwaar"), ("sant", "falskt"), ("sand", "falsk"),
    ("sann", "usann"), ("tosi", "epätosi"), ("pravda", "nepravda"), ("igaz", "hamis"), ("истина", "ложь"),
    ("adevărat", "fals"), ("doğru", "yanlış"), ("αληθές", "ψευδές"), ("참", "거짓"), ("真", "假"), ("真", "偽"),
)  # fmt: skip
"""What means true and false, in lowercase, also in a column of which nothing is declared."""

_BOOLS: Final = (
    *CLEAR_BOOLS, ("1", "0"), ("o", "n"), ("s", "n"), ("da", "ne"),
)  # fmt: skip


def means_null(word: str) -> bool:
    return len(word) <= _LONGEST_NULL and _plain(word) in _NULLS


def is_answer(word: str) -> bool:
    return len(word) <= _LONGEST_NULL and _plain(word) in _ANSWERS


def _plain(word: str) -> str:
    """Return a word in lowercase, without the code that a survey writes behind it: Refused (-99)."""
    return _CODE_BEHIND.sub("", word.strip().lower().replace("\u2019", "'"))


_NULL_NUMBERS: Final = frozenset((
    -99, -98, -97, -89, -88, -77, -999, -998, -997, -888, -777, -9999, -8888, -99999, 9999, 99999,
    -99.9, -99.99, -999.9, -999.99, -9999.9, -9999.99, -888.8, -888.88, -777.7, -777.77,
))  # fmt: skip
_OF_SURVEYS: Final = frozenset((-9, -8, -7, 97, 98, 99))
"""Codes beside numbers from 0 on; those above zero beside a scale."""

_SCALE: Final = 10


def is_null_number(text: str) -> bool:
    """Return whether text is a number that surveys and loggers write for null, however many zeros follow it."""
    return (
        re.fullmatch(r"-?[0-9]{2,5}([.,][0-9]+)?", text) is not None and float(text.replace(",", ".")) in _NULL_NUMBERS
    )


def null_numbers(values: Iterable[float], known: Collection[float] = ()) -> list[float]:
    """Return the numbers that surveys and loggers write for null, if they are far from all others.

    One is repeated, or `known` from other columns.

    >>> null_numbers([18, 77, -99, 40, -99]), null_numbers([-120, -98, -98, -71]), null_numbers([1, 2, -99])
    ([-99], [], [])
    >>> null_numbers([18, 77, -9, -8, -9]), null_numbers([1, 5, 99, 99]), null_numbers([-9, -5, 3, -9])
    ([-9, -8], [99], [])
    """
    counts = Counter(values)
    rest = [value for value in counts if value not in _NULL_NUMBERS | _OF_SURVEYS]
    of_surveys = {code for code in _OF_SURVEYS if rest and min(rest) >= 0 and (code < 0 or max(rest) <= _SCALE)}
    codes = _NULL_NUMBERS | of_surveys
    others = [value for value in counts if value not in codes]
    if not others:
        return []
    least, largest = min(others), max(others)

    def is_far(value: float) -> bool:
        spread = largest - least
        return least - value > spread or value < 0 <= least or (value > 0 and value - largest > max(spread, largest))

    found = [value for value in counts if value in codes and is_far(value)]
    return sorted(found) if any(counts[value] > 1 or value in known for value in found) else []


def bool_words(words: list[str]) -> tuple[list[str], list[str]] | None:
    """Return which of some words are true, and which are false; None where they are not all of one such pair.

    A word alone is given the other one of its pair.

    >>> bool_words(["Y", "no", "N"]), bool_words(["ja", "Nein"]), bool_words(["NO"]), bool_words(["maybe"])
    ((['Y'], ['no', 'N']), (['ja'], ['Nein']), (['YES'], ['NO']), None)
    """
    pairs = [pair for pair in _BOOLS if any(word.lower() in pair for word in words)]
    trues, falses = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    known = [[word for word in words if word.lower() in side] for side in (trues, falses)]
    if not words or sum(map(len, known)) != len(words) or trues & falses:
        return None
    if not all(known):
        yes, no = pairs[0]
        other, like = (yes, known[1][0]) if not known[0] else (no, known[0][0])
        same = other.upper() if like.isupper() else other.capitalize() if like.istitle() else other
        known = [known[0] or [same], known[1] or [same]]
    return known[0], known[1]
