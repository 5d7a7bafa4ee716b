"""Where the records of a shard begin, found by reading it: what its index says, where it has one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from .record_file import read_record_batches
from .record_scan import RecordRun

I64 = npt.NDArray[np.int64]


def read_offsets(path: str) -> I64:
    """Return where the records of an uncompressed file begin, and its size; their payloads are not checked."""
    return offsets_of(read_record_batches(path, check_crc=False))


def offsets_of(runs: Iterable[RecordRun]) -> I64:
    """Return where the records of some runs begin, framing included, and where the last one ends."""
    ends = [np.append(run.offsets[1:], run.end) for run in runs if len(run)]
    return np.concatenate([np.zeros(1, np.int64), *ends])
