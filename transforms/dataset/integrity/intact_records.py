"""Every intact record of a damaged TFRecord file, and each damage; of a compressed file up to the first one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from io import FileIO
from typing import Final

from ...format.tfrecord.framing import HEADER_BYTES
from ...format.tfrecord.gzip_members import Form, InflateLimits, inflate
from ...format.tfrecord.scan import ScanStart, is_record_header
from ...format.wording.printable import printable_path
from ..records.record_file import Path, open_on_disk
from ..records.record_scan import HeldPieces, PlainPieces, longest_record, tell_form
from .record_walk import DamagedRange, Event, RecordWalk

_CHUNK_BYTES: Final = 16 << 10
"""What is inflated byte by byte where it is damaged: at most 16 MiB come of it."""


def walk_records(path: Path, *, limit: int | None = None, limits: InflateLimits | None = None) -> Iterator[Event]:
    """Yield every intact record of a TFRecord file, plain or compressed, and every damage, in the order of the file.

    `limit` is the longest record that is believed, in bytes (None: as `longest_record` says); `limits` are what a
    compressed file may become.
    """
    with open_on_disk(path, printable_path(os.fspath(path))) as file:
        form = _tell_form(file, os.fsencode(path))
        limit = longest_record(form) if limit is None else limit
        if form is None:
            file.seek(0)
            size = os.fstat(file.fileno()).st_size
            yield from RecordWalk(PlainPieces(file, size), ScanStart(), limit).events()
        else:
            yield from _walk_compressed(_inflated(file, form, limits), limit)


def is_compressed(path: Path) -> bool:
    with open_on_disk(path, printable_path(os.fspath(path))) as file:
        return _tell_form(file, os.fsencode(path)) is not None


def _tell_form(file: FileIO, name: bytes) -> Form | None:
    """Return how a file is compressed, of which the first bytes may be damaged."""
    form = tell_form(file, 0)
    if name.endswith(b".gz"):
        return form or (None if is_record_header(file.read(HEADER_BYTES)) else "gzip")
    # A plain file whose first length is damaged may begin as if it was compressed, but nothing then comes of it.
    if form is not None and _inflated(file, form).read_into(memoryview(bytearray(1))):
        return form
    return None


def _inflated(file: FileIO, form: Form, limits: InflateLimits | None = None) -> HeldPieces:
    file.seek(0)
    chunks = iter(lambda: file.read(_CHUNK_BYTES), b"")
    return HeldPieces(inflate(chunks, form=form, limits=limits, to_last_byte=True))


def _walk_compressed(pieces: HeldPieces, limit: int) -> Iterator[Event]:
    """Yield what a compressed file holds up to its first damage, behind which nothing is found again."""
    walk = RecordWalk(pieces, ScanStart(), limit)
    last: Event | None = None
    for event in walk.events():
        if last is not None:
            yield last
        last = event
    cut = isinstance(last, DamagedRange) and not last.recovered and last.end == walk.offset
    if pieces.problem and isinstance(last, DamagedRange) and cut:  # the damage of the file is what cut that record
        yield replace(last, reason=pieces.problem)
        return
    if last is not None:
        yield last
    if pieces.problem:
        yield DamagedRange(walk.record, walk.offset, walk.offset, pieces.problem)
