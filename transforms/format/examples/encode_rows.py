"""Encode batches of rows as blocks of framed records: every row becomes a record of one split, or a reject.

    Rows ──cut──▶ runs ──columns──▶ problems? ──no──▶ layout ──too large?──no──▶ records ──▶ frames by split
                   ▲                    │ yes                      │ yes
                   └── the good rows ◀──┴──────────────────────────┘

A run is a slice of the batch whose pieces stay in cache. The common run goes straight through, with no Python per row
but the checksum; a run with bad rows is converted once more without them, so that the record of a good row, and what
is reported as narrowed, never depend on its neighbours.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from ...errors import RunError, SchemaError, UsageError
from ..batches.arrow_memory import BUFFER_LIMIT, I64, array_of, joined_arrays, take_rows, true_mask
from ..batches.observers import Observer, Seen, SeenRun
from ..batches.rejects import CellError, CellProblem, Reject
from ..batches.rows import Block, EntryCounts, FeatureColumn, Frames, Narrowing, RowOrigin, Rows
from ..batches.summaries import (
    IMAGE_FORMATS,
    READ,
    ReadRange,
    Summaries,
    merged,
    narrowed_summary,
    notes_summary,
    warned_summary,
)
from ..columns.feature_column import DEFAULT_FIELD_BYTES, Conversion, columns_of, feature_column
from ..schema.schema import Feature, Kind, Schema
from ..splits.by_row import FolderSplits, settling
from ..splits.splitter import Assigned, Candidates, OneSplit, Settling, Splitter
from ..tfrecord.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES, Payloads, join_frames, record_digests
from ..wording.hints import Set
from ..wording.printable import printable
from .example import ExampleEncoder, ExampleLayout

# Rows that are framed records already: they pass the encoder as they are, byte for byte.
#
# csv, parquet, ...   Rows ──encode──▶ Block ──▶ stage
# tfrecord            FramedRows ─────▶ Block ──▶ stage      the same bytes, not even copied
#                         └── a rule of splits: of each record the features that it looks at are decoded


_NO_VALUES: Final = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.null(), 1 << 40, [None])], ["record"])
"""More rows than any batch has, in no memory at all (`pa.nulls` would fill a bit for each)."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FramedRows(Rows):
    """A batch of records of one file, which are in the split `split` unless a rule says otherwise.

    `payloads` are framed where they are, and `crcs` their (unmasked) CRC32Cs. `batch` has a row for each, of the
    features that a rule looks at. `narrowed` is what the dataset that they come from lost when it was made, reported
    once. `read` is the range of a shard that ends with this batch.
    """

    split: str | None
    payloads: Payloads
    crcs: npt.NDArray[np.uint32]
    image_formats: tuple[str, ...] = ()
    narrowed: tuple[Narrowing, ...] = ()
    read: ReadRange | None = None

    @property
    def bytes(self) -> int:
        return int((self.payloads.ends - self.payloads.starts).sum()) + FRAME_BYTES * len(self.payloads)

    def to_block(self) -> Block:
        """Raise `ValueError` where rows were taken out of the batch, which the records do not follow."""
        assert self.split is not None
        self._check()
        written = len(self.payloads)
        if not written:
            return self._block({}, 0)
        spread = bool(self.dropped)  # with so many gaps that one copy costs less
        frames = self._taken(np.arange(written)) if spread else frames_in_place(self.payloads, self.crcs)
        return self._block({self.split: frames}, written)

    def to_split_block(self, splitter: Splitter, schema: Schema, memory: dict[str, Any]) -> Block:
        """Return the block, each record in its own split or where a rule says. Raises as `to_block` does."""
        stated = self.split is not None and not isinstance(splitter, FolderSplits)  # and comes before a rule
        if stated or isinstance(splitter, OneSplit):
            return self.to_block()
        self._check()
        if not len(self.payloads):
            return self._block({}, 0)
        kept = np.arange(len(self.payloads))
        given = self._candidates(kept, splitter, schema, memory)
        errors = dict(splitter.problems(given))
        if errors:
            kept = np.delete(kept, list(errors))
            given = self._candidates(kept, splitter, schema, memory)
        assigned = splitter.assign(given)
        frames = {
            assigned.names[code]: self._taken(kept[assigned.codes == code])
            for code in np.unique(assigned.codes).tolist()
        }
        entry = self._entry
        found = tuple(Reject(entry, self.origin.place(row), (errors[row],), self.split) for row in sorted(errors))
        block = self._block(frames, len(kept), found)
        return replace(block, observed=merged(block.observed, assigned.observed))

    @property
    def _entry(self) -> int:
        assert isinstance(self.entry, int), "framed rows come from one file"
        return self.entry

    def _check(self) -> None:
        if self.batch.num_rows != len(self.payloads):
            raise ValueError(
                f"{len(self.payloads)} existing records are passed on as they are, and their batch was cut to "
                f"{self.batch.num_rows} rows; to change or pick records, decode them: open_dataset"
            )

    def _candidates(self, rows: I64, splitter: Splitter, schema: Schema, memory: dict[str, Any]) -> Candidates:
        payloads, batch = self.payloads.take(rows), take_rows(self.batch, rows)
        columns = columns_of(batch, schema, splitter.reads)
        folders, codes = ((), None) if self.split is None else ((self.split,), np.zeros(len(rows), np.int64))
        return Candidates(
            schema, columns, len(rows), payloads.take, folders, codes, self.task, memory, are_records=True,
            entry=self._entry,
        )  # fmt: skip

    def _taken(self, rows: I64) -> Frames:
        starts, sizes = self.payloads.starts[rows], (self.payloads.ends - self.payloads.starts)[rows]
        data = self.payloads.gather(starts - HEADER_BYTES, sizes + FRAME_BYTES)
        digest = record_digests(sizes, self.crcs[rows])
        return Frames((pa.py_buffer(data),), np.cumsum(sizes + FRAME_BYTES), digest)

    def _block(self, frames: dict[str, Frames], written: int, more: tuple[Reject, ...] = ()) -> Block:
        rejects = (*self.rejects, *more)
        dropped = self.dropped.get(self._entry, 0)
        read = written + len(rejects) + dropped
        return Block(
            self.task,
            self.ordinal,
            frames,
            (EntryCounts(self._entry, read, written, len(rejects), dropped),) if read else (),
            tuple(sorted(rejects, key=lambda reject: reject.place.record or 0)) if more else rejects,
            narrowed_summary(self.narrowed)
            | ({IMAGE_FORMATS: list(self.image_formats)} if self.image_formats else {})
            | ({READ: [self.read]} if self.read else {}),
        )


def empty_batch(rows: int) -> pa.RecordBatch:
    """Return a batch that only counts: so many rows, and no values."""
    return _NO_VALUES.slice(0, rows)


def frames_in_place(payloads: Payloads, crcs: npt.NDArray[np.uint32], left_out: Collection[int] = ()) -> Frames:
    """Return records that are framed, one after the other, in the payloads' buffer, as frames in that same buffer.

    `crcs` are the (unmasked) CRC32Cs of the payloads. Rows that are `left_out` cut the buffer into several.
    """
    if left_out:
        rows = np.delete(np.arange(len(payloads)), list(left_out))
        payloads, crcs = payloads.take(rows), crcs[rows]
    starts, ends = payloads.starts - HEADER_BYTES, payloads.ends + FOOTER_BYTES
    if not len(starts):
        return Frames((), np.zeros(0, np.int64), 0)
    sizes = ends - starts
    breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
    firsts, lasts = starts[np.append(0, breaks)], ends[np.append(breaks, len(starts)) - 1]
    pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
    buffers = tuple(pa.py_buffer(payloads.data[first:last]) for first, last in pairs)
    return Frames(buffers, np.cumsum(sizes), record_digests(sizes - FRAME_BYTES, crcs))


# The encoder.


DEFAULT_RECORD_BYTES: Final = 1 << 30

_RUN_ROWS: Final = 1 << 14  # each costs some 0.5 ms of Python, whatever its rows
_RUN_VIEWS: Final = 1 << 19  # 8 MiB of views
_RUN_BYTES: Final = 16 << 20  # of input: bounds what a run of wide rows takes
_MIN_RUN_ROWS: Final = 64  # with 100,000 columns 200 MiB of views: fewer rows would pay each column's overhead

_WIDE_RUN_ROWS: Final = 512
_WIDE_RUN_VIEWS: Final = 1 << 21
"""Rows that pay for the overhead of hundreds of columns, if their views take no more than 32 MiB."""

_AT_ONCE: Final = 256
"""Sparse columns whose values are taken out at once."""

_WIDE: Final = 256
_SPARSE: Final = 8
"""The fewest columns of a sparse batch, and how many of its cells there are for each value."""


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """What became of one run: frames by split name, and errors by row of the batch.

    Row `numbers[i]` of the batch became a record of the split that is assigned to row i. `columns` are kept for
    observers alone.
    """

    frames: dict[str, Frames]
    numbers: I64
    assigned: Assigned
    errors: dict[int, tuple[CellError, ...]]
    narrowed: tuple[Narrowing, ...]
    columns: Sequence[FeatureColumn]


@dataclass(frozen=True)
class RowEncoder:
    """Encodes batches of one schema; picklable, and safe to share between threads.

    `splits_by_code` are the names of splits that a source by directory found; `record_bytes_limit` and
    `field_bytes_limit` bound a serialized record, and a string or binary value, in bytes; `run_rows` a run.
    `observers` see every batch.

    Raises:
        SchemaError: a feature that decides the split is not there, or none that can.
    """

    schema: Schema
    split: Splitter = field(default_factory=OneSplit)
    splits_by_code: tuple[str, ...] = ()
    record_bytes_limit: int = DEFAULT_RECORD_BYTES
    field_bytes_limit: int = DEFAULT_FIELD_BYTES
    run_rows: int = field(default=_RUN_ROWS, repr=False, compare=False)
    observers: tuple[Observer, ...] = ()
    _local: Any = field(default_factory=threading.local, init=False, repr=False, compare=False)
    _settling: Settling | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.split.check(self.schema)
        object.__setattr__(self, "_settling", settling(self.split))

    def __reduce__(self) -> tuple[Any, ...]:
        limits = (self.record_bytes_limit, self.field_bytes_limit, self.run_rows, self.observers)
        return type(self), (self.schema, self.split, self.splits_by_code, *limits)

    def split_shares(self, rows: Mapping[str, int] | None = None) -> dict[str, float]:
        """Return the part of the records that each split is expected to get; nothing where only reading tells.

        `rows` are those of the splits that the source has itself, where they are known, under "" those of none.
        """
        if not self.splits_by_code:
            return self.split.shares()
        total = sum(rows.values()) if rows else 0
        shares = {name: count / total for name, count in sorted(rows.items())} if rows and total else {}
        shares = shares or dict.fromkeys(self.splits_by_code, 1 / len(self.splits_by_code))
        of = self.split.of if isinstance(self.split, FolderSplits) else ""
        if of in shares:
            cut, rule = shares.pop(of), self.split.shares()
            if not rule:
                return {}
            for name, share in rule.items():
                shares[name] = shares.get(name, 0.0) + cut * share
        return dict(sorted(shares.items()))

    def encode(self, rows: Rows | pa.RecordBatch) -> Block:
        """Return the records of a batch by split, in order, and its rejects in row order; framed ones stay as they are.

        The block of a bare record batch has no task, and its rejects name the source `batch`. Where the splitter fails,
        the block says why. Raises `SchemaError` where the batch is not of the schema.
        """
        if isinstance(rows, pa.RecordBatch):
            if self._settling is not None:
                raise UsageError("split.by: exact counts the records of tasks, and a bare record batch is of none")
            block = self.encode(Rows(0, 0, 0, rows, RowOrigin("batch", 1)))
            return replace(block, task=None)
        try:
            return self._encoded(rows)
        except RunError as error:  # of a splitter: an engine would only try again
            return Block(rows.task, rows.ordinal, {}, failures=(str(error),))

    def _encoded(self, rows: Rows) -> Block:
        if isinstance(rows, FramedRows):
            return rows.to_split_block(self.split, self.schema, self._memory_of(rows))
        self._check_names(rows.batch)
        self._check_splits(rows)
        memory = self._memory_of(rows)
        known: dict[int, list[CellError]] = defaultdict(list)
        for problem in rows.problems:
            known[problem.row].append(problem.error)
        step, sparse = _run_rows(rows.batch, self.run_rows, self._floats)
        sparse = sparse and all(one.takes_sparse for one in self.observers)
        starts = range(0, rows.batch.num_rows, step)
        runs = [self._encode_run(rows, start, step, known, memory, sparse=sparse) for start in starts]
        frames: dict[str, list[Frames]] = defaultdict(list)
        for run in runs:
            for name, part in run.frames.items():
                frames[name].append(part)
        errors = {row: found for run in runs for row, found in run.errors.items()}
        joined = {name: join_frames(frames[name]) for name in sorted(frames)}
        return Block(
            rows.task,
            rows.ordinal,
            joined,
            rows.entry_counts(errors),
            self._rejects(rows, errors),
            *self._observe(rows, runs, errors, joined),
        )

    def _observe(
        self, rows: Rows, runs: Sequence[_Run], errors: Mapping[int, object], frames: Mapping[str, Frames]
    ) -> tuple[Summaries, dict[str, bytes]]:
        observed = narrowed_summary(narrowing for run in runs for narrowing in run.narrowed)
        observed |= notes_summary(rows.notes) | warned_summary(rows.warned)
        for run in runs:
            observed = merged(observed, run.assigned.observed)
        formats = self._image_formats(rows.batch, errors)
        if formats:
            observed[IMAGE_FORMATS] = list(formats)
        spilled = {}
        if self.observers:
            names, splits = _splits_of(rows.batch.num_rows, runs)
            seen = Seen(
                rows.batch, splits, names, rows.entry, rows.origin, frames, self.schema, self.field_bytes_limit,
                [SeenRun(run.numbers, run.columns) for run in runs], (rows.task, rows.ordinal),
            )  # fmt: skip
            for observer in self.observers:
                found = observer.observe(seen)
                observed[observer.name] = found.summary
                if found.spilled:
                    spilled[observer.name] = found.spilled
        return observed, spilled

    def _image_formats(self, batch: pa.RecordBatch, errors: Mapping[int, object]) -> tuple[str, ...]:
        """Return the formats of the images that became records: whether TensorFlow can decode all of them."""
        found = set[str]()
        for name in set(self.schema.format_features) & set(batch.schema.names):
            formats = batch.column(name)
            if errors:
                formats = formats.filter(pa.array(~np.isin(np.arange(batch.num_rows), list(errors))))
            found.update(str(value) for value in formats.unique().to_pylist() if value is not None)
        return tuple(sorted(found))

    def _check_splits(self, rows: Rows) -> None:
        if (
            rows.split_codes is not None
            and len(rows.split_codes)
            and rows.split_codes.max() >= len(self.splits_by_code)
        ):
            raise SchemaError(
                "the rows belong to splits that the encoder has no names of: give it `read.info` of ReadRows instead "
                "of its schema"
            )

    def _check_names(self, batch: pa.RecordBatch) -> None:
        names = batch.schema.names
        known = {feature.name for feature in self.schema}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise SchemaError(f'column "{printable(unknown[0])}" is not in the schema, and would be lost')
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise SchemaError(f'column "{printable(twice)}" comes twice')

    def _memory_of(self, rows: Rows) -> dict[str, Any]:
        """Return what the splitter keeps of a task, whose batches come one after the other in one thread."""
        if self._settling is None or not self._settling.in_order:
            return {}
        task, ordinal, memory = getattr(self._local, "task", (None, 0, {}))
        if rows.ordinal == 0:
            memory = {}
        elif (task, ordinal) != (rows.task, rows.ordinal):
            raise RuntimeError(
                f"not fused: batch {rows.ordinal} of task {rows.task} came without those before it; split.by: exact "
                f"counts the records of a task"
            )
        self._local.task = rows.task, rows.ordinal + 1, memory
        kept: dict[str, Any] = memory
        return kept

    def _encode_run(
        self,
        rows: Rows,
        start: int,
        step: int,
        known: Mapping[int, list[CellError]],
        memory: dict[str, Any],
        *,
        sparse: bool,
    ) -> _Run:
        batch = rows.batch.slice(start, step)
        numbers = np.arange(start, start + batch.num_rows)
        errors = {row: known[row] for row in range(start, start + batch.num_rows) if row in known} if known else {}
        first = True
        while True:
            columns, narrowed, found = self._convert(batch, _excused(errors, start) if first else {}, sparse=sparse)
            given = self._candidates(rows, numbers, columns, memory)
            found += self._in_no_split(given, _excused(errors, start) if first else {}, found)
            if not found and not (first and errors):
                layout = self._encoder.lay_out(columns, batch.num_rows)
                found = self._too_large(layout.lengths)
                if not found:
                    break
            for row, error in found:
                errors.setdefault(int(numbers[row]), []).append(error)
            good = np.flatnonzero(~np.isin(numbers, list(errors)))
            batch, numbers, first = take_rows(batch, good), numbers[good], False
        frames, assigned = self._frames(given, layout)
        kept = columns if self.observers else ()
        return _Run(frames, numbers, assigned, {row: tuple(found) for row, found in errors.items()}, narrowed, kept)

    def _splitter(self, given: Candidates) -> Splitter:
        if given.codes is None or isinstance(self.split, FolderSplits):
            return self.split
        return OneSplit(given.folders[0]) if len(given.folders) == 1 else _BY_FOLDER

    def _candidates(
        self, rows: Rows, numbers: I64, columns: Sequence[FeatureColumn], memory: dict[str, Any]
    ) -> Candidates:
        codes = None if rows.split_codes is None else rows.split_codes[numbers]
        wanted = self.split.reads
        there = {column.name: column for column in columns if column.name in wanted} if wanted else {}
        entry = rows.entry if isinstance(rows.entry, int) else rows.entry[numbers]
        return Candidates(
            self.schema, there, len(numbers), _not_written, self.splits_by_code, codes, rows.task, memory, entry=entry
        )

    def _in_no_split(
        self, given: Candidates, excused: Mapping[str | None, set[int]], found: Sequence[tuple[int, CellError]]
    ) -> list[tuple[int, CellError]]:
        problems = self._splitter(given).problems(given)
        known = {(row, error.column) for row, error in found} if problems else set()
        return [
            (row, error)
            for row, error in problems
            if row not in excused.get(error.column, ()) and (row, error.column) not in known
        ]

    def _frames(self, given: Candidates, layout: ExampleLayout) -> tuple[dict[str, Frames], Assigned]:
        splitter = self._splitter(given)
        if splitter.only is not None and given.rows:
            framed = layout.write_framed()
            if framed is not None:
                return {splitter.only: framed}, OneSplit(splitter.only).assign(given)
        records = layout.write()
        assigned = splitter.assign(replace(given, payloads=records.payloads))
        crcs, codes = records.checksums(), assigned.codes
        parts = {code: records.frame(crcs, np.flatnonzero(codes == code)) for code in np.unique(codes).tolist()}
        return {assigned.names[code]: frames for code, frames in parts.items()}, assigned

    @cached_property
    def _floats(self) -> int:
        """How many features are one float a row."""
        return sum(feature.kind == "float" and feature.shape == () for feature in self.schema)

    @property
    def _encoder(self) -> ExampleEncoder:
        """The encoder of this thread: it remembers entry prefixes."""
        if not hasattr(self._local, "encoder"):
            self._local.encoder = ExampleEncoder()
        encoder: ExampleEncoder = self._local.encoder
        return encoder

    def _convert(
        self, batch: pa.RecordBatch, excused: Mapping[str | None, set[int]], *, sparse: bool
    ) -> tuple[list[FeatureColumn], tuple[Narrowing, ...], list[tuple[int, CellError]]]:
        """Return the columns of all features, what was narrowed, and every bad cell; sparse ones may be left out."""
        columns, narrowed, found = [], [], []
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        taken = self._taken_out(arrays) if sparse else {}
        for feature in self.schema:
            conversion = taken.get(feature.name)
            if conversion is not None:
                found += [(problem.row, problem.error) for problem in conversion.problems]
                if conversion.column.rows is not None and len(conversion.column.rows):
                    columns.append(conversion.column)
                if conversion.narrowing is not None:
                    narrowed.append(conversion.narrowing)
                continue
            rows = _excused_in(feature.name, excused) if excused else set()
            array = arrays[feature.name] if feature.name in arrays else pa.nulls(batch.num_rows)
            conversion = feature_column(array, feature, excused=rows, field_bytes_limit=self.field_bytes_limit)
            columns.append(conversion.column)
            found += [(problem.row, problem.error) for problem in conversion.problems]
            if conversion.narrowing is not None:
                narrowed.append(conversion.narrowing)
        return columns, tuple(narrowed), found

    def _taken_out(self, arrays: Mapping[str, pa.Array]) -> dict[str, Conversion]:
        """Return the sparse columns with the values of the rows that have one, those of one type taken out at once."""
        alike: dict[pa.DataType, list[Feature]] = defaultdict(list)
        for feature in self.schema:
            array = arrays.get(feature.name) if feature.nullable and feature.name not in self.split.reads else None
            if array is not None and _SPARSE * (len(array) - array.null_count) <= len(array):
                alike[array.type].append(feature)
        found = {}
        for kind, features in alike.items():
            features.sort(key=lambda feature: _place_in_memory(arrays[feature.name]))  # as they may have been made
            step = _AT_ONCE if types.is_primitive(kind) or types.is_string(kind) else 1
            for start in range(0, len(features), step):
                some = features[start : start + step]
                values = joined_arrays([arrays[feature.name] for feature in some])
                rows = len(values) // len(some)
                there = np.flatnonzero(true_mask(values.is_valid()))
                values = values.take(array_of(there))
                ends = np.searchsorted(there, rows * np.arange(len(some) + 1)).tolist()
                for number, feature in enumerate(some):
                    first, end = ends[number], ends[number + 1]
                    found[feature.name] = self._sparse_column(
                        values.slice(first, end - first), feature, there[first:end] - number * rows
                    )
        return found

    def _sparse_column(self, values: pa.Array, feature: Feature, rows: I64) -> Conversion:
        if not len(rows) and feature.kind != "float":  # of which a narrowing is reported
            return _NOTHING[feature.kind]
        made = feature_column(values, feature, field_bytes_limit=self.field_bytes_limit)
        problems = tuple(CellProblem(int(rows[problem.row]), problem.error) for problem in made.problems)
        return Conversion(replace(made.column, rows=rows), problems, made.narrowing)

    def _too_large(self, lengths: I64) -> list[tuple[int, CellError]]:
        limit, largest = min(self.record_bytes_limit, BUFFER_LIMIT), int(lengths.max(initial=0))
        fix = f"raise the limit: {Set('limits.record_bytes', largest)}"
        if largest > BUFFER_LIMIT:
            fix = "no record can be longer: keep fewer columns"
        found = []
        for row in np.flatnonzero(lengths > limit).tolist():
            size = f"{lengths[row]} bytes"
            text = f"the record is {size} long, over {limit}; {fix}"
            found.append((row, CellError(None, "RECORD_TOO_LARGE", size, f"at most {limit} bytes", text)))
        return found

    def _rejects(self, rows: Rows, errors: Mapping[int, tuple[CellError, ...]]) -> tuple[Reject, ...]:
        own = []
        for row in sorted(errors):
            code = -1 if rows.split_codes is None else int(rows.split_codes[row])
            split = None if code < 0 else self.splits_by_code[code]
            own.append(Reject(rows.entry_of(row), rows.origin.place(row), errors[row], split))
        return tuple(sorted((*rows.rejects, *own), key=lambda reject: (reject.entry, reject.place.row or 0)))


def _place_in_memory(array: pa.Array) -> tuple[int, int]:
    buffer = array.buffers()[1] if types.is_primitive(array.type) else None
    return (buffer.address if buffer is not None else 0, array.offset)


_NOTHING: Final = {kind: Conversion(FeatureColumn("", kind, np.zeros(0, np.int64))) for kind in get_args(Kind)}
"""Sparse columns without a value."""

_BY_FOLDER: Final = FolderSplits()


def _not_written(rows: I64) -> Iterable[bytes]:
    raise AssertionError(f"the records of {len(rows)} rows are not written yet")


def _splits_of(rows: int, runs: Sequence[_Run]) -> tuple[tuple[str, ...], I64]:
    names = tuple(dict.fromkeys(name for run in runs for name in run.assigned.names))
    splits = np.full(rows, -1, np.int64)
    for run in runs:
        numbers = np.array([names.index(name) for name in run.assigned.names], np.int64)
        splits[run.numbers] = numbers[run.assigned.codes] if len(numbers) else run.assigned.codes
    return names, splits


def _run_rows(batch: pa.RecordBatch, most: int = _RUN_ROWS, floats: int = 0) -> tuple[int, bool]:
    """Return how many rows make a run, bounded by rows, by views, and by bytes of input, and whether it is sparse.

    It is where so many columns are null in most rows that their values are taken out before they are encoded.
    """
    columns, size = batch.num_columns, batch.nbytes
    nulls = sum(array.null_count for array in batch.columns) if columns >= _WIDE else 0
    cells = columns * batch.num_rows
    sparse = _SPARSE * (cells - nulls) < cells
    if sparse:  # nulls have neither views nor bytes
        columns, size = columns - nulls // batch.num_rows, max(size - 8 * nulls, size // 8)
    viewed = columns - max(floats - nulls, 0)  # floats that are always there are written without views
    wide = min(_WIDE_RUN_ROWS, _WIDE_RUN_VIEWS // (2 * viewed + 1))
    by_views = max(_RUN_VIEWS // (2 * columns + 1), wide, _MIN_RUN_ROWS)
    by_bytes = _RUN_BYTES * batch.num_rows // max(size, 1)
    return int(max(min(most, by_views, by_bytes), 1)), sparse


def _excused(errors: Mapping[int, list[CellError]], start: int) -> dict[str | None, set[int]]:
    excused: dict[str | None, set[int]] = defaultdict(set)
    for row, found in errors.items():
        for error in found:
            excused[error.column].add(row - start)
    return excused


def _excused_in(name: str, excused: Mapping[str | None, set[int]]) -> set[int]:
    ends = [at for at, sign in enumerate(name) if sign == "/"]
    return set[int]().union(*(excused.get(name[:end], ()) for end in (*ends, len(name))))
