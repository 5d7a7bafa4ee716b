"""What is checked before a conversion runs, whatever the source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines.config import load_config
from shardmill.pipelines.conversion import dry_run
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
        dry_run(load_config(config(4)))
    features = 2 * len(COLUMNS) if name == "t.npz" else len(COLUMNS)  # an array is two features: shape and data
    assert len(dry_run(load_config(config(features))).schema) == features
    assert not (files / "out").exists()
