"""Convert some rows from all over a source, and measure them: bytes, rejects, and the time of the processor.

    tasks    |--------|--------|--------|--------|--------|
    places    #        #        #        #        #            the first piece of each of some tasks, and of some files
              ▲ some batches of it, with the run's own reader, recipe and encoder

Which rows these are depends on the source and the config alone: two samples of the same data differ in their time only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ...transforms.errors import RunError
from ...transforms.format.flow.blocks import Block, Frames
from ...transforms.format.flow.rejects import Reject
from ...transforms.format.tfrecord.gzip_members import compress_member
from ...transforms.sources.contract.planning import Plan, first_pieces
from ...transforms.sources.contract.source import LazyPieces, Piece, Task
from ..prepare.prepared import Prepared

PLACES: Final = 24
"""From so many places rows are taken, unless the source has fewer: enough to see that they differ."""

MOST_ROWS: Final = 20_000
"""Rows in all, divided among the places: at 2 us a row they take a moment. A place gives one batch at least."""

MOST_BYTES: Final = 24 << 20
"""Bytes of pictures in all: 240 of 100 KB, at 5 ms each where they are resized."""

MOST_PICTURES: Final = 512

SHOWN_RECORDS: Final = 3

_HEADER: Final = 12
"""Bytes before the payload of a framed record: its length, and the CRC of that."""

_FOOTER: Final = 4


@dataclass(frozen=True, slots=True)
class Place:
    """What rows of one place gave: `rows` that were read, `records` and `bytes` that came of them.

    `source_bytes` are those of the source that they took, where the source knows; `expected` the bytes of records that
    it expected.
    """

    rows: int
    records: int
    bytes: int
    source_bytes: float
    expected: float


@dataclass(frozen=True, slots=True)
class Sample:
    """What a sample gave.

    `seconds` are those of all processors, of reading, the recipe, encoding and gzip. With `whole` all rows of the
    source are in it. `splits` are the records of each split, `payloads` the first records, without their framing.
    """

    places: tuple[Place, ...]
    seconds: float
    rejects: tuple[Reject, ...]
    splits: Counter[str] = field(default_factory=Counter)
    payloads: tuple[bytes, ...] = ()
    whole: bool = False

    @property
    def rows(self) -> int:
        """The rows that were read."""
        return sum(place.rows for place in self.places)

    @property
    def records(self) -> int:
        """The records that came of them."""
        return sum(place.records for place in self.places)

    @property
    def bytes(self) -> int:
        """The bytes of these records, with framing and compression."""
        return sum(place.bytes for place in self.places)


def take_sample(prepared: Prepared) -> Sample:
    """Convert some rows of what is prepared; nothing is written.

    Raises:
        SourceError: a file is corrupt as a whole.
        RunError: the run would fail for these rows.
    """
    return _Sampler(prepared).take()


class _Sampler:
    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._gzip = prepared.spec.compression == "gzip"
        self._seconds = 0.0
        self._rejects: list[Reject] = []
        self._splits: Counter[str] = Counter()
        self._payloads: list[bytes] = []

    def take(self) -> Sample:
        plan = self._prepared.plan
        if isinstance(plan.survey.pieces, LazyPieces):
            groups, all_of_it = _pictures(plan.survey.pieces)
        else:
            groups, all_of_it = _places(plan)
        share = max(MOST_ROWS // max(len(groups), 1), 1)
        if groups:
            self._warm_up(groups[0])
        places = []
        for group in groups:
            place, ended = self._look(group, share if len(group) == 1 else MOST_ROWS)
            all_of_it &= ended
            places += [place] if place.rows else []
        return Sample(
            tuple(places), self._seconds, tuple(self._rejects), self._splits, tuple(self._payloads), all_of_it
        )

    def _warm_up(self, pieces: Sequence[Piece]) -> None:
        """Convert a batch that is not measured: what is loaded or compiled on the way is loaded once in a run."""
        next(self._blocks(pieces), None)

    def _blocks(self, pieces: Sequence[Piece]) -> Iterator[Block]:
        prepared = self._prepared
        rows = prepared.source.read(Task(0, tuple(pieces)), prepared.plan.survey.frozen)
        return (prepared.encoder.encode(replace(one, ordinal=0)) for one in rows)  # each is of a task of its own

    def _look(self, pieces: Sequence[Piece], most: int) -> tuple[Place, bool]:
        """Return what the first rows of some pieces gave, and whether these were all."""
        rows = records = written = 0
        blocks, ended = self._blocks(pieces), True
        while True:
            started = time.process_time()
            block = next(blocks, None)
            size = 0 if block is None else sum(self._bytes_of(frames) for frames in block.splits.values())
            self._seconds += time.process_time() - started
            if block is None:
                break
            if block.failures:
                raise RunError(block.failures[0])
            rows += sum(counts.read for counts in block.counts)
            records += sum(frames.records for frames in block.splits.values())
            written += size
            self._keep(block)
            if rows >= most:
                ended = next(iter(blocks), None) is None
                break
        known = sum(piece.rows or 0 for piece in pieces) if all(piece.rows is not None for piece in pieces) else None
        share = 1.0 if ended else rows / known if known else 0.0
        source_bytes = sum(piece.bytes for piece in pieces) * share
        expected = sum(piece.output_bytes or 0 for piece in pieces) * share
        return Place(rows, records, written, source_bytes, expected), ended

    def _bytes_of(self, frames: Frames) -> int:
        return len(compress_member(frames.buffers)) if self._gzip else frames.bytes

    def _keep(self, block: Block) -> None:
        self._rejects += block.rejects
        self._splits.update({name: frames.records for name, frames in block.splits.items()})
        for frames in block.splits.values():
            self._payloads += _payloads(frames, SHOWN_RECORDS - len(self._payloads))


def _places(plan: Plan) -> tuple[list[Sequence[Piece]], bool]:
    """Return pieces from all over a table, in its order, and whether these are all of it.

    The first pieces of the first files are among them: planning looked at these too.
    """
    pieces = plan.survey.pieces
    wanted = {id(piece) for piece in first_pieces(plan.survey)}
    firsts = [index for index, piece in enumerate(pieces) if id(piece) in wanted]
    spread = np.linspace(0, len(pieces) - 1, min(PLACES, len(pieces))).round().astype(int).tolist()
    chosen = sorted({*firsts, *spread})
    limit = plan.survey.limit
    return [(pieces[index],) for index in chosen], len(chosen) == len(pieces) and limit is None


def _pictures(pieces: LazyPieces) -> tuple[list[Sequence[Piece]], bool]:
    """Return pictures from all over, as several places, and whether these are all."""
    each = max(int(pieces.outputs.sum()) // max(len(pieces), 1), 1)
    count = max(min(len(pieces), MOST_PICTURES, MOST_BYTES // each), min(len(pieces), PLACES))
    chosen = np.unique(np.linspace(0, len(pieces) - 1, count).round().astype(int))
    groups = np.array_split(chosen, min(PLACES, len(chosen))) if len(chosen) else []
    return [tuple(pieces[int(index)] for index in group) for group in groups], len(chosen) == len(pieces)


def _payloads(frames: Frames, most: int) -> list[bytes]:
    """Return the first records of a block, without their framing."""
    if most <= 0 or not frames.records:
        return []
    ends = frames.ends[:most].tolist()
    data = bytearray()
    for buffer in frames.buffers:
        data += memoryview(buffer)[: ends[-1] - len(data)]
        if len(data) == ends[-1]:
            break
    starts = [0, *ends[:-1]]
    return [bytes(data[start + _HEADER : end - _FOOTER]) for start, end in zip(starts, ends, strict=True)]
