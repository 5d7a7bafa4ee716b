from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shardmill.transforms.sources.text import cast as module
from shardmill.transforms.sources.text.cast import cast_column, first_problem, leading_zeros, prove_column

from ...tiers import examples

INTS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
NUMBERISH = st.text(alphabet="0123456789+-.eExXnaif ()", max_size=24).map(str.encode)
CELLS = st.lists(st.none() | NUMBERISH | st.integers(-(2**64), 2**64).map(lambda i: str(i).encode()), max_size=12)


def cells(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


def outcome(target: pa.DataType, *values: bytes | None) -> tuple[list[object], list[tuple[int, str]]]:
    array, problems = cast_column(cells(*values), target, "c")
    array.validate(full=True)
    assert array.type == target
    return array.to_pylist(), [(p.row, p.error.code) for p in problems]


def slow_int(text: bytes, target: pa.DataType) -> tuple[int | None, str | None]:
    if not re.fullmatch(rb"0|-?[1-9][0-9]*", text):
        return None, "BAD_TYPE"
    signed = str(target).startswith("int")
    low, high = (
        (-(1 << target.bit_width - 1), (1 << target.bit_width - 1) - 1) if signed else (0, (1 << target.bit_width) - 1)
    )
    return (int(text), None) if low <= int(text) <= high else (None, "INT_OVERFLOW")


def slow_float(text: bytes) -> tuple[float | None, str | None]:
    if re.fullmatch(rb"(?i)[+-]?(nan|inf|infinity)", text):
        return float(text), None
    if not re.fullmatch(rb"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?", text):
        return None, "BAD_TYPE"
    value = float(text)
    if math.isinf(value):
        return None, "FLOAT_OVERFLOW"
    if value == 0 and any(digit in b"123456789" for digit in re.split(rb"[eE]", text)[0]):
        return None, "FLOAT_UNDERFLOW"
    if re.fullmatch(rb"[+-]?[0-9]+", text) and int(text) != int(value):
        return None, "PRECISION_LOSS"
    return value, None


@settings(max_examples=examples(400), deadline=None)
@given(CELLS, st.sampled_from(INTS), st.integers(0, 3))
@example([b"-128", b"128", b"-0", b"00", b"0", None, b"", b"-129", b"0x1"], pa.int8(), 0)
def test_an_integer_is_exactly_its_text_or_a_problem(
    values: list[bytes | None], target: pa.DataType, skip: int
) -> None:
    array, problems = cast_column(cells(*values).slice(skip), target, "c")
    slow = [(None, None) if v is None else slow_int(v, target) for v in values[skip:]]
    assert array.to_pylist() == [value for value, _ in slow]
    assert [(p.row, p.error.code) for p in problems] == [(i, code) for i, (_, code) in enumerate(slow) if code]


@settings(max_examples=examples(400), deadline=None)
@given(CELLS, st.integers(0, 3))
@example([b"9007199254740993", b"9007199254740992", None, b"-0009007199254740993", b"+" + b"9" * 400, b"1e23"], 1)
@example(
    [b"1e400", b"1e-400", b"0e5", b"-0", b"nan", b"-Infinity", b"nan(1)", b" 1", b"1 ", b"", b"0.000", b"0x1p3", b"5."],
    0,
)
def test_a_float_is_what_python_reads_or_a_problem(values: list[bytes | None], skip: int) -> None:
    array, problems = cast_column(cells(*values).slice(skip), pa.float64(), "c")
    slow = [(None, None) if v is None else slow_float(v) for v in values[skip:]]
    assert repr(array.to_pylist()) == repr([value for value, _ in slow])
    assert [(p.row, p.error.code) for p in problems] == [(i, code) for i, (_, code) in enumerate(slow) if code]


@settings(deadline=None)
@given(CELLS, st.sampled_from([*INTS, pa.float32(), pa.float64()]))
def test_the_fast_path_gives_up_exactly_where_the_slow_one_finds_a_problem(
    values: list[bytes | None], target: pa.DataType
) -> None:
    _, problems = cast_column(cells(*values), target, "c")
    assert (prove_column(cells(*values), target) is None) == bool(problems)


@settings(deadline=None)
@given(CELLS, st.integers(0, 3))
@example([b"00", b"0", b"-07", b"+0.5", b"01x", b"0", None, b"", b"-"], 0)
def test_leading_zeros_are_those_that_the_pattern_finds(values: list[bytes | None], skip: int) -> None:
    slow = [i for i, v in enumerate(values[skip:]) if v is not None and re.match(rb"[+-]?0[0-9]", v)]
    assert leading_zeros(cells(*values).slice(skip)).tolist() == slow


@pytest.mark.parametrize("row", [0, 63, 64, 319, 320, 5000])
def test_the_first_problem_is_found_wherever_it_stands(row: int) -> None:
    values = [b"1"] * 6000
    values[row] = b"007"
    values[row + 1] = b"x"
    assert first_problem(cells(*values), pa.int64()) == (row, "BAD_TYPE")
    assert first_problem(cells(*values[:row]), pa.int64()) is None


def test_a_float32_has_its_own_bounds() -> None:
    got = outcome(pa.float32(), b"1e39", b"1e-46", b"1e-40", b"3.5", b"inf")
    assert got[1] == [(0, "FLOAT_OVERFLOW"), (1, "FLOAT_UNDERFLOW")]
    assert got[0][3:] == [3.5, math.inf]


def test_only_true_and_false_are_bools() -> None:
    got = outcome(pa.bool_(), b"true", b"False", b"1", None, b"TRUE", b"tRuE", b"", b"false")
    assert got == (
        [True, False, None, None, True, None, None, False],
        [(2, "BAD_TYPE"), (5, "BAD_TYPE"), (6, "BAD_TYPE")],
    )
    assert outcome(pa.bool_(), b"true", None) == ([True, None], [])


def test_a_date_is_iso_and_in_the_calendar() -> None:
    got = outcome(pa.date32(), b"2024-02-29", b"2023-02-29", b"2024-1-1", None, b"31/01/2024", b"2024-13-40", b"")
    assert got[0] == [date(2024, 2, 29), None, None, None, None, None, None]
    assert got[1] == [(row, "BAD_TYPE") for row in (1, 2, 4, 5, 6)]


def test_a_timestamp_without_a_zone_takes_no_offset_and_loses_no_digit() -> None:
    got = outcome(
        pa.timestamp("us"),
        b"2024-01-31 12:00",
        b"2024-01-31T12:00:00.123456",
        b"2024-01-31T12:00:00.1234567",
        b"2024-01-31T12:00:00.123456000",
        b"2024-01-31T12:00:00Z",
        b"noon",
        None,
    )
    noon = datetime(2024, 1, 31, 12)
    exact = noon.replace(microsecond=123456)
    assert got == (
        [noon, exact, None, exact, None, None, None],
        [(2, "PRECISION_LOSS"), (4, "BAD_TYPE"), (5, "BAD_TYPE")],
    )


def test_a_timestamp_with_a_zone_takes_offsets_and_local_times_of_the_zone() -> None:
    target = pa.timestamp("us", "Europe/Berlin")
    noon = datetime(2024, 1, 31, 11, tzinfo=UTC)
    for values in (
        [b"2024-01-31T12:00:00"],
        [b"2024-01-31T11:00:00Z"],
        [b"2024-01-31T12:00", b"2024-01-31T13:00:00+02:00"],
    ):
        assert outcome(target, *values) == ([noon] * len(values), [])
    # 02:30 does not exist on the night when the clocks go forward
    assert outcome(target, b"2024-03-31T02:30:00", None)[1] == [(0, "BAD_TYPE")]


def test_a_nanosecond_timestamp_out_of_its_range_is_a_problem() -> None:
    assert outcome(pa.timestamp("ns"), b"2300-01-01")[1] == [(0, "BAD_TYPE")]


def test_a_time_is_hours_minutes_seconds_and_a_fraction() -> None:
    got = outcome(pa.time64("us"), b"12:30", b"23:59:59.25", None, b"24:00", b"12", b"1:00", b"12:00:00.0000001")
    assert got[0] == [time(12, 30), time(23, 59, 59, 250000), None, None, None, None, None]
    assert got[1] == [(3, "BAD_TYPE"), (4, "BAD_TYPE"), (5, "BAD_TYPE"), (6, "PRECISION_LOSS")]
    assert outcome(pa.time64("us"), None, None) == ([None, None], [])
    assert outcome(pa.time64("us"), b"00:00:01", None)[0] == [(datetime.min + timedelta(seconds=1)).time(), None]


def test_text_that_is_not_utf8_is_a_problem_of_a_string_and_none_of_a_binary_column() -> None:
    assert outcome(pa.string(), b"caf\xc3\xa9", b"caf\xe9", None) == (["café", None, None], [(1, "BAD_UTF8")])
    assert outcome(pa.binary(), b"caf\xe9") == ([b"caf\xe9"], [])


@pytest.mark.parametrize(
    "target", [*INTS, pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("us"), pa.time64("us"), pa.string()]
)
def test_no_row_at_all_is_no_problem(target: pa.DataType) -> None:
    assert outcome(target) == ([], [])
    assert outcome(target, None, None) == ([None, None], [])


@pytest.mark.parametrize("word", ["-999", "-999.9", "k. A."])
def test_a_word_or_a_number_for_null_is_named_before_another_type(word: str) -> None:
    _, (problem,) = cast_column(cells(b"2024-01-31", word.encode()), pa.date32(), "day", nulls=("NA",))
    null = f'--set \'schema.columns.day.null_values=["NA", "{word}"]\''
    assert problem.error.message == (
        f'"{word}" is not a date; if it means null, {null}; or declare it: --set schema.columns.day.type=string'
    )


def test_a_message_says_the_value_and_the_mend() -> None:
    _, (problem,) = cast_column(cells(b"1.5", b"12,50"), pa.float64(), "price")
    assert problem.row == 1
    assert problem.error.column == "price"
    assert problem.error.value == "12,50"
    assert problem.error.expected == "float"
    message = '"12,50" is not a float; fix the cell, or declare it: --set schema.columns.price.type=string'
    assert problem.error.message == message


def test_an_overflow_says_the_bounds() -> None:
    _, (problem,) = cast_column(cells(b"300"), pa.uint8(), "age")
    assert problem.error.message == (
        '"300" is beyond uint8 (0 to 255); declare it: --set schema.columns.age.type=string'
    )


def test_a_text_of_megabytes_is_no_number_and_digits_of_megabytes_are_one() -> None:
    text, digits = b"x" * (2 << 20), b"0." + b"0" * (2 << 20) + b"e9"
    for target in (pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us")):
        assert prove_column(cells(b"1", text), target) is None
        assert outcome(target, None, text) == ([None, None], [(1, "BAD_TYPE")])
    assert outcome(pa.float64(), digits, b"1.5") == ([0.0, 1.5], [])
    assert outcome(pa.string(), text) == ([text.decode()], [])


def test_the_message_about_a_text_of_megabytes_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: pa.DataType) -> None:
        raise AssertionError("Arrow was asked, and would copy the text into its message")

    monkeypatch.setattr(module, "_prover", refuse)
    assert prove_column(cells(b"x" * (2 << 20)), pa.float64()) is None
