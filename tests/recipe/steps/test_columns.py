from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ConfigError, UsageError
from shardmill.transforms.format.batches.rejects import CellError, CellProblem
from shardmill.transforms.recipe.step import Column, Stepped, as_text, is_text


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,price\n1,2.5\n2,x\n")
    pq.write_table(pa.table({"id": [1, 2], "price": ["2.5", "x"]}), "a.parquet")
    return tmp_path


def rows_of(path: str = "out") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = open_dataset(path).to_arrow("train").to_pylist()
    return rows


@pytest.mark.parametrize("file", ["a.csv", "a.parquet"])
def test_columns_get_other_names_and_one_value_in_every_row(file: str) -> None:
    schema = {
        "columns": {"price": {"name": "cost"}},
        "constants": {"origin": "web", "version": 3, "weight": 0.5, "checked": True},
    }
    convert(file, output="out", schema=schema)
    added = {"origin": "web", "version": 3, "weight": 0.5, "checked": True}
    assert rows_of() == [{"cost": "2.5", "id": 1, **added}, {"cost": "x", "id": 2, **added}]
    types = {feature.name: feature.type for feature in open_dataset("out").manifest.schema or ()}
    assert (types["version"], types["weight"], types["checked"]) == ("int64", "float32", "bool")


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_a_step_sees_text_of_any_arrow_type_as_one(kind: pa.DataType) -> None:
    assert is_text(Column(pa.field("a", kind)))
    assert as_text(pa.array(["x", None], kind)).equals(pa.array(["x", None], pa.large_string()))
    assert not is_text(Column(pa.field("a", pa.binary())))


def test_a_rename_may_swap_two_columns() -> None:
    convert("a.csv", output="out", schema={"columns": {"id": {"name": "price"}, "price": {"name": "id"}}})
    assert rows_of() == [{"id": "2.5", "price": 1}, {"id": "x", "price": 2}]


def test_a_reject_of_a_step_after_a_swap_names_the_column_that_the_step_names() -> None:
    @dataclass(frozen=True)
    class NoX:
        def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
            return columns

        def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:
            rows = [row for row, value in enumerate(batch["id"].to_pylist()) if value == "x"]
            error = CellError("id", "BAD_TYPE", "x", "no x", "is x; fix it")
            return Stepped(batch, None, tuple(CellProblem(row, error) for row in rows))

    swap = {"columns": {"id": {"name": "price"}, "price": {"name": "id"}}}
    convert("a.csv", output="out", schema=swap, map=NoX(), max_rejects=1)
    assert '"column": "id"' in Path("out/rejects/00000001.jsonl").read_text()


def test_a_declared_type_and_a_new_name_go_together_and_rejects_say_the_new_name() -> None:
    schema = {"columns": {"price": {"type": "float64", "name": "cost"}}}
    convert("a.csv", output="out", schema=schema, max_rejects=1)
    assert rows_of() == [{"cost": 2.5, "id": 1}]
    assert '"column": "cost"' in Path("out/rejects/00000001.jsonl").read_text()


def test_an_append_casts_text_to_the_types_of_the_dataset_under_its_names() -> None:
    schema = {"columns": {"price": {"name": "cost"}}, "constants": {"version": 1}}
    convert("a.csv", output="out", schema=schema)
    Path("b.csv").write_text("id,price\n3,7\n")  # numbers alone: text in the dataset
    append("b.csv", output="out", schema={**schema, "constants": {"version": 2}})
    assert [(row["cost"], row["version"]) for row in rows_of()] == [("2.5", 1), ("x", 1), ("7", 2)]
    Path("c.csv").write_text("id,price\n4,8\n")
    append("c.csv", output="out")
    assert [(row["cost"], row["version"]) for row in rows_of()][-1] == ("8", 1)


def test_constants_go_with_images(work: Path) -> None:
    (work / "pets/cat").mkdir(parents=True)
    Image.new("RGB", (3, 3)).save(work / "pets/cat/a.png")
    convert("pets", output="out", schema__constants={"site": "a"})
    assert [row["site"] for row in rows_of()] == ["a"]


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"columns": {"prise": {"name": "cost"}}}, 'schema.columns names "prise", which is not a column; did you mean'),
        ({"constants": {"id": 1}}, 'schema.constants names "id", which is a column of the source'),
        ({"constants": {"big": 2**63}}, 'schema.constants: "big" is 9223372036854775808, which int64 cannot hold'),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_column(schema: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError) as raised:
        convert("a.csv", output="out", schema=schema)
    assert error in str(raised.value)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("null", "--set schema.constants.a=null: schema.constants.a: null is not text, a number, true or false"),
        ("[1, 2]", "--set schema.constants.a=[1, 2]: schema.constants.a: a list is not text, a number, true or false"),
        (
            "2024-01-01",
            "--set schema.constants.a=2024-01-01: schema.constants.a: 2024-01-01 is read as a date, and "
            "text is wanted; put it in quotes",
        ),
    ],
)
def test_a_value_that_is_no_constant_is_one_problem(value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(set_values=[f"schema.constants.a={value}"], paths=["a.csv"], flags={"output.path": "out"})
    assert str(caught.value) == message
