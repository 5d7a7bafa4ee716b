"""What memory a command takes at its most, and what it would take for more data: by the line through two sizes."""

from __future__ import annotations

import resource
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

SAMPLE_SECONDS = 0.05
VALUES = 256


class Measured(NamedTuple):
    """The bytes that a command wrote, and the most that it took of memory meanwhile."""

    written: float
    peak: float


def peak_at(written: float, small: Measured, large: Measured) -> float:
    """Return what a command would take that writes so many bytes: by a line through two sizes that does not fall.

    The larger one has many times the blocks that are in memory at a time: what grows with the data has begun to.
    """
    slope = (large.peak - small.peak) / (large.written - small.written)
    return large.peak + max(slope, 0) * (written - large.written)


def write_floats(path: Path, groups: int, group_rows: int) -> None:
    """Write a table whose output is a kilobyte a row."""
    floats = np.tile(np.arange(1000, dtype=np.float32), group_rows * VALUES // 1000)
    column = pa.FixedSizeListArray.from_arrays(pa.array(floats), VALUES)
    with pq.ParquetWriter(path, pa.schema({"x": column.type, "id": pa.int64()})) as writer:
        for group in range(groups):
            ids = pa.array(np.arange(group * group_rows, (group + 1) * group_rows))
            writer.write_table(pa.table({"x": column, "id": ids}, writer.schema), row_group_size=group_rows)


class Ended(NamedTuple):
    """How a command ended: its exit code, what it said, the most memory that it took, and its processor time."""

    code: int
    text: str
    peak: float
    seconds: float


def peak_bytes(command: list[str], cwd: Path) -> float:
    """Run a command and return the largest PSS of its process tree, sampled all the while."""
    ended = run_sampled(command, cwd)
    assert ended.code == 0, ended.text
    return ended.peak


def run_sampled(command: list[str], cwd: Path) -> Ended:
    """Run a command; the memory of its process tree is sampled all the while."""
    peak, start = 0, _processor_seconds()
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, cwd=cwd, stdout=said, stderr=subprocess.STDOUT) as process,
    ):
        root = psutil.Process(process.pid)
        while True:
            try:
                process.wait(SAMPLE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                peak = max(peak, sum(_pss(each) for each in [root, *root.children(recursive=True)]))
        said.seek(0)
        text = said.read().decode()
    return Ended(process.returncode, text, peak, _processor_seconds() - start)


def _processor_seconds() -> float:
    """Return the processor time of all processes that this one started, and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pss(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:  # it ended between the listing and the look
        return 0
