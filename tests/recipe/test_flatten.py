"""Nested columns and decimals through the whole product: converted, read back, appended to, merged, resumed."""

from __future__ import annotations

import datetime as dt
import json
import re
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.rows.numbered_rows import SourceColumns
from shardmill.transforms.errors import DamageError, SchemaError, TooManyRejects, UsageError

from ..command_line import Shardmill

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(12, 2)),
        ("boxes", pa.list_(pa.list_(pa.float32(), 4))),
        ("user", pa.struct([("name", pa.string()), ("tags", pa.list_(pa.string()))])),
        ("events", pa.list_(pa.struct([("at", pa.timestamp("ns")), ("weights", pa.list_(pa.float64()))]))),
        ("grid", pa.list_(pa.list_(pa.int16()))),
        ("attributes", pa.map_(pa.string(), pa.int32())),
    ]
)
NESTED = pa.list_(pa.list_(pa.int64()))
MOMENT = dt.datetime(2024, 2, 1, 12)


def rows(first: int = 0, count: int = 60) -> list[dict[str, Any]]:
    """Return rows of which every fifth has a null in the place of each nested column."""
    return [
        {
            "id": n,
            "price": None if n % 5 == 0 else Decimal(n) / 4,
            "boxes": None if n % 5 == 1 else [[0.0, 0.5, 1.0, float(n)]] * (n % 3),
            "user": None if n % 5 == 2 else {"name": f"u{n}", "tags": None if n % 7 == 0 else ["a"] * (n % 2)},
            "events": None if n % 5 == 3 else [{"at": MOMENT, "weights": [0.5] * k} for k in range(n % 3)],
            "grid": None if n % 5 == 4 else [[n, 1], []][: n % 3],
            "attributes": None if n % 5 == 0 else [("k", n)] * (n % 3),
        }
        for n in range(first, first + count)
    ]


def parquet(path: str, first: int = 0, count: int = 60, schema: pa.Schema = SCHEMA) -> list[dict[str, Any]]:
    made = rows(first, count)
    table = pa.Table.from_pylist(made, SCHEMA).select(schema.names).cast(schema)
    pq.write_table(table, path, row_group_size=20)
    return table.to_pylist()  # type: ignore[no-any-return]


def read(path: str = "out") -> list[dict[str, Any]]:
    table = open_dataset(path).to_arrow("train")
    return sorted(table.to_pylist(), key=lambda row: row["id"])


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nested_columns_and_decimals_come_back_in_the_types_and_the_order_of_the_source() -> None:
    made = parquet("a.parquet")
    summary = convert("a.parquet", output="out", shard_size="64KiB")
    assert read() == made
    assert open_dataset("out").to_arrow().schema.names == SCHEMA.names
    assert open_dataset("out").to_arrow().schema.field("price").type == pa.decimal128(12, 2)
    assert not verify_dataset("out").findings
    assert summary.manifest.details.columns[1].type == "decimal(12, 2)"
    document = json.loads(Path("out/manifest.json").read_text())
    assert [column["name"] for column in document["details"]["columns"]] == SCHEMA.names


def test_one_column_of_the_source_or_one_feature_can_be_read_alone() -> None:
    parquet("a.parquet")
    dataset = convert("a.parquet", output="out") and open_dataset("out")
    (row, *_) = dataset.to_arrow("train", ["grid", "user/name"]).slice(1).to_pylist()
    assert row == {"grid": [[1, 1]], "user/name": "u1"}
    with pytest.raises(UsageError, match='no feature "gird"'):
        dataset.to_arrow("train", ["gird"])


def test_worker_processes_give_the_same_bytes(work: Path) -> None:
    parquet("a.parquet")
    one = convert("a.parquet", output="one", shard_size="64KiB").manifest
    two = convert("a.parquet", output="two", shard_size="64KiB", runner__processes=True, runner__workers=2).manifest
    assert one.splits == two.splits


def test_rows_of_python_and_tables_in_memory_are_flattened_alike() -> None:
    made = rows()
    convert(data=pa.Table.from_pylist(made, SCHEMA), output="out")
    assert read() == parquet("a.parquet")
    convert(data=[{"user": {"name": "Ada", "ids": [[1], []]}}, {"user": None}], output="dicts")
    assert open_dataset("dicts").to_arrow().to_pylist() == [{"user": {"name": "Ada", "ids": [[1], []]}}, {"user": None}]


class TestAppends:
    def test_a_file_of_the_same_types_is_appended(self) -> None:
        made = parquet("a.parquet")
        convert("a.parquet", output="out")
        made += parquet("b.parquet", 60)
        summary = append("b.parquet", output="out")
        assert summary.manifest.details.columns
        assert read() == made

    @pytest.mark.parametrize(("first", "second"), [(None, {"a": 1}), ({"a": 1}, {"a": 2})])
    def test_a_table_without_nulls_is_appended_to_one_that_has_some_and_to_one_without(
        self, first: Any, second: Any
    ) -> None:
        kind = pa.struct([pa.field("a", pa.int64(), nullable=False)])
        convert(data=pa.table({"s": pa.array([first, {"a": 0}], kind)}), output="out")
        append(data=pa.table({"s": pa.array([second], kind)}), output="out")
        assert [row["s"] for row in open_dataset("out").to_arrow().to_pylist()] == [first, {"a": 0}, second]

    def test_a_null_that_the_dataset_has_no_place_for_is_a_reject(self) -> None:
        convert(data=pa.table({"s": [{"a": 1}]}), output="out")
        with pytest.raises(TooManyRejects, match="DECLARED_NOT_NULL"):
            append(data=pa.table({"s": [{"a": 2}, None]}), output="out")

    def test_scaled_decimals_stay_scaled(self) -> None:
        made = parquet("a.parquet", schema=pa.schema([SCHEMA.field("id"), SCHEMA.field("price")]))
        convert("a.parquet", output="out", schema={"columns": {"price": {"as": "scaled"}}})
        made += parquet("b.parquet", 60, schema=pa.schema([SCHEMA.field("id"), SCHEMA.field("price")]))
        append("b.parquet", output="out")
        assert read() == made
        (price,) = (feature for feature in open_dataset("out").schema or () if feature.name == "price")
        assert price.type == "int64"

    @pytest.mark.parametrize("kind", [pa.decimal128(12, 3), pa.string()])
    def test_a_decimal_of_another_scale_or_text_is_refused_by_name(self, kind: pa.DataType) -> None:
        schema = pa.schema([SCHEMA.field("id"), SCHEMA.field("price")])
        parquet("a.parquet", schema=schema)
        convert("a.parquet", output="out")
        parquet("b.parquet", 60, schema=schema.set(1, pa.field("price", kind)))
        with pytest.raises(SchemaError, match=r'column "price" is decimal\(12, 2\) in .*out, generation 1, and'):
            append("b.parquet", output="out")

    def test_a_struct_with_another_child_is_refused_with_both_schemas(self) -> None:
        pq.write_table(pa.table({"s": [{"a": 1}]}), "a.parquet")
        convert("a.parquet", output="out")
        pq.write_table(pa.table({"s": [{"a": 1, "b": 2}]}), "b.parquet")
        with pytest.raises(SchemaError, match=r"1 feature added"):
            append("b.parquet", output="out")


def test_datasets_with_the_same_columns_are_merged_and_others_refused(shardmill: Shardmill) -> None:
    made = parquet("a.parquet") + parquet("b.parquet", 60)
    for name in "ab":
        convert(f"{name}.parquet", output=name)
    assert shardmill("merge", "a", "b", "-o", "out").code == 0
    assert read() == made
    parquet("c.parquet", schema=SCHEMA.set(1, pa.field("price", pa.decimal128(12, 4))))
    convert("c.parquet", output="c")
    done = shardmill("merge", "a", "c", "-o", "none")
    assert done.code == 2
    assert 'column "price" is decimal(12, 2) in a, and decimal(12, 4) in c' in done.err


def test_a_null_in_a_list_rejects_its_row_and_keeps_the_others() -> None:
    pq.write_table(pa.table({"id": [0, 1, 2], "grid": [[[1], None], [[2]], None]}), "a.parquet")
    summary = convert("a.parquet", output="out", max_rejects=1)
    assert [row["grid"] for row in read()] == [[[2]], None]
    assert summary.manifest.rejects.by_code == {"NULL_IN_LIST": 1}


def test_a_null_within_lists_is_refused_with_the_option_that_keeps_its_column_exactly(shardmill: Shardmill) -> None:
    held: dict[str, list[Any]] = {
        "grid": [[[1], None], [[2]]],
        "the events": [[{"a": None, "b": None}], [{"a": 1, "b": ["x"]}]],
        "deep": [[[{"m": [[1, None]]}]], []],
        "user": [{"tags": ["a", None]}, None],
        "prices": [[Decimal("1.50"), None], []],
    }
    pq.write_table(pa.table({"id": [0, 1], **{name: pa.array(values) for name, values in held.items()}}), "a.parquet")
    done = shardmill("convert", "a.parquet", "-o", "out", "--set", "schema.columns.user.name=person")
    line = "; ".join(line for line in done.err.splitlines() if "row 1:" in line)
    leaves = ["grid", "the events/a", "the events/b", "deep/m", "person/tags", "prices"]
    assert [name for name in leaves if line.count(f'column "{name}": NULL_IN_LIST: null is in a list; ') != 1] == []
    assert line.count("NULL_IN_LIST") == len(leaves)
    options = re.findall(r"keep the column as JSON text: (--set (?:'[^']*'|[^ ;]*))", line)
    typed = shlex.split(" ".join(sorted(set(options))))
    assert shardmill("convert", "a.parquet", "-o", "out", "--set", "schema.columns.user.name=person", *typed).code == 0
    kept = open_dataset("out").to_arrow().rename_columns({"person": "user"}).to_pylist()
    held["prices"] = [["1.50", None], []]
    for name, values in held.items():
        assert [None if row[name] is None else json.loads(row[name]) for row in kept] == values

    pq.write_table(pa.table({"grid": [[[1]]]}), "b.parquet")
    convert("b.parquet", output="grids")
    pq.write_table(pa.table({"grid": [[[1], None]]}), "c.parquet")
    with pytest.raises(TooManyRejects, match=r"null is in a list; fill or drop nulls before$"):
        append("c.parquet", output="grids")


def test_a_dry_run_shows_the_features_and_where_each_is_from(shardmill: Shardmill) -> None:
    parquet("a.parquet")
    done = shardmill("convert", "a.parquet", "-o", "out", "--dry-run")
    assert done.code == 0
    assert "grid/ragged_row_lengths_0" in done.out
    assert 'of "grid" (list<list<int16>>)' in done.out
    assert not Path("out").exists()


def test_a_map_may_make_nested_columns_or_make_plain_ones_of_them() -> None:
    pq.write_table(pa.table({"id": [1, 2], "user": [{"name": "Ada"}, {"name": "Bob"}]}), "a.parquet")

    def named(batch: pa.RecordBatch) -> pa.RecordBatch:
        names = batch["user"].field("name")
        return pa.record_batch({"id": batch["id"], "user": names, "both": pa.array([[[1], []]] * len(names), NESTED)})

    convert("a.parquet", output="out", map=named)
    assert read() == [{"id": 1, "user": "Ada", "both": [[1], []]}, {"id": 2, "user": "Bob", "both": [[1], []]}]


def test_a_renamed_struct_gives_its_new_name_to_its_children() -> None:
    pq.write_table(pa.table({"id": [1], "u": [{"name": "Ada"}]}), "a.parquet")
    convert("a.parquet", output="out", schema={"columns": {"u": {"name": "user"}}})
    assert read() == [{"id": 1, "user": {"name": "Ada"}}]


def test_decimals_as_floats_read_back_as_what_was_stored(work: Path) -> None:
    values = pa.array([Decimal("99999999.99"), Decimal("1.50")], pa.decimal128(10, 2))
    table = pa.table({"x": values, "l": pa.array([[v] for v in values.to_pylist()], pa.list_(values.type))})
    convert(data=table, output="out", schema={"columns": {"x": {"as": "float"}, "l": {"as": "float"}}})
    found = open_dataset("out").to_arrow().to_pylist()
    assert found == [{"x": 100000000.0, "l": [100000000.0]}, {"x": 1.5, "l": [1.5]}]


def test_an_append_keeps_as_json_what_the_dataset_keeps_so() -> None:
    table = pa.table({"s": [{"a": 1}]})
    convert(data=table, output="out", schema={"columns": {"s": {"as": "json"}}})
    append(data=pa.table({"s": [{"a": 2}]}), output="out")
    assert [row["s"] for row in open_dataset("out").to_arrow().to_pylist()] == ['{"a":1}', '{"a":2}']


def test_a_starter_config_names_the_columns_of_the_source(shardmill: Shardmill) -> None:
    parquet("a.parquet")
    done = shardmill("init", "a.parquet", "-o", "-")
    assert "# columns: [id, price, boxes, user, events, grid, attributes]" in done.out


def test_what_has_no_features_can_be_kept_as_json(shardmill: Shardmill) -> None:
    parquet("a.parquet")
    done = shardmill("convert", "a.parquet", "-o", "out", "--set", "schema.columns.attributes.as=json")
    assert done.code == 0, done.err
    assert [json.loads(row["attributes"] or "null") for row in read()][:3] == [None, {"k": 1}, [["k", 2], ["k", 2]]]


def test_a_run_that_was_refused_is_resumed_with_its_columns(shardmill: Shardmill) -> None:
    made = parquet("a.parquet")
    table = pq.read_table("a.parquet").append_column("bad", pa.array([[[1], None]] + [[[1]]] * 59))
    pq.write_table(table, "a.parquet", row_group_size=20)
    assert shardmill("convert", "a.parquet", "-o", "out").code == 4
    assert shardmill("convert", "a.parquet", "-o", "out", "--max-rejects", "1").code == 0
    assert [{**row, "bad": [[1]]} for row in made[1:]] == read()


def test_features_that_disagree_are_damage_with_the_shard() -> None:
    pq.write_table(pa.table({"grid": [[[1, 2], []]]}), "a.parquet")
    manifest = convert("a.parquet", output="out").manifest
    assert manifest.schema is not None
    plan = SourceColumns.plan(manifest, manifest.schema, None, "out")
    features = {"grid/present": [1], "grid/ragged_flat_values": [[1, 2]], "grid/ragged_row_lengths_0": [[1, 0]]}
    with pytest.raises(DamageError, match=r'^out/x: the features of "grid" do not have as many values'):
        plan.batch(pa.record_batch({name: pa.array(features[name]) for name in plan.features}), "out/x")
