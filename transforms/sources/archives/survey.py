"""Look at an archive once, while planning: at its headers and texts, and past its pictures.

What is kept of it does not grow with its samples: where it is cut into pieces, which columns it has, the folders of its
pictures, and the samples whose keys came back. The digests of keys, 16 bytes each, are kept until its end.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import SchemaError, SourceError
from ...format.wording.hints import Set
from ...format.wording.printable import printable_path
from ...inputs.contract.selection import Selection
from ...inputs.contract.source import ListedFile, SourceEntry
from ...inputs.files.open_file import DiskErrors, OpenFile, expect, open_listed, open_unbuffered, read_at, size_of
from ...recognise.evidence.label_names import YOLO_LINES
from ...recognise.pictures.box_layouts import annotation_kind
from ..jsonl.columns import Evidence, PieceEvidence, check_columns, look_at_lines
from ..registry.settings import Limits
from ..text.open_text import file_blocks, sniff_packing, unpacked
from .samples import (
    INTEGER,
    Form,
    MemberColumn,
    Naming,
    Part,
    Sample,
    Skipped,
    limit_of,
    lines_of,
    object_line,
    samples_of,
)
from .tar import Archive, Damage, Kind, Member, MemberError, PlainBytes, StreamBytes, TarArchive
from .zip import ZipArchive

# Open an archive to read it from front to back, on a disk or in a store, compressed or not.


HEADERS: Final = 4 << 10
"""What is read at once where only headers are wanted: those of small members are near each other."""

WHOLE: Final = 1 << 20
"""What is read at once where all is wanted."""

_HEAD_BYTES: Final = 16


class OpenArchive(Archive, Protocol):
    """An archive that can be asked to fetch what will be read; `guessed` is a name whose encoding is a guess."""

    guessed: bytes

    def expect(self, start: int, stop: int | None) -> None:
        """Announce which bytes will be read, or without a `stop` that members will be looked at."""


class _Tar(TarArchive):
    guessed = b""

    def __init__(self, file: ListedFile, opened: OpenFile, window: int, encoding: str | None) -> None:  # noqa: ARG002
        self._opened, self._size = opened, size_of(opened)
        packing = sniff_packing(read_at(opened)(_HEAD_BYTES, 0))
        self.streamed = packing is not None
        if packing is None:
            super().__init__(PlainBytes(read_at(opened), self._size, window))
        else:
            super().__init__(StreamBytes(_unpacked(file, packing)))

    def expect(self, start: int, stop: int | None) -> None:
        if not self.streamed:
            expect(self._opened, [(start, self._size if stop is None else min(stop, self._size))])


def _unpacked(file: ListedFile, packing: str) -> Iterator[bytes]:
    unread: list[SourceError] = []

    def blocks() -> Iterator[bytes]:
        try:
            yield from file_blocks(file, 0, whole=True)
        except SourceError as error:
            unread.append(error)
            raise

    try:
        yield from unpacked(blocks(), packing, file.name)
    except SourceError as error:
        if unread:
            raise
        text = f"{error.problem}; make or copy the archive again"
        raise Damage(0, "CORRUPT", text, of_all=True) from error


class _Zip(ZipArchive):
    streamed = False

    def __init__(self, file: ListedFile, opened: OpenFile, window: int, encoding: str | None) -> None:  # noqa: ARG002
        self._opened = opened
        super().__init__(read_at(opened), size_of(opened), encoding)

    def expect(self, start: int, stop: int | None) -> None:
        directory = (self.directory.start, self.directory.stop)
        expect(self._opened, [directory] if stop is None else [(start, stop), directory])


_OPEN: Final[dict[str, Callable[[ListedFile, OpenFile, int, str | None], OpenArchive]]] = {"tar": _Tar, "zip": _Zip}


@contextmanager
def open_archive(file: ListedFile, kind: str, window: int, encoding: str | None = None) -> Iterator[OpenArchive]:
    """Read `window` bytes at once. Raises `SourceError` where the archive cannot be read."""
    with open_listed(file, open_unbuffered) as opened, DiskErrors(file.name):
        yield _OPEN[kind](file, opened, window, encoding)


# What a survey keeps.


_LOOK_ROWS: Final = 4096
_LOOK_BYTES: Final = 4 << 20
"""JSON that is looked at together."""

_LONGEST_INTEGER: Final = 40
"""More characters than any whole number of 64 bits has."""

_FAR: Final = 1 << 62

MOST_COLUMNS: Final = 256
"""The most kinds of members: more are names with dots in them."""

MOST_FOLDERS: Final = 100_000
"""The most folders of an archive that may be classes: more are those of single samples."""


_MOST_HEADS: Final = 16
_BOXES: Final[dict[bytes, tuple[str, Callable[[bytes], object]]]] = {
    b".xml": ("Pascal VOC annotations", re.compile(rb"<annotations?[\s>]").search),
    b".txt": ("YOLO annotations", YOLO_LINES.fullmatch),
    b".json": ("COCO annotations", re.compile(rb'\{(?=[\s\S]*"images"\s*:\s*\[)[\s\S]*"annotations"\s*:\s*\[').search),
}
"""What annotations of boxes are called, and how their texts look."""

_ROBOFLOW: Final = re.compile(rb"[._]rf\.[0-9a-f]{16,}\.")
"""The number that Roboflow adds to each name."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How archives are looked at: `kind` is tar or zip, a piece ends after `piece_bytes`.

    `selection` are the columns that are read. It `looks` for annotations of boxes.
    """

    kind: str
    naming: Naming
    piece_bytes: int
    limits: Limits = field(default_factory=Limits)
    selection: Selection = field(default_factory=Selection)
    encoding: str | None = None
    looks: bool = True


@dataclass(frozen=True, slots=True)
class ArchiveCut:
    """Some samples: where they start and stop, how many they are, their size in bytes, and which keys came back.

    `large` are the samples above a limit, which are not read. Their bytes are from `first` to `last` in the archive.
    """

    start: int
    stop: int
    rows: int
    size: int
    first: int
    last: int
    again: bytes = b""
    large: bytes = b""


@dataclass(frozen=True, slots=True)
class ColumnEvidence:
    """What members of one column show: how many there are, their types, the first one, the least and largest number."""

    form: Form
    count: int
    suffix: str
    values: Evidence
    least: int = 0
    most: int = -1

    def plus(self, more: ColumnEvidence) -> ColumnEvidence:
        least = min(self.least, more.least)
        most = max(self.most, more.most)
        return ColumnEvidence(
            self.form, self.count + more.count, self.suffix, self.values.plus(more.values), least, most
        )


@dataclass(slots=True)
class ArchiveEvidence:
    """What an archive shows. `damage` says why nothing more can be read from an offset on, with a code.

    `folders` are those of pictures, None where they are too many. `again` are samples whose keys came back.
    `guessed` is a name whose encoding is a guess. With annotations of boxes, which no sample has, it shows only what
    the `export` is and the member that says so.
    """

    samples: int = 0
    cuts: list[ArchiveCut] = field(default_factory=list)
    columns: dict[str, ColumnEvidence] = field(default_factory=dict)
    json: PieceEvidence = field(default_factory=PieceEvidence)
    folders: set[bytes] | None = field(default_factory=set)
    skipped: Skipped = field(default_factory=Skipped)
    again: int = 0
    damage: tuple[int, str, str] | None = None
    guessed: bytes = b""
    export: tuple[str, bytes] | None = None


class _Export(Exception):
    """The archive is an export of pictures with boxes: what it is, and the member that says so."""


def look_at_archive(entry: SourceEntry, walk: Walk) -> ArchiveEvidence:
    """Return what an archive shows; damage is a part of it."""
    look = _Look(entry.name, walk)
    try:
        with open_archive(entry, walk.kind, HEADERS, walk.encoding) as archive:
            archive.expect(0, None)
            visit = partial(look.visit, archive)
            for sample in samples_of(archive, 0, None, walk.naming, visit, look.found.skipped):
                look.add(sample)
            look.close(archive.end)
            look.found.guessed = archive.guessed
    except _Export as export:
        return ArchiveEvidence(export=export.args[0])
    except Damage as damage:
        if damage.of_all:
            return ArchiveEvidence(damage=(damage.offset, damage.code, damage.text))
        look.close(look.stop)
        look.found.damage = (damage.offset, damage.code, damage.text)
    return look.found


@dataclass(slots=True)
class _Seen:
    """The members of a column so far: how many, and of values the whole numbers, the first place of each kind."""

    column: MemberColumn
    suffix: str
    is_read: bool
    limit: int
    count: int = 0
    numbers: int = 0
    number: str = ""
    other: str = ""
    least: int = 0
    most: int = -1

    def add(self, part: Part, place: Callable[[], str]) -> None:
        self.count += 1
        form = self.column.form
        value = part.value.strip() if form is Form.VALUE and part.value is not None else b""
        if form is Form.VALUE and INTEGER.fullmatch(value):
            found = int(value)
            self.least, self.most = min(self.least, found), max(self.most, found)
            self.number = self.number or place()
            self.numbers += 1
        elif not self.other and form in (Form.TEXT, Form.VALUE):
            self.other = place()

    def evidence(self) -> ColumnEvidence:
        texts, numbers = self.count - self.numbers, self.numbers
        kind = pa.binary() if self.column.form in (Form.PICTURE, Form.BYTES) else pa.string()
        found = Evidence(kind, texts, self.other) if texts else Evidence(pa.int64(), numbers, self.number)
        if texts and numbers:
            found = found.plus(Evidence(pa.int64(), numbers, self.number))
        return ColumnEvidence(self.column.form, self.count, self.suffix, found, self.least, self.most)


class _Look:
    """What is known of an archive so far; `stop` is after the last whole sample."""

    def __init__(self, name: str, walk: Walk) -> None:
        self.found = ArchiveEvidence()
        self.stop = 0
        self._name, self._walk = name, walk
        self._start = self._first = self._size = self._high = 0
        self._low = _FAR
        self._digests = bytearray()
        self._large = bytearray()
        self._lines: list[bytes] = []
        self._places: list[bytes] = []
        self._line_bytes = 0
        self._seen: dict[str, _Seen] = {}
        self._heads = 0

    def visit(self, archive: Archive, member: Member, suffix: bytes) -> bytes | None:
        if self._walk.looks and member.kind is Kind.FILE:
            self._look_for_boxes(archive, member)
        column = self._walk.naming.column_of(suffix)
        if column is None or column.form not in (Form.VALUE, Form.JSON) or member.kind is not Kind.FILE:
            return None
        if member.size > limit_of(column.form, self._walk.limits)[1]:
            return None
        try:
            data = bytes(archive.read(member))
        except MemberError:
            return None  # its sample is a reject when it is read
        return data.strip()[:_LONGEST_INTEGER] if column.form is Form.VALUE else data

    def _look_for_boxes(self, archive: Archive, member: Member) -> None:
        """Raise `_Export` where one of the first texts holds annotations of boxes, or the name is of COCO's."""
        kind = os.path.splitext(member.name)[1].lower()
        base = os.path.basename(member.name)
        if kind == b".json" and annotation_kind(b"", base) == "coco":
            raise _Export(("COCO annotations", member.name))
        if kind not in _BOXES or self._heads >= _MOST_HEADS or not 0 < member.size <= _LOOK_BYTES:
            return
        self._heads += 1
        try:
            data = bytes(archive.read(member))
        except MemberError:
            return  # its sample is a reject when it is read
        called, looks_so = _BOXES[kind]
        if looks_so(data):
            raise _Export((called, member.name))

    def add(self, sample: Sample) -> None:
        found = self.found
        if found.samples > self._first and self._size >= self._walk.piece_bytes:
            self._cut(sample.at)
        found.samples += 1
        self.stop = sample.parts[-1].member.at + 1
        self._digests += hashlib.blake2b(sample.key, digest_size=16).digest()
        size, is_large = 0, False
        for part in sample.parts:
            self._size += part.member.packed
            self._low = min(self._low, part.member.header)
            self._high = max(self._high, part.member.data + part.member.packed)
            column = self._walk.naming.column_of(part.suffix)
            if column is not None:
                seen = self._count(column, part)
                if seen.is_read and part.member.kind is Kind.FILE:
                    size += part.member.size
                    is_large |= part.member.size > seen.limit
        self._large.append(is_large or size > self._walk.limits.record_bytes)
        if len(self._lines) >= _LOOK_ROWS or self._line_bytes >= _LOOK_BYTES:
            self._look_at_json()

    def close(self, stop: int) -> None:
        self._look_at_json()
        if self.found.samples > self._first:
            self._cut(stop)
        self.found.columns = {name: seen.evidence() for name, seen in self._seen.items()}
        again = _repeated(bytes(self._digests))
        self.found.again = int(again.sum())
        self._mark(again, np.frombuffer(self._large, np.bool_))

    def _count(self, column: MemberColumn, part: Part) -> _Seen:
        seen = self._seen.get(column.name)
        if seen is None:
            is_read = column.form is Form.JSON or bool(self._walk.selection.of_some([column.name]))
            limit = limit_of(column.form, self._walk.limits)[1]
            seen = self._seen[column.name] = _Seen(column, part.suffix.decode(), is_read, limit)
            if len(self._seen) > MOST_COLUMNS:
                if self._walk.looks and _ROBOFLOW.search(part.name):
                    raise _Export(("an export of Roboflow", part.name))
                raise too_many_columns(self._name, part.name)
        seen.add(part, lambda: self._place(part.name))
        if column.form is Form.JSON and part.value is not None:
            self._lines.append(object_line(part.value))
            self._line_bytes += len(part.value)
            self._places.append(part.name)
        elif column.form is Form.PICTURE and self.found.folders is not None:
            self.found.folders.add(part.name.rpartition(b"/")[0])
            if len(self.found.folders) > MOST_FOLDERS:
                self.found.folders = None
        return seen

    def _look_at_json(self) -> None:
        if self._lines:
            places = self._places
            number = lambda record: self._place(places[record])  # noqa: E731
            look = look_at_lines(lines_of(self._lines), len(self._lines), number, self._walk.limits.record_bytes)
            self.found.json = self.found.json.plus(look)
            check_columns(self._name, self.found.json.columns, self._walk.limits.columns)
        self._lines, self._places, self._line_bytes = [], [], 0

    def _place(self, name: bytes) -> str:
        return f"{self._name}/{printable_path(name)}"

    def _cut(self, stop: int) -> None:
        found = self.found
        rows = found.samples - self._first
        found.cuts.append(ArchiveCut(self._start, stop, rows, self._size, self._low, self._high))
        self._start, self._first, self._size = stop, found.samples, 0
        self._low, self._high = _FAR, 0

    def _mark(self, again: npt.NDArray[np.bool_], large: npt.NDArray[np.bool_]) -> None:
        first, cuts = 0, []
        for cut in self.found.cuts:
            both = [values[first : first + cut.rows] for values in (again, large)]
            bits = [np.packbits(some, bitorder="little").tobytes() if some.any() else b"" for some in both]
            cuts.append(replace(cut, again=bits[0], large=bits[1]))
            first += cut.rows
        self.found.cuts = cuts


def _repeated(digests: bytes) -> npt.NDArray[np.bool_]:
    halves = np.frombuffer(digests, "<u8").reshape(-1, 2)
    order = np.argsort(halves[:, 0], kind="stable")
    ordered = halves[order, 0]
    alike = np.zeros(len(ordered), np.bool_)
    alike[1:] |= ordered[1:] == ordered[:-1]
    alike[:-1] |= alike[1:]
    again, seen = np.zeros(len(ordered), np.bool_), set[bytes]()
    for number in np.sort(order[alike]).tolist():
        digest = digests[16 * number : 16 * number + 16]
        again[number] = digest in seen
        seen.add(digest)
    return again


def too_many_columns(name: str, member: bytes) -> SchemaError:
    return SchemaError(
        f"{name}: more than {MOST_COLUMNS} kinds of members, of which {printable_path(member)} is one: names have dots "
        f"before their suffix; let keys end at the last dot: {Set('input.key', 'last_dot')}"
    )
