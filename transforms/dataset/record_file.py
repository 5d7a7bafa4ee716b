"""Plain bytes in and out of one TFRecord file.

A file is told by its content, not by its name: plain if it begins with a record's header, else gzip or zlib by their
magic bytes. Reading holds one piece of 2 MiB, or one record where that is larger; a length is believed only as
far as there are bytes behind it. The file is read and not mapped: a mapped file that is cut meanwhile kills the
process, and its pages would count as ours.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import FileIO
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import DamageError, InputError, UsageError
from ..format.gzip_members import Form, InflateError, InflateLimits, compress_member, inflate, sniff_form
from ..format.payloads import Payloads
from ..format.printable import printable_path
from ..format.scan import (
    LARGEST_RECORD_BYTES,
    RECORD_BYTES_LIMIT,
    Damage,
    Scan,
    ScanStart,
    is_record_header,
    scan_records,
)
from ..format.tfrecord import FRAME_BYTES, HEADER_BYTES, frame_records
from .incomplete_file import incomplete_file

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_PIECE_BYTES: Final = 2 << 20
"""What is read at once, the best of 256 KiB to 4 MiB: smaller pieces cost more calls, larger ones leave the cache."""

_COMPRESSED_PIECE_BYTES: Final = 256 << 10

_MEMBER_BYTES: Final = 1 << 20
"""A gzip member of `write_records` ends with the first record at or after so many bytes."""

_DECODER_PADDING: Final = 256
"""Bytes behind the records of a piece, so that the decoder may look a key further without copying the piece."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordRun:
    """Records of a file that follow each other.

    `first_record` is the number of the first one, from 1; `offset` is where it begins, in bytes from the start of the
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

    def to_arrow(self) -> pa.LargeBinaryArray:
        """Return the payloads as one Arrow array."""
        return self.payloads.to_arrow()


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
        check_crc: whether payloads are held against their CRCs; the lengths always are.
        record_bytes_limit: the longest record that is believed, in bytes; by default 2 GiB, of a compressed file 1 GiB.
        inflate_limits: what a compressed file may become, against decompression bombs.

    Raises:
        DamageError: the file is damaged or cut; names the file, the record, its offset and the reason. The records
            before it have been yielded.
        InputError: the path is no regular file, or cannot be read.
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
    first_record: int = 1,
    check_crc: bool = True,
    record_bytes_limit: int | None = None,
    inflate_limits: InflateLimits | None = None,
    on_damage: Callable[[Damage], None] | None = None,
) -> Iterator[RecordRun]:
    """Yield the records of a TFRecord file in runs of about 2 MiB, from byte `start` on, which begins a record.

    Where a file is compressed, `start` is that of a gzip member which begins with a record, in compressed bytes, and
    offsets count from there. `first_record` is the number of the record at `start`. Of a plain file the records up to
    byte `stop` are read, which ends one.
    With `on_damage`, damage is handed to it instead of raised: a record whose data are damaged stays in its run and is
    named by `damaged`; after damage to the framing nothing further can be found, and the iterator ends.

    Raises:
        DamageError: the file is damaged or cut; the records before it have been yielded.
        InputError: the path is no regular file, or cannot be read.
    """
    name = printable_path(os.fspath(path))

    def report(damage: Damage) -> None:
        if on_damage is None:
            raise DamageError(f"{name}: {damage}")
        on_damage(damage)

    with open_regular(path, name) as file:
        file.seek(start)
        form = tell_form(file, start)
        pieces: PlainPieces | _InflatedPieces
        if form is None:
            at = ScanStart(first_record, start)
            size = os.fstat(file.fileno()).st_size
            pieces = PlainPieces(file, (size if stop is None else min(stop, size)) - start)
        else:
            at = ScanStart(first_record, 0)
            pieces = _InflatedPieces(file, form, inflate_limits)
        limit = longest_record(form) if record_bytes_limit is None else record_bytes_limit
        yield from _scan_pieces(pieces, at, report, check_crc=check_crc, record_bytes_limit=limit)


Compression = Literal["none", "gzip"]


def write_records(path: Path, records: Iterable[bytes], compression: Compression = "none") -> None:
    """Write a TFRecord file of these payloads; it appears whole or not at all, and replaces what was there.

        write_records("some.tfrecord", (example.SerializeToString() for example in examples))

    Args:
        path: the file.
        records: the payloads, one after the other; they are not held in memory.
        compression: "none", or "gzip" for a series of gzip members of about 1 MiB of input.

    Raises:
        UsageError: the compression is neither none nor gzip.
        TypeError: a record is not bytes.
    """
    if compression not in ("none", "gzip"):
        raise UsageError(f"compression {compression!r} is not known; choose none or gzip")
    with incomplete_file(os.fspath(path)) as file:
        for framed in _frame_in_members(records):
            file.write(compress_member(framed) if compression == "gzip" else framed)


def _frame_in_members(records: Iterable[bytes]) -> Iterator[memoryview]:
    batch: list[bytes] = []
    size = 0
    for number, record in enumerate(records, 1):
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


def open_regular(path: Path, name: str) -> FileIO:
    """Open a regular file to read; `name` is its printable name.

    Raises:
        InputError: it is none, or cannot be read.
    """
    try:
        # A FIFO would block in open() for ever: look first.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(f"{name}: not a regular file; give a TFRecord file")
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from error


def tell_form(file: FileIO, start: int) -> Form | None:
    """Tell from the bytes at `start` how a file is compressed, None if it is not; the file stands there again."""
    head = file.read(HEADER_BYTES)
    file.seek(start)
    # A record of 560,927 bytes begins with gzip's magic bytes: its CRC tells them apart.
    return None if is_record_header(head) else sniff_form(head)


def longest_record(form: Form | None) -> int:
    """Return how long a record of a file is believed to be at most, where nobody set a limit."""
    return LARGEST_RECORD_BYTES if form is None else RECORD_BYTES_LIMIT


class PlainPieces:
    """The bytes of a plain file; `left` of them, as its size was when it was opened, are not read yet."""

    problem = ""

    def __init__(self, file: FileIO, left: int) -> None:
        self._file = file
        self.left: int | None = left

    def read_into(self, target: memoryview) -> int:
        """Fill the target as far as there are bytes, and return how many there were."""
        filled, wanted = 0, min(len(target), self.left or 0)
        while filled < wanted:
            count = self._file.readinto(target[filled:wanted])
            if not count:
                self.left = 0
                return filled
            filled += count
        self.left = (self.left or 0) - filled
        return filled


class _InflatedPieces:
    """The contents of a compressed file: `left` is unknown until their end, `problem` is why they end too early."""

    def __init__(self, file: FileIO, form: Form, limits: InflateLimits | None) -> None:
        chunks = iter(lambda: file.read(_COMPRESSED_PIECE_BYTES), b"")
        self._pieces = inflate(chunks, form=form, limits=limits)
        self._rest = memoryview(b"")
        self.left: int | None = None
        self.problem = ""

    def read_into(self, target: memoryview) -> int:
        """Fill the target as far as there are bytes, and return how many there were."""
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


def _scan_pieces(
    pieces: PlainPieces | _InflatedPieces,
    at: ScanStart,
    report: Callable[[Damage], None],
    *,
    check_crc: bool,
    record_bytes_limit: int,
) -> Iterator[RecordRun]:
    """Scan piece after piece; what is left of one, an incomplete record, moves to the front of the next.

    piece  ├─ record ─┼─ record ─┼─ rec      A record that is larger than a piece: the next piece is as large as it
    next                   ├─ record ─┼─     (plain), or twice as large as the last (compressed: its length may be a
                                             lie, and no more is allocated than has come).
    """
    carried, room = np.empty(0, np.uint8), _PIECE_BYTES
    while True:
        buffer, stop = _fill(pieces, carried, room)
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
    pieces: PlainPieces | _InflatedPieces, carried: npt.NDArray[np.uint8], room: int
) -> tuple[npt.NDArray[np.uint8], int]:
    """Return a new buffer that begins with what was carried over, and where its bytes end."""
    if pieces.left is not None:
        room = min(room, pieces.left)
    buffer = np.empty(len(carried) + room + _DECODER_PADDING, np.uint8)
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
