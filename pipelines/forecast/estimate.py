"""From a sample to the whole: rows, bytes and rejects of a run, how long it takes, and how sure that is.

    tasks    |--------|--------|--------|--------|
    places    #   1        #   2             #   3         each stands for the pieces around it
             └──────┴──────────┴────────────────┘

Sizes come from the rows of each place, weighted by the rows that it stands for. The time is that of the sample's rows,
and a constant for each byte that is written; how far that holds on another disk nobody knows: its bounds are wide.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...transforms.dataset.stage.max_rejects import rejects_allowed
from ...transforms.format.flow.observers import warnings_check
from ...transforms.sources.contract.planning import Amount, Estimate, Plan, sum_amounts
from ...transforms.sources.contract.source import LazyPieces
from ...transforms.stores.common.store_url import is_store_url
from ..prepare.prepared import Prepared
from ..report.forecast import Forecast
from ..report.summary import picture_warnings
from ..workers.worker_processes import WorkerProcesses
from .sample import Batch, Place, Sample, take_sample

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

_LEAST: Final = 0.6
_MOST: Final = 2.0
"""The bounds of the time, as parts of it: a disk may be slow, and another program at work."""

_LEAST_ERROR: Final = 0.01
_OF_ONE_PLACE: Final = 0.2
"""The least relative error of sizes, and that of a sample from one place, which says nothing of the others."""

_OF_GZIP: Final = 0.2
"""The same of a sample of all rows with gzip: a run compresses other records together than a sample does."""


class _Whole(NamedTuple):
    """What is expected of all rows: how many `rows` there are, the `records`, `bytes` and `rejects` of them.

    `splits` are what each split got of the sample, weighted by the rows that each place stands for.
    """

    rows: float
    records: float
    bytes: float
    rejects: float
    error: float | None
    splits: dict[str, Amount]


def forecast(
    prepared: Prepared, workers: WorkerProcesses, *, done: int = 0, elsewhere: bool = False
) -> tuple[Prepared, Forecast]:
    """Take a sample of what is prepared; return it with the better estimate, and what a run would take.

    `done` is how many tasks are done already; `elsewhere` other machines convert. Nothing is written.
    """
    sample = take_sample(prepared)
    whole = _whole(prepared.plan, sample, gzip=prepared.spec.compression == "gzip")
    plan = prepared.plan
    records, size = round(whole.records), round(whole.bytes)
    estimate = Estimate(records, size, sample.rows, sample.rejects, whole.splits, sample.whole)
    better = replace(prepared, plan=replace(plan, estimate=estimate))
    left = 1 - done / max(len(plan.tasks), 1)
    cpu = _cpu_seconds(prepared, sample, whole) * left
    seconds = None if elsewhere else _seconds(prepared, workers, cpu)
    needed = _disk_bytes(prepared, whole)
    made = Forecast(
        rows=sample.rows,
        places=len(sample.places),
        share=1.0 if sample.whole else sample.rows / whole.rows if whole.rows and whole.error is not None else None,
        cpu_seconds=cpu,
        seconds=seconds,
        least_seconds=None if seconds is None else seconds * _LEAST,
        most_seconds=None if seconds is None else seconds * _MOST,
        workers=min(workers.workers, max(len(plan.tasks), 1)),
        bytes_error=whole.error,
        splits_counted=better.splits_counted,
        rejects=len(sample.rejects) if sample.whole else max(round(whole.rejects), len(sample.rejects)),
        allowed=rejects_allowed(prepared.spec.max_rejects, round(whole.rows)),
        disk_bytes=needed,
        free_bytes=_free_bytes(prepared.spec.path),
        warnings=tuple(picture_warnings(warnings_check(sample.observed), sampled=True)),
    )
    return better, made


def _whole(plan: Plan, sample: Sample, *, gzip: bool) -> _Whole:
    splits = _splits(sample.places, [1.0] * len(sample.places))
    if sample.whole:
        error = _OF_GZIP if gzip else 0.0
        return _Whole(sample.rows, sample.records, sample.bytes, len(sample.rejects), error, splits)
    estimate, pieces = plan.estimate, plan.survey.pieces
    if not sample.rows:
        return _Whole(estimate.rows, estimate.rows, estimate.bytes, 0, None, {})
    if isinstance(pieces, LazyPieces):
        growth = sample.bytes / max(sum(place.expected for place in sample.places), 1)
        size, rows = float(pieces.outputs.sum()) * growth, float(pieces.rows)
        kept, rejected = sample.records / sample.rows, len(sample.rejects) / sample.rows
        grown = [place.total.bytes / max(place.expected, 1) for place in sample.places]
        return _Whole(rows, rows * kept, size, rows * rejected, _error(grown, [1.0] * len(grown)), splits)
    if not plan.rows_exact:
        kept, rejected = sample.records / sample.rows, len(sample.rejects) / sample.rows
        rows = estimate.rows / max(kept, 1 / sample.rows)
        return _Whole(rows, estimate.rows, estimate.bytes, rows * rejected, None, splits)
    weights = _rows_for_each(plan, sample.places)
    totals = [place.total for place in sample.places]
    parts = [weight / total.rows for weight, total in zip(weights, totals, strict=True)]
    records, size, rejected = (
        sum(part * _fields(total)[at] for part, total in zip(parts, totals, strict=True)) for at in range(3)
    )
    error = _error_of_rows(sample.places, weights)
    return _Whole(sum(weights), records, size, rejected, error, _splits(sample.places, parts))


def _splits(places: Sequence[Place], parts: Sequence[float]) -> dict[str, Amount]:
    """Return what each split got, where a place counts as many times as `parts` say."""
    return sum_amounts(
        (name, Amount(amount.records * part, amount.bytes * part))
        for place, part in zip(places, parts, strict=True)
        for name, amount in place.splits.items()
    )


def _fields(batch: Batch) -> tuple[int, int, int]:
    return batch.records, batch.bytes, batch.rejects


def _rows_for_each(plan: Plan, places: Sequence[Place]) -> list[float]:
    """Return the rows that each place stands for: those of the pieces that are nearest to it."""
    chosen = np.array([place.piece for place in places])
    rows = np.array([piece.rows or 0 for piece in plan.survey.pieces], np.float64)
    if plan.survey.limit is not None:
        rows *= min(plan.survey.limit.rows / max(rows.sum(), 1), 1)
    nearest: npt.NDArray[np.int64] = np.searchsorted((chosen[1:] + chosen[:-1]) / 2, np.arange(len(rows)))
    return [float(one) for one in np.bincount(nearest, rows, len(chosen))]


def _error_of_rows(places: Sequence[Place], weights: Sequence[float]) -> float:
    """Return the relative error that bytes are likely to have at most, by how much neighboring places differ."""
    if len(places) > 1:
        return _error([place.total.bytes / place.total.rows for place in places], weights)
    batches = places[0].batches
    return max(_error([one.bytes / one.rows for one in batches], [1.0] * len(batches)), _OF_ONE_PLACE)


def _error(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return twice the standard error of a weighted mean, relative to it, from the differences of neighbors."""
    total = sum(value * weight for value, weight in zip(values, weights, strict=True))
    if len(values) < 2 or not total:
        return _OF_ONE_PLACE
    steps = [
        ((one - other) * (weight + more) / 2) ** 2 / 2
        for (one, other), (weight, more) in zip(pairwise(values), pairwise(weights), strict=True)
    ]
    return max(2 * math.sqrt(sum(steps)) / total, _LEAST_ERROR)


def _cpu_seconds(prepared: Prepared, sample: Sample, whole: _Whole) -> float:
    """Return the time of all processors for all rows, the start of the run left out."""
    a_byte = _WRITE_SECONDS + _AGAIN_SECONDS.get(prepared.spec.order, 0.0)
    if isinstance(prepared.plan.survey.pieces, LazyPieces) and sample.bytes:
        return sample.seconds * whole.bytes / sample.bytes + whole.bytes * a_byte
    return sample.seconds * whole.rows / max(sample.rows, 1) + whole.bytes * a_byte


def _seconds(prepared: Prepared, workers: WorkerProcesses, cpu: float) -> float:
    """Return the time of the clock on this machine."""
    at_once = float(min(workers.workers, max(len(prepared.plan.tasks), 1)))
    if not workers.wanted(prepared.plan.work):
        at_once = min(at_once, _THREADS)
    plain = prepared.plan.listing.traits.whole_records
    start = _FLINK_SECONDS if prepared.spec.runner == "flink" else _PLAIN_SECONDS if plain else _START_SECONDS
    return start + cpu / at_once


def _disk_bytes(prepared: Prepared, whole: _Whole) -> int:
    """Return the most room that a run takes at once: records that are written twice are there twice."""
    return round(whole.bytes * (1 if prepared.spec.order == "task" else 2))


def _free_bytes(path: str) -> int | None:
    if is_store_url(path):
        return None
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return shutil.disk_usage(path).free
