"""Encoded records on their way to the stage step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..buffers.views import I64
from ..schema.schema import Kind
from .rejects import Reject

# The values of a feature on their way: what columns become, and records are written from.


@dataclass(frozen=True, slots=True, eq=False)
class FeatureColumn:
    """The values of one feature for each row of a batch.

    `values` are int64, float32 or, for bytes, views into `buffers`. A scalar feature has one value for each row and no
    `offsets`; row i of a list has the values from `offsets[i]` to `offsets[i + 1]`. `present` is None where every row
    has the feature; what stands for the others is arbitrary. A sparse column has the values of `rows` alone, which are
    all that have the feature.
    """

    name: str
    kind: Kind
    values: npt.NDArray[Any]
    buffers: tuple[pa.Buffer, ...] = ()
    offsets: I64 | None = None
    present: npt.NDArray[np.bool_] | None = None
    rows: I64 | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """Framed TFRecord records of one split, in order.

    `buffers`, one after the other, are the bytes as they are in the file; `ends[i]` is where record i ends in them
    (int64). `digest` is the sum modulo 2**128 of the records' mixes (`record_digests`), as `records_digest` adds up.
    `crcs` are the CRC32Cs of the framed records (uint32), where they came at less than the price of reading them.
    """

    buffers: tuple[pa.Buffer, ...]
    ends: npt.NDArray[np.int64]
    digest: int
    crcs: npt.NDArray[np.uint32] | None = None

    @property
    def records(self) -> int:
        return len(self.ends)

    @property
    def bytes(self) -> int:
        """The number of bytes of all records, framing included."""
        return int(self.ends[-1]) if len(self.ends) else 0


@dataclass(frozen=True, slots=True)
class EntryCounts:
    """What became of the rows of one source entry: read = written + rejected + dropped."""

    entry: int
    read: int = 0
    written: int = 0
    rejected: int = 0
    dropped: int = 0

    def plus(self, more: EntryCounts) -> EntryCounts:
        return EntryCounts(
            self.entry,
            self.read + more.read,
            self.written + more.written,
            self.rejected + more.rejected,
            self.dropped + more.dropped,
        )


def added(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What float64 values lost as float32: how many values, the largest relative error, how many became zero.

    `integers_changed` counts those that changed where all are integers, as ids are; None where some is no integer.
    """

    name: str
    from_: str
    to: str
    values: int
    max_relative_error: float
    underflows: int
    integers_changed: int | None = None

    def plus(self, more: Narrowing) -> Narrowing:
        return replace(
            self,
            values=self.values + more.values,
            max_relative_error=max(self.max_relative_error, more.max_relative_error),
            underflows=self.underflows + more.underflows,
            integers_changed=added(self.integers_changed, more.integers_changed),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The encoded records of one batch by split, and its rejects in row order.

    task       None for blocks that come from no task (a user's own pipeline): their task is then the bundle
    observed   what observers found in it, by their names
    spilled    what goes into the observers' files of the task
    failures   why the batch was not encoded, and no retry helps: they make the shard plan refuse the run
    """

    task: int | None
    ordinal: int
    splits: dict[str, Frames]
    counts: tuple[EntryCounts, ...] = ()
    rejects: tuple[Reject, ...] = ()
    observed: dict[str, Any] = field(default_factory=dict)
    spilled: dict[str, bytes] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
