"""Write parts once more, when all are counted: records that tasks set aside go to their splits, others are left out.

    task 0   train │ val │ aside.0          aside.0 of all tasks, in their order ──▶ the splitter says where each goes
    task 1   train │ val │ aside.0          train of task 0: its parts, and one more with what came from its aside.0

A stream that goes to one split whole is not written again: its parts become that split's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...format.batches.observers import LeftOut, Went
from ...format.batches.rows import FeatureColumn
from ...format.columns.feature_column import columns_of
from ...format.examples.decode_examples import ExampleDecoder
from ...format.examples.encode_rows import frames_in_place
from ...format.schema.schema import Schema
from ...format.splits.shard_plan import SplitParts
from ...format.splits.splitter import Candidates, Settlement, Settling
from ...format.tfrecord.framing import add_digests
from ..stage.spec import DatasetSpec
from ..stage.task_stager import TaskResult, new_parts
from ..storage.record_file import RecordRun, read_record_batches


def settle(
    spec: DatasetSpec, splitter: Settling, results: Sequence[TaskResult], observed: Any
) -> tuple[list[TaskResult], list[dict[str, Went]]]:
    """Return the results of tasks, in their order, without records that are set aside, and where these went."""
    records: Counter[str] = Counter()
    for result in results:
        for name, split in result.splits.items():
            records[name] += sum(part.records for part in split.parts)
    reader = _Reader(spec, splitter.reads)
    settlement = splitter.settle(
        records, observed, lambda name: (given for result in results for _, given in reader.read(result, name))
    )
    whole = {stream: Went((name,)) for stream, name in settlement.whole}
    went = [dict(whole) for _ in results]
    return [_settled(spec, reader, settlement, *pair) for pair in zip(results, went, strict=True)], went


class _Reader:
    """Reads the records of a stream, and of their features those that a splitter looks at."""

    def __init__(self, spec: DatasetSpec, names: tuple[str, ...]) -> None:
        self._spec, self._names = spec, names
        self._decoder = ExampleDecoder(spec.schema, names) if spec.schema is not None and names else None

    def read(self, result: TaskResult, stream: str) -> Iterator[tuple[RecordRun, Candidates]]:
        for part in result.splits[stream].parts if stream in result.splits else ():
            path = self._spec.storage.path(f"{self._spec.staging}/{part.path}")
            for run in read_record_batches(path):
                step = len(run) if self._decoder is None else self._decoder.rows_at_once
                for start in range(0, len(run), max(step, 1)):
                    rows = np.arange(start, min(start + step, len(run)))
                    taken = replace(run, payloads=run.payloads.take(rows), crcs=run.crcs[rows])
                    yield taken, self._candidates(taken, result.task)

    def _candidates(self, run: RecordRun, task: int) -> Candidates:
        schema, columns = self._spec.schema or Schema(()), dict[str, FeatureColumn]()
        if self._decoder is not None:
            columns = columns_of(self._decoder.decode(run.payloads), schema, self._names)
        return Candidates(schema, columns, len(run), run.payloads.take, task=task)


def _settled(
    spec: DatasetSpec, reader: _Reader, settlement: Settlement, result: TaskResult, went: dict[str, Went]
) -> TaskResult:
    """Return the result of a task whose records are all in splits, and add to `went` where they were dealt to."""
    splits: dict[str, list[SplitParts]] = defaultdict(list)
    gone = {*settlement.dealt, *(stream for stream, _ in settlement.whole)}
    for name, split in result.splits.items():
        if name not in gone:
            splits[name].append(split)
    for stream, name in settlement.whole:
        if stream in result.splits:
            splits[name].append(result.splits[stream])
    if any(stream in result.splits for stream in settlement.dealt):
        for name, split in _dealt(spec, reader, settlement, result, went).items():
            splits[name].append(split)
    return replace(result, splits={name: _joined(found) for name, found in sorted(splits.items())})


def _dealt(
    spec: DatasetSpec, reader: _Reader, settlement: Settlement, result: TaskResult, went: dict[str, Went]
) -> dict[str, SplitParts]:
    task = max((part.task for split in result.splits.values() for part in split.parts), default=0)
    with new_parts(spec, task) as parts:
        for stream in settlement.dealt:
            names, dealt = dict[str, int](), [np.zeros(0, np.int8)]
            for run, given in reader.read(result, stream):
                assigned = settlement.deal(given)
                numbers = [names.setdefault(name, len(names)) for name in assigned.names]
                dealt.append(np.array(numbers, np.int8)[assigned.codes])
                for code in np.unique(assigned.codes).tolist():
                    rows = np.flatnonzero(assigned.codes == code)
                    parts.of(assigned.names[code]).add(frames_in_place(run.payloads.take(rows), run.crcs[rows]))
            went[stream] = Went(tuple(names), np.concatenate(dealt))
    return parts.finished


def _joined(found: Sequence[SplitParts]) -> SplitParts:
    parts = [part for split in found for part in split.parts]
    numbered = tuple(replace(part, number=number) for number, part in enumerate(parts))
    return SplitParts(numbered, add_digests(split.digest for split in found))


def leave_out(spec: DatasetSpec, result: TaskResult, left: LeftOut) -> TaskResult:
    """Return the result of a task without some of its records; splits that keep all of theirs are as they were.

    The parts of the others are written once more, without the records (`new_parts`).
    """
    splits = dict(result.splits)
    for name, numbers in left.records.items():
        splits[name] = _without(spec, splits[name], name, numbers)
    return replace(result, splits={name: split for name, split in splits.items() if split.parts})


def _without(spec: DatasetSpec, split: SplitParts, name: str, numbers: npt.NDArray[np.int64]) -> SplitParts:
    first = 0
    with new_parts(spec, split.parts[0].task) as kept:
        for part in split.parts:
            for run in read_record_batches(spec.storage.path(f"{spec.staging}/{part.path}")):
                here = numbers[np.searchsorted(numbers, first) : np.searchsorted(numbers, first + len(run))] - first
                kept.of(name).add(frames_in_place(run.payloads, run.crcs, here.tolist()))
                first += len(run)
    return kept.finished[name]
