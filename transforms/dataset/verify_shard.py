"""Verify one shard: its bytes, its framing, its records."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import DamageError, InputError
from ..format.checksum import add_digests, crc32c, record_digests
from ..format.decode import ExampleDecoder
from ..format.index import index_text
from ..format.manifest import ShardEntry
from ..format.printable import printable_path
from ..format.scan import Damage
from ..format.schema import Schema
from ..format.tfrecord import FRAME_BYTES
from .findings import Finding
from .generations import read_file
from .record_file import RecordRun, read_record_batches

_READ_BYTES: Final = 4 << 20

_FORMAT_FEATURE: Final = "image/format"


@dataclass(frozen=True, slots=True)
class ShardCheck:
    """What to verify: `file` is where the shard lies in the folder `root`, `entry` is what the manifest states of it.

    `entry` is None for a file that belongs to no dataset: then only its framing is verified. `largest_frame` bounds
    its framed records, in bytes (None: no bound); `index` is the path of its index, or None.
    """

    root: str
    file: str
    entry: ShardEntry | None = None
    schema: Schema | None = None
    largest_frame: int | None = None
    index: str | None = None


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """What a shard was found to hold: `digest` is the sum of its records' mixes, `image_formats` occur in it."""

    records: int
    bytes: int
    digest: int
    findings: tuple[Finding, ...]
    image_formats: frozenset[str] = frozenset()


def verify_shard(check: ShardCheck) -> ShardFacts:
    """Read a shard to its end, and return all that is wrong with it."""
    shard = _Shard(check)
    try:
        shard.read_file()
        shard.read_records()
        shard.check_index()
    except (DamageError, InputError) as error:
        shard.add(_without_path(str(error), check))
    except OSError as error:
        shard.add(f"cannot be read: {error.strerror}")
    return ShardFacts(shard.records, shard.bytes, shard.digest, tuple(shard.findings), frozenset(shard.image_formats))


@dataclass(slots=True)
class _Shard:
    check: ShardCheck
    findings: list[Finding] = field(default_factory=list)
    records: int = 0
    bytes: int = 0
    digest: int = 0
    ends: list[npt.NDArray[np.int64]] = field(default_factory=list)
    image_formats: set[str] = field(default_factory=set)

    def add(self, reason: str, record: int | None = None, offset: int | None = None) -> None:
        self.findings.append(Finding(printable_path(self.check.file), reason, record, offset))

    def read_file(self) -> None:
        """Hold the size and the checksum of the file against the manifest."""
        crc = 0
        with open(os.path.join(self.check.root, self.check.file), "rb", buffering=0) as file:
            while piece := file.read(_READ_BYTES):
                self.bytes += len(piece)
                crc = crc32c(piece, crc)
        entry = self.check.entry
        if entry is not None and self.bytes != entry.bytes:
            self.add(f"{self.bytes} bytes, the manifest states {entry.bytes}")
        elif entry is not None and f"{crc:08x}" != entry.crc32c:
            self.add(f"the checksum of its bytes is {crc:08x}, the manifest states {entry.crc32c}")

    def read_records(self) -> None:
        """Hold the records against their CRCs, the schema, and the counts of the manifest."""
        schema = self.check.schema
        decoder = None if schema is None else ExampleDecoder(schema)
        found: list[Damage] = []
        for run in read_record_batches(os.path.join(self.check.root, self.check.file), on_damage=found.append):
            self._read_run(run, decoder)
        for damage in found:
            self.add(damage.reason, damage.record, damage.offset)
        self.findings.sort(key=lambda finding: (finding.record is not None, finding.record or 0))
        entry = self.check.entry
        if entry is not None and self.records != entry.records:
            self.add(f"{self.records} whole records, the manifest states {entry.records}")

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
        """Hold each record whose data are sound against the schema."""
        sound = np.delete(np.arange(len(run)), run.damaged)
        payloads = run.payloads.take(sound) if run.damaged else run.payloads
        for first in range(0, len(sound), decoder.rows_at_once):
            decoded = decoder.try_decode(payloads.tail(first).head(decoder.rows_at_once))
            for problem in decoded.problems:
                self._add_row(run, int(sound[first + problem.row]), problem.reason)
            self._note_formats(decoded.batch)

    def _note_formats(self, batch: pa.RecordBatch) -> None:
        if _FORMAT_FEATURE in batch.schema.names:
            formats = batch.column(_FORMAT_FEATURE).unique().to_pylist()
            self.image_formats.update(str(value) for value in formats if value is not None)

    def _add_row(self, run: RecordRun, row: int, reason: str) -> None:
        self.add(reason, run.first_record + row, int(run.offsets[row]))

    def check_index(self) -> None:
        """Hold the index against the records."""
        if self.check.index is None:
            return
        ends = np.concatenate(self.ends) if self.ends else np.empty(0, np.int64)
        expected = index_text(ends)
        if read_file(self.check.root, self.check.index, len(expected)) != expected:
            self.findings.append(Finding(self.check.index, f"is not the index of {printable_path(self.check.file)}"))


def _without_path(text: str, check: ShardCheck) -> str:
    """Return the text of an error without the name of the file in front, which the finding has."""
    return text.removeprefix(f"{printable_path(os.path.join(check.root, check.file))}: ")
