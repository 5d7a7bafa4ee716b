"""Compare the records of two splits as multisets: how many are in one alone, in whatever order they are.

    shards that both sides have, by bytes, records and CRC32C  ──▶ skipped, none is read
    the others ──▶ 128 bits of a hash of each record ──▶ 256 files by the first bits ──▶ each sorted and counted

Memory is that of a file, 16 bytes a record: 64 MB for a billion records. Up to `IN_MEMORY` records a split nothing is
written.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import BinaryIO, Final, Self

import numpy as np
import numpy.typing as npt

from ...format.manifest.manifest import Manifest, ShardEntry
from ...observers.groups import DIGEST, digests_of_values
from ..rows.record_access import RecordAccess, RecordStream
from ..storage.opened_generation import OpenedGeneration
from ..storage.record_file import RecordRun, read_record_batches

IN_MEMORY: Final = 1 << 22
"""Digests of both sides that are held: 64 MB, and as much again to sort them."""

_FILES: Final = 256
_AT_ONCE: Final = 1 << 10

Digests = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class RecordDifference:
    """A split: how many records are in A alone and in B alone, and how many were compared and skipped.

    `bytes` are those that were read. `skipped` records are in shards that both sides have.
    """

    split: str
    only_a: int
    only_b: int
    read: int
    bytes: int
    skipped: int


def compare_records(split: str, sides: Sequence[tuple[str, Manifest]], in_memory: int = IN_MEMORY) -> RecordDifference:
    """Compare the records of a split of two datasets, each a path and its whole manifest."""
    shards = [() if split not in manifest.splits else manifest.splits[split].shards for _, manifest in sides]
    common = Counter(map(_content, shards[0])) & Counter(map(_content, shards[1]))
    skipped = sum(content[0] * count for content, count in common.items())
    read = size = 0
    with _Digests(in_memory) as digests:
        for number, ((path, manifest), entries) in enumerate(zip(sides, shards, strict=True)):
            left = _without(entries, common)
            size += sum(entry.bytes for entry in left)
            for found in _digests(path, manifest, left):
                read += len(found)
                digests.add(number, found)
        counts = [_count(*both) for both in digests.pairs()]
    only_a, only_b = (sum(count[side] for count in counts) for side in (0, 1))
    return RecordDifference(split, only_a, only_b, read, size, skipped)


def compare_files(sides: Sequence[Sequence[str]], in_memory: int = IN_MEMORY) -> RecordDifference:
    """Compare the records of files that no manifest describes, of each side all together."""
    read = size = 0
    with _Digests(in_memory) as digests:
        for number, paths in enumerate(sides):
            for path in paths:
                for run in read_record_batches(path):
                    read, size = read + len(run), size + int((run.payloads.ends - run.payloads.starts).sum())
                    for found in _digests_of(run):
                        digests.add(number, found)
        counts = [_count(*both) for both in digests.pairs()]
    only_a, only_b = (sum(count[side] for count in counts) for side in (0, 1))
    return RecordDifference("", only_a, only_b, read, size, 0)


def _content(entry: ShardEntry) -> tuple[int, int, str]:
    return entry.records, entry.bytes, entry.crc32c


def _without(entries: Sequence[ShardEntry], common: Counter[tuple[int, int, str]]) -> list[ShardEntry]:
    left = Counter(common)
    found = []
    for entry in entries:
        if left[_content(entry)]:
            left[_content(entry)] -= 1
        else:
            found.append(entry)
    return found


def _digests(path: str, manifest: Manifest, entries: Sequence[ShardEntry]) -> Iterator[Digests]:
    generation = OpenedGeneration(path, manifest)
    stream = RecordStream(generation, entries, RecordAccess(generation, entries), whole=True)
    for _, run in stream.runs():
        yield from _digests_of(run)


def _digests_of(run: RecordRun) -> Iterator[Digests]:
    for first in range(0, len(run), _AT_ONCE):
        yield digests_of_values(list(run.payloads.tail(first).head(_AT_ONCE)))


@dataclass(slots=True)
class _Digests:
    """The digests of both sides: in memory, or from a number of them on in files by their first bits."""

    in_memory: int
    _held: tuple[list[Digests], list[Digests]] = field(default_factory=lambda: ([], []))
    _count: int = 0
    _files: list[list[BinaryIO]] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, side: int, digests: Digests) -> None:
        self._held[side].append(digests)
        self._count += len(digests)
        if self._count > self.in_memory:
            self._spill()

    def pairs(self) -> Iterator[tuple[Digests, Digests]]:
        """Yield the digests of both sides: each digest, of either side, is in one pair alone."""
        if not self._files:
            yield _joined(self._held[0]), _joined(self._held[1])
            return
        self._spill()
        for files in zip(*self._files, strict=True):
            both = []
            for file in files:
                file.seek(0)
                both.append(np.frombuffer(file.read(), DIGEST))
            yield both[0], both[1]

    def _spill(self) -> None:
        if not self._files:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="shardmill-diff-"))
            for side in "ab":
                paths = [os.path.join(folder, f"{side}{number}") for number in range(_FILES)]
                self._files.append([self._stack.enter_context(open(path, "w+b")) for path in paths])  # noqa: SIM115
        for held, files in zip(self._held, self._files, strict=True):
            digests = _joined(held)
            held.clear()
            places = (digests["high"] >> np.uint64(56)).astype(np.uint8)
            ordered = digests[np.argsort(places, kind="stable")]
            ends = np.cumsum(np.bincount(places, minlength=_FILES)).tolist()
            for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
                files[number].write(ordered[start:end].tobytes())
        self._count = 0


def _joined(digests: Sequence[Digests]) -> Digests:
    return np.concatenate(digests) if digests else np.empty(0, DIGEST)


def _count(a: Digests, b: Digests) -> tuple[int, int]:
    """Return how many digests are in each of two multisets alone."""
    both = np.concatenate((a, b))
    if not len(both):
        return 0, 0
    signs = np.ones(len(both), np.int64)
    signs[len(a) :] = -1
    high, low = both["high"], both["low"]
    order = np.argsort(high)
    same_high = high[order][1:] == high[order][:-1]
    if (same_high & (low[order][1:] != low[order][:-1])).any():  # once in 2**64, or somebody's intent
        order = np.lexsort((low, high))
    changes = (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)
    sums = np.add.reduceat(signs[order], np.concatenate(([0], np.flatnonzero(changes) + 1)))
    return int(sums[sums > 0].sum()), int(-sums[sums < 0].sum())
