"""The program that `snippet torch` prints runs as it is printed, for every kind of dataset."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from shardmill.pipelines import convert

from ..command_line import Shardmill

QUICKSTART = Path(__file__).parents[2] / "configs/quickstart.yaml"
"""The dataset that the other readers open in `tests/readers/test_snippet.py`."""

ODD = pa.table(
    {
        'a "b" é/ü': ["x", None, "z"],
        "grid": pa.array([[[1, 2], []], [[3]], []], pa.list_(pa.list_(pa.int64()))),
        "fixed": pa.array([[1.5, 2.5], None, [3.5, 4.5]], pa.list_(pa.float32(), 2)),
        "kind": ["owl", "cat", "owl"],
        "when": pa.array([1, 2, None], pa.timestamp("us")),
    }
)


@pytest.mark.parametrize("kind", ["table", "gzip", "pictures"])
def test_the_program_reads_all_features_with_two_workers(tmp_path: Path, shardmill: Shardmill, kind: str) -> None:
    if kind == "pictures":
        convert(QUICKSTART, output=tmp_path / "out")
    else:
        columns = {"kind": {"label": True}}
        compression = "gzip" if kind == "gzip" else "none"
        convert(data=ODD, output=tmp_path / "out", compression=compression, schema={"columns": columns})
    screen = shardmill("snippet", "torch", "out")
    assert screen.code == 0, screen.err
    program = tmp_path / "program.py"
    program.write_text(screen.out, encoding="utf-8")
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = (
        ["image/encoded", "image/class/label"] if kind == "pictures" else ["fixed torch.Size([3, 2])", "kind", "when"]
    )
    assert all(one in done.stdout for one in wanted)
