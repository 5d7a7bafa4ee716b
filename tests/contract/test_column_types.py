"""What a user of the command line meets with the types of Parquet columns: unsupported, declared, differing by file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.format.nested.unsupported import refuse_unsupported, without_json
from shardmill.transforms.format.schema.schema import ColumnRule

pytestmark = pytest.mark.usefixtures("without_engine")


def put(desk: Any, name: str = "a.parquet", **columns: Any) -> None:
    pq.write_table(pa.table(columns), desk.root / name)


INTERVALS = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
UNIONS = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([5])])


def test_all_columns_that_are_not_supported_are_told_at_once_with_what_keeps_them_and_the_others(desk: Any) -> None:
    table = pa.table({"id": [1], "age": INTERVALS, "either": UNIONS})
    with pytest.raises(SchemaError) as caught:
        convert(data=table, output=desk.root / "out")
    assert str(caught.value).splitlines() == [
        "Arrow table: 2 columns are not supported:",
        '  "age": month_day_nano_interval, no feature holds it',
        '  "either": dense_union<0: int64=0>, no feature holds it',
        "keep them as JSON text (--set schema.columns.NAME.as=json), or leave them out: give the data without age, "
        "either",
    ]
    columns = {"age": {"as": "json"}, "either": {"as": "json"}}
    convert(data=table, output=desk.root / "out", schema={"columns": columns})
    assert desk.records() == [{"id": 1, "age": "[1,2,3]", "either": "5"}]


def day_time_interval() -> pa.DataType:
    """Return a type that files may hold, and that pyarrow cannot make."""
    data = pa.schema({"x": pa.month_day_nano_interval()}).serialize().to_pybytes()
    unit = data.rindex(b"\2\0")
    (column,) = pa.ipc.read_schema(pa.py_buffer(data[:unit] + b"\1" + data[unit + 1 :]))
    assert str(column.type) == "day_time_interval"
    return column.type


def test_json_text_is_proposed_for_those_columns_alone_that_it_holds() -> None:
    day, month = pa.field("day", day_time_interval()), pa.field("age", INTERVALS.type)
    said = []
    for columns in ([day], [day, pa.field("n", pa.int8())], [day, month]):
        with pytest.raises(SchemaError) as caught:
            refuse_unsupported(columns, "a.arrow", ",".join)
        said.append(str(caught.value).splitlines()[-1])
    assert said[0].endswith("no feature holds it; convert it before")
    assert said[1].endswith("no feature holds it; leave it out: day")
    assert said[2] == 'keep "age" as JSON text (--set schema.columns.NAME.as=json)'
    as_json = {"day": ColumnRule(as_="json"), "age": ColumnRule(as_="json")}
    assert without_json([day, month], as_json) == [day]


def screen_lines(desk: Any, *args: str) -> list[str]:
    screen = desk.convert(*args)
    assert (screen.code, screen.err) == (0, "")
    return [" ".join(line.split()) for line in screen.out.splitlines()]


def test_files_of_one_table_may_hold_integers_and_floats_of_several_widths(desk: Any) -> None:
    small = {"n": pa.array([1], pa.int32()), "u": pa.array([200], pa.uint8()), "x": pa.array([0.5], pa.float32())}
    large = {"n": [2**40], "u": pa.array([-1], pa.int8()), "x": pa.array([1.5])}
    put(desk, "a.parquet", **small, v=pa.array([[1]], pa.list_(pa.int16())))
    put(desk, "b.parquet", **large, v=pa.array([[2**40]]))
    put(desk, "c.parquet", **small, v=pa.array([[2]], pa.list_(pa.int16())))
    lines = screen_lines(desk, "a.parquet", "b.parquet", "c.parquet", "--dry-run")
    assert any("int32 in a.parquet" in line for line in lines)
    assert any("uint8 in a.parquet" in line for line in lines)
    screen_lines(desk, "a.parquet", "b.parquet", "c.parquet")
    rows = desk.records()
    assert [row["n"] for row in rows] == [1, 2**40, 1]
    assert [row["u"] for row in rows] == [200, -1, 200]
    assert [row["x"] for row in rows] == [0.5, 1.5, 0.5]
    assert [row["v"] for row in rows] == [[1], [2**40], [2]]


def test_floats_of_two_widths_are_kept_exact_where_that_is_asked_for(desk: Any) -> None:
    put(desk, "a.parquet", x=pa.array([0.5], pa.float32()))
    put(desk, "b.parquet", x=pa.array([0.1]))
    screen_lines(desk, "a.parquet", "b.parquet", "--set", "schema.columns.x.as=bytes")
    assert [row["x"] for row in desk.records()] == [0.5, 0.1]


def test_types_that_no_type_holds_exactly_are_refused(desk: Any) -> None:
    put(desk, "a.parquet", n=pa.array([1], pa.uint64()))
    put(desk, "b.parquet", n=pa.array([1], pa.int64()))
    screen = desk.convert("a.parquet", "b.parquet")
    assert (screen.code, 'column "n" is uint64 in a.parquet, and int64 in b.parquet' in screen.err) == (2, True)


DECLARED: dict[str, tuple[pa.Array, str, list[Any]]] = {
    "float32 for float64": (pa.array([0.5, 0.1]), "float32", [0.5, pytest.approx(0.1)]),
    "float for bool": (pa.array([True, None, False]), "float", [1.0, None, 0.0]),
    "int64 for int32": (pa.array([1, -(2**31)], pa.int32()), "int64", [1, -(2**31)]),
    "int for bool": (pa.array([True, False]), "int", [1, 0]),
    "float for int64": (pa.array([3, -(2**24), 2**40]), "float", [3.0, -(2.0**24), 2.0**40]),
    "float32 for uint8": (pa.array([255], pa.uint8()), "float32", [255.0]),
}


@pytest.mark.parametrize("case", DECLARED)
def test_a_type_may_be_declared_where_every_value_is_exact_in_it(desk: Any, case: str) -> None:
    array, declared, wanted = DECLARED[case]
    put(desk, x=array, row=range(len(array)))
    screen_lines(desk, "a.parquet", "--set", f"schema.columns.x.type={declared}")
    found = [row.get("x") for row in desk.records()]
    assert found == wanted
    assert {type(value) for value in found if value is not None} == {float if declared.startswith("float") else int}


@pytest.mark.parametrize("value", [2**24 + 1, -(2**24) - 1, 2**63 - 1])
def test_a_whole_number_that_float32_does_not_hold_is_a_reject(desk: Any, value: int) -> None:
    put(desk, x=[1, value])
    args = ["a.parquet", "--set", "schema.columns.x.type=float"]
    fix = "keep it exact: --set schema.columns.x.type=int64"
    assert f"PRECISION_LOSS: {value} is not a whole number that float32 holds; {fix}" in desk.convert(*args).err
    assert desk.convert(*args, "--max-rejects", "1").code == 0
    assert [row["x"] for row in desk.records()] == [1.0]


TIMES = pa.array([1_700_000_000_000_000_000 + n * 1_001 for n in range(500)], pa.timestamp("ns"))


def test_nanoseconds_stay_nanoseconds_where_values_hold_them_and_the_screen_says_so(desk: Any) -> None:
    whole = TIMES.cast(pa.timestamp("us"), safe=False).cast(pa.timestamp("ns"))
    put(desk, fine=TIMES, whole=whole, day=[None, 1] * 250, lists=pa.array([[t] for t in TIMES]))
    lines = screen_lines(desk, "a.parquet")
    told = "values hold nanoseconds, so it is in ns; otherwise it would be in us"
    assert [line for line in lines if "Warning" in line] == [
        f'Warning: column "fine": {told}',
        f'Warning: column "lists": {told}',
    ]
    features = {f.name: f.unit for f in open_dataset(desk.root / "out").manifest.schema or ()}
    assert features == {"fine": "ns", "whole": "us", "day": None, "lists": "ns"}
    assert desk.inspect_json()["fine"] == [TIMES[0].value]


def test_a_unit_that_is_declared_wins(desk: Any) -> None:
    put(desk, fine=TIMES[:3])
    screen = desk.convert("a.parquet", "--set", "schema.columns.fine.unit=us", "--max-rejects", "2")
    assert (screen.code, len(desk.records()), "Warning" in screen.out) == (0, 1, False)


def test_nanoseconds_in_memory_stay_too(desk: Any) -> None:
    for name, table in (("out", pa.table({"t": TIMES})), ("lists", pa.table({"t": pa.array([[TIMES[1]], None])}))):
        summary = convert(data=table, output=desk.root / name)
        assert (summary.manifest.counts.rejected, [f.unit for f in summary.manifest.schema or ()]) == (0, ["ns"])
        assert [w for w in summary.warnings if w.startswith('column "t": values hold nanoseconds')]


def test_an_append_keeps_the_unit_of_the_dataset(desk: Any) -> None:
    for name, times in (("us", TIMES[:1]), ("ns", TIMES)):
        convert(data=pa.table({"t": times}), output=desk.root / name)
        convert_again = append(data=pa.table({"t": TIMES[:2]}), output=desk.root / name, max_rejects=1)
        assert convert_again.manifest.counts.rejected == (1 if name == "us" else 0)
