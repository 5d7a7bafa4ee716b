"""Count the rows of every input file: read = written + rejected + dropped, or nothing is committed.

Rows are counted three times by three parties: by the reader (the task's end mark), by the encoder (each block's
counts), and by the stage step (records in parts, lines in reject files). Planning may have counted them before.
The list of sources, which an append reads, is made here too.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np

from ...errors import CommitError, RunError, ShardmillError, TooManyRejects
from ...format.batches.rejects import may_be_left_out
from ...format.batches.rows import EntryCounts, Notes
from ...format.batches.summaries import NOTES, READ, ReadRange, notes_in, ranges_in
from ...format.columns.feature_column import columns_of
from ...format.examples.decode_examples import ExampleDecoder, ExampleError
from ...format.manifest.manifest import Manifest, RowCounts
from ...format.manifest.naming import staged_file
from ...format.schema.schema import Schema
from ...format.tfrecord.framing import crc32c_combine
from ...format.wording.hints import Add
from ...format.wording.printable import printable_path
from ...observers.distinct import keys_of_rows
from ...observers.figures import Level
from ...observers.tally import STATISTICS, Tally
from ..stage.spec import DatasetSpec, EntryInfo
from ..stage.task_stager import NO_ENTRY, NO_TASK, TaskResult
from ..storage.manifest_files import lineage, read_manifest, read_reject_lines, read_source_lines
from ..storage.object_storage import storage_at
from ..storage.record_file import read_record_batches, wrong_checksum

REFUSAL_FILE: Final = "refusal.json"

RefusalKind = Literal["failed", "rejects", "commit", "stale"]
"""`stale`: what an append was planned on has changed under it; planned again it may land."""

_ERRORS: Final[dict[str, type[ShardmillError]]] = {
    "failed": RunError,
    "rejects": TooManyRejects,
    "commit": CommitError,
    "stale": CommitError,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """What `kind` of refusal, in words, and how many rows were rejected, by code.

    `rejects` is the path of the reject lines, relative to the dataset's folder, None if there are none. `again` says
    of a run that failed, or lost its commit, that the same command may end it.
    """

    kind: RefusalKind
    message: str
    rows_read: int = 0
    rejected: int = 0
    by_code: dict[str, int] = field(default_factory=dict)
    rejects: str | None = None
    again: bool = False

    def error(self, path: str = "") -> ShardmillError:
        listed = ""
        if self.kind == "rejects" and self.rejects is not None:
            they, them = ("it is", "it") if self.rejected == 1 else ("they are", "them")
            listed = f"; {they} listed in {os.path.join(path, self.rejects)}"
            if may_be_left_out(self.rejected, self.rows_read):
                listed += f"; to leave {them} out: {Add('--max-rejects', str(self.rejected))}"
        error = _ERRORS[self.kind](f"{self.message}{listed}")
        if isinstance(error, RunError) and self.kind != "stale":
            error.again = self.again
        return error

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=True, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Refusal:
        return cls(**json.loads(data))


@dataclass(frozen=True, slots=True)
class Accounts:
    """The counts and notes of each entry that any row came from, their sums, and what does not add up, in words.

    `changed` are shards whose bytes are not those that their manifest states, in words.
    """

    entries: dict[int, EntryCounts]
    total: RowCounts
    by_code: dict[str, int]
    problems: tuple[str, ...]
    notes: Notes
    changed: tuple[str, ...] = ()

    @property
    def notes_total(self) -> dict[str, int]:
        total: Counter[str] = Counter()
        for (_, text), count in sorted(self.notes.items()):
            total[text] += count
        return dict(sorted(total.items()))

    def leaving_out(self, gone: Mapping[int, int]) -> Accounts:
        """Return the accounts after some records, counted by entry, were left out: they are dropped."""
        entries = dict(self.entries)
        for entry, count in gone.items():
            known = entries[entry]
            entries[entry] = replace(known, written=known.written - count, dropped=known.dropped + count)
        count, total = sum(gone.values()), self.total
        total = replace(total, written=total.written - count, dropped=total.dropped + count)
        return replace(self, entries=entries, total=total)


class Ledger:
    """The results of all tasks, entered one by one, in any order."""

    def __init__(self) -> None:
        self._counts: dict[int, EntryCounts] = {}
        self._by_code: Counter[str] = Counter()
        self._problems: list[tuple[int, str]] = []
        self._notes: Counter[tuple[int, str]] = Counter()
        self._tasks: Counter[int] = Counter()
        self._bundles: Counter[str] = Counter()
        self._ranges: defaultdict[int, list[ReadRange]] = defaultdict(list)

    def enter(self, result: TaskResult) -> TaskResult:
        """Add up a result; return it without what is added up."""
        for row in result.counts:
            known = self._counts.get(row.entry)
            self._counts[row.entry] = known.plus(row) if known else row
        if result.rejects:
            self._by_code.update(result.rejects.by_code)
        self._notes.update(notes_in(result.observed))
        for one in ranges_in(result.observed):
            self._ranges[one.entry].append(one)
        self._problems += [(result.task, problem) for problem in _check_result(result)]
        if result.task != NO_TASK:
            self._tasks[result.task] += 1
        else:
            self._bundles[result.attempt] += 1
        others = {name: summary for name, summary in result.observed.items() if name not in (NOTES, READ)}
        return replace(result, counts=(), rows_read={}, observed=others)

    def settle(self, entries: Sequence[EntryInfo], tasks: int | None) -> Accounts:
        """Return the accounts; `tasks` is how many tasks there are, None if that is not known."""
        counts = self._counts
        problems = [problem for _, problem in sorted(self._problems, key=lambda found: (found[0] == NO_TASK, found))]
        problems += _check_tasks(self._tasks, tasks)
        twice = sum(times > 1 for times in self._bundles.values())
        problems += [f"{twice} bundle{'s' * (twice > 1)} of records came more than once"] if twice else []
        for entry, row in sorted(counts.items()):
            problems += _check_entry(row, _name(entries, entry), entries[entry] if 0 <= entry < len(entries) else None)
        for index, info in enumerate(entries):
            if index not in counts and info.expected_rows:
                problems.append(f"{info.name}: no row was read, {info.expected_rows} are there")
        total = RowCounts(
            read=sum(row.read for row in counts.values()),
            written=sum(row.written for row in counts.values()),
            rejected=sum(row.rejected for row in counts.values()),
            dropped=sum(row.dropped for row in counts.values()),
        )
        by_code, notes = dict(sorted(self._by_code.items())), dict(sorted(self._notes.items()))
        # in a pipeline of a user's own nobody may have listed the files
        listed = sorted(item for item in self._ranges.items() if item[0] < len(entries))
        found = (_changed(ranges, entries[entry]) for entry, ranges in listed)
        return Accounts(counts, total, by_code, tuple(problems), notes, tuple(filter(None, found)))


def _changed(ranges: Sequence[ReadRange], info: EntryInfo) -> str | None:
    """Return what is wrong with the bytes of a shard; None too where not all of it was read, or some was rejected."""
    crc = size = 0
    for one in sorted(ranges):
        if one.start == size:
            crc, size = crc32c_combine(crc, one.crc, one.bytes), size + one.bytes
    stated = ranges[0].stated
    return None if size != info.bytes or f"{crc:08x}" == stated else f"{info.name}: {wrong_checksum(crc, stated)}"


def _check_result(result: TaskResult) -> list[str]:
    problems = []
    written = sum(row.written for row in result.counts)
    rejected = sum(row.rejected for row in result.counts)
    lines = result.rejects.records if result.rejects else 0
    if written != result.records:
        problems.append(f"task {result.task}: {written} records were encoded, {result.records} were staged")
    if rejected != lines:
        problems.append(f"task {result.task}: {rejected} rows were rejected, {lines} are in its reject file")
    if result.task != NO_TASK:
        counted = {row.entry: row.read for row in result.counts if row.read}
        read = {entry: rows for entry, rows in result.rows_read.items() if rows}
        if counted != read and not result.failures:
            problems.append(
                f"task {result.task}: its reader read {read} rows (by entry), {counted} reached the encoder"
            )
    return problems


def _check_tasks(seen: Counter[int], tasks: int | None) -> list[str]:
    problems = [f"task {task} came {times} times" for task, times in sorted(seen.items()) if times > 1]
    if tasks is not None:
        missing = [task for task in range(tasks) if task not in seen]
        if missing:
            problems.append(f"{len(missing)} of {tasks} tasks did not end, the first of them task {missing[0]}")
    return problems


def _check_entry(row: EntryCounts, name: str, info: EntryInfo | None) -> list[str]:
    problems = []
    if row.read != row.written + row.rejected + row.dropped:
        problems.append(
            f"{name}: {row.read} rows were read, but {row.written} written, {row.rejected} rejected and "
            f"{row.dropped} dropped"
        )
    if info is not None and info.expected_rows is not None and row.read != info.expected_rows:
        problems.append(f"{name}: {row.read} rows were read, {info.expected_rows} are there")
    return problems


def _name(entries: Sequence[EntryInfo], entry: int) -> str:
    if 0 <= entry < len(entries):
        return entries[entry].name
    return "records" if entry == NO_ENTRY else f"source {entry}"


# Values that a run counts are in its staging folder until the commit makes `stats.json` of them:
#
#     statistics.json                     counted as they passed (see `observers/tally.py`): of all records
#     statistics/train-00000.tfrecord.json ...   counted of each shard, when it is made
#
# Shards are counted where the records did not pass one by one, as those that are copied, and where it is known only
# at the end in which split a record is, or whether it is left out.


_FILE: Final = "statistics.json"


def leave_tally(spec: DatasetSpec, observed: Mapping[str, Any], records: Mapping[str, int], *, committed: bool) -> bool:
    """Leave what is counted before the shards are made; return whether it is of the records of the shards, by split.

    That is what was counted of rows on their way, or is known of records that are copied.

    A run that has committed has no more use of it, and may have no staging folder.
    """
    found = spec.counted or observed.get(STATISTICS)
    if found is None or spec.level is None:
        return False
    tally = found if isinstance(found, Tally) else Tally.from_json(found, spec.level)
    if tally.records != records:
        return False
    if not committed:
        spec.storage.replace(f"{spec.staging}/{_FILE}", json.dumps(tally.to_json()).encode())
    return True


def count_shard(spec: DatasetSpec, split: str, path: str) -> None:
    """Count the records of a staged shard, and leave that; nothing where one is not of the schema."""
    assert spec.schema is not None
    assert spec.statistics is not None
    try:
        tally = count_file(spec.storage.path(staged_file(spec.staging, path)), split, spec.schema, spec.statistics)
    except ExampleError:  # records of others, which are copied as they are
        return
    spec.storage.replace(f"{spec.staging}/{_shard_file(path)}", json.dumps(tally.to_json()).encode())


def count_file(path: str, split: str, schema: Schema, level: Level, stated_crc: str | None = None) -> Tally:
    """Return what is counted of the records of one file, whose CRC32C is compared with `stated_crc`.

    An `ExampleError` counts rows from the file's first.
    """
    tally, decoder = Tally(level), ExampleDecoder(schema)
    names = [feature.name for feature in schema]
    name = os.path.basename(path)
    for run in read_record_batches(path, stated_crc=stated_crc):
        for first in range(0, len(run), decoder.rows_at_once):
            try:
                batch = decoder.decode(run.payloads.tail(first).head(decoder.rows_at_once))
            except ExampleError as error:
                row = first + error.row
                raise ExampleError(run.first_record + row, error.reason, int(run.offsets[row])) from error
            columns = list(columns_of(batch, schema, names).values())
            places = np.arange(batch.num_rows) + (run.first_record + first)
            keys = keys_of_rows(name, places) if level == "full" else None
            tally.add(split, schema, columns, batch.num_rows, keys)
    return tally


def read_counted(spec: DatasetSpec, shards: Iterable[str] | None) -> Tally | None:
    """Return what is counted of a run: of its shards, by their paths, or where that is None of rows on their way.

    None where a shard is not counted.
    """
    assert spec.level is not None
    total = Tally(spec.level)
    for path in [_FILE] if shards is None else map(_shard_file, shards):
        if spec.storage.size(f"{spec.staging}/{path}") is None:
            return None
        total.merge(Tally.from_json(json.loads(spec.storage.read(f"{spec.staging}/{path}")), spec.level))
    return total


def _shard_file(path: str) -> str:
    return f"statistics/{path}.json"


# The list of sources: what became of each input file, one line of JSON a file (images: a folder).
#
#     {"source": "pets/cat", "bytes": 93011, "fingerprint": "sha256:…", "files": 12,
#      "read": 12, "written": 11, "rejected": 1, "dropped": 0, "notes": {"animated images, of which …": 3},
#      "constants": "…"}
#
# `notes` count rows that are in order, and of which the user should know something; the key is there only if there are
# any. They are kept here, and not in a log, so that a run can tell them whatever engine it ran on, and each row once,
# however often its task was tried. `constants`, in the list of an append only, are the columns
# of one value that its rows have, as JSON, where the dataset's rows have others: with other constants a file is other
# rows.
#
# A dataset that is made of datasets carries their lists on: after its own lines come theirs, with `"carried": true`.
# Their counts are those of the run that read the file.


def source_lines(entries: Sequence[EntryInfo], accounts: Accounts, constants: str | None = None) -> bytes:
    notes: dict[int, dict[str, int]] = {}
    for (entry, text), count in accounts.notes.items():
        notes.setdefault(entry, {})[text] = count
    lines = []
    for index, info in enumerate(entries):
        row = accounts.entries.get(index, EntryCounts(index))
        document: dict[str, Any] = {
            "source": info.name, "bytes": info.bytes, "fingerprint": info.fingerprint, "files": info.files,
            "read": row.read, "written": row.written, "rejected": row.rejected, "dropped": row.dropped,
        }  # fmt: skip
        if index in notes:
            document["notes"] = notes[index]
        if constants is not None:
            document["constants"] = constants
        lines.append(_line(document))
    return b"".join(lines)


def carried_lines(datasets: Iterable[tuple[str, int]]) -> Iterator[bytes]:
    """Yield the lines of the lists of sources of some datasets, each a folder and a generation, as those carried on.

    Equal files are listed once, without their constants. The shards that a dataset
    had before it was rebuilt in its place are left out: their sources are listed, and each rebuild would add more.
    """
    seen: set[tuple[str, str]] = set()
    for root, generation in datasets:
        for manifest in lineage(root, read_manifest(root, generation)):
            for _, document in _read_list(root, manifest):
                held = _held(manifest, document)
                key = held.name, held.fingerprint
                folder = os.path.dirname(held.name)
                rebuilt = manifest.operation == "merge" and "carried" not in document
                if key in seen or (rebuilt and is_path_of(folder, "", os.fsencode(root))):
                    continue
                seen.add(key)
                kept = {name: value for name, value in document.items() if name not in ("notes", "constants")}
                yield _line(kept | {"carried": True})


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def read_notes(root: str, manifest: Manifest) -> dict[str, int]:
    notes: Counter[str] = Counter()
    for _, document in _read_list(root, manifest):
        notes.update(document.get("notes", {}))
    return dict(sorted(notes.items()))


@dataclass(frozen=True, slots=True)
class HeldSource:
    """An input file (images: a folder) that a generation read; `constants` are None where they are the dataset's.

    `bytes` is its size. `rejected` says that all that was in it was rejected, `written` that records were made of it.
    """

    name: str
    fingerprint: str
    generation: int
    constants: str | None = None
    rejected: bool = False
    written: bool = True
    bytes: int = 0


def is_path_of(name: str, shown: str, path: bytes) -> bool:
    """Return whether a name that a dataset knows is of a file, which is `shown` so now."""
    whole = printable_path(path)
    return name == shown or whole == name or whole.endswith("/" + name.removeprefix("/"))


def read_held_sources(root: str, manifest: Manifest) -> Iterator[HeldSource]:
    """Yield the input files of one generation, published or not."""
    for _, document in _read_list(root, manifest):
        yield _held(manifest, document)


def _held(manifest: Manifest, document: dict[str, Any]) -> HeldSource:
    rejected, written = (bool(document[key]) for key in ("rejected", "written"))
    constants, size = document.get("constants"), document["bytes"]
    name, fingerprint = document["source"], document["fingerprint"]
    return HeldSource(name, fingerprint, manifest.generation, constants, rejected and not written, written, size)


def _read_list(root: str, manifest: Manifest) -> Iterator[tuple[int, dict[str, Any]]]:
    path = _place_of(root, manifest, manifest.source.list, "sources.jsonl")
    if path is not None:
        yield from read_source_lines(root, path)


def read_rejects(root: str, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the lines of a generation's reject file, published or not."""
    path = _place_of(root, manifest, manifest.rejects.path, "rejects.jsonl")
    if path is not None:
        for _, document in read_reject_lines(root, path):
            yield document


def _place_of(root: str, manifest: Manifest, path: str | None, name: str) -> str | None:
    staged, storage = f"{manifest.run.staging}/{name}", storage_at(root)
    return staged if path is not None and not storage.lies_at(path) and storage.lies_at(staged) else path
