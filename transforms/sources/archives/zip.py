"""Read the members of a zip archive in the order of its central directory, which is at its end.

    ├ header ┼ data ┼ header ┼ data ┼ ... ┼ entry ┼ entry ┼ ... ┼ end ┤
                                          ▲ the central directory: names, sizes, checksums, offsets of headers

Python's zipfile keeps an object for each entry of an archive, and reads all of them each time it opens one. Here a part
of the directory is read by its offset, and damage has one.

The format: PKWARE's APPNOTE.TXT 6.3.10, with zip64.
"""

from __future__ import annotations

import stat
import struct
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from isal import isal_zlib

from ...format.wording.printable import printable_path
from ...inputs.files.open_file import ReadAt
from .tar import Damage, Kind, Member, MemberError, PlainBytes

_END: Final = struct.Struct("<4s4H2LH")
_END_MARK: Final = b"PK\x05\x06"
_LOCATOR: Final = struct.Struct("<4sLQL")
_LOCATOR_MARK: Final = b"PK\x06\x07"
_END64: Final = struct.Struct("<4sQ2H2L4Q")
_END64_MARK: Final = b"PK\x06\x06"
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_ENTRY_MARK: Final = b"PK\x01\x02"
_HEADER: Final = struct.Struct("<4s5H3L2H")
_HEADER_MARK: Final = b"PK\x03\x04"

_FLUSH_BYTES: Final = 64 << 10
"""Room for the empty blocks of writers that flush."""

_LARGE_BYTES: Final = 8 << 20
_PIECE_BYTES: Final = 1 << 20
"""Members from the first size on are read and inflated in pieces of the second."""

_COMMENT_BYTES: Final = 0xFFFF
_WINDOW: Final = 64 << 10
_EXTRA_ROOM: Final = 64
"""What headers mostly have beside their name: with it, one read brings a member."""

_STORED, _DEFLATED = 0, 8
_METHODS: Final = {9: "deflate64", 12: "bzip2", 14: "LZMA", 93: "zstd", 95: "xz", 99: "AES"}
_ENCRYPTED_FLAG: Final = 1
_UTF8_FLAG: Final = 1 << 11
_ON_UNIX = 3
_ZIP64: Final = 1
_MASK: Final = 0xFFFFFFFF
_AGAIN: Final = "make or copy the archive again"


@dataclass(frozen=True, slots=True)
class _Directory:
    """Where the central directory is, how many entries it has, and the bytes before the archive in its file."""

    start: int
    stop: int
    entries: int
    before: int


class ZipArchive:
    """A zip archive, open to read; `read_at` reads anywhere in its `size` bytes.

    `encoding` is that of names that are not marked as UTF-8; without it `guessed` is one that is not UTF-8.

    Raises:
        Damage: there is no central directory that fits.
    """

    def __init__(self, read_at: ReadAt, size: int, encoding: str | None = None) -> None:
        self._encoding, self.guessed = encoding, b""
        self._read_at, self._size = read_at, size
        self._source = PlainBytes(read_at, size, _WINDOW)
        self.directory = _find_directory(read_at, size)
        self.end = 0

    def members(self, start: int, stop: int | None) -> Iterator[Member]:
        """From 0 on, yield all. Raises `Damage`: an entry is damaged, or they are not as many as the end says."""
        whole, count, high = stop is None, 0, 0
        self.end = at = max(start, self.directory.start)
        last = self.directory.stop if stop is None else stop
        while at < last:
            member, self.end = self._entry(at)
            if whole and high >= 0:  # members are mostly in the order of the directory, so this is one comparison each
                in_order = member.header >= high
                high = _end_of(member) if in_order else self._check_apart()
            yield member
            at, count = self.end, count + 1
        if whole and (at != self.directory.stop or count != self.directory.entries):
            text = f"the central directory has {count:,} entries, and {self.directory.entries:,} by its end; {_AGAIN}"
            raise Damage(at, "CORRUPT", text)

    def read(self, member: Member) -> bytes | memoryview:
        if member.method not in (_STORED, _DEFLATED):
            how = _METHODS.get(member.method, f"method {member.method}")
            raise MemberError("UNSUPPORTED", f"is packed by {how}, which is not read; make the archive with `zip`")
        room = _HEADER.size + len(member.name) + _EXTRA_ROOM
        where = f"(header at byte {member.header:,})"
        if member.header + member.packed > self._size:
            raise MemberError("TRUNCATED", f"goes beyond the end of the archive {where}; {_AGAIN}")
        if member.packed != member.size if member.method == _STORED else member.packed > _most_deflated(member.size):
            text = f"{member.packed:,} bytes are packed there, and {member.size:,} unpacked"
            raise MemberError("CORRUPT", f"has sizes that do not fit {where}: {text}; {_AGAIN}")
        large = member.method == _DEFLATED and member.size >= _LARGE_BYTES
        block = self._read_at(room + (0 if large else member.packed), member.header)
        if len(block) < _HEADER.size or block[:4] != _HEADER_MARK:
            raise MemberError("CORRUPT", f"has no header where the central directory says {where}; {_AGAIN}")
        *_, names, extra = _HEADER.unpack_from(block)
        begin = _HEADER.size + names + extra
        if large:
            data = self._inflated_in_pieces(member, member.header + begin, where)
        else:
            data = self._whole(member, block, begin, where)
        if len(data) != member.size or zlib.crc32(data) != member.crc:
            raise MemberError("CORRUPT", f"has not the size and checksum that the archive states {where}; {_AGAIN}")
        return data

    def _whole(self, member: Member, block: bytes, begin: int, where: str) -> memoryview:
        missing = begin + member.packed - len(block)
        if missing > 0:
            block += self._read_at(missing, member.header + len(block))
        data = memoryview(block)[begin : begin + member.packed]
        if len(data) < member.packed:
            raise MemberError("TRUNCATED", f"goes beyond the end of the archive {where}; {_AGAIN}")
        return _inflated(data, member.size, where) if member.method == _DEFLATED else data

    def _inflated_in_pieces(self, member: Member, at: int, where: str) -> memoryview:
        """Return a large member as it was, whose packed bytes are never in memory as a whole."""
        found, done = memoryview(bytearray(member.size + 1)), 0
        stream, left, end = isal_zlib.decompressobj(-15), b"", at + member.packed
        while not stream.eof and done <= member.size:
            if not left and at < end:
                left = self._read_at(min(end - at, _PIECE_BYTES), at)
                at += len(left)
                if not left:
                    raise MemberError("TRUNCATED", f"goes beyond the end of the archive {where}; {_AGAIN}")
            try:
                piece = stream.decompress(left, min(member.size + 1 - done, _PIECE_BYTES))
            except isal_zlib.error as error:  # type: ignore[misc]  # its stub says an instance
                raise _damaged(where, str(error)) from error
            left = stream.unconsumed_tail
            if not piece and not left and at == end and not stream.eof:
                raise _damaged(where, "its deflated bytes end too soon")
            found[done : done + len(piece)] = piece
            done += len(piece)
        return found[:done]

    def _check_apart(self) -> int:
        """Raise `Damage` where bytes are in two members; return -1: all of them were looked at."""
        at, places = self.directory.start, array("Q")
        while at < self.directory.stop:
            member, at = self._entry(at)
            places.extend((min(member.header, self._size), min(_end_of(member), self._size)))
        starts, ends = np.frombuffer(places, np.uint64).reshape(-1, 2).T
        order = np.argsort(starts, kind="stable")
        over = np.flatnonzero(starts[order][1:] < ends[order][:-1])
        if over.size:
            first = int(starts[order][over[0] + 1])
            raise Damage(first, "CORRUPT", f"two of its members have the same bytes; {_AGAIN}", of_all=True)
        return -1

    def _entry(self, at: int) -> tuple[Member, int]:
        fixed = bytes(self._source.take(at, _ENTRY.size))
        if len(fixed) < _ENTRY.size or fixed[:4] != _ENTRY_MARK:
            raise Damage(at, "CORRUPT", f"an entry of the central directory is damaged; {_AGAIN}")
        _, made, _, flags, method, _, _, crc, packed, size, names, extra, comment, _, _, mode, header = _ENTRY.unpack(
            fixed
        )
        end = at + _ENTRY.size + names + extra + comment
        more = bytes(self._source.take(at + _ENTRY.size, names + extra))
        if end > self.directory.stop or len(more) < names + extra:
            raise Damage(at, "CORRUPT", f"an entry of the central directory is cut; {_AGAIN}")
        if _MASK in (size, packed, header):
            size, packed, header = _wide(more[names:], at, size, packed, header)
        host = made >> 8
        name = more[:names]
        if not name.isascii() and not flags & _UTF8_FLAG:
            try:
                name = name.decode(self._encoding or "utf-8").encode()
            except UnicodeDecodeError as error:
                if self._encoding is not None:
                    what = f"the name {printable_path(name)} is not {self._encoding}; give its input.encoding"
                    raise Damage(at, "CORRUPT", what) from error
                name = self.guessed = name.decode("cp437").encode()
        if name != self.guessed or b"/" not in name:  # in a wrong guess it may be half of a letter
            name = name.replace(b"\\", b"/")
        kind = _kind(name, mode >> 16 if host == _ON_UNIX else 0, encrypted=bool(flags & _ENCRYPTED_FLAG))
        where = header + self.directory.before
        return Member(at, where, name, where, size, kind, packed, method, crc), end


def _end_of(member: Member) -> int:
    return member.header + _HEADER.size + member.packed


def _most_deflated(size: int) -> int:
    """Return the most bytes that `size` bytes have deflated: zlib's bound for any of its settings, and flushes."""
    return size + (size + 7) // 8 + (size + 63) // 64 + _FLUSH_BYTES


def _find_directory(read_at: ReadAt, size: int) -> _Directory:
    """Raise `Damage` where there is no central directory, or it does not fit."""
    room = min(size, _COMMENT_BYTES + _END.size)
    tail = read_at(room, size - room)
    at = tail.rfind(_END_MARK)
    while at >= 0 and not _ends_file(tail, at):
        at = tail.rfind(_END_MARK, 0, at)
    if at < 0:
        known = read_at(4, 0)[:4] in (_HEADER_MARK, _END_MARK)
        what = "its central directory, which is at its end, is missing" if known else "is no zip archive"
        cut = "TRUNCATED" if known else "CORRUPT"
        raise Damage(size if known else 0, cut, f"{what}; {_AGAIN}", of_all=True)
    _, disk, _, _, entries, length, start, _ = _END.unpack_from(tail, at)
    end = size - room + at
    if disk:
        raise Damage(
            end, "UNSUPPORTED", "it is a part of an archive in several files; join them: zip -s 0", of_all=True
        )
    if entries == 0xFFFF or _MASK in (length, start):
        entries, length, start, end = _wide_directory(read_at, end)
    before = end - length - start
    if before < 0 or end - length < 0:
        raise Damage(end, "CORRUPT", f"its central directory does not fit into it; {_AGAIN}", of_all=True)
    return _Directory(end - length, end, entries, before)


def _ends_file(tail: bytes, at: int) -> bool:
    """Return whether an end mark is one: its comment goes up to the end of the file."""
    return len(tail) - at >= _END.size and at + _END.size + _END.unpack_from(tail, at)[-1] == len(tail)


def _wide_directory(read_at: ReadAt, end: int) -> tuple[int, int, int, int]:
    """Return the entries, the length and the start of the central directory, and its end, as zip64 has them."""
    locator = read_at(_LOCATOR.size, max(end - _LOCATOR.size, 0))
    found = locator[:4] == _LOCATOR_MARK and len(locator) == _LOCATOR.size
    at = end - _LOCATOR.size - _END64.size  # with bytes before the archive the offset in the locator is another one
    block = read_at(_END64.size, at) if found and at >= 0 else b""
    if block[:4] != _END64_MARK or len(block) < _END64.size:
        raise Damage(end, "CORRUPT", f"the end of its central directory (zip64) is damaged; {_AGAIN}", of_all=True)
    *_, entries, length, start = _END64.unpack(block)
    return entries, length, start, at


def _wide(extra: bytes, at: int, *values: int) -> list[int]:
    """Return size, packed size and offset, those that 32 bits cannot hold from the extra field."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        if kind == _ZIP64:
            field, found = extra[4 : 4 + length], []
            for value in values:
                if value == _MASK and len(field) >= 8:
                    value, field = int.from_bytes(field[:8], "little"), field[8:]
                found.append(value)
            return found
        extra = extra[4 + length :]
    raise Damage(at, "CORRUPT", f"an entry of the central directory lacks its sizes (zip64); {_AGAIN}")


def _kind(name: bytes, mode: int, *, encrypted: bool) -> Kind:
    if name.endswith(b"/"):
        return Kind.FOLDER
    if stat.S_ISLNK(mode):
        return Kind.LINK
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return Kind.OTHER
    return Kind.ENCRYPTED if encrypted else Kind.FILE


def _inflated(data: memoryview, size: int, where: str) -> memoryview:
    """Return deflated bytes as they were: more than the archive states are not made."""
    stream = isal_zlib.decompressobj(-15)
    try:
        found = stream.decompress(data, size + 1)
        if not stream.eof:
            found += stream.decompress(stream.unconsumed_tail, 1)
    except isal_zlib.error as error:  # type: ignore[misc]  # its stub says an instance
        raise _damaged(where, str(error)) from error
    if not stream.eof and len(found) <= size:
        raise _damaged(where, "its deflated bytes end too soon")
    return memoryview(found)


def _damaged(where: str, why: str) -> MemberError:
    return MemberError("CORRUPT", f"is damaged {where}: {why}; {_AGAIN}")
