"""Row groups of many columns are read some columns at a time, and what comes is the same."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.transforms.errors import SourceError
from shardmill.transforms.inputs.contract.source import Task, map_in_turn
from shardmill.transforms.sources.parquet import source
from shardmill.transforms.sources.parquet.source import columns_at_once, side_by_side

from ...file_sources import made_source

ROWS = 5000
OF_ALL_KINDS = pa.table({
    "id": range(ROWS),
    "text": [None if row % 7 == 0 else f"text {row}" for row in range(ROWS)],
    "class": pa.array([f"class {row % 3}" for row in range(ROWS)]).dictionary_encode(),
    "tags": [list(range(row % 4)) for row in range(ROWS)],
    "pair": [{"a": row, "b": [str(row)]} for row in range(ROWS)],
    "fixed": pa.array([None if row == 9 else [row, 1.0] for row in range(ROWS)], pa.list_(pa.float32(), 2)),
    "time": pa.array(range(ROWS), pa.timestamp("ns")),
})  # fmt: skip


@pytest.fixture
def three_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_READERS_BYTES", 0)
    monkeypatch.setattr(source, "_AT_ONCE_BYTES", 0)
    monkeypatch.setattr(source, "_FEWEST", 3)


def read(path: Path) -> pa.Table:
    source = made_source("parquet", (path.name,), str(path.parent))
    survey = source.survey(source.list_files(), map_in_turn)
    return pa.Table.from_batches([rows.batch for rows in source.read(Task(0, survey.pieces), survey.frozen)])


def test_columns_of_all_kinds_come_as_when_they_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, three_at_once: None
) -> None:
    pq.write_table(OF_ALL_KINDS, tmp_path / "a.parquet", row_group_size=3000)
    found = read(tmp_path / "a.parquet")
    monkeypatch.undo()
    assert found.equals(read(tmp_path / "a.parquet"))
    assert found["pair"].to_pylist() == OF_ALL_KINDS["pair"].to_pylist()


def test_few_columns_are_read_at_once_and_many_in_parts_that_hold_64_megabytes() -> None:
    assert columns_at_once(12, 10**12) == 12
    assert columns_at_once(60, 60 << 22) == 60
    assert columns_at_once(4800, 4800 * 32_000) == 597
    assert columns_at_once(100_000, 10**13) == 21
    assert columns_at_once(0, 0) == 0


PEAK = """
import sys
from pathlib import Path
from tests.sources.parquet.test_wide import pa, read
assert read(Path(sys.argv[1])).num_rows == 8000
print(pa.default_memory_pool().max_memory())
"""


def test_many_columns_of_one_row_group_take_little_memory(tmp_path: Path) -> None:
    table = pa.table({f"c{number}": np.random.default_rng(number).random(8000, np.float32) for number in range(2400)})
    pq.write_table(table, tmp_path / "a.parquet")
    command = [sys.executable, "-c", PEAK, str(tmp_path / "a.parquet")]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) - table.nbytes < 80e6, "readers of all columns hold 270 MB"


def test_columns_that_differ_in_their_rows_are_refused() -> None:
    def read(columns: Sequence[int]) -> Iterator[pa.RecordBatch]:
        for rows in (10, 10) if columns[0] else (15,):
            yield pa.record_batch({f"c{column}": range(rows) for column in columns})

    batches = side_by_side(read, [[0], [1, 2]])
    assert [next(batches).num_rows, next(batches).num_rows] == [10, 5]
    with pytest.raises(pa.ArrowInvalid, match="differ in their rows"):
        next(batches)


def test_a_full_disk_for_temporary_files_is_told(tmp_path: Path, three_at_once: None) -> None:
    pq.write_table(OF_ALL_KINDS, tmp_path / "a.parquet")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(SourceError, match=r"temporary files .*too large; free some space, or let TMPDIR"):
            read(tmp_path / "a.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
