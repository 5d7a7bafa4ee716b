"""What a user of the command line meets with the types of Parquet columns: unsupported, declared, differing by file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.format.columns.flatten import refuse_unsupported, without_json
from shardmill.transforms.format.schema.schema import ColumnRule


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
        "keep them as JSON text: --set schema.columns.age.as=json --set schema.columns.either.as=json, or leave them "
        "out: give the data without age, either",
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
    assert said[2] == 'keep "age" as JSON text: --set schema.columns.age.as=json'
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


def units(desk: Any, name: str = "out") -> dict[str, str | None]:
    return {feature.name: feature.unit for feature in open_dataset(desk.root / name).manifest.schema or ()}


def test_times_of_ns_stay_in_ns_with_and_without_statistics_and_whatever_their_values_are(desk: Any) -> None:
    whole = TIMES.cast(pa.timestamp("us"), safe=False).cast(pa.timestamp("ns"))
    ends = pa.concat_arrays([whole[:1], TIMES[1:-1], whole[-1:]])  # its least and largest values are whole us
    columns = {
        "ends": ends, "whole": whole, "day": [None, 1] * 250, "lists": pa.array([[t] for t in TIMES]),
        "kinds": TIMES.dictionary_encode(), "nulls": pa.nulls(500, pa.timestamp("ns")),
        "clock": pa.array(range(500), pa.time64("ns")), "took": pa.array(range(500), pa.duration("ns")),
        "s": TIMES.cast(pa.timestamp("s"), safe=False), "ms": pa.array(range(500), pa.time32("ms")),
    }  # fmt: skip
    for statistics in (True, False):
        pq.write_table(pa.table(columns), desk.root / "a.parquet", write_statistics=statistics)
        assert [line for line in screen_lines(desk, "a.parquet", "--overwrite") if "Warning" in line] == []
        in_ns = dict.fromkeys(["ends", "whole", "lists", "kinds", "nulls", "clock", "took"], "ns")
        assert units(desk) == {"day": None, **in_ns, "s": "us", "ms": "us"}
        table = open_dataset(desk.root / "out").to_arrow()
        assert table["ends"].combine_chunks().equals(ends)
        assert table["whole"].type == pa.timestamp("ns")
        assert table["lists"].combine_chunks().flatten().equals(TIMES)


def test_times_of_ns_within_nested_columns_stay_in_ns(desk: Any) -> None:
    kinds = {"t": pa.timestamp("ns", "UTC"), "m": pa.map_(pa.string(), pa.time64("ns")), "ms": pa.timestamp("ms")}
    rows = [{"t": 1001, "m": [("k", 7)], "ms": 5}, None]
    nested = pa.array(rows, pa.struct(kinds))
    ragged = pa.array([[[1, 2], []], None], pa.list_(pa.list_(pa.timestamp("ns"))))
    put(desk, s=nested, l=ragged)
    screen_lines(desk, "a.parquet")
    assert {name: unit for name, unit in units(desk).items() if unit} == {
        "s/t": "ns", "s/m/value": "ns", "s/ms": "us", "l/ragged_flat_values": "ns",
    }  # fmt: skip
    table = open_dataset(desk.root / "out").to_arrow()
    assert (table["s"].to_pylist(), table["l"].to_pylist()) == (nested.to_pylist(), ragged.to_pylist())


def test_a_unit_that_is_declared_for_a_nested_column_is_that_of_its_times(desk: Any) -> None:
    put(desk, s=pa.array([{"t": 1_000_000, "n": 1}, {"t": 1, "n": 2}], pa.struct({"t": NS, "n": pa.int8()})))
    args = ["a.parquet", "--set", "schema.columns.s.unit=ms"]
    fix = 'column "s": PRECISION_LOSS: "s/t": 1 ns is not a whole number of ms; keep it exact: --set schema.columns.s'
    assert f"{fix}.unit=ns" in desk.convert(*args).err
    assert desk.convert(*args, "--max-rejects", "1").code == 0
    assert (units(desk)["s/t"], [row["s"]["t"].microsecond for row in desk.records()]) == ("ms", [1000])
    refused = desk.convert("a.parquet", "--set", "schema.columns.s.unit=ns", "--overwrite")
    assert refused.code == 0
    put(desk, s=pa.array([{"n": 1}]))
    refused = desk.convert("a.parquet", "--set", "schema.columns.s.unit=ns", "--overwrite")
    assert 'column "s": a unit does not fit struct<n: int64>, which holds no times' in refused.err


NS, US = pa.timestamp("ns"), pa.timestamp("us")
OLD = -11_644_473_600_000_000
"""The year 1601, in microseconds, which nanoseconds do not hold."""


def numbers(desk: Any) -> list[int]:
    column = open_dataset(desk.root / "out").to_arrow()["x"].combine_chunks()
    return sorted((column.field(0) if pa.types.is_struct(column.type) else column).cast(pa.int64()).to_pylist())


@pytest.mark.parametrize(
    ("unit", "value", "proposed"),
    [("ms", 253402300799000, "us"), ("s", 253402300799, "us"), ("s", 2**62, "s"), ("ms", -(2**62), "ms")],
)
def test_of_a_moment_that_ns_cannot_hold_the_finest_unit_is_proposed_that_can(
    desk: Any, unit: str, value: int, proposed: str
) -> None:
    for number, column in enumerate([pa.array([1], NS), pa.array([value, None], pa.timestamp(unit))]):
        table = pa.table({"x": column})
        with pa.ipc.new_file(desk.root / f"{number}.arrow", table.schema) as file:
            file.write_table(table)
    screen = desk.convert("0.arrow", "1.arrow")
    assert f"keep it exact: --set schema.columns.x.unit={proposed}\n" in screen.err


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("more", [[], ["--set", "input.columns_differ=union"], ["--limit", "9"]])
@pytest.mark.parametrize("first", ["ns", "us"])
def test_files_of_us_and_of_ns_are_one_column_of_ns_that_rejects_what_ns_cannot_hold(
    desk: Any, nested: bool, more: list[str], first: str
) -> None:
    def column(values: list[int], kind: pa.DataType) -> pa.Array:
        array = pa.array(values, kind)
        return pa.StructArray.from_arrays([array], ["t"]) if nested else array

    files = {"ns": column([1, 2], NS), "us": column([3, OLD], US)}
    for number, unit in enumerate([first, "us" if first == "ns" else "ns"]):
        put(desk, f"{number}.parquet", x=files[unit])
    screen = desk.convert("0.parquet", "1.parquet", *more)
    where = '"x/t": ' if nested else ""
    line = (
        f'{"1" if first == "ns" else "0"}.parquet row group 0 row 2: column "x": INT_OVERFLOW: {where}{OLD} us is '
        f"beyond the int64 range in ns; keep it exact: --set schema.columns.x.unit=us"
    )
    assert line in screen.err
    assert desk.convert("0.parquet", "1.parquet", *more, "--max-rejects", "1").code == 0
    name = "x/t" if nested else "x"
    assert (units(desk)[name], numbers(desk)) == ("ns", [1, 2, 3000])
    proposed = ["--set", "schema.columns.x.unit=us", "--max-rejects", "2", "--overwrite"]
    assert desk.convert("0.parquet", "1.parquet", *more, *proposed).code == 0
    assert (units(desk)[name], numbers(desk)) == ("us", [OLD, 3])


def test_a_unit_that_is_declared_wins(desk: Any) -> None:
    put(desk, fine=TIMES[:3])
    screen = desk.convert("a.parquet", "--set", "schema.columns.fine.unit=us", "--max-rejects", "2")
    assert (screen.code, len(desk.records()), "Warning" in screen.out) == (0, 1, False)


def test_nanoseconds_in_memory_stay_too(desk: Any) -> None:
    for name, table in (("out", pa.table({"t": TIMES})), ("lists", pa.table({"t": pa.array([[TIMES[1]], None])}))):
        summary = convert(data=table, output=desk.root / name)
        assert (summary.manifest.counts.rejected, [f.unit for f in summary.manifest.schema or ()]) == (0, ["ns"])
        assert summary.warnings == ()


@pytest.mark.parametrize("wrap", [lambda values: values, lambda values: pa.StructArray.from_arrays([values], ["t"])])
def test_an_append_keeps_the_unit_of_the_dataset(desk: Any, wrap: Any) -> None:
    whole = TIMES[:1].cast(US, safe=False)
    for name, times in (("us", whole), ("ns", TIMES)):
        convert(data=pa.table({"t": wrap(times)}), output=desk.root / name)
        for more, rejected in ((TIMES[:2], name == "us"), (whole, False), (pa.array([OLD], US), name == "ns")):
            again = append(data=pa.table({"t": wrap(more)}), output=desk.root / name, max_rejects=1, force=True)
            assert again.manifest.counts.rejected == rejected
        assert set(units(desk, name).values()) - {None} == {name}
