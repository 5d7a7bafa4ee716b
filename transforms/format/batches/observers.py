"""The contract of an observer, which learns from all rows on their way. The observers: `transforms/observers`.

    batch ──encode──▶ block ─┐
      └──────observe─────────┴─▶ summary of a batch ──merge──▶ of a task ──merge──▶ of the run ──▶ finish

The summary of a task is JSON: staging leaves it as a file. So it is the same with any number of workers, on any engine,
and after a run that stopped. In a block it may be anything that can be pickled, if its observer can seal it. What the
product itself observes goes the same way: values that were narrowed, formats of images, notes on rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..schema.schema import Schema
from .rows import FeatureColumn, Frames, Narrowing, Notes, Origin, added

NARROWED: Final = "narrowed"
"""Feature -> the six fields of its `Narrowing` after the name."""

IMAGE_FORMATS: Final = "image_formats"
"""The values of `image/format` that occur in records, sorted."""

DEALT: Final = "dealt"
"""Class -> how many of its records were set aside, and how many were dealt to each split (`format/splits/exact`)."""

WARNED: Final = "warned"
"""How many pictures there are with a warning, and the first of them, as they are shown."""

SHOWN_WARNINGS: Final = 10

PICTURES: Final = "pictures"
"""The check of a manifest that has them."""

NOTES: Final = "notes"
"""Source entry, text, and how many rows: a list of such triples."""


READ: Final = "read"
"""The ranges of shards of datasets that were read: a list of `ReadRange`."""


class ReadRange(NamedTuple):
    """A range of the file of a source entry, with its CRC32C; `stated` is the CRC32C of the whole file, as hex digits.

    A manifest states it.
    """

    entry: int
    start: int
    bytes: int
    crc: int
    stated: str


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


Summaries = dict[str, Any]
"""What is observed of some rows, by the name of the observer."""


def merged(one: Mapping[str, Any], other: Mapping[str, Any], observers: Sequence[Observer] = ()) -> Summaries:
    """Return what is observed of two runs of rows, of which `one` comes first."""
    merges = _MERGES | {observer.name: observer.merge for observer in observers}
    result = dict(one)
    for name, summary in other.items():
        result[name] = merges[name](result[name], summary) if name in result else summary
    return result


def sealed(observed: Mapping[str, Any], observers: Sequence[Observer]) -> Summaries:
    sealing = {observer.name: observer for observer in observers}
    return {name: sealing[name].sealed(one) if name in sealing else one for name, one in observed.items()}


def _merge_narrowed(one: Mapping[str, Any], other: Mapping[str, Any]) -> Any:
    result = dict(one)
    for name, more in other.items():
        if name in result:
            from_, to, values, error, zeros, changed = result[name]
            more = [from_, to, values + more[2], max(error, more[3]), zeros + more[4], added(changed, more[5])]
        result[name] = more
    return result


def _merge_formats(one: Sequence[str], other: Sequence[str]) -> list[str]:
    return sorted({*one, *other})


def _merge_dealt(one: Mapping[str, Sequence[int]], other: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    result = {name: list(counts) for name, counts in one.items()}
    for name, counts in other.items():
        result[name] = [a + b for a, b in zip(result[name], counts, strict=True)] if name in result else list(counts)
    return result


def _merge_notes(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    counts = {(entry, text): count for entry, text, count in one}
    for entry, text, count in other:
        counts[entry, text] = counts.get((entry, text), 0) + count
    return [[entry, text, count] for (entry, text), count in counts.items()]


def _merge_warned(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    return [one[0] + other[0], [*one[1], *other[1]][:SHOWN_WARNINGS]]


def _merge_read(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    return [*one, *other]


def narrowed_summary(narrowings: Iterable[Narrowing]) -> Summaries:
    found: dict[str, Narrowing] = {}
    for one in narrowings:
        found[one.name] = found[one.name].plus(one) if one.name in found else one
    rows = {
        n.name: [n.from_, n.to, n.values, n.max_relative_error, n.underflows, n.integers_changed]
        for n in found.values()
    }
    return {NARROWED: rows} if rows else {}


def narrowings_in(observed: Mapping[str, Any]) -> tuple[Narrowing, ...]:
    return tuple(Narrowing(name, *row) for name, row in sorted(observed.get(NARROWED, {}).items()))


def image_formats_in(observed: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(observed.get(IMAGE_FORMATS, ()))


def notes_in(observed: Mapping[str, Any]) -> Notes:
    return {(entry, text): count for entry, text, count in observed.get(NOTES, ())}


def warned_summary(warned: Sequence[str]) -> Summaries:
    return {WARNED: [len(warned), list(warned[:SHOWN_WARNINGS])]} if warned else {}


def warnings_check(observed: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    if WARNED not in observed:
        return {}
    count, first = observed[WARNED]
    examples = [{"records": 1, "places": [text]} for text in first]
    return {PICTURES: {"columns": [], "records": count, "groups": count, "examples": examples}}


def ranges_in(observed: Mapping[str, Any]) -> tuple[ReadRange, ...]:
    return tuple(ReadRange(*one) for one in observed.get(READ, ()))


def notes_summary(notes: Notes) -> Summaries:
    return {NOTES: [[entry, text, count] for (entry, text), count in notes.items()]} if notes else {}


_MERGES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    NARROWED: _merge_narrowed,
    IMAGE_FORMATS: _merge_formats,
    NOTES: _merge_notes,
    WARNED: _merge_warned,
    DEALT: _merge_dealt,
    READ: _merge_read,
}
