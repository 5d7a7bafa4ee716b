"""Plan the tasks of a run, carry a large plan in files of the staging folder, and stage one task in a single call.

    driver     listing of 10,000,000 images ─▶ .staging/<run>/plan/tasks-000000.gz   about 1 MiB of tasks each
    graph      (tasks-000000.gz, its SHA-256, 17 tasks), ...                         0.1 MB, and not 500
    worker     (tasks-000000.gz, its SHA-256, task 5)  ─▶ its pieces

A job's graph carries what `Create` is given, and engines bound it: Dataflow at 10 MB. A small plan stays in it, since a
file takes longer to make durable than its bytes to travel. The digest is in the graph, so that what is read is what was
planned, even if others can write to the folder.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from itertools import chain, groupby, islice
from typing import Any, Final, NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ...dataset.stage.spec import DatasetSpec, EntryInfo
from ...dataset.stage.split_stager import StageSettings
from ...dataset.stage.task_stager import TaskResult, TaskStager
from ...dataset.storage.contract import Storage, check_shared
from ...errors import RunError, SourceError
from ...format.batches.rejects import Reject
from ...format.batches.rows import Block, Narrowing, Rows, TaskEnd
from ...format.examples.encode_rows import RowEncoder
from ...format.splits import shard_plan
from ...format.splits.shard_plan import plan_tasks
from ...format.tfrecord.gzip_members import compress_member
from .source import Frozen, LazyPieces, Limit, Listing, Piece, Source, Stamp, StoredPieces, Survey, Task

# Cut a source into tasks, from what its survey found and the shard size alone.
#
# The number of workers plays no part: the same source and config give the same tasks, and so the same bytes, anywhere.
#
#     pieces  |--|--|---|--|--|--|---|--|--|--|--|     what a source can be cut into (row groups, 1 MiB of CSV, ...)
#     tasks   |-----------|-----------|--------------|  each ends just over a whole number of shards, so that
#     shards  |====|====|·|====|====|·|====|====|·     what is left over (·) and written twice stays small


SAMPLED_FILES: Final = 8
"""How many files are sampled for the estimate: enough to see files that differ, and a few MiB of reading at most."""

BLIND_EXPANSION: Final = 4
"""Output per byte of input, where nothing could be sampled: text grows 1.5 to 3 times, compressed text more."""

_WORK_OF_A_BYTE: Final = 3
"""Bytes of records of tables that take as long as it takes to decode a byte of a JPEG, at 6 ns each."""

_WORK_OF_A_PICTURE: Final = 200_000
"""The same of a whole picture, where the files are not known whose names a table holds."""

_LEAST_OF_A_TASK: Final = 64 << 10
"""The least output of a task, in bytes, however long it takes."""


class Amount(NamedTuple):
    """So many records, which take so many bytes with their framing and compression; parts of one where estimated."""

    records: float
    bytes: float


def sum_amounts(amounts: Iterable[tuple[str, Amount]]) -> dict[str, Amount]:
    """Return the sum for each name.

    >>> sum_amounts([("train", Amount(1, 20)), ("test", Amount(1, 30)), ("train", Amount(2, 50))])
    {'train': Amount(records=3, bytes=70), 'test': Amount(records=1, bytes=30)}
    """
    sums: dict[str, Amount] = {}
    for name, more in amounts:
        before = sums.get(name, Amount(0, 0))
        sums[name] = Amount(before.records + more.records, before.bytes + more.bytes)
    return sums


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected output of a conversion: rows and bytes of records, framing and compression included.

    `sampled` rows were encoded for it, `whole` if these are all rows, and `rejects` of them will be rejected; `splits`
    are what each split got of them, weighted by the rows that they are a sample of.
    """

    rows: int
    bytes: int
    sampled: int = 0
    rejects: tuple[Reject, ...] = ()
    splits: dict[str, Amount] = field(default_factory=dict)
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is known before a row is converted; `outputs[i]` is the expected bytes of task i."""

    listing: Listing
    survey: Survey
    tasks: tuple[Task, ...]
    outputs: tuple[int, ...]
    estimate: Estimate

    @property
    def work(self) -> int:
        """How much there is to do, as the bytes of records of tables that take as long."""
        return _work(sum(self.outputs), self.listing, self.survey, self.estimate.rows)

    @property
    def rows_exact(self) -> bool:
        pieces = self.survey.pieces
        return isinstance(pieces, LazyPieces) or all(piece.rows is not None for piece in pieces)

    def expected_rows(self) -> dict[int, int | None]:
        """Return for each entry of the listing the rows that reading it must find, or None where only reading tells."""
        if isinstance(self.survey.pieces, LazyPieces):
            return self.survey.pieces.rows_by_entry()
        rows: dict[int, int | None] = {}
        for piece in self.survey.pieces:
            for entry, more in piece.rows_by_entry().items():
                before = rows.get(entry, 0)
                rows[entry] = None if before is None or more is None else before + more
        if self.survey.limit is not None and self.survey.limit.last is not None:
            rows[self.survey.limit.last.entry] = self.survey.limit.last.row
        return rows


def make_plan(
    source: Source,
    listing: Listing,
    survey: Survey,
    shard_size: int,
    encode: Callable[[Rows], Block],
    compression: str = "none",
) -> Plan:
    """Estimate the output of every piece and cut the source into tasks; `encode` is the conversion's own encoder."""
    sample = _sample(survey.source or source, survey, encode, gzip=compression == "gzip")
    outputs, rows = _estimate(survey, sample)
    output = int(outputs.sum())
    at_least = shard_plan.MIN_TASK_BYTES
    if survey.resizes:
        at_least = max(at_least * output // max(_work(output, listing, survey, rows), 1), _LEAST_OF_A_TASK)
    ranges = plan_tasks(outputs, shard_size, at_least=at_least) if survey.tasks is None else survey.tasks
    tasks = tuple(Task(i, survey.pieces[r.start : r.stop]) for i, r in enumerate(ranges))
    sizes = tuple(int(outputs[r.start : r.stop].sum()) for r in ranges)
    estimate = Estimate(rows, output, sample.rows, sample.rejects, sample.splits)
    return Plan(_read_part(listing, survey), survey, tasks, sizes, estimate)


def _work(output: int, listing: Listing, survey: Survey, rows: int) -> int:
    """Return how much there is to do: where pictures are decoded, that is most of it."""
    decoded = max(_WORK_OF_A_BYTE * listing.bytes, _WORK_OF_A_PICTURE * rows) if survey.resizes else 0
    return output + decoded


def _read_part(listing: Listing, survey: Survey) -> Listing:
    if survey.limit is None or isinstance(survey.pieces, LazyPieces):
        return listing
    return listing.keep(range(max((piece.entry for piece in survey.pieces), default=-1) + 1))


@dataclass(frozen=True, slots=True)
class _Sample:
    """What the first batches gave: bytes of output per row, per byte of input, and per byte that the source expected.

    `rows` were looked at. Those that count were read, without rejects: `kept` of them became records, the recipe drops
    the others.
    """

    bytes_a_row: float = 1.0
    expansion: float = 1.0
    growth: float = 1.0
    rows: int = 0
    rejects: tuple[Reject, ...] = ()
    kept: float = 1.0
    splits: dict[str, Amount] = field(default_factory=dict)


def _estimate(survey: Survey, sample: _Sample) -> tuple[npt.NDArray[np.int64], int]:
    if isinstance(survey.pieces, LazyPieces):
        return (survey.pieces.outputs * sample.growth).astype(np.int64), round(survey.pieces.rows * sample.kept)
    bytes_a_row, expansion = sample.bytes_a_row, sample.expansion
    outputs = [_output_of(piece, sample) for piece in survey.pieces]
    rows = sum(p.rows if p.rows is not None else _blind_rows(p, bytes_a_row, expansion) for p in survey.pieces)
    if survey.limit is not None:
        rows = min(rows, survey.limit.rows)
        outputs[-1:] = [_cut_output(survey.pieces[-1], outputs[-1], survey.limit)] if outputs else []
    return np.array(outputs, np.int64), round(rows * sample.kept)


def _cut_output(piece: Piece, output: int, limit: Limit) -> int:
    """Return the expected output of the last piece, of which not all rows may be read."""
    if limit.last is None or not piece.rows:
        return output
    return output * (limit.last.row - piece.first_row) // piece.rows


def _output_of(piece: Piece, sample: _Sample) -> int:
    if piece.output_bytes is not None:
        return int(piece.output_bytes * sample.growth)
    return int(piece.rows * sample.bytes_a_row) if piece.rows is not None else int(piece.bytes * sample.expansion)


def _blind_rows(piece: Piece, bytes_a_row: float, expansion: float) -> int:
    output = piece.bytes * expansion if piece.output_bytes is None else piece.output_bytes
    return int(output / max(bytes_a_row, 1))


def _sample(source: Source, survey: Survey, encode: Callable[[Rows], Block], *, gzip: bool) -> _Sample:
    """Encode the first batch of up to 8 files, where the source does not know how many or how large its records are."""
    pieces = _sampled_pieces(survey)
    if not survey.resizes and all(piece.output_bytes is not None and piece.rows is not None for piece in pieces):
        return _Sample()
    rows = read = records = 0
    input_bytes = expected = 0.0
    rejects: list[Reject] = []
    splits: list[tuple[str, Amount]] = []
    for piece in pieces:
        batch = first_batch(source, piece, survey.frozen)
        if batch is None:
            continue
        block = encode(replace(batch, ordinal=0))  # of a task of its own
        if block.failures:
            raise RunError(block.failures[0])
        written = sum(frames.records for frames in block.splits.values())
        held = written + sum(batch.dropped.values())
        records += written
        rows += held
        read += held + len(block.rejects)
        rejects += block.rejects
        splits += amounts_of(block, gzip=gzip).items()
        if piece.rows:
            input_bytes += piece.bytes * held / piece.rows
            expected += (piece.output_bytes or 0) * held / piece.rows
    output = sum(amount.bytes for _, amount in splits)
    expansion = output / input_bytes if input_bytes else float(BLIND_EXPANSION)
    kept = records / rows if rows else 1.0
    growth = output / expected if expected and survey.resizes else 1.0
    return _Sample(output / rows if rows else 1.0, expansion, growth, read, tuple(rejects), kept, sum_amounts(splits))


def amounts_of(block: Block, *, gzip: bool) -> dict[str, Amount]:
    """Return what each split gets of a block; with `gzip` all of it that a split gets is compressed at once."""
    return {
        name: Amount(frames.records, len(compress_member(frames.buffers)) if gzip else frames.bytes)
        for name, frames in block.splits.items()
    }


def _sampled_pieces(survey: Survey) -> list[Piece]:
    pieces = survey.pieces
    if not isinstance(pieces, LazyPieces):
        return first_pieces(survey)
    if not survey.resizes:
        return []
    return [pieces[int(index)] for index in np.unique(np.linspace(0, len(pieces) - 1, SAMPLED_FILES).astype(int))]


def first_pieces(survey: Survey) -> list[Piece]:
    """Return the first piece of up to 8 files: what is sampled of a source."""
    firsts: dict[int, Piece] = {}
    for piece in survey.pieces:
        if piece.entry not in firsts and piece.rows != 0:
            firsts[piece.entry] = piece
            if len(firsts) == SAMPLED_FILES:
                break
    return list(firsts.values())


def batches_of(source: Source, piece: Piece, frozen: Frozen) -> Iterator[Rows]:
    """Yield the batches of a piece that hold rows."""
    task = Task(0, (piece,))
    with _naming_files(task):
        yield from (rows for rows in source.read(task, frozen) if rows.batch.num_rows)


def first_batch(source: Source, piece: Piece, frozen: Frozen) -> Rows | None:
    """Return the first batch of a piece that holds rows, None where there is none."""
    return next(batches_of(source, piece, frozen), None)


# Read one task to its end: its batches of rows, and the mark that closes it.


def read_task(source: Source, task: Task, frozen: Frozen) -> Iterator[Rows | TaskEnd]:
    if isinstance(task.pieces, StoredPieces):
        task = Task(task.ordinal, task.pieces.load())
    batches = 0
    rows_read: dict[int, int] = {}
    failures: tuple[str, ...] = ()
    try:
        with _naming_files(task):
            for rows in source.read(task, frozen):
                rows.count_into(rows_read)
                batches += 1
                yield rows
                del rows  # and so below: what is large is freed before more is read
    except SourceError as error:
        failures = (str(error), *_further_failures(source, task, frozen, error))
    yield TaskEnd(task.ordinal, batches, rows_read, failures)


@contextmanager
def _naming_files(task: Task) -> Iterator[None]:
    """Let an error of the disk, after which an engine may try again, name the files of a task if it names none."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            names = dict.fromkeys((task.pieces[0].name, task.pieces[-1].name))
            error.filename = " to ".join(names)
        raise


def _further_failures(source: Source, task: Task, frozen: Frozen, error: SourceError) -> Iterator[str]:
    """Read the files of a task that follow a corrupt one, for their errors only: one run names all corrupt files."""
    while True:
        last = max((i for i, piece in enumerate(task.pieces) if piece.name == error.source), default=len(task.pieces))
        task = Task(task.ordinal, task.pieces[last + 1 :])
        if not task.pieces:
            return
        try:
            for _ in source.read(task, frozen):
                pass
            return
        except SourceError as another:
            yield str(another)
            error = another


# Tasks in files.


PLAN_FOLDER: Final = "plan"
"""In the run's staging folder."""

_AT_ONCE: Final = 16
"""Files that are written at once: each waits for a disk, or a store. Tasks that are larger than a file are fewer."""


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """The bytes of text of tasks, and of entries, that stay in the graph, and those of a file of tasks.

    A worker reads all of a file for one task, and in object stores each is a request.
    """

    in_graph: int = 256 << 10
    in_file: int = 1 << 20


_LIMITS: Final = PlanLimits()
_Numbered: TypeAlias = tuple[int, list[tuple[Task, bytes]]]


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file of lines in the staging folder; the digest is of its bytes, and so of what it is."""

    storage: Storage = field(compare=False)
    path: str = field(compare=False)
    sha256: str

    def lines(self) -> tuple[bytes, ...]:
        """Raise `RunError` where the file is not what was written when the run was planned, or is not seen here."""
        if self.storage.has_locks:  # on disk; a store says itself what it lacks
            check_shared(self.storage, self.path)
        data = self.storage.read(self.path)
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise RunError(f"{self.path} is not what was planned: the staging folder was changed; run again")
        return tuple(gzip.decompress(data).split(b"\n"))


@lru_cache(maxsize=4)
def _kept_lines(file: StagedFile) -> tuple[bytes, ...]:
    return file.lines()


@dataclass(frozen=True, slots=True, eq=False)
class StagedPieces(StoredPieces):
    """The pieces of one task: line `line` of a file, which may be `alone` in it, and large."""

    file: StagedFile
    line: int
    alone: bool = False

    def load(self) -> Sequence[Piece]:
        lines = self.file.lines() if self.alone else _kept_lines(self.file)
        return decode_pieces(lines[self.line])


@dataclass(frozen=True, slots=True)
class TaskFile:
    """All tasks of one file, by their ordinals: what the graph carries of them."""

    file: StagedFile
    ordinals: tuple[int, ...]

    def tasks(self) -> list[Task]:
        """Return the tasks; nothing is read."""
        alone = len(self.ordinals) == 1
        return [Task(ordinal, StagedPieces(self.file, line, alone)) for line, ordinal in enumerate(self.ordinals)]


def by_file(tasks: Sequence[Task]) -> list[TaskFile] | None:
    """Return the files of some tasks as `tasks_in_files` gave them, None if they are in no file."""
    files: list[TaskFile] = []
    for file, group in groupby(tasks, key=lambda task: getattr(task.pieces, "file", None)):
        if not isinstance(file, StagedFile):
            return None
        files.append(TaskFile(file, tuple(task.ordinal for task in group)))
    return files


@dataclass(frozen=True, slots=True, eq=False)
class StagedEntries(Sequence[EntryInfo]):
    """The entries of a source: the lines of a file."""

    file: StagedFile
    size: int

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> EntryInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EntryInfo]: ...
    def __getitem__(self, index: int | slice) -> EntryInfo | Sequence[EntryInfo]:
        return _entries(self.file)[index]

    def __iter__(self) -> Iterator[EntryInfo]:
        return iter(_entries(self.file))


@lru_cache(maxsize=1)
def _entries(file: StagedFile) -> tuple[EntryInfo, ...]:
    return tuple(EntryInfo(*json.loads(line)) for line in file.lines())


def entries_in_files(spec: DatasetSpec, limits: PlanLimits = _LIMITS) -> DatasetSpec:
    """Return the run with its entries in a file, if they are many: its steps carry the run, and would carry them."""
    lines = [json.dumps(astuple(entry)).encode() for entry in spec.source_entries]
    if sum(map(len, lines)) <= limits.in_graph:
        return spec
    file = _put(spec, "entries.gz", lines)
    return replace(spec, source_entries=StagedEntries(file, len(lines)))


def tasks_in_files(spec: DatasetSpec, tasks: Sequence[Task], limits: PlanLimits = _LIMITS) -> tuple[Task, ...]:
    """Return the tasks with their pieces in files, if they are much text; else as they are."""
    packed = ((task, encode_pieces(task.pieces)) for task in tasks)
    files = _filled(packed, limits.in_file)
    first = next(files, [])
    size = sum(len(line) for _, line in first)
    if len(first) == len(tasks) and size <= limits.in_graph:
        return tuple(tasks)
    staged: list[Task] = []
    numbered = enumerate(chain([first], files))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while some := list(_at_once(numbered, _AT_ONCE * limits.in_file)):
            for group in pool.map(lambda item: _staged(spec, *item), some):
                staged += group
    return tuple(staged)


def _filled(packed: Iterable[tuple[Task, bytes]], most: int) -> Iterator[list[tuple[Task, bytes]]]:
    group: list[tuple[Task, bytes]] = []
    size = 0
    for task, line in packed:
        group.append((task, line))
        size += len(line)
        if size >= most:
            yield group
            group, size = [], 0
    if group:
        yield group


def _at_once(files: Iterator[_Numbered], most: int) -> Iterator[_Numbered]:
    size = 0
    for number, group in islice(files, _AT_ONCE):
        yield number, group
        size += sum(len(line) for _, line in group)
        if size >= most:
            return


def _staged(spec: DatasetSpec, number: int, group: Sequence[tuple[Task, bytes]]) -> list[Task]:
    file = _put(spec, f"tasks-{number:06d}.gz", [line for _, line in group])
    return TaskFile(file, tuple(task.ordinal for task, _ in group)).tasks()


def _put(spec: DatasetSpec, name: str, lines: Sequence[bytes]) -> StagedFile:
    data = compress_member(b"\n".join(lines))
    path = f"{spec.staging}/{PLAN_FOLDER}/{name}"
    spec.storage.replace(path, data)
    return StagedFile(spec.storage, path, hashlib.sha256(data).hexdigest())


# The pieces of a task are JSON, since nothing in a file is unpickled. A piece is its class's name and its fields, in
# their order. Bytes are `{"b": base64}`, other product values, like a `Cut`, are `{"c": name, "v": fields}`. The files
# are ours, and proven by a digest before they are read.


_VALUES: Final = (Narrowing, Stamp)
"""What fields of any piece hold, beside numbers, text, bytes and tuples; a class of pieces names more in `holds`."""


def encode_pieces(pieces: Sequence[Piece]) -> bytes:
    if isinstance(pieces, LazyPieces):
        return _text({"lazy": type(pieces).__name__, "document": _written(pieces.to_document())})
    return b"[" + b",".join(_text(_written(piece)) for piece in pieces) + b"]"


def _text(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def decode_pieces(line: bytes) -> Sequence[Piece]:
    """Read what `encode_pieces` wrote; the module of their source has been imported, else `KeyError` is raised."""
    if line[:1] == b"{":
        document = json.loads(line)
        lazy: dict[str, type[LazyPieces]] = {kind.__name__: kind for kind in _below(LazyPieces)}
        return lazy[document["lazy"]].from_document(_read(document["document"], {}))
    pieces = list(_below(Piece))
    values = (*_VALUES, *(value for kind in pieces for value in kind.holds))
    kinds: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (*values, *pieces)}
    return tuple(_read(document, kinds) for document in _one_by_one(line.decode()))


def _one_by_one(text: str) -> Iterator[Any]:
    """Yield the items of a list as `encode_pieces` writes it; all of them as Python's values would take much memory."""
    decode, at = json.JSONDecoder().raw_decode, 1
    while at < len(text) - 1:
        document, end = decode(text, at)
        yield document
        at = end + 1


def _written(value: Any, holds: tuple[type[Any], ...] = _VALUES) -> Any:
    if isinstance(value, bytes):
        return {"b": base64.b64encode(value).decode()}
    if isinstance(value, Piece):
        holds = (*_VALUES, *value.holds)
    if isinstance(value, (Piece, *holds)):
        held: Any = value
        names = [field.name for field in fields(held)] if is_dataclass(held) else held._fields
        return {"c": type(value).__name__, "v": {name: _written(getattr(value, name), holds) for name in names}}
    if isinstance(value, dict):
        return {"d": {key: _written(item, holds) for key, item in value.items()}}
    if isinstance(value, list | tuple):
        return [_written(item, holds) for item in value]
    return value


def _read(value: Any, kinds: dict[str, Callable[..., Any]]) -> Any:
    if isinstance(value, list):
        return tuple(_read(item, kinds) for item in value)
    if not isinstance(value, dict):
        return value
    if "b" in value:
        return base64.b64decode(value["b"])
    if "d" in value:
        return {key: _read(item, kinds) for key, item in value["d"].items()}
    return kinds[value["c"]](**{name: _read(item, kinds) for name, item in value["v"].items()})


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    derived: list[type[Any]] = kind.__subclasses__()
    for each in derived:
        yield from _below(each)


# One task from its source to its staged parts in a single call, without an engine between the steps.
#
#     Task ─▶ read_task ─▶ RowEncoder.encode ─▶ TaskStager ─▶ TaskResult
#
# What `ReadRows | EncodeExamples | WriteShards` do with a task as one fused stage, for a caller with the whole task:
# the worker processes of the local engine, which therefore need not load Beam.


@dataclass(frozen=True, slots=True)
class TaskStaging:
    """Everything that staging a task needs but the task: the same for all tasks of a run, and soon pickled."""

    source: Source
    frozen: Frozen = field(repr=False)
    encoder: RowEncoder = field(repr=False)
    storage: Storage
    staging: str
    settings: StageSettings

    @classmethod
    def of(cls, spec: DatasetSpec, source: Source, frozen: Frozen, encoder: RowEncoder) -> TaskStaging:
        """Return what the tasks of a run are staged with: not the whole spec, which lists all inputs."""
        return cls(source, frozen, encoder, spec.storage, spec.staging, spec.stage_settings)

    def stage(self, task: Task) -> TaskResult:
        """Make one attempt at a task; return what it staged, when that is durable.

        A corrupt file, and rows in too many splits, are reported in the result, as everywhere; other errors are raised.
        """
        stager = TaskStager(self.storage, self.staging, task.ordinal, self.settings)
        try:
            for element in read_task(self.source, task, self.frozen):
                if isinstance(element, TaskEnd):
                    return stager.finish(element)
                stager.add(self.encoder.encode(element))
                del element
                if stager.has_failed:
                    return stager.finish()
        except BaseException:
            stager.abandon()
            raise
        raise AssertionError("read_task closes every task with its end")
