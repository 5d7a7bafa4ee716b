"""pyarrow's rows and ours are the same rows: what a line becomes does not depend on the lines beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.sources.jsonl import columns, lanes, parse
from shardmill.transforms.sources.jsonl.columns import look_at_lines
from shardmill.transforms.sources.jsonl.parse import Column, LineParser, parse_in_parts
from shardmill.transforms.sources.jsonl.values import LineError, nested_levels, parse_line, values_of_line
from shardmill.transforms.sources.text.lines import LineSizes, cut_lines
from shardmill.transforms.sources.text.open_text import Cut

NUMBERS = [
    "0", "-0", "1", "12", "1.5", "-0.0", "1e3", "1E5", "1e400", "1e-400", "9007199254740993", "9007199254740992",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "100000000000000000000", "1e-30", "4e-324",
    "007", "1.", "+1", "NaN", "-NaN", "Infinity", "-Infinity", "Inf", "0x1F", "1e", "0." + "0" * 330 + "1",
]  # fmt: skip
TEXTS = [
    '""', '"a"', '"12"', '"2024-01-01"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\u0000"', '"\\x"', '"]["',
    '"Info -NaN"', '"a\tb"',
]  # fmt: skip
OTHERS = [
    "true", "null", "[]", "[1]", "[1.5,2]", "[null]", '["a"]', '[1,"a"]', "{}", '{"b":1,"b":2}', "[[1]]", "tru", "",
]  # fmt: skip
COLUMNS = (
    (Column("i", pa.int64()), pa.int64()),
    (Column("f", pa.float64()), pa.float64()),
    (Column("h", pa.float64(), declared=True), pa.float32()),
    (Column("s", pa.string()), pa.string()),
    (Column("b", pa.bool_()), pa.bool_()),
    (Column("l", pa.list_(pa.int64())), pa.list_(pa.int64())),
    (Column("j", pa.string(), declared=True, as_json=True), pa.string()),
    (Column("d", pa.string(), declared=True), pa.date32()),
)
GOOD = {"i": "7", "f": "0.5", "h": "1.5", "s": '"x"', "b": "true", "l": "[1,2]", "j": '"y"', "d": '"2024-01-01"'}
tokens = st.sampled_from(NUMBERS) | st.sampled_from(TEXTS) | st.sampled_from(OTHERS)
members = st.tuples(st.sampled_from([*GOOD, "i", "f", "new"]), st.none() | tokens)


def written(pairs: list[tuple[str, str | None]]) -> str:
    return "{" + ",".join(f'"{key}":{token if token is not None else GOOD.get(key, "1")}' for key, token in pairs) + "}"


objects = st.lists(members, max_size=4, unique_by=lambda pair: pair[0]).map(written)
odd = st.sampled_from(
    ["", "  ", "null", "[1]", "{}{}", '{"i":1}{"i":2}', '{"i":', "1}", '{"i":1}\0', '{"i":1,"i":1}', " {} \r"]
)
texts = st.lists(objects | odd, max_size=60).map(lambda lines: "\n".join(lines).encode())


def outcome(parser: LineParser, text: bytes) -> dict[int, Any]:
    """Return what became of each line: the row and its bad cells, or the code of its reject."""
    found: dict[int, Any] = {}
    for lines in cut_lines([text] if text else [], Cut(0, 0, 0, 0), LineSizes(), blank_rows=False):
        for parsed in parse_in_parts(parser, lines, "a", 0):
            problems = [(problem.row, problem.error.column, problem.error.code) for problem in parsed.problems]
            for i, row in enumerate(parsed.batch.to_pylist()):
                own = sorted((column or "", code) for number, column, code in problems if number == i)
                found[parsed.origin.place(i).line or 0] = repr(row), own
            found |= {reject.place.line or 0: reject.errors[0].code for reject in parsed.rejects}
        assert len(found) == lines.before.records + len(lines.records)
    return found


@given(text=texts, ignores=st.booleans())
def test_a_line_becomes_the_same_alone_among_others_and_by_either_parser(text: bytes, ignores: bool) -> None:
    parser = LineParser(tuple(one for one, _ in COLUMNS), tuple(kind for _, kind in COLUMNS), ignores=ignores)
    together = outcome(parser, text)
    among_bad = outcome(parser, b"null\n" + text + b"\nnull")
    assert together == {line - 1: what for line, what in among_bad.items() if line - 1 in together}
    for number, line in enumerate(text.split(b"\n"), 1):
        assert together.get(number) == outcome(parser, line + b"\n").get(1)


@given(text=texts, ignores=st.booleans(), cells=st.integers(1, 40))
def test_lines_in_parts_of_few_cells_become_what_they_are_together(text: bytes, ignores: bool, cells: int) -> None:
    parser = LineParser(tuple(one for one, _ in COLUMNS), tuple(kind for _, kind in COLUMNS), ignores=ignores)
    together = outcome(parser, text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "CELLS", cells)
        assert outcome(parser, text) == together


@given(text=texts, without=st.sampled_from(["", "j"]))
def test_lines_that_count_as_sparse_become_what_they_are_otherwise(text: bytes, without: str) -> None:
    columns = [(column, kind) for column, kind in COLUMNS if column.name != without]  # none is text as it is written
    parser = LineParser(tuple(one for one, _ in columns), tuple(kind for _, kind in columns))
    together = outcome(parser, text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "_MANY_CELLS", -1)
        patch.setattr(lanes, "_SPARSE", -1)
        patch.setattr(parse, "_AT_ONCE", 2)
        assert outcome(parser, text) == together


def found_in(line: bytes, parse: Callable[[bytes], Any]) -> Any:
    """Return what is parsed, or why it is not."""
    try:
        return parse(line)
    except LineError as error:
        return error.code, error.text


def members_of(line: bytes) -> Any:
    return {name: member.value for name, member in parse_line(line, lambda _: False).items()}


@given(text=texts)
def test_values_of_a_line_are_those_of_its_members(text: bytes) -> None:
    for line in text.split(b"\n"):
        assert found_in(line, values_of_line) == found_in(line, members_of)


def shown(text: bytes) -> Any:
    """Return what some lines show of their columns: types, how many values each has, and where its first one is."""
    found = [
        look_at_lines(lines, len(lines.records), str, 1 << 20)
        for lines in cut_lines([text] if text else [], Cut(0, 0, 0, 0), LineSizes(), blank_rows=False)
    ]
    columns = [
        {name: (one.type, one.values, one.mixed is None) for name, one in each.columns.items()} for each in found
    ]
    return [(each.rows, each.rejects) for each in found], columns


@given(text=texts, cells=st.sampled_from([1, 10, 100, 1000, 10_000]))
def test_lines_show_the_same_columns_however_few_of_them_pyarrow_may_look_at(text: bytes, cells: int) -> None:
    together = shown(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "CELLS", cells)
        patch.setattr(columns, "CELLS", cells)
        assert shown(text) == together


def test_levels_are_those_of_brackets_outside_of_strings() -> None:
    assert nested_levels(b"") == 0
    assert nested_levels(rb'{"a\"[[[":"[[", "b":[{}]}') == 3
    assert nested_levels(b'["]",' * 200 + b"1" + b"]" * 200) == 200
