"""What the user of the command line sees of Arrow and Feather files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill


def put(name: str, **columns: Any) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    pyarrow.feather.write_feather(pa.table(columns), name, compression="zstd")


def rows_of() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = open_dataset("out").to_arrow("train").to_pylist()
    return rows


def test_files_globs_folders_and_first_rows_are_read(shardmill: Shardmill) -> None:
    put("in/year=2023/a.arrow", n=[1, 2], s=["x", None])
    put("in/year=2024/b.feather", n=[3, 4], s=["y", "z"])
    done = shardmill("convert", "in", "-o", "out")
    assert done.code == 0, done.err
    assert rows_of()[1:3] == [{"n": 2, "s": None, "year": 2023}, {"n": 3, "s": "y", "year": 2024}]
    assert open_dataset("out").manifest.source.format == "arrow"
    done = shardmill("convert", "in/*/*.feather", "-o", "out", "--columns", "s", "--limit", "1", "--overwrite")
    assert (done.code, rows_of()) == (0, [{"s": "y"}])
    Path("in/year=2024/b.feather").rename("c.dat")
    assert shardmill("convert", "c.dat", "--format", "arrow", "-o", "out", "--overwrite").code == 0


def test_nested_columns_go_with_it_and_a_dry_run_writes_nothing(shardmill: Shardmill) -> None:
    put("a.ipc", o=[{"a": 1, "b": ["x"]}, None], n=[1, 2])
    shown = shardmill("convert", "a.ipc", "-o", "out", "--dry-run")
    assert "int64; no nulls" in shown.out
    assert not Path("out").exists()
    assert shardmill("convert", "a.ipc", "-o", "out").code == 0
    assert rows_of() == [{"o": {"a": 1, "b": ["x"]}, "n": 1}, {"o": None, "n": 2}]


def test_init_writes_a_config_and_appends_follow_the_dataset(shardmill: Shardmill) -> None:
    put("a.arrow", n=[1], x=[0.5])
    assert shardmill("init", "a.arrow").code == 0
    (config,) = Path().glob("*.yaml")
    assert "format: arrow" in config.read_text()
    assert shardmill("convert", "a.arrow", "-o", "out").code == 0
    put("b.arrow", n=[2], x=[1.5])
    assert shardmill("append", "b.arrow", "-o", "out").code == 0
    assert rows_of() == [{"n": 1, "x": 0.5}, {"n": 2, "x": 1.5}]
    put("c.arrow", n=["3"], x=[1.5])
    refused = shardmill("append", "c.arrow", "-o", "out")
    assert refused.code == 2
    assert "(1 feature re-typed)" in refused.err


def test_a_csv_that_is_an_arrow_file_is_refused_with_the_command_that_reads_it(shardmill: Shardmill) -> None:
    put("a.csv", n=[1])
    refused = shardmill("convert", "a.csv", "-o", "out")
    assert "a.csv: is an Arrow file; read it as one: --format arrow" in refused.err


def test_a_damaged_file_fails_the_run_by_its_name(shardmill: Shardmill) -> None:
    put("a.arrow", n=list(range(1000)))
    put("b.arrow", n=list(range(1000)))
    Path("b.arrow").write_bytes(Path("b.arrow").read_bytes()[:-20])
    failed = shardmill("convert", "a.arrow", "b.arrow", "-o", "out")
    assert failed.code == 1
    assert failed.err.startswith("error: b.arrow: is not a sound Arrow file: it does not end with")
