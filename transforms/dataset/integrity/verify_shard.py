"""Verify one shard: its bytes, framing, records and indexes; and the report of `verify` on all shards."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import DamageError, InputError
from ...format.examples.decode_examples import ExampleDecoder
from ...format.manifest.manifest import ShardEntry
from ...format.manifest.naming import INDEX_FOLDER, IndexKind
from ...format.schema.schema import Schema
from ...format.sidecars.sidecar_files import index_data
from ...format.tfrecord.framing import FRAME_BYTES, add_digests, crc32c, record_digests
from ...format.tfrecord.scan import WRONG_DATA
from ...format.wording.printable import printable_path
from ..storage.contract import FileStatus
from ..storage.manifest_files import check_regular, read_file
from ..storage.object_storage import storage_at
from ..storage.record_file import RecordRun, open_regular, read_record_batches
from .record_walk import DamagedRange, walk_records

# The findings of `verify`: each damage with its place, and the report of them all.


@dataclass(frozen=True, slots=True)
class Finding:
    """One damage: the file (relative to the dataset's folder, printable), where in it, and what is wrong.

    `record` counts from 1; `offset` is the byte at which that record begins, from 0 (of a compressed file: of its
    contents). Both are None where the damage is not that of one record.
    """

    file: str
    reason: str
    record: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        if self.record is None:
            return f"{self.file}: {self.reason}"
        return f"{self.file} record {self.record} at byte {self.offset}: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "record": self.record, "offset": self.offset, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `verify`. `notes` are worth knowing and no damage. `bytes` are those of shards.

    `generation` is None for a TFRecord file that belongs to no dataset. After a `quick` look only sizes are known, and
    `records` are those that the manifest states.
    """

    path: str
    generation: int | None
    shards: int
    records: int
    bytes: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    quick: bool = False

    @property
    def ok(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "generation": self.generation,
            "ok": self.ok,
            "quick": self.quick,
            "shards": self.shards,
            "records": self.records,
            "bytes": self.bytes,
            "findings": [finding.to_json() for finding in self.findings],
            "notes": list(self.notes),
        }


# One shard, in one process.


_READ_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class ShardCheck:
    """What to verify: `file` is where the shard is in the folder `root`, `entry` is what the manifest states of it.

    `entry` is None for a file that belongs to no dataset: then only its framing is verified. `largest_frame` bounds
    its framed records, in bytes (None: no bound); `indexes` are the paths of its indexes. `known` is what a list has
    reported of the file already, or None.
    """

    root: str
    file: str
    entry: ShardEntry | None = None
    schema: Schema | None = None
    largest_frame: int | None = None
    indexes: tuple[str, ...] = ()
    known: FileStatus | None = None

    @property
    def path(self) -> str:
        """Where the shard is when all is published."""
        return self.file if self.entry is None else self.entry.path

    def when_published(self) -> ShardCheck | None:
        """Return the check of the same files under their final names, if a staged one is gone by now; else None."""
        storage = storage_at(self.root)
        file = self.file if self.file == self.path or storage.lies_at(self.file) else self.path
        final = [f"{INDEX_FOLDER}/{os.path.basename(index)}" for index in self.indexes]
        pairs = zip(self.indexes, final, strict=True)
        indexes = tuple(index if index == path or storage.lies_at(index) else path for index, path in pairs)
        if (file, indexes) == (self.file, self.indexes):
            return None
        return replace(self, file=file, indexes=indexes, known=None)


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """What a shard was found to hold: `digest` is the sum of its records' mixes, `image_formats` occur in it."""

    records: int
    bytes: int
    digest: int
    findings: tuple[Finding, ...]
    image_formats: frozenset[str] = frozenset()


def verify_shard(check: ShardCheck) -> ShardFacts:
    """Read a shard to its end, and return all that is wrong with it; one that is published meanwhile is found again."""
    return _wherever_it_lies(check, _read_through)


def verify_size(check: ShardCheck) -> ShardFacts:
    """Check the size of a shard, and the checksum that a store states, against the manifest; no record is read."""
    return _wherever_it_lies(check, _look_at)


def _wherever_it_lies(check: ShardCheck, verify: Callable[[ShardCheck], ShardFacts]) -> ShardFacts:
    """Verify a shard; where what was staged is gone, and so was missed, once more under its final name."""
    facts = verify(check)
    later = check.when_published() if facts.findings else None
    return facts if later is None else _wherever_it_lies(later, verify)


def _read_through(check: ShardCheck) -> ShardFacts:
    shard = _Shard(check)
    try:
        shard.read_file()
        shard.read_records()
        shard.check_indexes()
    except (DamageError, InputError) as error:
        shard.add(str(error).removeprefix(f"{printable_path(os.path.join(check.root, check.file))}: "))
    except OSError as error:
        shard.add(f"cannot be read: {error.strerror}")
    return ShardFacts(shard.records, shard.bytes, shard.digest, tuple(shard.findings), frozenset(shard.image_formats))


def _look_at(check: ShardCheck) -> ShardFacts:
    shard = _Shard(check)
    try:
        found = check.known or storage_at(check.root).status(check.file)
        if found is None:
            shard.add("missing")
        else:
            shard.bytes = found.size
            shard.check_bytes(found.crc32c)
    except OSError as error:
        shard.add(f"cannot be read: {error.strerror}")
    for index in check.indexes:
        try:
            check_regular(check.root, index)
        except DamageError as error:
            shard.findings.append(Finding(index, str(error).rpartition(f"{index}: ")[2]))
    records = 0 if check.entry is None else check.entry.records
    return ShardFacts(records, shard.bytes, 0, tuple(shard.findings))


@dataclass(slots=True)
class _Shard:
    check: ShardCheck
    findings: list[Finding] = field(default_factory=list)
    records: int = 0
    bytes: int = 0
    digest: int = 0
    ends: list[npt.NDArray[np.int64]] = field(default_factory=list)
    image_formats: set[str] = field(default_factory=set)
    torn: bool = False

    def add(self, reason: str, record: int | None = None, offset: int | None = None) -> None:
        self.findings.append(self._finding(reason, record, offset))

    def _finding(self, reason: str, record: int | None = None, offset: int | None = None) -> Finding:
        return Finding(printable_path(self.check.file), reason, record, offset)

    def read_file(self) -> None:
        found = storage_at(self.check.root).status(self.check.file)
        if found is not None and found.crc32c is not None:  # of what the store has: to fetch it all tells no more
            self.bytes, crc = found.size, found.crc32c
        else:
            crc = 0
            with open_regular(self._path, printable_path(self._path)) as file:
                while piece := file.read(_READ_BYTES):
                    self.bytes += len(piece)
                    crc = crc32c(piece, crc)
        self.check_bytes(crc)

    def check_bytes(self, crc: int | None) -> None:
        entry = self.check.entry
        if self.check_size() and entry is not None and crc is not None and f"{crc:08x}" != entry.crc32c:
            self.add(f"the checksum of its bytes is {crc:08x}, the manifest states {entry.crc32c}")

    @property
    def _path(self) -> str:
        return os.path.join(self.check.root, self.check.file)

    def check_size(self) -> bool:
        entry = self.check.entry
        if entry is None or self.bytes == entry.bytes:
            return True
        self.add(f"{self.bytes} bytes, the manifest states {entry.bytes}")
        return False

    def read_records(self) -> None:
        schema, path = self.check.schema, self._path
        decoder = None if schema is None else ExampleDecoder(schema)
        before = len(self.findings)
        try:
            for run in read_record_batches(path):
                self._read_run(run, decoder)
        except DamageError:
            self._begin_again(before)
            for event in walk_records(path):
                if isinstance(event, DamagedRange):
                    self._note_damage(event)
                else:
                    self._read_run(event, decoder)
        self.findings[before:] = sorted(self.findings[before:], key=lambda finding: finding.record or 0)
        entry = self.check.entry
        if entry is not None and self.records != entry.records:
            self.findings.insert(
                before, self._finding(f"{self.records} whole records, the manifest states {entry.records}")
            )

    def _begin_again(self, findings: int) -> None:
        """Forget what was found since so many findings: damaged files are read by another, slower way."""
        self.records = self.digest = 0
        self.ends.clear()
        self.image_formats.clear()
        del self.findings[findings:]

    def _note_damage(self, damage: DamagedRange) -> None:
        self.add(str(damage), damage.record, damage.offset)
        if damage.reason == WRONG_DATA:
            self.records += 1
            self.ends.append(np.array([damage.end], np.int64))
        elif not damage.recovered:
            self.torn = True

    def _read_run(self, run: RecordRun, decoder: ExampleDecoder | None) -> None:
        sizes = run.payloads.ends - run.payloads.starts
        self.records += len(run)
        self.digest = add_digests((self.digest, record_digests(sizes, run.crcs)))
        self.ends.append(run.offsets + sizes + FRAME_BYTES)
        bound = self.check.largest_frame
        if bound is not None and len(run) and int(sizes.max()) + FRAME_BYTES > bound:
            row = int(sizes.argmax())
            self._add_row(run, row, f"{int(sizes[row]) + FRAME_BYTES} bytes, over the manifest's unit_bytes of {bound}")
        if decoder is not None:
            self._read_examples(run, decoder)

    def _read_examples(self, run: RecordRun, decoder: ExampleDecoder) -> None:
        for first in range(0, len(run), decoder.rows_at_once):
            decoded = decoder.try_decode(run.payloads.tail(first).head(decoder.rows_at_once))
            for problem in decoded.problems:
                self._add_row(run, first + problem.row, problem.reason)
            for name in self.check.schema.format_features if self.check.schema else ():
                formats = decoded.batch.column(name).unique().to_pylist()
                self.image_formats.update(str(value) for value in formats if value is not None)

    def _add_row(self, run: RecordRun, row: int, reason: str) -> None:
        self.add(reason, run.first_record + row, int(run.offsets[row]))

    def check_indexes(self) -> None:
        if not self.check.indexes or self.torn:
            return
        offsets = np.concatenate([np.zeros(1, np.int64), *self.ends])
        for index in self.check.indexes:
            kind: IndexKind = "text" if index.endswith(".idx") else "binary"
            expected = index_data(offsets, kind)
            try:
                right = read_file(self.check.root, index, len(expected)) == expected
            except DamageError as error:
                self.findings.append(Finding(index, str(error).rpartition(f"{index}: ")[2]))
                continue
            except OSError as error:
                self.findings.append(Finding(index, f"cannot be read: {error.strerror}"))
                continue
            if not right:
                self.findings.append(Finding(index, f"is not the index of {printable_path(self.check.file)}"))
