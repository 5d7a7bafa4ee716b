"""Convert some rows from all over a source, and measure them: bytes, rejects, and the time of the processor.

    tasks    |--------|--------|--------|--------|--------|
    places    #        #        #        #        #            the first piece of each of some tasks, and of some files
              ▲ some batches of it, with the run's own reader, recipe and encoder

Which rows these are depends on the source and the config alone: two samples of the same data differ in their time only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ...transforms.errors import RunError
from ...transforms.format.flow.blocks import Block, Frames
from ...transforms.format.flow.observers import NOTES, WARNED, Summaries, merged
from ...transforms.format.flow.rejects import Reject
from ...transforms.sources.contract.planning import Amount, Plan, amounts_of, first_pieces, sum_amounts
from ...transforms.sources.contract.source import LazyPieces, Piece, Task
from ...transforms.sources.files.open_file import is_object
from ..prepare.prepared import Prepared

PLACES: Final = 24
"""From so many places rows are taken, unless the source has fewer: enough to see that they differ.

A piece of text or of pictures has 1 MiB: 240 pictures of 100 KB, at 5 ms each where they are resized.
"""

PLACES_IN_STORES: Final = 8
"""The same in a store, where each picture is a request."""

MOST_ROWS: Final = 20_000
"""Rows in all, divided among the places: at 2 us a row they take a moment. A place gives one batch at least."""

SHOWN_RECORDS: Final = 3

_HEADER: Final = 12
"""Bytes before the payload of a framed record: its length, and the CRC of that."""

_FOOTER: Final = 4


@dataclass(frozen=True, slots=True)
class Place:
    """What rows of one place gave: `rows` that were read, `rejects` of them, and what each split got.

    `piece` is its number, `expected` the bytes that the source expected of the rows.
    """

    piece: int
    rows: int
    rejects: int
    expected: float
    splits: dict[str, Amount]


@dataclass(frozen=True, slots=True)
class Sample:
    """What a sample gave.

    `seconds` are those of all processors, of reading, the recipe, encoding and gzip. With `whole` all rows of the
    source are in it. `payloads` are the first records, without their framing, `observed` the notes on rows and the
    warnings of pictures.
    """

    places: tuple[Place, ...]
    seconds: float
    rejects: tuple[Reject, ...]
    payloads: tuple[bytes, ...] = ()
    whole: bool = False
    observed: Summaries = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(place.rows for place in self.places)


def take_sample(prepared: Prepared) -> Sample:
    return _Sampler(prepared).take()


class _Sampler:
    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._gzip = prepared.spec.compression == "gzip"
        self._seconds = 0.0
        self._rejects: list[Reject] = []
        self._payloads: list[bytes] = []
        self._observed: Summaries = {}

    def take(self) -> Sample:
        plan = self._prepared.plan
        pieces = plan.survey.pieces
        chosen, all_of_it = _places(plan)
        if chosen:
            self._warm_up(pieces[chosen[0]])
        places = []
        for number in chosen:
            place, ended = self._look(number, pieces[number], max(MOST_ROWS // len(chosen), 1))
            all_of_it &= ended
            places += [place] if place.rows else []
        return Sample(
            tuple(places), self._seconds, tuple(self._rejects), tuple(self._payloads), all_of_it, self._observed
        )

    def _warm_up(self, piece: Piece) -> None:
        """Convert a batch that is not measured: what is loaded or compiled on the way is loaded once in a run."""
        next(self._blocks(piece), None)

    def _blocks(self, piece: Piece) -> Iterator[Block]:
        prepared = self._prepared
        rows = prepared.source.read(Task(0, (piece,)), prepared.plan.survey.frozen)
        return (prepared.encoder.encode(replace(one, ordinal=0)) for one in rows)  # each is of a task of its own

    def _look(self, number: int, piece: Piece, most: int) -> tuple[Place, bool]:
        """Return what the first rows of a piece gave, and whether these were all."""
        splits: list[tuple[str, Amount]] = []
        read, rejects, blocks, ended = 0, 0, self._blocks(piece), True
        while True:
            started = time.process_time()
            block = next(blocks, None)
            amounts = {} if block is None else amounts_of(block, gzip=self._gzip)
            self._seconds += time.process_time() - started
            if block is None:
                break
            if block.failures:
                raise RunError(block.failures[0])
            splits += amounts.items()
            read += sum(counts.read for counts in block.counts)
            rejects += len(block.rejects)
            self._keep(block)
            if read >= most:
                ended = next(iter(blocks), None) is None
                break
        share = 1.0 if ended or not piece.rows else read / piece.rows
        return Place(number, read, rejects, (piece.output_bytes or 0) * share, sum_amounts(splits)), ended

    def _keep(self, block: Block) -> None:
        self._rejects += block.rejects
        said = {name: one for name, one in block.observed.items() if name in (NOTES, WARNED)}
        self._observed = merged(self._observed, said)
        for frames in block.splits.values():
            self._payloads += _payloads(frames, SHOWN_RECORDS - len(self._payloads))


def _places(plan: Plan) -> tuple[list[int], bool]:
    """Return the numbers of pieces from all over a source, and whether these are all of it.

    The first pieces of the first files of a table are among them: planning looked at these too.
    """
    pieces, most = plan.survey.pieces, PLACES_IN_STORES if _is_in_store(plan) else PLACES
    chosen = set(np.linspace(0, len(pieces) - 1, min(most, len(pieces))).round().astype(int).tolist())
    if isinstance(pieces, LazyPieces):
        return sorted(chosen), len(chosen) == len(pieces)
    wanted = {id(piece) for piece in first_pieces(plan.survey)}
    chosen |= {index for index, piece in enumerate(pieces) if id(piece) in wanted}
    return sorted(chosen), len(chosen) == len(pieces) and plan.survey.limit is None


def _is_in_store(plan: Plan) -> bool:
    return any(is_object(entry.path) for entry in plan.listing.entries[:1])


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
