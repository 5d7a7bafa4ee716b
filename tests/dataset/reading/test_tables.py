"""A dataset that is exported as a table, and converted again, has the values that it had."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.pipelines import convert, open_dataset
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.append import run_append
from shardmill.transforms.dataset.reading.exported_tables import (
    TABLES,
    ExportedRows,
    csv_lines,
    plain_array,
    plain_list,
)
from shardmill.transforms.errors import UsageError

STRUCT = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string())), ("at", pa.timestamp("us"))])
UGLY = pa.table(
    {
        "id": pa.array([2**63 - 1, -(2**63), 0, 7], pa.int64()),
        "small": pa.array([-128, None, 127, 0], pa.int8()),
        "whole": pa.array([2**63 - 1, None, 0, 1], pa.uint64()),
        "half": pa.array([0.5, None, 65504.0, -0.0], pa.float16()),
        "x": pa.array([0.1, None, 3.4e38, 1e-45], pa.float32()),
        "flag": pa.array([True, None, False, True]),
        "text": pa.array(["", None, 'a "quoted", é\n\u2028line', "007"]),
        "raw": pa.array([b"\xff\x00", None, b"", b"abc"]),
        "day": pa.array([0, None, -719162, 2932896], pa.date32()),
        "clock": pa.array([1, None, 86_399_999_999_999, 0], pa.time64("ns")),
        "seen": pa.array([1, None, -1, 10**18], pa.timestamp("ns")),
        "zoned": pa.array([1, None, -1, 2**50], pa.timestamp("us", "Europe/Berlin")),
        "took": pa.array([1, None, -(2**60), 0], pa.duration("us")),
        "price": pa.array([Decimal("1.50"), None, Decimal("-99999999.99"), Decimal("0.00")], pa.decimal128(10, 2)),
        "tags": pa.array([["a", ""], None, [], ["b"]], pa.list_(pa.string())),
        "pair": pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int16(), 2)),
        "grid": pa.array([[[1, 2], []], None, [], [[3]]], pa.list_(pa.list_(pa.int64()))),
        "boxes": pa.array([[[0.0, 1.0]], None, [], [[2.0, 3.0]] * 2], pa.list_(pa.list_(pa.float32(), 2))),
        "nest": pa.array(
            [
                {"a": 1, "b": ["x"], "at": dt.datetime(2024, 2, 29)},
                None,
                {"a": None, "b": None, "at": None},
                None,
            ],
            STRUCT,
        ),
        "map": pa.array([[("k", 1), ("l", 2)], None, [], [("k", 3), ("k", 2)]], pa.map_(pa.string(), pa.int64())),
        "kind": pa.array(["owl", "cat", "owl", "dog"]),
    }
)
CLASSES = {"schema": {"columns": {"kind": {"label": ["cat", "dog", "owl"]}}}}


@pytest.fixture(scope="module")
def ugly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(UGLY, tmp_path_factory.mktemp("ugly") / "first", **CLASSES)


def made(source: Any, out: Path, **keys: Any) -> Path:
    config = {"version": 1, "output": {"order": "source"} | keys.pop("output", {}), **keys}
    if isinstance(source, Path):
        convert(config | {"input": {"paths": [str(source)]}}, output=out)
    else:
        convert(config, data=source, output=out)
    return out


def exported(folder: Path, target: Path, **which: Any) -> Path:
    rows = ExportedRows.plan(open_dataset(folder), **which, one_table=True)
    with target.open("wb") as file:
        TABLES[target.suffix](rows, file)
    return target


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_what_was_exported_becomes_the_same_records(ugly: Path, tmp_path: Path, suffix: str) -> None:
    table = exported(ugly, tmp_path / f"table{suffix}")
    again = made(table, tmp_path / "again", **CLASSES)
    assert list(open_dataset(again).records()) == list(open_dataset(ugly).records())
    before, after = open_dataset(ugly), open_dataset(again)
    assert before.labels == after.labels
    assert [row for batch in after.batches() for row in batch.to_pylist()] == [
        row for batch in before.batches() for row in batch.to_pylist()
    ]


def test_a_parquet_file_has_the_values_of_the_source_with_classes_by_their_names(ugly: Path, tmp_path: Path) -> None:
    table = pq.read_table(exported(ugly, tmp_path / "table.parquet"))
    assert table.schema.names == UGLY.schema.names
    assert pa.types.is_dictionary(table.schema.field("kind").type)
    for name in UGLY.schema.names:
        assert str(table[name].to_pylist()) == str(UGLY[name].to_pylist()), name


def test_an_arrow_file_has_the_types_of_the_source(ugly: Path, tmp_path: Path) -> None:
    with pa.ipc.open_file(exported(ugly, tmp_path / "table.arrow")) as file:
        types = {field.name: field.type for field in file.schema}
    assert {name: types[name] for name in ("small", "pair", "price", "zoned", "map", "nest")} == {
        name: UGLY.schema.field(name).type for name in ("small", "pair", "price", "zoned", "map", "nest")
    }


def test_json_lines_have_every_column_of_every_row_and_text_for_what_json_has_no_type_for(
    ugly: Path, tmp_path: Path
) -> None:
    lines = exported(ugly, tmp_path / "rows.jsonl").read_text().split("\n")[:-1]
    first, second, third, last = map(json.loads, lines)
    assert [list(row) for row in (first, second, third, last)] == [UGLY.schema.names] * 4
    assert {name for name, value in second.items() if value is not None} == {"id", "kind"}
    assert (first["id"], second["id"], first["x"], third["text"]) == (
        2**63 - 1,
        -(2**63),
        0.1,
        'a "quoted", é\n\u2028line',
    )
    assert base64.b64decode(first["raw"]) == b"\xff\x00"
    assert (third["day"], third["clock"], third["took"]) == ("0001-01-01", "23:59:59.999999999", -(2**60))
    assert (first["seen"], last["seen"]) == ("1970-01-01 00:00:00.000000001", "2001-09-09 01:46:40.000000000")
    assert (first["zoned"], first["price"]) == ("1970-01-01 01:00:00.000001+0100", "1.50")
    assert (first["grid"], first["nest"]) == ([[1, 2], []], {"a": 1, "b": ["x"], "at": "2024-02-29 00:00:00.000000"})
    assert (first["map"], last["map"]) == ({"k": 1, "l": 2}, [["k", 3], ["k", 2]])
    assert [json.loads(line)["kind"] for line in lines] == ["owl", "cat", "owl", "dog"]


def test_json_lines_become_the_same_records_where_types_are_declared(tmp_path: Path) -> None:
    names = ["id", "x", "flag", "text", "day", "clock", "seen", "tags", "kind"]
    first = made(UGLY.select(names), tmp_path / "first", **CLASSES)
    lines = exported(first, tmp_path / "rows.jsonl")
    types = {"x": "float32", "day": "date", "clock": "time", "seen": "timestamp"}
    columns = {name: {"type": kind} for name, kind in types.items()} | CLASSES["schema"]["columns"]
    for name in ("clock", "seen"):
        columns[name]["unit"] = "ns"
    again = made(lines, tmp_path / "again", schema={"columns": columns})
    assert list(open_dataset(again).records()) == list(open_dataset(first).records())


def test_csv_keeps_empty_text_apart_from_nulls(tmp_path: Path) -> None:
    names = ["id", "x", "flag", "text", "day", "seen", "kind"]
    first = made(UGLY.select(names), tmp_path / "first", **CLASSES)
    types = {"x": "float32", "text": "string", "day": "date", "seen": "timestamp"}
    columns: dict[str, Any] = {name: {"type": kind} for name, kind in types.items()} | CLASSES["schema"]["columns"]
    columns["seen"]["unit"] = "ns"
    again = made(exported(first, tmp_path / "rows.csv"), tmp_path / "again", schema={"columns": columns})
    assert list(open_dataset(again).records()) == list(open_dataset(first).records())


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_floats_in_csv_are_read_back_as_the_same_floats(tmp_path: Path, kind: pa.DataType) -> None:
    values = [1.0, -0.0, 0.0, None, 1e20, -3.0, 0.1, 16777216.0, 1e-40, 2.0**53, float("inf"), float("nan")]
    names = ("a", "whole")
    table = pa.table({"a": pa.array(values, kind), "id": range(12), "whole": pa.array([1.0, -0.0, 0.0] * 4, kind)})
    exact = {name: {"as": "bytes"} for name in names if kind == pa.float64()}
    first = made(table, tmp_path / "first", schema={"columns": exact})
    rows = exported(first, tmp_path / "rows.csv")
    lines = Path(rows).read_text().splitlines()
    assert lines[:3] == ['"a","id","whole"', "1.0,0,1.0", "-0.0,1,-0.0"]
    assert [line.split(",")[0] for line in lines[4:7]] == ["", "1e+20", "-3.0"]
    inferred = open_dataset(made(rows, tmp_path / "inferred")).manifest.schema
    assert [feature.kind for feature in inferred] == ["float", "int64", "float"]
    same = exact or {name: {"type": "float32"} for name in names}
    again = made(rows, tmp_path / "again", schema={"columns": same})
    assert list(open_dataset(again).records()) == list(open_dataset(first).records())


def test_csv_without_floats_has_the_bytes_of_arrows_writer() -> None:
    texts = ["", None, 'a "b"', "é\nz", ",", "1"]
    columns = [pa.array(texts), pa.array([1, None, -3, 4, 5, 6]), pa.array([True, None, False] * 2), pa.nulls(6)]
    for start, stop in ((0, 6), (2, 5), (3, 3)):
        batch = pa.RecordBatch.from_arrays([column[start:stop] for column in columns], names=["a", "b", "c", "d"])
        written = io.BytesIO()
        pa.csv.write_csv(batch, written, pa.csv.WriteOptions(include_header=False))
        assert csv_lines(batch.columns).to_pybytes() == written.getvalue()


@given(st.lists(st.floats(width=64)))
def test_a_float_in_csv_has_the_digits_that_give_it_again(values: list[float]) -> None:
    written = csv_lines([pa.array(values, pa.float64())]).to_pybytes().decode().split()
    assert [struct.pack("d", float(one)) for one in written if one != "nan"] == [
        struct.pack("d", value) for value in values if not math.isnan(value)
    ]
    assert not any(one.lstrip("-").isdigit() for one in written)


def test_csv_names_the_columns_that_it_has_no_place_for(ugly: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"CSV has no lists and objects, which tags, pair, .* hold; export to \.jsonl"):
        exported(ugly, tmp_path / "rows.csv")


def test_a_table_of_several_splits_says_which_row_is_in_which_and_becomes_them_again(tmp_path: Path) -> None:
    source = pa.table({"id": pa.array(range(500))})
    first = made(source, tmp_path / "first", split={"fractions": {"train": 0.8, "val": 0.2}})
    table = exported(first, tmp_path / "table.parquet")
    assert set(pq.read_table(table)["split"].to_pylist()) == {"train", "val"}
    again = open_dataset(made(table, tmp_path / "again", split={"column": "split"}))
    for split in ("train", "val"):
        wanted = [row["id"] for row in open_dataset(first)[split]]
        assert [row["id"] for row in again[split]] == wanted
    alone = pq.read_table(exported(first, tmp_path / "val.parquet", split="val"))
    assert alone.schema.names == ["id"]
    assert alone["id"].to_pylist() == [row["id"] for row in open_dataset(first)["val"]]


def test_a_column_named_split_stops_a_table_of_several_splits_with_the_way_out(tmp_path: Path) -> None:
    source = pa.table({"split": ["a", "b"] * 50, "id": range(100)})
    first = made(source, tmp_path / "first", split={"fractions": {"train": 0.5, "val": 0.5}})
    with pytest.raises(UsageError, match=r"export each split by itself: --split train, or .* others with --columns"):
        exported(first, tmp_path / "table.parquet")
    table = pq.read_table(exported(first, tmp_path / "ids.parquet", columns=["id"]))
    assert table.schema.names == ["id", "split"]
    assert set(table["split"].to_pylist()) == {"train", "val"}


@pytest.mark.parametrize("names", [None, {"train": "train", "val": "dev"}])
def test_a_column_named_split_that_is_the_split_is_written_once_and_splits_again(
    tmp_path: Path, names: dict[str, str] | None
) -> None:
    source = pa.table({"split": ["train", "val", "train"] * 50, "id": range(150)})
    rule: dict[str, Any] = {"column": "split"} | ({} if names is None else {"names": names})
    first = made(source, tmp_path / "first", split=rule)
    table = pq.read_table(exported(first, tmp_path / "table.parquet"))
    assert table.schema.names == ["id", "split"]
    again = open_dataset(made(tmp_path / "table.parquet", tmp_path / "again", split=rule))
    there = open_dataset(first)
    assert [list(again[split]) for split in again.splits] == [list(there[split]) for split in there.splits]
    (tmp_path / "more.csv").write_text("split,id\nval,7\n")
    output = {"path": str(first), "split": "train"}
    run_append(
        conversion_of(
            load_config({"input": {"paths": [str(tmp_path / "more.csv")]}, "output": output}, command="append"),
            "append",
        )
    )
    with pytest.raises(UsageError, match="is not the split of each row"):
        exported(first, tmp_path / "other.parquet")


@pytest.mark.parametrize(
    ("values", "names", "column"),
    [
        (pa.array([True, False, True]), {"true": "train", "false": "val"}, {}),
        (pa.array([b"train", b"val", b"train"]), None, {}),
        (pa.array(["b", "a", "b"]), {"1": "train", "0": "val"}, {"label": ["a", "b"]}),
    ],
    ids=["bools", "bytes", "classes"],
)
def test_values_of_a_column_named_split_are_those_that_its_rule_names(
    tmp_path: Path, values: pa.Array, names: dict[str, str] | None, column: dict[str, Any]
) -> None:
    rule: dict[str, Any] = {"column": "split"} | ({} if names is None else {"names": names})
    how: dict[str, Any] = {"schema": {"columns": {"split": column}}} if column else {}
    first = made(pa.table({"split": values, "id": range(3)}), tmp_path / "first", split=rule, **how)
    table = pq.read_table(exported(first, tmp_path / "table.parquet"))
    assert sorted(table.to_pydict()["id"]) == [0, 1, 2]
    assert table.schema.names == ["id", "split"]


def test_lists_of_classes_are_exported_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels/street-1.txt").write_text("1 0.5 0.5 0.2 0.2\n0 0.5 0.5 0.1 0.1\n")
    pictures = Path(__file__).parents[3] / "configs/samples/street/pictures"
    annotations = {"yolo": str(tmp_path / "labels"), "classes": ["cat", "owl"]}
    convert(pictures, output=tmp_path / "first", annotations=annotations)
    columns = ["image/object/class/label"]
    line = exported(tmp_path / "first", tmp_path / "rows.jsonl", columns=columns).read_text()
    assert json.loads(line) == {"image/object/class/label": ["owl", "cat"]}
    table = pq.read_table(exported(tmp_path / "first", tmp_path / "rows.parquet", columns=columns))
    assert table.to_pylist() == [{"image/object/class/label": ["owl", "cat"]}]


def test_a_time_that_no_date_says_is_refused_as_text_with_the_way_out() -> None:
    with pytest.raises(UsageError, match=r'column "t" holds times that no date says.*export to \.parquet'):
        plain_list("t", pa.array([[-(2**62)]], pa.list_(pa.timestamp("s"))))


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1))
def test_float32_are_written_in_few_digits_that_are_read_as_the_same_float32(bits: list[int]) -> None:
    values = np.array(bits, np.uint32).view(np.float32)
    for array in (pa.array(values), pa.array([values], pa.list_(pa.float32()))):
        shown = plain_array("x", array)
        flat = shown.flatten() if pa.types.is_list(shown.type) else shown
        back = json.loads(json.dumps(flat.to_pylist()))
        np.testing.assert_array_equal(np.array(back, np.float64).astype(np.float32), values)
        assert all(float(f"{one:.9g}") == one for one in back if math.isfinite(one))


def test_many_rows_are_exported_some_at_a_time(tmp_path: Path) -> None:
    count = 300_000
    source = pa.table({"id": pa.array(range(count)), "text": pa.array(["x" * 700] * count)})
    first = made(source, tmp_path / "first", output={"shard_size": "64MiB"})
    del source
    held = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    before = pool.max_memory()
    file = pq.ParquetFile(exported(first, tmp_path / "table.parquet"))
    assert file.metadata.num_rows == count
    assert file.metadata.num_row_groups >= 3
    assert max(pool.max_memory() - max(before, held), 0) < 160 << 20  # of 220 MB
    assert file.read(["id"])["id"].to_pylist() == list(range(count))
