"""Plain bytes in and out of one TFRecord file.

Its kind is known by content, not by name: plain if it begins with a record's header, else gzip or zlib by their
magic bytes (`record_scan`). The file is read and not mapped: a mapped file that is cut meanwhile kills the process, and
its pages would count as ours.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from tempfile import TemporaryFile
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import DamageError, InputError, UsageError
from ...format.tfrecord.framing import FRAME_BYTES, frame_records
from ...format.tfrecord.gzip_members import InflateLimits, OnMember, compress_member
from ...format.tfrecord.scan import Damage
from ...format.wording.printable import printable_path
from ...stores.connect import store_at
from ...stores.object_reader import ObjectReader
from ...stores.store_url import is_store_url, parse_store_url
from ..storage.incomplete_file import incomplete_file
from .record_scan import ChecksummedFile, RecordRun, scan_file, wrong_checksum

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
    first_record: int = 1,
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
