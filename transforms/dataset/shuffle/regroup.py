"""The second level of a large shuffle: what a task sorts is spilled once more, in buckets that can be sorted.

    spilled files     run: │ ... │ a task's buckets │ ... │ run: │ ... │ a task's buckets │ ...     one read of each run
    scratch file      run: │ 0 │ 1 │ ... │ 255 │ run: │ 0 │ 1 │ ...                         buckets of about 4 MiB

With one level each sort reads a piece of every run, and the pieces become small: of 1 TB, 130 bytes. With two a task
reads its part of a run at once, 9 KB of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..spill.spill_file import U32
from ..spill.spiller import taken_records
from .spilled_files import SpilledRecords

_BUCKET_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class _Run:
    """Where a run starts in the scratch file, and the records and bytes before each bucket; frames, keys, lengths."""

    start: int
    rows: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


class Regrouped:
    """Records whose keys are in a range, `size` bytes of them, in a scratch file of their own."""

    def __init__(self, scratch: IO[bytes], keys: range, size: int, run_bytes: int) -> None:
        count = max(size // _BUCKET_BYTES, 1)
        span = keys.stop - keys.start  # `len` takes less than 2**63
        inner = [keys.start + span * number // count for number in range(1, count)]
        self._inner = np.array(inner, np.uint64)
        self._scratch = scratch
        self._run_bytes = run_bytes
        self._runs: list[_Run] = []

    def add(self, runs: Iterable[SpilledRecords]) -> None:
        """Spill records, some `run_bytes` at a time."""
        held: list[SpilledRecords] = []
        size = 0
        for run in runs:
            held.append(run)
            size += run.frames.size
            if size >= self._run_bytes:
                self._spill(held)
                held, size = [], 0
        self._spill(held)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        sizes = np.zeros(len(self._inner) + 1, np.int64)
        for run in self._runs:
            sizes += np.diff(run.ends)
        return sizes

    def read(self, first: int, stop: int) -> SpilledRecords:
        return _joined([self._read(run, first, stop) for run in self._runs])

    def _read(self, run: _Run, first: int, stop: int) -> SpilledRecords:
        (low, high), (frames_at, frames_end) = (table[[first, stop]].tolist() for table in (run.rows, run.ends))
        keys_at = run.start + int(run.ends[-1])
        lengths_at = keys_at + 8 * int(run.rows[-1])
        frames = self._read_at(run.start + frames_at, frames_end - frames_at)
        keys = np.frombuffer(self._read_at(keys_at + 8 * low, 8 * (high - low)), np.uint64)
        lengths = np.frombuffer(self._read_at(lengths_at + 4 * low, 4 * (high - low)), np.uint32)
        return SpilledRecords(keys, lengths.astype(np.int64), pa.py_buffer(frames))

    def _read_at(self, offset: int, size: int) -> bytes:
        self._scratch.seek(offset)
        return self._scratch.read(size)

    def _spill(self, held: Sequence[SpilledRecords]) -> None:
        if not held:
            return
        records = _joined(held)
        order = np.argsort(records.keys)
        data, keys = taken_records(records.frames, records.lengths, order), records.keys[order]
        lengths = records.lengths[order]
        rows = np.concatenate(([0], np.searchsorted(keys, self._inner), [len(keys)])).astype(np.int64)
        ends = np.concatenate(([0], np.cumsum(lengths)))[rows]
        self._runs.append(_Run(self._scratch.tell(), rows, ends))
        small: U32 = lengths.astype(np.uint32)
        for part in (data, pa.py_buffer(keys), pa.py_buffer(small)):
            self._scratch.write(memoryview(part))


def _joined(all_: Sequence[SpilledRecords]) -> SpilledRecords:
    keys = np.concatenate([np.empty(0, np.uint64), *(one.keys for one in all_)])
    lengths = np.concatenate([np.empty(0, np.int64), *(one.lengths for one in all_)])
    return SpilledRecords(keys, lengths, pa.py_buffer(b"".join(one.frames for one in all_)))
