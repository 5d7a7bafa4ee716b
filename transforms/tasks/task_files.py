"""Tasks: their plan in files of the staging folder, which an engine carries by name, and one task in a single call.

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
from dataclasses import astuple, dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from itertools import chain, groupby, islice
from typing import Any, Final, TypeAlias, overload

from ..dataset.stage.spec import DatasetSpec, EntryInfo
from ..dataset.stage.split_stager import StageSettings
from ..dataset.stage.task_result import TaskResult
from ..dataset.stage.task_stager import TaskStager
from ..dataset.storage.contract import Storage
from ..dataset.storage.local_storage import check_shared
from ..errors import RunError
from ..format.batches.rows import Narrowing, TaskEnd
from ..format.examples.encode_rows import RowEncoder
from ..format.tfrecord.gzip_members import compress_member
from ..inputs.contract.source import Frozen, LazyPieces, Piece, Source, Stamp, StoredPieces, Task
from .planning import read_task

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
    """Return the tasks with their pieces in files, if they are much text; else as they are.

    They are gone through once, a few files at a time.
    """
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
