"""Predict the rows, bytes, rejects and time of a run from a sample of its rows.

    tasks    |--------|--------|--------|--------|
    places    #   1        #   2             #   3         each stands for the pieces around it
             └──────┴──────────┴────────────────┘

Sizes come from the rows of each place, weighted by the rows that it stands for. The time is that of the sample's rows,
and a constant for each byte that is written. A disk that is slow, or another program at work, doubles it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...transforms.errors import RunError
from ...transforms.format.batches.rejects import Reject, rejects_allowed
from ...transforms.format.batches.rows import Block, Frames
from ...transforms.format.batches.summaries import NOTES, WARNED, Summaries, merged, notes_in, warnings_check
from ...transforms.inputs.contract.selection import typed_path
from ...transforms.inputs.contract.source import LazyPieces, Piece, Task
from ...transforms.inputs.contract.tasks import Amount, Estimate, Plan, amounts_of, first_pieces, sum_amounts
from ...transforms.inputs.files.open_file import is_object
from ...transforms.stores.store_url import is_store_url
from ..outcomes.summary import Forecast, picture_warnings, room_line
from ..prepare.prepared import Prepared
from ..workers.worker_processes import WorkerProcesses

_START_SECONDS: Final = 2.5
"""What a run takes before its first row and after its last, mostly the import of Beam."""

_PLAIN_SECONDS: Final = 1.0
"""The same where records are passed on, which Beam is not loaded for."""

_FLINK_SECONDS: Final = 12.0
"""The same where a Flink is started for the run."""

_WRITE_SECONDS: Final = 3.5e-9
"""The time of a processor for a byte that is staged, checksummed and put into its shard."""

_AGAIN_SECONDS: Final = {"source": 2e-9, "shuffled": 6e-9}
"""What a byte takes more, by the order of the records: it is copied again, or spilled and sorted."""

_THREADS: Final = 1.4
"""Useful number of threads. Encoding holds the GIL two thirds of the time."""


class _Whole(NamedTuple):
    """What is expected of all rows: how many `rows` there are, the `records`, `bytes` and `rejects` of them.

    `splits` are what each split got of the sample, weighted by the rows that each place stands for: `parts` times those
    that were looked at there, or all alike.
    """

    rows: float
    records: float
    bytes: float
    rejects: float
    splits: dict[str, Amount]
    parts: Sequence[float] = ()


def forecast(
    prepared: Prepared, workers: WorkerProcesses, *, done: int = 0, elsewhere: bool = False
) -> tuple[Prepared, Forecast]:
    """Take a sample of what is prepared; return it with the better estimate, and what a run would take.

    `done` is how many tasks are done already; `elsewhere` other machines convert. Nothing is written.
    """
    sample = take_sample(prepared)
    plan = prepared.plan
    whole = _whole(plan, sample)
    counted = sample.whole or (plan.rows_exact and sample.rows > 0)
    records, size = round(whole.records), round(whole.bytes)
    estimate = Estimate(records, size, sample.rows, sample.rejects, whole.splits, sample.whole)
    better = replace(prepared, plan=replace(plan, estimate=estimate))
    left = 1 - done / max(len(plan.tasks), 1)
    cpu = _cpu_seconds(prepared, sample, whole) * left
    seconds = None if elsewhere else _seconds(prepared, workers, cpu)
    needed = _disk_bytes(prepared, whole.bytes)
    made = Forecast(
        rows=sample.rows,
        places=len(sample.places),
        share=1.0 if sample.whole else sample.rows / whole.rows if whole.rows and counted else None,
        cpu_seconds=cpu,
        seconds=seconds,
        workers=min(workers.workers, max(len(plan.tasks), 1)),
        exact=sample.whole and prepared.spec.compression != "gzip",
        splits_counted=better.splits_counted,
        rejects=len(sample.rejects) if sample.whole else max(round(whole.rejects), len(sample.rejects)),
        rejects_at_least=len(sample.rejects),
        rejects_at_most=_most_rejects(sample, whole),
        allowed=rejects_allowed(prepared.spec.max_rejects, round(whole.rows)),
        disk_bytes=needed,
        free_bytes=_free_bytes(prepared.spec.path),
        warnings=(*_notes(sample), *picture_warnings(warnings_check(sample.observed), sampled=True)),
    )
    return better, made


def _most_rejects(sample: Sample, whole: _Whole) -> int:
    """Return the most rejects that 19 of 20 samples would show.

    Bad rows come together, so each place counts as one observation, not each row. If k places show nothing unusual, at
    most 3 / k of the other rows are unusual (the rule of three).
    """
    unseen, places = max(whole.rows - sample.rows, 0.0), len(sample.places)
    if sample.whole or not places or not sample.rows:
        return len(sample.rejects)
    rate = whole.rejects / max(whole.rows, 1)
    parts = whole.parts or [whole.rows / sample.rows] * places
    apart: float = sum(
        (part * (one.rejects - rate * one.rows)) ** 2 for part, one in zip(parts, sample.places, strict=True)
    )
    spread = 2.0 * (apart * places / max(places - 1, 1)) ** 0.5
    most: float = min(whole.rejects + spread + unseen * min(3 / places, 1.0), len(sample.rejects) + unseen)
    return round(most)


def _notes(sample: Sample) -> list[str]:
    counts = Counter[str]()
    for (_, text), count in notes_in(sample.observed).items():
        counts[text] += count
    return [f"{text}: {count:,}{'' if sample.whole else ' in the sample'}" for text, count in counts.items()]


def _whole(plan: Plan, sample: Sample) -> _Whole:
    estimate, pieces, places = plan.estimate, plan.survey.pieces, sample.places
    seen = _times(places, [1.0] * len(places))
    if sample.whole:
        return seen
    if not sample.rows:
        return _Whole(estimate.rows, estimate.rows, estimate.bytes, 0, {})
    kept, rejected = seen.records / sample.rows, seen.rejects / sample.rows
    if isinstance(pieces, LazyPieces):
        growth = seen.bytes / max(sum(place.expected for place in places), 1)
        return _Whole(
            pieces.rows, pieces.rows * kept, float(pieces.outputs.sum()) * growth, pieces.rows * rejected, seen.splits
        )
    if not plan.rows_exact:
        rows = estimate.rows / max(kept, 1 / sample.rows)
        return _Whole(rows, estimate.rows, estimate.bytes, rows * rejected, seen.splits)
    rows_for_each = zip(_rows_for_each(plan, places), places, strict=True)
    return _times(places, [rows / place.rows for rows, place in rows_for_each])


def _times(places: Sequence[Place], parts: Sequence[float]) -> _Whole:
    """Return what places gave, where a place counts as many times as `parts` say."""
    weighted = list(zip(parts, places, strict=True))
    splits = sum_amounts(
        (name, Amount(amount.records * part, amount.bytes * part))
        for part, place in weighted
        for name, amount in place.splits.items()
    )
    return _Whole(
        sum(part * place.rows for part, place in weighted),
        sum(amount.records for amount in splits.values()),
        sum(amount.bytes for amount in splits.values()),
        sum(part * place.rejects for part, place in weighted),
        splits,
        parts,
    )


def _rows_for_each(plan: Plan, places: Sequence[Place]) -> list[float]:
    """Return the rows that each place stands for: those of the pieces that are nearest to it."""
    chosen = np.array([place.piece for place in places])
    rows = np.array([piece.rows or 0 for piece in plan.survey.pieces], np.float64)
    if plan.survey.limit is not None:
        rows *= min(plan.survey.limit.rows / max(rows.sum(), 1), 1)
    nearest: npt.NDArray[np.int64] = np.searchsorted((chosen[1:] + chosen[:-1]) / 2, np.arange(len(rows)))
    return [float(one) for one in np.bincount(nearest, rows, len(chosen))]


def _cpu_seconds(prepared: Prepared, sample: Sample, whole: _Whole) -> float:
    """Return the time of all processors for all rows, the start of the run left out."""
    a_byte = _WRITE_SECONDS + _AGAIN_SECONDS.get(prepared.spec.order, 0.0)
    sampled_bytes = sum(amount.bytes for place in sample.places for amount in place.splits.values())
    if isinstance(prepared.plan.survey.pieces, LazyPieces) and sampled_bytes:
        return sample.seconds * whole.bytes / sampled_bytes + whole.bytes * a_byte
    return sample.seconds * whole.rows / max(sample.rows, 1) + whole.bytes * a_byte


def _seconds(prepared: Prepared, workers: WorkerProcesses, cpu: float) -> float:
    at_once = float(min(workers.workers, max(len(prepared.plan.tasks), 1)))
    if not workers.wanted(prepared.plan.work):
        at_once = min(at_once, _THREADS)
    plain = prepared.plan.listing.traits.whole_records
    start = _FLINK_SECONDS if prepared.spec.runner == "flink" else _PLAIN_SECONDS if plain else _START_SECONDS
    return start + cpu / at_once


def room_notes(prepared: Prepared) -> tuple[str, ...]:
    """Return that the disk of a run has less room than what is left of it is expected to take, if so."""
    tasks, free = len(prepared.plan.tasks), _free_bytes(prepared.spec.path)
    left = prepared.plan.estimate.bytes * tasks / max(tasks + len(prepared.done), 1)
    line = room_line(typed_path(prepared.spec.path), _disk_bytes(prepared, left), free)
    return (f"{line}; make room, or the run may fill the disk and fail",) if line else ()


def _disk_bytes(prepared: Prepared, whole: float) -> int:
    """Return the most room that a run takes at once: records that are written twice are there twice."""
    return round(whole * (1 if prepared.spec.order == "task" else 2))


def _free_bytes(path: str) -> int | None:
    if is_store_url(path):
        return None
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return shutil.disk_usage(path).free


# Convert some rows from all over a source, and measure them: bytes, rejects, and the time of the processor.
#
#     tasks    |--------|--------|--------|--------|--------|
#     places    #        #        #        #        #           the first piece of each of some tasks, and of some files
#               ▲ some batches of it, with the run's own reader, recipe and encoder
#
# Which rows these are depends on the source and the config alone: two samples of the same data differ in their time
# only.


PLACES: Final = 24
"""The places that rows are taken from, unless the source has fewer: enough to see that they differ.

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
            next(self._blocks(pieces[chosen[0]]), None)  # not measured: it loads and compiles, once in a run
        places = []
        for number in chosen:
            place, ended = self._look(number, pieces[number], max(MOST_ROWS // len(chosen), 1))
            all_of_it &= ended
            places += [place] if place.rows else []
        return Sample(
            tuple(places), self._seconds, tuple(self._rejects), tuple(self._payloads), all_of_it, self._observed
        )

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
    """Return the numbers of pieces from all over a source, and whether these are all of it."""
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
