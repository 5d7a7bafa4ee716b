"""A column that goes through a user's function under its name and type keeps the form that the source gave it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def wide(batch: pa.RecordBatch) -> Any:
    return batch, pc.greater(batch["image/width"], 10)


def picture(path: str, width: int) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (width, 8)).save(path)


def test_pictures_that_a_function_filters_stay_pictures_with_their_classes_and_append_numbers_new_ones() -> None:
    for name, width in (("cat/a", 20), ("cat/b", 5), ("dog/a", 30)):
        picture(f"pets/{name}.png", width)
    convert("pets", output="out", map=wide)
    convert("pets", output="all")
    assert open_dataset("out").labels == {"image/class/label": ("cat", "dog")}
    assert open_dataset("out").schema == open_dataset("all").schema
    assert (Path("out") / "features.json").read_bytes() == (Path("all") / "features.json").read_bytes()
    picture("pets/owl/a.png", 40)
    append("pets", output="out", map=wide)
    assert open_dataset("out").labels == {"image/class/label": ("cat", "dog", "owl")}
    assert [row["image/class/label"] for row in open_dataset("out")["train"]] == ["cat", "dog", "owl"]


def test_what_the_config_declares_of_a_column_holds_behind_a_function_that_leaves_its_type() -> None:
    pq.write_table(pa.table({"f": [0.1, 0.2], "n": [1, 2], "other": [1.5, 2.5]}), "a.parquet")
    schema = {"columns": {"f": {"as": "bytes", "name": "exact"}, "n": {"type": "string"}, "other": {"as": "bytes"}}}

    def changed(batch: pa.RecordBatch) -> Any:
        return {"exact": batch["exact"], "n": batch["n"], "other": batch["other"].cast(pa.float32())}

    convert("a.parquet", output="out", map=changed, schema=schema)
    assert open_dataset("out")["train"].to_arrow().to_pylist()[0] == {"exact": 0.1, "n": "1", "other": 1.5}
    assert {f.name: (f.type, f.kind) for f in open_dataset("out").schema} == {
        "exact": ("float64", "bytes"),
        "n": ("string", "bytes"),
        "other": ("float32", "float"),
    }


def test_text_that_is_appended_through_a_function_is_read_in_the_types_of_the_dataset() -> None:
    Path("a.csv").write_text("n,zip\n0.5,00123\n")
    Path("b.csv").write_text("n,zip\n1,123\n")

    def same(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    convert("a.csv", output="out", map=same)
    append("b.csv", output="out", map=same)
    assert list(open_dataset("out")["train"]) == [{"n": 0.5, "zip": "00123"}, {"n": 1.0, "zip": "123"}]
