from __future__ import annotations

from functools import reduce
from itertools import permutations

import pyarrow as pa
import pytest
from shardmill.transforms.sources.csv.chunks import Chunk
from shardmill.transforms.sources.csv.dialect import Dialect
from shardmill.transforms.sources.csv.parse import Parser, parse_cells
from shardmill.transforms.sources.csv.schema import Evidence, explain, join_evidence, look_at_columns
from shardmill.transforms.sources.text.open_text import Cut


def look(*values: str, typed: tuple[str, ...] = ()) -> Evidence:
    text = "".join(f"{value},\n" for value in values).encode()
    parser = Parser(("a", "b"), ("a",), Dialect())
    cells = parse_cells(parser, Chunk(text, Cut(0, 0, 0, 0)), "f.csv", 0)
    (evidence,) = look_at_columns(parser, cells, typed=typed)
    return evidence


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-7", "0", "9223372036854775807"], "int64"),
        (["1", "2.5", "1e9"], "float64"),
        (["nan", "1.5", "-inf"], "float64"),
        (["true", "False", "TRUE"], "bool"),
        (["", ""], "null"),
        (["1", "", "x"], "string"),
        (["1", "true"], "string"),
        (["1.5", "007.5"], "string"),
        (["1.5", "9223372036854775808"], "string"),
        (["1.5", "1e400"], "string"),
        (["2024-01-31"], "string"),
        (["1"] * 100 + ["x"], "string"),
    ],
)
def test_the_narrowest_type_that_says_all_of_the_text_is_chosen(values: list[str], kind: str) -> None:
    assert look(*values).kind == kind


def test_nulls_are_counted_and_a_declared_column_is_not_looked_at() -> None:
    assert look("1", "", "2") == Evidence("int64", 1)
    assert look("1", "", typed=("a",)) == Evidence("string", 1)


@pytest.mark.parametrize(
    ("values", "because"),
    [
        (["1", "x"], 'text, e.g. "x" (f.csv row 2)'),
        (["1", "00123"], '"00123" (f.csv row 2) has a leading zero, which a number would lose'),
        (["1", "99999999999999999999"], '"99999999999999999999" (f.csv row 2) is beyond int64'),
        (["1", "-0"], '"-0" (f.csv row 2) is not how an integer is written'),
        (["1"] * 200 + ["y"], 'text, e.g. "y" (f.csv row 201)'),
    ],
)
def test_a_string_column_says_which_value_made_it_one(values: list[str], because: str) -> None:
    assert look(*values).because == because


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1.5", "-0"], "float64"),
        (["-0", "7", "nan"], "float64"),
        (["1.5", *["-0", "3"] * 200], "float64"),
        (["-0"], "string"),
        (["1", "-0"], "string"),
        (["1.5", "-0", "+5"], "string"),
        (["1.5", "-0", "00"], "string"),
        (["1.5", "-00"], "string"),
        (["1.5", "-0", "99999999999999999999"], "string"),
    ],
)
def test_a_negative_zero_is_a_float_in_a_column_that_has_others(values: list[str], kind: str) -> None:
    assert look(*values).kind == kind
    assert look(*values, "").kind == kind
    for cut in range(1, len(values)):
        one, other = look(*values[:cut]), look(*values[cut:])
        assert join_evidence(one, other).kind == join_evidence(other, one).kind == kind


def test_of_three_pieces_of_a_column_any_one_may_have_the_floats() -> None:
    pieces = look("1"), look("-0", "2"), look("1.5"), look("")
    for first, second, third, fourth in permutations(pieces):
        joined = join_evidence(join_evidence(join_evidence(first, second), third), fourth)
        assert joined == Evidence("float64", 1)
    assert join_evidence(join_evidence(look("true"), look("-0")), look("1.5")).kind == "string"
    assert join_evidence(look("1"), look("-0")).because == '"-0" (f.csv row 1) is not how an integer is written'


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("null", "int64", "int64"),
        ("int64", "float64", "float64"),
        ("bool", "bool", "bool"),
        ("bool", "int64", "string"),
        ("string", "null", "string"),
        ("float64", "string", "string"),
        ("null", "null", "null"),
    ],
)
def test_evidence_joins_to_the_type_that_takes_both_in_either_order(first: str, second: str, kind: str) -> None:
    one, other = Evidence(first, 1), Evidence(second, 2)  # type: ignore[arg-type]
    assert join_evidence(one, other) == join_evidence(other, one)
    assert (join_evidence(one, other).kind, join_evidence(one, other).nulls) == (kind, 3)


@pytest.mark.parametrize("integer", ["9007199254740993", "-9223372036854775807"])
def test_an_integer_that_float64_rounds_is_text_beside_floats_in_any_piece(integer: str) -> None:
    beside = look(integer, "1.5")
    apart = [look(integer), look("7"), look("1.5"), look("")]
    assert [one.kind for one in (beside, *apart)] == ["string", "int64", "int64", "float64", "null"]
    for order in permutations(apart):
        joined = reduce(join_evidence, order)
        assert joined.kind == beside.kind == "string"
        assert joined.because == f'"{integer}" (f.csv row 1) has more digits than a float64 can hold'
    assert join_evidence(apart[0], apart[1]).kind == "int64"
    assert join_evidence(look("9007199254740992"), look("1.5")).kind == "float64"
    assert look("9007199254740992", "1.5").kind == "float64"


def test_bools_and_integers_in_two_pieces_are_explained() -> None:
    assert (
        join_evidence(Evidence("bool", 0), Evidence("int64", 0)).because == "bool values and int64 values in one column"
    )


def test_a_reason_says_what_was_read() -> None:
    assert explain(Evidence("int64", 2), 1500, whole=True) == "every value is an integer in 1,500 rows, 2 null"
    assert explain(Evidence("float64", 0), 10_000, whole=False) == (
        "every value is a number in the first 10,000 rows; nullable, since not all rows were read"
    )
    assert explain(Evidence("null", 5), 5, whole=True) == "no value in 5 rows; declare the type if there will be one"


def test_a_look_does_not_depend_on_the_columns_offset() -> None:
    whole = pa.array([b"x", b"1", b"2"], pa.binary())
    parser = Parser(("a",), ("a",), Dialect())
    cells = parse_cells(parser, Chunk(b"x\n1\n2\n", Cut(0, 0, 0, 0)), "f.csv", 0)
    cells.columns[0] = whole.slice(1)
    assert look_at_columns(parser, cells) == (Evidence("int64", 0),)
