"""A dataset of more than 10,000 shards, through the command line: its manifest comes in parts, and nobody notices."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import open_dataset
from shardmill.pipelines.cli import main

pytestmark = pytest.mark.engine

SHARDS = 10_001
SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder to work in: in memory if there is room, as ten thousand files are synced."""
    memory = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > 2 << 30
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY if memory else tmp_path) as folder:
        monkeypatch.chdir(folder)
        yield Path(folder)


def run(*args: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(args))
    printed, err = capsys.readouterr()
    assert ended.value.code in (0, None), err
    return printed


def write_rows(path: Path, rows: int) -> None:
    """Write rows that are each over a shard's size, and few bytes in the file."""
    texts = pa.array([chr(97 + i) * 66_000 for i in range(10)])
    column = pa.DictionaryArray.from_arrays(pa.array([i % 10 for i in range(rows)], pa.int32()), texts)
    pq.write_table(pa.table({"text": column.cast(pa.string())}), path, row_group_size=2000)


@pytest.mark.thorough("10,001 shards are written, each synced")
def test_ten_thousand_shards_and_more_are_converted_appended_to_read_and_verified(
    room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(room / "a.parquet", SHARDS)
    write_rows(room / "b.parquet", 3)
    run("convert", "a.parquet", "-o", "out", "--shard-size", "64KiB", "-q", capsys=capsys)
    (part,) = (room / "out/manifests").glob("shards-*.json")
    before = part.read_bytes()
    run("append", "b.parquet", "-o", "out", "-q", capsys=capsys)
    assert [path.name for path in sorted((room / "out/manifests").iterdir())] == [
        "00000001.json",
        "00000002.json",
        part.name,
    ]
    assert part.read_bytes() == before
    assert before.count(b".tfrecord") == 10_000
    split = json.loads((room / "out/manifest.json").read_bytes())["splits"]["train"]
    assert [shard["path"] for shard in split["shards"]] == [f"train-{i:05d}.tfrecord" for i in range(10_000, 10_004)]
    assert (room / "out/manifest.json").stat().st_size < 3000
    dataset = open_dataset("out")
    assert dataset.shard_paths("train")[9_999].endswith("train-09999.tfrecord")
    assert sum(1 for _ in dataset.records("train")) == SHARDS + 3
    assert f"{SHARDS + 3:,} shards, {SHARDS + 3:,} records" in run("verify", "out", "--quick", capsys=capsys)
    report = json.loads(run("gc", "out", "--older-than", "0s", "--json", capsys=capsys))
    assert (report["kept"], report["items"]) == ([1, 2], [])
