from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shardmill.transforms.errors import SourceError
from shardmill.transforms.format.batches.rows import Rows
from shardmill.transforms.format.columns.feature_column import feature_column
from shardmill.transforms.format.schema.schema import ColumnRule
from shardmill.transforms.inputs.contract.source import Task, map_in_turn
from shardmill.transforms.sources.parquet import source as parquet_source
from shardmill.transforms.sources.parquet.as_written import Moments, exact_timestamps, footer_of_raw_int96
from shardmill.transforms.sources.parquet.pages import ThriftError

from ...file_sources import made_source

DAY = 86_400 * 10**9
EPOCH = 2_440_588
NANOS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
SPARK = 253_402_300_799_999_999
"""The microseconds of 9999-12-31T23:59:59.999999."""

Raw = tuple[int, int]
"""A Julian day, and nanoseconds from its beginning on."""


def raw(value: Raw | None) -> bytes | None:
    return None if value is None else struct.pack("<qi", value[1], value[0])


def raw_array(values: Sequence[Raw | None]) -> pa.Array:
    return pa.array([raw(value) for value in values], pa.binary(12))


def total(value: Raw) -> int:
    return (value[0] - EPOCH) * DAY + value[1]


def split(nanoseconds: int) -> Raw:
    day, nanos = divmod(nanoseconds, DAY)
    return EPOCH + day, nanos


def write_raw(path: Path, column: pa.Array, **options: Any) -> None:
    """Write a column of 12 bytes a value, and then say in the footer that it is INT96: `type_length` stays there."""
    pq.write_table(pa.table({"x": column}), path, store_schema=False, write_page_checksum=True, **options)
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:].replace(b"\x15\x0e\x15\x18", b"\x15\x06\x15\x18").replace(b"\x15\x0e\x19", b"\x15\x06\x19")
    path.write_bytes(data[:start] + footer)
    assert pq.ParquetFile(path).schema.column(0).physical_type == "INT96"


def write(path: Path, columns: dict[str, Any], **options: Any) -> None:
    """Write a table as old writers do."""
    pq.write_table(pa.table(columns), path, use_deprecated_int96_timestamps=True, write_page_checksum=True, **options)


def read(path: Path, unit: str | None = None, **options: Any) -> list[Rows]:
    rules = {} if unit is None else {"x": ColumnRule(unit=unit)}
    source = made_source("parquet", (path.name,), str(path.parent), rules=rules, **options)
    found = source.survey(source.list_files(), map_in_turn)
    return list(source.read(Task(0, found.pieces), found.frozen))


def converted(path: Path, unit: str | None = None) -> tuple[list[Any], dict[int, str]]:
    """Return the cells that the encoder makes of a column `x` (None: null or bad), and the code of each bad row."""
    rules = {} if unit is None else {"x": ColumnRule(unit=unit)}
    source = made_source("parquet", (path.name,), str(path.parent), rules=rules)
    found = source.survey(source.list_files(), map_in_turn)
    (feature,) = found.frozen.schema
    cells: list[Any] = []
    codes: dict[int, str] = {}
    for rows in source.read(Task(0, found.pieces), found.frozen):
        problems = [*rows.problems]
        excused = {problem.row for problem in problems}
        conversion = feature_column(rows.batch.column(0), feature, excused=excused)
        problems += [problem for problem in conversion.problems if problem.row not in excused]
        bad = {len(cells) + problem.row: problem.error.code for problem in problems}
        column, first = conversion.column, len(cells)
        for row in range(rows.batch.num_rows):
            if first + row in bad or (column.present is not None and not column.present[row]):
                cells.append(None)
            elif column.offsets is None:
                cells.append(int(column.values[row]))
            else:
                cells.append(column.values[column.offsets[row] : column.offsets[row + 1]].tolist())
        codes |= bad
    return cells, codes


def expected(value: Raw | None, unit: str) -> tuple[int | None, str | None]:
    """Return what a value is in a unit, or the code of what is wrong with it, by Python's integers."""
    if value is None:
        return None, None
    ticks, rest = divmod(total(value), NANOS[unit])
    if rest:
        return None, "PRECISION_LOSS"
    return (ticks, None) if -(2**63) <= ticks < 2**63 else (None, "INT_OVERFLOW")


DAYS = st.one_of(
    st.integers(EPOCH - 107_000, EPOCH + 107_000),
    st.sampled_from([EPOCH + day for day in (-106_753, -106_752, -106_751, -1, 0, 1, 106_751, 106_752)]),
    st.sampled_from([-(2**31), -1, 0, 2**31 - 1, EPOCH + 106_751_991, EPOCH + 106_751_992, EPOCH - 106_751_992]),
    st.integers(-(2**31), 2**31 - 1),
)
TIMES = st.one_of(
    st.integers(0, DAY - 1),
    st.builds(lambda n, step: n * step % DAY, st.integers(0, DAY), st.sampled_from([1000, 10**6, 10**9])),
    st.sampled_from([0, 1, DAY - 1, DAY, -1, -1000, -DAY, -(2**63), 2**63 - 1]),
    st.integers(-(2**63), 2**63 - 1),
)
EDGES = [split(n) for n in (-(2**63) - 1, -(2**63), 2**63 - 1, 2**63)]
VALUES = st.one_of(st.tuples(DAYS, TIMES), st.sampled_from(EDGES))


@settings(max_examples=150, deadline=None)
@example([*EDGES, split(1500), split(SPARK * 1000), (EPOCH, -1), None], "us", 3, True)
@example(EDGES, "ns", 9, False)
@given(
    st.lists(st.one_of(st.none(), VALUES), min_size=1, max_size=20),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.integers(1, 9),
    st.booleans(),
)
def test_every_int96_is_what_integer_arithmetic_says_or_a_problem_of_its_row(
    tmp_path_factory: pytest.TempPathFactory, values: list[Raw | None], unit: str, group: int, dictionary: bool
) -> None:
    path = tmp_path_factory.mktemp("int96") / "a.parquet"
    write_raw(path, raw_array(values), row_group_size=group, use_dictionary=dictionary)
    wanted = [expected(value, unit) for value in values]
    cells, codes = converted(path, unit)
    assert cells == [cell for cell, _ in wanted]
    assert codes == {row: code for row, (_, code) in enumerate(wanted) if code is not None}


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.lists(st.one_of(st.none(), VALUES), max_size=4)), min_size=1, max_size=8),
    st.sampled_from(["us", "ns"]),
)
def test_every_int96_in_a_list_is_exact_or_a_problem_of_its_row(
    tmp_path_factory: pytest.TempPathFactory, lists: list[list[Raw | None] | None], unit: str
) -> None:
    path = tmp_path_factory.mktemp("int96") / "a.parquet"
    column = pa.array(
        [None if row is None else [raw(value) for value in row] for row in lists], pa.list_(pa.binary(12))
    )
    write_raw(path, column)
    cells, codes = converted(path, unit)
    for row, values in enumerate(lists):
        if values is None:
            assert (cells[row], row in codes) == (None, False)
            continue
        found = [expected(value, unit) for value in values]
        allowed = {code for _, code in found if code is not None}
        allowed |= {"NULL_IN_LIST"} if None in values else set()
        if allowed:
            assert (cells[row], codes.get(row) in allowed) == (None, True)
        else:
            assert (cells[row], row in codes) == ([cell for cell, _ in found], False)


STORED = {
    "nanoseconds": pa.array([0, 1500, -1, None, 2**63 - 1, -(2**63)], pa.timestamp("ns")),
    "microseconds": pa.array([0, None, -1], pa.timestamp("us")),
    "a time zone": pa.array([0, None, -1], pa.timestamp("us", "Europe/Berlin")),
    "nulls": pa.nulls(3, pa.timestamp("ns")),
    "a dictionary": pa.array([5, None, 5], pa.timestamp("ns")).dictionary_encode(),
    "a list": pa.array([[1, 2], None, [], [3]], pa.list_(pa.timestamp("us"))),
    "a large list": pa.array([[1, 2], None, [], [3]], pa.large_list(pa.timestamp("ns"))),
    "a list view": pa.array([[1, 2], None, [], [3]], pa.list_view(pa.timestamp("ns"))),
    "a list of fixed size": pa.array([[1, 2], [3, 4]], pa.list_(pa.timestamp("ns"), 2)),
}


@pytest.mark.parametrize("case", STORED)
def test_a_column_that_is_declared_in_ns_is_what_pyarrow_reads(tmp_path: Path, case: str) -> None:
    write(tmp_path / "a.parquet", {"x": STORED[case], "n": range(len(STORED[case]))})
    table = pq.ParquetFile(tmp_path / "a.parquet").read()
    (rows,) = read(tmp_path / "a.parquet", "ns")
    rows.batch.validate(full=True)
    assert rows.batch.to_pydict() == table.to_pydict()
    assert rows.problems == ()


LISTS = {
    "list": pa.list_(pa.timestamp("us")),
    "large list": pa.large_list(pa.timestamp("us")),
    "list view": pa.list_view(pa.timestamp("us")),
    "list of fixed size": pa.list_(pa.timestamp("us"), 2),
}


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("case", LISTS)
def test_a_far_time_in_any_kind_of_list_is_exact_or_a_problem(tmp_path: Path, case: str, unit: str) -> None:
    write(tmp_path / "a.parquet", {"x": pa.array([[1, SPARK], None, [2, 3]], LISTS[case])})
    cells, codes = converted(tmp_path / "a.parquet", unit)
    if unit == "us":
        assert (cells, codes) == ([[1, SPARK], None, [2, 3]], {})
    else:
        assert (cells, codes) == ([None, None, [2000, 3000]], {0: "INT_OVERFLOW"})


def test_tensors_of_times_are_read_by_their_shape(tmp_path: Path) -> None:
    storage = pa.array([[1, 2], [3, 4]], pa.list_(pa.timestamp("ns"), 2))
    tensor = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.timestamp("ns"), (1, 2)), storage)
    write(tmp_path / "a.parquet", {"x": tensor})
    assert converted(tmp_path / "a.parquet", "ns") == ([[1, 2], [3, 4]], {})


def test_a_null_row_group_beside_one_of_far_times_is_null(tmp_path: Path) -> None:
    column = pa.array([None, None, SPARK, None], pa.timestamp("us"))
    write(tmp_path / "a.parquet", {"x": column}, row_group_size=2)
    assert converted(tmp_path / "a.parquet") == ([None, None, SPARK, None], {})


def test_a_far_time_in_one_batch_changes_no_other_batch(tmp_path: Path) -> None:
    values = np.arange(40_000)
    values[35_000] = SPARK
    write(tmp_path / "a.parquet", {"x": pa.array(values, pa.timestamp("us"))})
    assert [rows.batch.column(0).type for rows in read(tmp_path / "a.parquet")] == [pa.timestamp("us")] * 2
    assert converted(tmp_path / "a.parquet") == (values.tolist(), {})


def test_times_before_1970_of_negative_nanoseconds_are_read_as_their_writer_meant_them(tmp_path: Path) -> None:
    # pyarrow 19 wrote them: 1969-12-31T23:59:59.999999 is day 2440588 and -1000 ns.
    write_raw(tmp_path / "a.parquet", raw_array([(EPOCH, -1000), split(SPARK * 1000)]))
    assert converted(tmp_path / "a.parquet") == ([-1, SPARK], {})


MESSAGES = {
    ("us", 1500): "1500 ns is not a whole number of us; keep it exact: --set schema.columns.x.unit=ns",
    ("ms", 1000): "1000 ns is not a whole number of ms; keep it exact: --set schema.columns.x.unit=ns",
    ("ms", SPARK * 1000): (
        "253402300799999999000 ns is not a whole number of ms; keep it exact: --set schema.columns.x.unit=us"
    ),
    ("ns", SPARK * 1000): (
        "253402300799999999000 ns is beyond the int64 range in ns; keep it exact: --set schema.columns.x.unit=us"
    ),
    ("us", SPARK * 1000 + 1): (
        "253402300799999999001 ns is not a whole number of us; no unit keeps it exact: round it in the file"
    ),
    ("us", 10**22): (
        "10000000000000000000000 ns is beyond the int64 range in us; keep it exact: --set schema.columns.x.unit=ms"
    ),
}


@pytest.mark.parametrize(("unit", "value"), MESSAGES)
def test_what_is_wrong_with_a_value_is_said_with_the_unit_that_keeps_it(tmp_path: Path, unit: str, value: int) -> None:
    write_raw(tmp_path / "a.parquet", raw_array([split(value), split(3 * 10**20)]))
    (rows,) = read(tmp_path / "a.parquet", unit)
    assert rows.problems[0].row == 0
    assert rows.problems[0].error.message == MESSAGES[unit, value]
    assert rows.batch.column(0).is_valid().to_pylist()[0] is False


def test_near_times_are_said_to_be_inexact_in_the_same_words_whatever_is_in_their_batch(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_raw(path, raw_array([split(1500)]))
    (rows,) = read(path)
    (alone,) = rows.problems
    write_raw(path, raw_array([split(1500), split(SPARK * 1000)]))
    (rows,) = read(path)
    (beside,) = rows.problems
    assert alone == beside
    assert alone.error.append_message == beside.error.append_message


def changes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets, for each time that a file is opened to decode it, how its footer is changed."""
    seen: list[int] = []
    open_parquet = parquet_source.open_parquet

    def count(*args: Any, **options: Any) -> pq.ParquetFile:
        seen.append(len(options["changes"]))
        return open_parquet(*args, **options)

    monkeypatch.setattr(parquet_source, "open_parquet", count)
    return seen


def test_a_file_whose_chosen_columns_are_not_int96_is_opened_once_and_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = changes(monkeypatch)
    times = pa.array([0, SPARK], pa.timestamp("us"))
    pq.write_table(pa.table({"t": times, "n": [1, 2]}), tmp_path / "a.parquet")
    read(tmp_path / "a.parquet")
    write(tmp_path / "b.parquet", {"t": times, "n": [1, 2]})
    (rows,) = read(tmp_path / "b.parquet", columns=("n",))
    assert (seen, rows.batch.to_pydict()) == ([0, 0], {"n": [1, 2]})
    (rows,) = read(tmp_path / "b.parquet", columns=("t",))
    assert (seen, rows.batch.column("t").cast(pa.int64()).to_pylist()) == ([0, 0, 0, 1], [0, SPARK])


def test_null_lists_of_fixed_size_and_int96_change_the_footer_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = changes(monkeypatch)
    columns = {
        "f": pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
        "large": pa.array([[1000], None], pa.large_list(pa.timestamp("ns"))),
        "x": pa.array([1, 2], pa.timestamp("us")),
    }
    write(tmp_path / "a.parquet", columns)
    (rows,) = read(tmp_path / "a.parquet")
    assert seen == [0, 1, 2]
    found = {name: rows.batch.column(name).cast(columns[name].type) for name in ("f", "large", "x")}
    assert found == columns


def test_an_int96_column_is_decoded_as_it_stands_in_the_file_page_checksums_included(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, {"x": pa.array([SPARK, 1], pa.timestamp("us"))}, compression="none", use_dictionary=False)
    data = path.read_bytes()
    at = data.index(raw(split(SPARK * 1000)) or b"")
    path.write_bytes(data[:at] + b"\0" + data[at + 1 :])
    with pytest.raises(SourceError, match=r"^a\.parquet: row group 0 \(rows from 1\) is damaged: .*CRC"):
        read(path)


DAMAGED = {"cut": b"\x15\x04\x19\x2c\x35", "an element that is not a struct": b"\x15\x04\x19\x15\x06\x00"}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_schema_is_an_error(case: str) -> None:
    with pytest.raises(ThriftError):
        footer_of_raw_int96(DAMAGED[case])


def test_a_sliced_column_is_read_from_its_offset() -> None:
    values = raw_array([split(1), None, split(SPARK * 1000), split(3000)]).slice(1)
    moments = Moments.of(values)
    assert [moments.total(i) for i in range(3)] == [0, SPARK * 1000, 3000]
    lists = pa.ListArray.from_arrays([0, 1, 1, 3], raw_array([split(1000), split(2000), split(3000)])).slice(1)
    array, problems = exact_timestamps("x", lists, pa.list_(pa.timestamp("us")))
    array.validate(full=True)
    assert array.cast(pa.list_(pa.int64())).to_pylist() == [[], [2, 3]]
    assert problems == ()


MANY = [[1, SPARK], None, [], [2]]
NESTED: dict[str, pa.Array] = {
    "struct": pa.array([{"t": 1}, None, {"t": None}, {"t": SPARK}], pa.struct({"t": pa.timestamp("us")})),
    "struct of a struct": pa.array([{"s": {"n": 1, "t": SPARK}}] * 4, pa.struct(
        {"s": pa.struct({"n": pa.int8(), "t": pa.timestamp("us")})}
    )),
    "list": pa.array(MANY, pa.list_(pa.timestamp("us"))),
    "list of lists": pa.array([[one] * 2 if one else one for one in MANY], pa.list_(pa.list_(pa.timestamp("us")))),
    "list of structs": pa.array(
        [[{"a": "x", "t": SPARK}, {"a": "y", "t": 2}], [], None, [{"a": None, "t": 3}]],
        pa.list_(pa.struct({"a": pa.string(), "t": pa.timestamp("us")})),
    ),
    "map to times": pa.array([[("k", SPARK)], [], None, [("l", 2)]], pa.map_(pa.string(), pa.timestamp("us"))),
    "map of times": pa.array([[(SPARK, 1)], [], None, [(2, 3)]], pa.map_(pa.timestamp("us"), pa.int8())),
    "fixed lists": pa.array([[1, SPARK], None, [3, 4], None], pa.list_(pa.timestamp("us"), 2)),
    "struct of lists of maps": pa.array(
        [{"l": [[("k", SPARK)]]}, {"l": []}, {"l": None}, None],
        pa.struct({"l": pa.list_(pa.map_(pa.string(), pa.timestamp("us")))}),
    ),
}  # fmt: skip
"""Columns of four rows with INT96 among their leaves, in which far times have no number in ns."""

OTHERS: dict[str, pa.Array] = {
    "before": pa.array([{"a": 1, "b": [1, 2]}] * 4, pa.struct({"a": pa.int8(), "b": pa.list_(pa.int8())})),
    "t": pa.array([SPARK, None, 1, 2], pa.timestamp("us")),
    "m": pa.array([[("k", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
    "u": pa.array([1, 2, None, SPARK], pa.timestamp("us")),
}
"""Columns around them: with and without INT96, of one leaf and of several."""


def around(case: str) -> pa.Table:
    return pa.table({"before": OTHERS["before"], "x": NESTED[case], **{name: OTHERS[name] for name in ("t", "m", "u")}})


@pytest.mark.parametrize("case", NESTED)
def test_int96_in_and_around_nested_columns_is_read_as_it_was_written(tmp_path: Path, case: str) -> None:
    table = around(case)
    write(tmp_path / "a.parquet", {name: table[name] for name in table.column_names}, row_group_size=3)
    for columns in (None, ("x",), ("m", "u"), ("u", "x"), ("t",)):
        found = [rows.batch for rows in read(tmp_path / "a.parquet", columns=columns)]
        for batch in found:
            batch.validate(full=True)
        wanted = table if columns is None else table.select([one for one in table.column_names if one in columns])
        assert pa.Table.from_batches(found).to_pydict() == wanted.to_pydict()


@pytest.mark.parametrize("case", NESTED)
def test_a_nested_time_that_has_no_number_of_the_unit_is_a_problem_of_its_row_alone(tmp_path: Path, case: str) -> None:
    write(tmp_path / "a.parquet", {"x": NESTED[case]})
    (rows,) = read(tmp_path / "a.parquet", "ns")
    rows.batch.validate(full=True)
    far = ["9999" in str(one) for one in NESTED[case].to_pylist()]
    assert [problem.row for problem in rows.problems] == [row for row, is_far in enumerate(far) if is_far]
    for problem in rows.problems:
        assert (problem.error.column, problem.error.code) == ("x", "INT_OVERFLOW")
        assert problem.error.message.endswith("keep it exact: --set schema.columns.x.unit=us")
    wanted = [None if is_far else one for one, is_far in zip(cells(NESTED[case]), far, strict=True)]
    assert cells(rows.batch.column(0)) == wanted


def cells(column: pa.Array) -> list[Any]:
    """Return cells as Python's values, times as datetimes."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [plain(one) for one in value]
        return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value

    return [plain(value) for value in column.to_pylist()]
