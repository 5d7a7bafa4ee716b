"""`schema.columns.NAME.null`: filled, masked, dropped, refused, or absent as they are."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ConfigError, SchemaError, TooManyRejects
from shardmill.transforms.format.examples.decode_examples import ExampleDecoder

from ...command_line import Shardmill
from ...label_numbers import in_numbers


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,age,name\n1,30,Ada\n2,,Bob\n3,40,\n")
    return tmp_path


def rows(path: str = "out") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = in_numbers(open_dataset(path).to_arrow()).to_pylist()
    return found


def records(path: str = "out") -> list[dict[str, Any]]:
    """Return what the records hold, feature by feature."""
    dataset = open_dataset(path)
    assert dataset.schema is not None
    found: list[dict[str, Any]] = ExampleDecoder(dataset.schema).decode(list(dataset.records())).to_pylist()
    return found


def columns(**null: Any) -> dict[str, Any]:
    return {"columns": {name: {"null": value} for name, value in null.items()}}


def test_nulls_are_filled_with_a_value_that_the_manifest_states() -> None:
    summary = convert("a.csv", output="out", schema=columns(age={"fill": -1}, name={"fill": "nobody"}))
    assert rows() == [
        {"id": 1, "age": 30, "name": "Ada"},
        {"id": 2, "age": -1, "name": "Bob"},
        {"id": 3, "age": 40, "name": "nobody"},
    ]
    assert not any(feature.nullable for feature in summary.manifest.schema or ())
    assert [(c.name, c.null, c.fill) for c in summary.manifest.details.columns] == [
        ("id", "absent", None), ("age", "fill", -1), ("name", "fill", "nobody"),
    ]  # fmt: skip
    assert not verify_dataset("out").findings


def test_a_mask_says_where_values_are_and_our_reader_gives_nulls_again() -> None:
    convert("a.csv", output="out", schema=columns(age="mask"))
    assert [(row["age"], row["age/mask"]) for row in records()] == [(30, 1), (0, 0), (40, 1)]
    assert [row["age"] for row in rows()] == [30, None, 40]
    assert in_numbers(open_dataset("out").to_arrow()).schema.names == ["id", "age", "name"]
    assert in_numbers(open_dataset("out").to_arrow(columns=["age/mask"])).to_pylist()[1] == {"age/mask": 0}


def test_rows_with_a_null_are_dropped_and_counted(shardmill: Shardmill) -> None:
    done = shardmill("convert", "a.csv", "-o", "out", "--set", "schema.columns.age.null=drop_row")
    assert done.code == 0, done.err
    assert [row["id"] for row in rows()] == [1, 3]
    assert "3 rows of 1 file (34 B): 2 written, 0 rejected, 1 dropped" in done.out


def test_rows_with_a_null_are_rejects_with_their_line(shardmill: Shardmill) -> None:
    with pytest.raises(TooManyRejects, match=r"DECLARED_NOT_NULL: null, and schema\.columns\.age\.null is error"):
        convert("a.csv", output="out", schema=columns(age="error"))
    done = shardmill("convert", "a.csv", "-o", "out", "--set", "schema.columns.age.null=error", "--max-rejects", "1")
    assert (done.code, [row["id"] for row in rows()]) == (0, [1, 3])
    assert 'a.csv row 2: column "age": DECLARED_NOT_NULL: null, and' in done.out


VALUES: dict[str, tuple[pa.Array, Any, Any]] = {
    "float": (pa.array([1.5, None]), 0.25, 0.0),
    "text": (pa.array(["a", None]), "x", ""),
    "view": (pa.array(["a", None], pa.string_view()), "x", ""),
    "dictionary": (pa.array(["a", None]).dictionary_encode(), "x", ""),
    "bytes": (pa.array([b"a", None]), None, b""),
    "bool": (pa.array([True, None]), True, False),
    "day": (pa.array([dt.date(2024, 1, 1), None]), "1999-12-31", dt.date(1970, 1, 1)),
    "at": (pa.array([dt.datetime(2024, 1, 1), None]), "1999-12-31T12:00:00", dt.datetime(1970, 1, 1)),
    "list": (pa.array([["a"], None]), None, []),
    "point": (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), None, [0, 0]),
}


@pytest.mark.parametrize("case", VALUES)
def test_values_of_every_type_are_filled_and_masked(case: str) -> None:
    values, fill, zero = VALUES[case]
    pq.write_table(pa.table({"x": values}), "x.parquet")
    convert("x.parquet", output="masked", schema=columns(x="mask"))
    (first, second) = records("masked")
    assert (second["x"], first["x/mask"], second["x/mask"]) == (zero, 1, 0)
    assert [row["x"] for row in rows("masked")] == values.to_pylist()
    if fill is not None:
        convert("x.parquet", output="filled", schema=columns(x={"fill": fill}))
        found = rows("filled")[1]["x"]
        assert (found.isoformat() if hasattr(found, "isoformat") else found) == fill


@pytest.mark.parametrize(
    ("values", "null", "said"),
    [
        (pa.array([1, None]), {"fill": "x"}, "'x' is no value of its type, int64; give one: --set"),
        (pa.array([1, None]), {"fill": 1.5}, "1.5 is no value of its type, int64"),
        (pa.array([1, None], pa.int8()), {"fill": 300}, "300 is no value of its type, int8"),
        (pa.array([1, None]), {"fill": True}, "True is no value of its type, int64"),
        (pa.array(["a", None]), {"fill": 5}, "5 is no value of its type, string"),
        (pa.array([{"a": 1}, None]), "mask", "null: mask does not fit struct<a: int64>; choose drop_row or error"),
    ],
)
def test_a_value_that_the_column_does_not_hold_is_refused(values: pa.Array, null: Any, said: str) -> None:
    pq.write_table(pa.table({"x": values}), "x.parquet")
    with pytest.raises(SchemaError) as caught:
        convert("x.parquet", output="out", schema=columns(x=null))
    assert said in str(caught.value)


@pytest.mark.parametrize("null", ["fill", "zero", {"fill": None}, {"fill": [1]}, {"fil": 1}, 5, True])
def test_another_word_is_refused_with_the_choices(null: Any) -> None:
    settings = {"input": {"paths": ["a.csv"]}, "output": {"path": "out"}, "schema": columns(age=null)}
    with pytest.raises(ConfigError, match=r"is none of absent, drop_row, error, mask, and not \{fill: VALUE\}"):
        load_config(settings)


def test_a_config_file_may_have_the_key_as_yaml_writes_it(shardmill: Shardmill) -> None:
    Path("c.yaml").write_text(
        "input: {paths: [a.csv]}\nschema: {columns: {age: {null: {fill: 0}}}}\noutput: {path: out}\n"
    )
    done = shardmill("convert", "c.yaml")
    assert done.code == 0, done.err
    assert [row["age"] for row in rows()] == [30, 0, 40]


def test_nested_columns_may_drop_their_rows() -> None:
    pq.write_table(pa.table({"id": [1, 2], "x": [[[1]], None]}), "x.parquet")
    convert("x.parquet", output="out", schema=columns(x="drop_row"))
    assert rows() == [{"id": 1, "x": [[1]]}]
    assert "x/present" not in {feature.name for feature in open_dataset("out").schema or ()}


def test_a_label_may_be_what_a_null_was_filled_with() -> None:
    settings = {"columns": {"name": {"null": {"fill": "nobody"}, "label": True}}}
    assert convert("a.csv", output="out", schema=settings).manifest.labels == {"name": ("Ada", "Bob", "nobody")}
    assert [row["name"] for row in rows()] == [0, 1, 2]


def test_a_label_has_no_mask() -> None:
    with pytest.raises(ConfigError, match="null: mask does not go with label"):
        convert("a.csv", output="out", schema={"columns": {"name": {"null": "mask", "label": True}}})


def test_nan_fills_floats_and_an_append_fills_alike() -> None:
    pq.write_table(pa.table({"x": [0.5, None]}), "x.parquet")
    convert("x.parquet", output="out", schema=columns(x={"fill": float("nan")}))
    pq.write_table(pa.table({"x": pa.array([None], pa.float64())}), "y.parquet")
    append("y.parquet", output="out")
    assert [str(row["x"]) for row in rows()] == ["0.5", "nan", "nan"]


def test_a_column_that_is_also_renamed_is_named_in_rejects_as_in_the_dataset() -> None:
    Path("b.csv").write_text("id,age\n1,30\n2,x\n3,\n")
    settings = {"columns": {"age": {"type": "int64", "name": "years", "null": {"fill": 0}}}}
    with pytest.raises(TooManyRejects, match='column "years": BAD_TYPE'):
        convert("b.csv", output="out", schema=settings)


def test_an_append_does_with_nulls_as_the_dataset_does() -> None:
    Path("b.csv").write_text("id,age,name\n4,,Eve\n")
    for name, null in (("filled", {"fill": -1}), ("masked", "mask"), ("dropped", "drop_row")):
        convert("a.csv", output=name, schema=columns(age=null))
        append("b.csv", output=name)
    assert rows("filled")[-1] == {"id": 4, "age": -1, "name": "Eve"}
    assert records("masked")[-1]["age/mask"] == 0
    assert [row["id"] for row in rows("dropped")] == [1, 3]
