"""What is checked before a conversion runs, whatever the source."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.conversion import prepare
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.convert import dry_run
from shardmill.pipelines.runs.python_api import workers_of
from shardmill.transforms.errors import SchemaError, SourceError

COLUMNS = [f"c{index}" for index in range(5)]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(",".join(COLUMNS) + "\n1,2,3,4,5\n")
    pq.write_table(pa.table({name: [1] for name in COLUMNS}), tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", **{name: np.ones(1) for name in COLUMNS})
    return tmp_path


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npz"])
def test_more_columns_than_the_limit_are_an_error_in_every_source(files: Path, name: str) -> None:
    def config(most: int) -> dict[str, object]:
        return {
            "input": {"paths": [str(files / name)]},
            "output": {"path": str(files / "out")},
            "limits": {"columns": most},
        }

    with pytest.raises(
        (SchemaError, SourceError), match=r"columns, more than limits\.columns|columns are more than limits\.columns"
    ):
        dry_run(conversion_of(load_config(config(4))))
    features = 2 * len(COLUMNS) if name == "t.npz" else len(COLUMNS)  # an array is two features: shape and data
    assert len(dry_run(conversion_of(load_config(config(features)))).schema) == features
    assert not (files / "out").exists()


def test_a_dry_run_tells_the_records_of_splits_that_are_folders(tmp_path: Path) -> None:
    for name in ("train/cat/1.png", "train/cat/2.png", "train/dog/1.png", "val/dog/1.png"):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(path)
    plan = dry_run(
        conversion_of(
            load_config(
                {
                    "input": {"format": "images", "paths": [str(tmp_path / "pets")]},
                    "output": {"path": str(tmp_path / "out")},
                }
            )
        )
    )
    assert {split.name: split.records for split in plan.splits} == {"train": 3, "val": 1}
    assert sum(split.bytes for split in plan.splits) > 0


def test_the_line_of_progress_expects_the_shards_that_a_dry_run_shows(files: Path) -> None:
    (files / "t.csv").write_text("a\n" + "".join(f"{row}\n" for row in range(200)))
    config = load_config(
        {
            "input": {"paths": [str(files / "t.csv")]},
            "output": {"path": str(files / "out"), "shard_size": "1MiB"},
            "split": {"fractions": {"train": 0.5, "val": 0.3, "test": 0.2}},
        }
    )
    with workers_of(config.runner) as workers:
        totals = json.loads(prepare(conversion_of(config), workers).plan_document())["totals"]
    assert [split.shards for split in dry_run(conversion_of(config)).splits] == [1, 1, 1]
    assert totals["shards"] == 3


def test_a_run_has_the_same_name_when_its_command_is_run_again(files: Path) -> None:
    config = load_config({"input": {"paths": [str(files / "t.csv")]}, "output": {"path": str(files / "out")}})
    with workers_of(config.runner) as workers:
        first, again = (prepare(conversion_of(config), workers) for _ in range(2))
    assert first.name == again.name == f"shardmill-out-{first.spec.run_id}"
