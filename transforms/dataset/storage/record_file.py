"""Read and write one TFRecord file, plain or compressed: runs of records, and damage by its place.

    file ──▶ pieces of 2 MiB (inflated) ──▶ scan_records ──▶ runs of whole records, and damage

Reading holds one piece, or one record where that is larger; a length is believed only as far as there are bytes after
it. Bytes are in memory as in the file, page for page; or as in the file that they go to, counted from
`page_origin`, so that they are written from where they are (`direct_file`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from tempfile import TemporaryFile
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import DamageError, InputError, UsageError
from ...format.tfrecord.framing import FRAME_BYTES, HEADER_BYTES, Payloads, crc32c, frame_records
from ...format.tfrecord.gzip_members import (
    Form,
    InflateError,
    InflateLimits,
    OnMember,
    compress_member,
    inflate,
    sniff_form,
)
from ...format.tfrecord.scan import (
    LARGEST_RECORD_BYTES,
    RECORD_BYTES_LIMIT,
    Damage,
    Scan,
    ScanStart,
    is_record_header,
    scan_records,
)
from ...format.wording.printable import printable_path
from ...stores.object_store import ObjectReader, store_at
from ...stores.store_url import is_store_url, parse_store_url
from .direct_file import incomplete_file, recycled_array

_PIECE_BYTES: Final = 2 << 20
"""What is read at once, the best of 256 KiB to 4 MiB: smaller pieces cost more calls, larger ones leave the cache."""

_COMPRESSED_PIECE_BYTES: Final = 256 << 10

_PAGE_BYTES: Final = 4096

_DECODER_PADDING: Final = 256
"""Bytes after the records of a piece, so that the decoder may look a key further without copying the piece."""


class ByteFile(Protocol):
    """What is asked of an open file."""

    def read(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes; none only at the end."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read into a buffer, and return how many bytes; none only at the end."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a place, and return it."""


class ChecksummedFile:
    """An open file that is read in turn; `crc` is the CRC32C of the bytes read since the last `seek`."""

    def __init__(self, file: ByteFile) -> None:
        self._file = file
        self.crc = 0

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self.crc = crc32c(data, self.crc)
        return data

    def readinto(self, buffer: memoryview, /) -> int | None:
        count = self._file.readinto(buffer)
        self.crc = crc32c(buffer[: count or 0], self.crc)
        return count

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self.crc = 0
        return self._file.seek(offset, whence)


def wrong_checksum(crc: int, stated: str) -> str:
    return (
        f"the checksum of its bytes is {crc:08x}, the manifest states {stated}: it was changed or replaced after it "
        f"was written; restore it from a copy"
    )


@dataclass(frozen=True, slots=True, eq=False)
class RecordRun:
    """Records of a file that follow each other.

    `first_record` is the number of the first one, from 0; `offset` is where it begins, in bytes from the start of the
    file (compressed: of its contents). `crcs` are the payloads' CRC32Cs as the file states them. `damaged` are the
    rows whose data do not have their CRC: empty unless damage is collected.
    """

    first_record: int
    offset: int
    payloads: Payloads
    crcs: npt.NDArray[np.uint32]
    damaged: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.payloads)

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each record begins, like `offset`."""
        starts = self.payloads.starts
        return starts - starts[:1] + self.offset if len(starts) else starts

    @property
    def end(self) -> int:
        """Where the last record ends, like `offset`."""
        framed = int((self.payloads.ends - self.payloads.starts).sum()) + FRAME_BYTES * len(self)
        return self.offset + framed

    def since(self, record: int) -> RecordRun:
        """Return the records of the run from that number on, in the same buffer."""
        row = record - self.first_record
        if row <= 0:
            return self
        offset = int(self.offsets[row]) if row < len(self) else self.end
        damaged = tuple(at - row for at in self.damaged if at >= row)
        return RecordRun(record, offset, self.payloads.tail(row), self.crcs[row:], damaged)

    def to_arrow(self) -> pa.LargeBinaryArray:
        return self.payloads.to_arrow()


def scan_file(
    file: ByteFile,
    size: int,
    start: int = 0,
    stop: int | None = None,
    *,
    on_damage: Callable[[Damage], None],
    first_record: int = 0,
    check_crc: bool = True,
    record_bytes_limit: int | None = None,
    inflate_limits: InflateLimits | None = None,
    page_origin: int = 0,
    on_member: OnMember | None = None,
) -> Iterator[RecordRun]:
    """Yield the records of an open file of `size` bytes in runs; the rest is as in `read_record_batches`.

    The byte at offset `page_origin` would be at a page border of memory, and the others accordingly.
    """
    file.seek(start)
    form = tell_form(file, start)
    pieces: PlainPieces | InflatedPieces
    if form is None:
        at = ScanStart(first_record, start)
        pieces = PlainPieces(file, (size if stop is None else min(stop, size)) - start)
    else:
        at = ScanStart(first_record, 0)
        pieces = InflatedPieces(file, form, inflate_limits, on_member)
    limit = longest_record(form) if record_bytes_limit is None else record_bytes_limit
    yield from _scan_pieces(pieces, at, on_damage, check_crc=check_crc, record_bytes_limit=limit, origin=page_origin)


def tell_form(file: ByteFile, start: int) -> Form | None:
    """Return how a file is compressed, by the bytes at `start`; None if it is not. Its position is as before."""
    head = file.read(HEADER_BYTES)
    file.seek(start)
    # A record of 560,927 bytes begins with gzip's magic bytes: its CRC tells them apart.
    return None if is_record_header(head) else sniff_form(head)


def longest_record(form: Form | None) -> int:
    return LARGEST_RECORD_BYTES if form is None else RECORD_BYTES_LIMIT


class PlainPieces:
    """The bytes of a plain file; `left` of them, as its size was when it was opened, are not read yet."""

    problem = ""

    def __init__(self, file: ByteFile, left: int) -> None:
        self._file = file
        self.left: int | None = left

    def read_into(self, target: memoryview) -> int:
        filled, wanted = 0, min(len(target), self.left or 0)
        while filled < wanted:
            count = self._file.readinto(target[filled:wanted])
            if not count:
                self.left = 0
                return filled
            filled += count
        self.left = (self.left or 0) - filled
        return filled


class HeldPieces:
    """Bytes that come in pieces of any size, read like a file.

    `left` is unknown until their end, `problem` is why they end too early.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")
        self.left: int | None = None
        self.problem = ""

    def read_into(self, target: memoryview) -> int:
        filled = 0
        while filled < len(target):
            if not self._rest and not self._next():
                break
            count = min(len(self._rest), len(target) - filled)
            target[filled : filled + count] = self._rest[:count]
            self._rest = self._rest[count:]
            filled += count
        return filled

    def _next(self) -> bool:
        try:
            self._rest = memoryview(next(self._pieces, b""))
        except InflateError as error:
            self.problem = str(error)
        if not self._rest:
            self.left = 0
        return bool(self._rest)


class InflatedPieces(HeldPieces):
    """The contents of a compressed file."""

    def __init__(
        self, file: ByteFile, form: Form, limits: InflateLimits | None, on_member: OnMember | None = None
    ) -> None:
        chunks = iter(lambda: file.read(_COMPRESSED_PIECE_BYTES), b"")
        super().__init__(inflate(chunks, form=form, limits=limits, on_member=on_member))


def _scan_pieces(
    pieces: PlainPieces | InflatedPieces,
    at: ScanStart,
    report: Callable[[Damage], None],
    *,
    check_crc: bool,
    record_bytes_limit: int,
    origin: int,
) -> Iterator[RecordRun]:
    """Scan piece after piece; what is left of one, an incomplete record, moves to the front of the next.

    piece  ├─ record ─┼─ record ─┼─ rec      A record that is larger than a piece: the next piece is as large as it
    next                   ├─ record ─┼─     (plain), or twice as large as the last (compressed: its length may be
                                             false, and no more is allocated than has come).
    """
    carried, room = np.empty(0, np.uint8), _PIECE_BYTES
    while True:
        buffer, stop = _fill(pieces, carried, room, at.offset - origin)
        left = None if pieces.left is None else stop + pieces.left
        scan = scan_records(buffer, stop, at=at, left=left, check_crc=check_crc, record_bytes_limit=record_bytes_limit)
        yield from _deliver(scan, at, report)
        if pieces.problem:
            report(Damage(at.record + len(scan.payloads), at.offset + scan.consumed, pieces.problem))
            return
        if scan.broken is not None:
            report(scan.broken)
            return
        if left == scan.consumed:
            return
        at = ScanStart(at.record + len(scan.payloads), at.offset + scan.consumed)
        carried = buffer[scan.consumed : stop]
        missing = scan.wanted - len(carried)
        room = max(_PIECE_BYTES, missing if left is not None else min(missing, len(carried)))


def _fill(
    pieces: PlainPieces | InflatedPieces, carried: npt.NDArray[np.uint8], room: int, place: int
) -> tuple[npt.NDArray[np.uint8], int]:
    """Return a new buffer that begins with what was carried over, at a `place` in its page, and where its bytes end."""
    if pieces.left is not None:
        room = min(room, pieces.left)
    size = len(carried) + room + _DECODER_PADDING
    buffer = recycled_array(size + _PAGE_BYTES)[place % _PAGE_BYTES :][:size]
    buffer[: len(carried)] = carried
    stop = len(carried) + pieces.read_into(buffer.data[len(carried) : len(carried) + room])
    buffer[stop:] = 0
    return buffer, stop


def _deliver(scan: Scan, at: ScanStart, report: Callable[[Damage], None]) -> Iterator[RecordRun]:
    """Yield the records of a scan and report its damages: the records before the first one come before it."""
    good = scan.damaged[0] if scan.damaged else len(scan.payloads)
    if not scan.damaged:
        if good:
            yield RecordRun(at.record, at.offset, scan.payloads, scan.crcs)
        return
    if good:
        yield RecordRun(at.record, at.offset, scan.payloads.head(good), scan.crcs[:good])
    for damage in scan.damages:
        report(damage)
    start = int(scan.payloads.starts[good]) - HEADER_BYTES
    offset = at.offset + start - (int(scan.payloads.starts[0]) - HEADER_BYTES)
    damaged = tuple(row - good for row in scan.damaged)
    yield RecordRun(at.record + good, offset, scan.payloads.tail(good), scan.crcs[good:], damaged)


# Its kind is known by content, not by name: plain if it begins with a record's header, else gzip or zlib by their
# magic bytes (`tell_form`). The file is read and not mapped: a mapped file that is cut meanwhile kills the process,
# and its pages would count as ours.


_COPIED_BYTES: Final = 1 << 20

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_MEMBER_BYTES: Final = 1 << 20
"""A gzip member of `write_records` ends with the first record at or after so many bytes."""


def read_records(
    path: Path,
    *,
    check_crc: bool = True,
    record_bytes_limit: int | None = None,
    inflate_limits: InflateLimits | None = None,
) -> Iterator[bytes]:
    """Yield the payload of each record of a TFRecord file, plain or compressed: its first bytes tell.

        for record in read_records("train-00000.tfrecord"): ...

    Args:
        path: the file.
        check_crc: whether payloads are checked against their CRCs; the lengths always are.
        record_bytes_limit: the longest record that is believed, in bytes; by default 2 GiB, of a compressed file 1 GiB.
        inflate_limits: what a compressed file may become, against decompression bombs.

    Raises:
        DamageError: the file is damaged or cut; names the file, the record, its offset and the reason. The records
            before it have been yielded.
        InputError: the path is not a regular file, or cannot be read.
    """
    for run in read_record_batches(
        path, check_crc=check_crc, record_bytes_limit=record_bytes_limit, inflate_limits=inflate_limits
    ):
        yield from run.payloads


def read_record_batches(
    path: Path,
    start: int = 0,
    stop: int | None = None,
    *,
    first_record: int = 0,
    check_crc: bool = True,
    record_bytes_limit: int | None = None,
    inflate_limits: InflateLimits | None = None,
    on_damage: Callable[[Damage], None] | None = None,
    on_member: OnMember | None = None,
    stated_crc: str | None = None,
) -> Iterator[RecordRun]:
    """Yield the records of a TFRecord file in runs of about 2 MiB, from byte `start` on, which begins a record.

    Where a file is compressed, `start` is that of a gzip member which begins with a record, in compressed bytes, and
    offsets count from there. `first_record` is the number of the record at `start`. In a plain file the records up to
    byte `stop` are read, which ends one. `on_member` is called where a gzip member begins. With `on_damage`, damage is
    handed to it instead of raised: a record whose data are damaged stays in its run and is named by `damaged`; after
    damage to the framing nothing further can be found, and the iterator ends. `stated_crc` is the CRC32C that a
    manifest states of the whole file, as 8 hex digits: the file is compared with it after its last record.

    The records before a damage have been yielded when its `DamageError` comes.
    """
    name = printable_path(os.fspath(path))
    with open_regular(path, name) as opened:
        yield from scan_opened(
            opened,
            name,
            start,
            stop,
            first_record=first_record,
            check_crc=check_crc,
            record_bytes_limit=record_bytes_limit,
            inflate_limits=inflate_limits,
            on_damage=on_damage,
            on_member=on_member,
            stated_crc=stated_crc,
        )


def scan_opened(
    opened: FileIO | ObjectReader,
    name: str,
    start: int = 0,
    stop: int | None = None,
    *,
    on_damage: Callable[[Damage], None] | None = None,
    stated_crc: str | None = None,
    **options: Any,
) -> Iterator[RecordRun]:
    """Yield the records of an open file in runs: `read_record_batches`, with `name` for its messages.

    An object that was replaced or removed after it was opened is a `FileNotFoundError`.
    """

    def refuse(damage: Damage) -> None:
        raise DamageError(f"{name}: {damage}")

    file = opened if stated_crc is None else ChecksummedFile(opened)
    yield from scan_file(file, size_of(opened), start, stop, on_damage=on_damage or refuse, **options)
    if isinstance(file, ChecksummedFile) and f"{file.crc:08x}" != stated_crc:
        raise DamageError(f"{name}: {wrong_checksum(file.crc, str(stated_crc))}")


Compression = Literal["none", "gzip"]


def write_records(path: Path, records: Iterable[bytes], compression: Compression = "none") -> None:
    """Write a TFRecord file of these payloads; it appears whole or not at all, and replaces what was there.

        write_records("some.tfrecord", (example.SerializeToString() for example in examples))

    Args:
        path: the file.
        records: the payloads, one after the other; they are not held in memory.
        compression: "none", or "gzip" for a series of gzip members of about 1 MiB of input.

    Raises:
        UsageError: the compression is neither none nor gzip, or the path is a URL.
        TypeError: a record is not bytes.
    """
    if compression not in ("none", "gzip"):
        raise UsageError(f"compression {compression!r} is not known; choose none or gzip")
    if is_store_url(path):
        raise UsageError(f"{printable_path(str(path))}: a single file is written to disk; copy it from there")
    with incomplete_file(os.fspath(path)) as file:
        for framed in _frame_in_members(records):
            file.write(compress_member(framed) if compression == "gzip" else framed)


def _frame_in_members(records: Iterable[bytes]) -> Iterator[memoryview]:
    batch: list[bytes] = []
    size = 0
    for number, record in enumerate(records):
        if not isinstance(record, (bytes, bytearray, memoryview)):
            raise TypeError(f"record {number} is {type(record).__name__}, not bytes")
        batch.append(bytes(record))
        size += len(record) + FRAME_BYTES
        if size >= _MEMBER_BYTES:
            yield from _framed(batch)
            batch, size = [], 0
    if batch:
        yield from _framed(batch)


def _framed(batch: list[bytes]) -> Iterator[memoryview]:
    yield memoryview(b"".join(frame_records(pa.array(batch, pa.large_binary())).buffers))


def open_regular(path: Path, name: str) -> FileIO | ObjectReader:
    """Open a regular file, or an object by its URL, to read; `name` is its printable name."""
    if is_store_url(path):
        url = parse_store_url(str(path))
        try:
            return ObjectReader(store_at(url), url.key)
        except FileNotFoundError:
            raise InputError(f"{name}: no such object") from None
    try:
        # A FIFO would block in open() forever: look first.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(f"{name}: not a regular file; give a TFRecord file")
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from error


def size_of(file: FileIO | ObjectReader) -> int:
    return file.size if isinstance(file, ObjectReader) else os.fstat(file.fileno()).st_size


@contextmanager
def open_on_disk(path: Path, name: str) -> Iterator[FileIO]:
    """Yield a regular file, open; of an object a copy on disk, as the search for damage reads here and there."""
    with open_regular(path, name) as file, TemporaryFile(buffering=0) as copy:
        if not isinstance(file, ObjectReader):
            yield file
            return
        while piece := file.read(_COPIED_BYTES):
            copy.write(piece)
        copy.seek(0)
        yield copy


# Where the records of a shard begin, found by reading it: what its index says, where it has one.


I64 = npt.NDArray[np.int64]


def read_offsets(path: str) -> I64:
    """Return where the records of an uncompressed file begin, and its size; their payloads are not checked."""
    return offsets_of(read_record_batches(path, check_crc=False))


def offsets_of(runs: Iterable[RecordRun]) -> I64:
    """Return where the records of some runs begin, framing included, and where the last one ends."""
    ends = [np.append(run.offsets[1:], run.end) for run in runs if len(run)]
    return np.concatenate([np.zeros(1, np.int64), *ends])
