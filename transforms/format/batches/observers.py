"""The contract of an observer, which learns from all rows on their way. The observers: `transforms/observers`.

    batch ──encode──▶ block ─┐
      └──────observe─────────┴─▶ summary of a batch ──merge──▶ of a task ──merge──▶ of the run ──▶ finish

The summary of a task is JSON: staging leaves it as a file. So it is the same with any number of workers, on any engine,
and after a run that stopped. In a block it may be anything that can be pickled, if its observer can seal it. What the
product itself observes goes the same way (`summaries`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..schema.schema import Schema
from .rows import FeatureColumn, Frames, Origin


@dataclass(frozen=True, slots=True, eq=False)
class SeenRun:
    """A run of rows of a batch that became records: `columns` hold a value for each of `rows`, ascending.

    An observer that says `takes_sparse` gets sparse columns too, and none for a feature that no row has.
    """

    rows: npt.NDArray[np.int64]
    columns: Sequence[FeatureColumn]


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A batch after encoding: its columns, and for each row what became of it.

    splits              the index in `names` of the split that each row is a record of, -1 for a reject
    entry               the source entry of the rows: one for all, or one for each
    origin              knows the place of each row
    frames              the records by split, in the order of rows; `schema` is what is in them
    field_bytes_limit   the most that one value takes
    runs                the values of all features as records hold them
    number              the task, and the batch's number in it
    """

    batch: pa.RecordBatch
    splits: npt.NDArray[np.int64]
    names: tuple[str, ...]
    entry: int | npt.NDArray[np.int64]
    origin: Origin
    frames: Mapping[str, Frames]
    schema: Schema
    field_bytes_limit: int
    runs: Sequence[SeenRun] = ()
    number: tuple[int, int] = (0, 0)

    def written(self, split: str | None = None) -> npt.NDArray[np.int64]:
        if split is None:
            return np.flatnonzero(self.splits >= 0)
        return np.flatnonzero(self.splits == self.names.index(split)) if split in self.names else np.array([], np.int64)


@dataclass(frozen=True, slots=True)
class Observation:
    """What an observer found in a batch: a JSON summary, and bytes that are appended to its file of the task."""

    summary: Any = None
    spilled: bytes = b""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Records of a task that are left out: by split their numbers from 0, sorted; and how many by source entry."""

    records: Mapping[str, npt.NDArray[np.int64]]
    entries: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """What an observer found in all rows.

    `check` is stated in the manifest, under the observer's name in `checks`. `left_out` returns what is left out of the
    task of spilled file i, None for nothing: such records count as dropped.
    """

    check: Mapping[str, Any]
    left_out: Callable[[int], LeftOut | None] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Went:
    """Where the records of a stream of a task went that were set aside: record i to `names[codes[i]]`.

    Without `codes` all of them went to `names[0]`.
    """

    names: tuple[str, ...]
    codes: npt.NDArray[np.int8] | None = None


class Observer:
    """Sees every batch after encoding: a frozen, picklable dataclass, whose `repr` says all that it does."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """What its summaries are filed under: lowercase letters, digits and _."""

    @property
    def takes_sparse(self) -> bool:
        """Whether sparse columns of a run may be given as they are."""
        return False

    @abstractmethod
    def observe(self, seen: Seen) -> Observation:
        """Return what is in one batch; how many rows a batch has may change."""

    @abstractmethod
    def merge(self, one: Any, other: Any) -> Any:
        """Return the summary of two runs of rows, given the summary of each; `one` comes before `other`.

        It must not matter how rows are grouped: `merge(merge(a, b), c)` is `merge(a, merge(b, c))`. What is no JSON
        may be changed: it is not looked at again.
        """

    def finish(self, summary: Any, spilled: Sequence[bytes]) -> Finding | None:  # noqa: ARG002
        """Take the summary of all rows, and the file of each task in their order, before the run commits.

        What it returns is stated in the manifest. Each file of `spilled` is read when it is asked for. The summary is
        None where there were no rows, or records that are passed on as they are. It runs where the
        engine plans shards: on a cluster on one of its machines. An engine may try this again: a second time does no
        harm.
        """
        return None

    def settled(self, spilled: bytes, went: Mapping[str, Went]) -> bytes:  # noqa: ARG002
        """Return what it spilled of a task with splits in the place of the streams that are set aside.

        One that spills the splits of records has this and `without`: of those that are set aside they are known later.
        """
        return spilled

    def without(self, spilled: bytes, left_out: LeftOut) -> bytes:  # noqa: ARG002
        """Return what it spilled of a task without the records that an observer before it leaves out."""
        return spilled

    def sealed(self, summary: Any) -> Any:
        """Return the summary of a task as JSON, which `merge` takes too, where that of a batch is none."""
        return summary
