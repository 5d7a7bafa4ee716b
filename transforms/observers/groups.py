"""Find equal digests over the rows of all tasks: exact, and in memory that is bounded up to 268 million rows.

    files of tasks ──by the first bits──▶ buckets on disk ──one at a time──▶ sorted ──▶ groups of equal digests

Rows of one digest are in one bucket, so a bucket needs to know of no other.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pandas.util import hash_array

from ..format.batches.rows import Frames

# 128 bits of a hash for each record: what is equal in them is taken to be equal.
#
# The hash is SipHash-2-4 under two keys (Aumasson and Bernstein, *SipHash: a fast short-input PRF*, 2012), as pandas
# has it for arrays. That two of n different records have the same 128 bits has a probability of n**2 / 2**129: for a
# billion of them 1.5e-21.


_KEYS: Final = ("shardmill: first", "shardmill:second")  # 16 bytes each
_AT_ONCE: Final = 1 << 10  # records as objects: they stay in the processor's cache, which halves the time

DIGEST: Final = np.dtype([("high", "<u8"), ("low", "<u8")])


def digests_of(frames: Frames) -> npt.NDArray[np.void]:
    """Return the digest of each framed record, as an array of `DIGEST`.

    The frame is hashed too: it holds nothing but the record's length and checksums.
    """
    found = np.empty(frames.records, DIGEST)
    if frames.records:
        data = frames.buffers[0] if len(frames.buffers) == 1 else pa.py_buffer(b"".join(frames.buffers))
        offsets = pa.py_buffer(np.append(np.zeros(1, np.int64), frames.ends))
        records = pa.LargeBinaryArray.from_buffers(pa.large_binary(), frames.records, [None, offsets, data])
        for start in range(0, frames.records, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            found[part] = digests_of_values(records[part].to_numpy(zero_copy_only=False))
    return found


def digests_of_values(values: Sequence[bytes] | npt.NDArray[np.object_]) -> npt.NDArray[np.void]:
    objects = np.empty(len(values), object)
    objects[:] = values
    found = np.empty(len(objects), DIGEST)
    for half, key in zip(("high", "low"), _KEYS, strict=True):
        found[half] = hash_array(objects, hash_key=key, categorize=False)
    return found


Table = npt.NDArray[np.void]

ROW: Final = np.dtype([*DIGEST.descr, ("split", "<u4"), ("entry", "<u4")])

_PLACED: Final = np.dtype([*ROW.descr, ("file", "<u4"), ("row", "<u8")])

_BUCKET_ROWS: Final = 1 << 19  # 20 MiB; to sort them takes ten times that where all of them are repeated
_MOST_BUCKETS: Final = 512  # each is an open file

_COUNTED_GROUPS: Final = 1 << 14  # with 64 splits 4 MiB

EXAMPLES: Final = 5

SHOWN_ROWS: Final = 3


@dataclass(slots=True)
class Groups:
    """Rows of equal digests.

    `repeats` are the rows that are not the first of their group. `across` counts the groups that two splits share, by
    the numbers of these. `examples` are the first groups: how many rows, and (file, row) of the first of
    them. `gone[file]` is a bit for each row of a file, set for repeats; empty where none is.
    """

    repeats: int = 0
    groups: int = 0
    across: Counter[tuple[int, int]] = field(default_factory=Counter)
    examples: list[tuple[int, tuple[tuple[int, int], ...]]] = field(default_factory=list)
    gone: dict[int, npt.NDArray[np.uint8]] = field(default_factory=dict)


def find_groups(
    tables: Iterable[Table], rows: int, *, mark: bool = False, across: bool = False, bucket_rows: int = _BUCKET_ROWS
) -> Groups:
    """Return the groups of equal digests of some files.

    `tables` are of `ROW`, one for each file, taken one by one, with `rows` rows in all. Which row is the first of a
    group is decided by the order of files, and of rows in them. With `mark` the bits of repeats are set; with
    `across` only groups count that several splits share.
    """
    found, sizes = Groups(), list[int]()

    def taken() -> Iterator[Table]:
        for table in tables:
            sizes.append(len(table))
            yield table

    bits = min(max(rows - 1, 0) // bucket_rows, _MOST_BUCKETS - 1).bit_length()
    for alike in _by_bucket(taken(), bits) if bits else _at_once(taken()):
        _add_groups(alike, found, sizes if mark else None, across=across)
    return found


def _at_once(tables: Iterable[Table]) -> Iterator[Table]:
    """Yield the rows whose first half of a digest is there twice, in the order of files and rows."""
    held = list(tables)
    alike, start = _repeated([table["high"] for table in held]), 0
    if alike is None:
        return
    placed = []
    for number, table in enumerate(held):
        rows = np.flatnonzero(alike[start : start + len(table)])
        placed.append(_placed(table[rows], number, rows))
        start += len(table)
    yield np.concatenate(placed)


def _by_bucket(tables: Iterable[Table], bits: int) -> Iterator[Table]:
    """Yield for each bucket what `_at_once` does for all rows; rows go into one by the first bits of their digests."""
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(1 << bits)]
        for number, table in enumerate(tables):
            bucket = (table["high"] >> np.uint64(64 - bits)).astype(np.int64)
            order = np.argsort(bucket, kind="stable")
            placed, ends = _placed(table[order], number, order), np.cumsum(np.bincount(bucket, minlength=len(files)))
            for file, start, end in zip(files, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
                file.write(placed[start:end].tobytes())
        for file in files:
            file.seek(0)
            rows = np.frombuffer(file.read(), _PLACED)
            if (alike := _repeated([rows["high"]])) is not None:
                rows = rows[alike]
                yield rows


def _placed(table: Table, number: int, rows: npt.NDArray[np.int64]) -> Table:
    placed = np.empty(len(table), _PLACED)
    for name in ROW.names or ():
        placed[name] = table[name]
    placed["file"], placed["row"] = number, rows
    return placed


def _repeated(halves: Sequence[npt.NDArray[np.uint64]]) -> npt.NDArray[np.bool_] | None:
    """Return which of some numbers are there more than once, or None where none is."""
    numbers = np.concatenate([np.empty(0, np.uint64), *halves])
    ordered = np.sort(numbers)  # many times faster than to sort the rows
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    return twice[np.searchsorted(twice, numbers) % len(twice)] == numbers if len(twice) else None


def _add_groups(rows: Table, found: Groups, sizes: Sequence[int] | None, *, across: bool) -> None:
    """Add the groups of equal digests in a bucket; with `across` those alone whose rows are in several splits.

    digest   7  7  7  8  9  9      sorted
    first    1  0  0  1  1  0      the first row of each digest
    alone    0  0  0  1  0  0      no group: left out
    """
    rows = rows[np.argsort(rows["high"], kind="stable")]
    if (rows["low"][1:] != rows["low"][:-1])[rows["high"][1:] == rows["high"][:-1]].any():
        rows = rows[np.lexsort((rows["low"], rows["high"]))]  # stable too
    first = np.ones(len(rows), bool)
    first[1:] = (rows["high"][1:] != rows["high"][:-1]) | (rows["low"][1:] != rows["low"][:-1])
    alone = first & np.append(first[1:], True)
    rows, first = rows[~alone], first[~alone]
    if across:
        rows, first = _only_across(rows, first)
    if not len(rows):
        return
    starts = np.flatnonzero(first)
    found.groups += len(starts)
    found.repeats += len(rows) - len(starts)
    _count_splits(rows["split"], first, found.across)
    _show(rows, starts, found)
    if sizes is not None:
        _mark(rows[~first], found.gone, sizes)


def _only_across(rows: Table, first: npt.NDArray[np.bool_]) -> tuple[Table, npt.NDArray[np.bool_]]:
    group, split = np.cumsum(first) - 1, rows["split"]
    shared = np.zeros(np.count_nonzero(first), bool)
    shared[group[split != split[first][group]]] = True  # a row in another split than the first of its group
    return rows[shared[group]], first[shared[group]]


def _mark(rows: Table, gone: dict[int, npt.NDArray[np.uint8]], sizes: Sequence[int]) -> None:
    for number in np.unique(rows["file"]).tolist():
        marked = np.sort(rows["row"][rows["file"] == number]).astype(np.int64)
        places = marked >> 3
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        bits = np.bitwise_or.reduceat(np.uint8(1) << (marked & 7).astype(np.uint8), starts)
        gone.setdefault(number, np.zeros(-(-sizes[number] // 8), np.uint8))[places[starts]] |= bits


def _count_splits(splits: npt.NDArray[Any], first: npt.NDArray[np.bool_], across: Counter[tuple[int, int]]) -> None:
    names, columns = np.unique(splits, return_inverse=True)
    if len(names) < 2:
        return
    group = np.cumsum(first) - 1
    shared = np.zeros((len(names), len(names)), np.int64)
    for low in range(0, int(group[-1]) + 1, _COUNTED_GROUPS):
        start, stop = np.searchsorted(group, [low, low + _COUNTED_GROUPS]).tolist()
        there = np.zeros((_COUNTED_GROUPS, len(names)), np.float32)  # sums stay exact
        there[group[start:stop] - low, columns[start:stop]] = 1
        shared += (there.T @ there).astype(np.int64)
    for one, other in zip(*np.nonzero(np.triu(shared, 1)), strict=True):
        across[int(names[one]), int(names[other])] += int(shared[one, other])


def _show(rows: Table, starts: npt.NDArray[Any], found: Groups) -> None:
    """Keep the examples whose first rows come first."""
    counts = np.diff(starts, append=len(rows))
    heads = rows[["file", "row"]][starts]
    chosen = np.lexsort((heads["row"], heads["file"]))[:EXAMPLES]
    for start, count in zip(starts[chosen].tolist(), counts[chosen].tolist(), strict=True):
        shown = rows[start : start + min(count, SHOWN_ROWS)]
        places = tuple(zip(shown["file"].tolist(), shown["row"].tolist(), strict=True))
        found.examples.append((count, places))
    found.examples.sort(key=lambda example: example[1])
    del found.examples[EXAMPLES:]
