"""The contents of a damaged compressed file, as far as they can be recovered.

    ├─ member ─┼─ mem▒▒er ─┼─ member ─┼─ member ─┤      a stretch ends where a member cannot be inflated further;
    ╰── stretch ───╯       ╰────── stretch ──────╯      the next one begins with the next member

Gzip has no mark that only a member's start has: its three bytes occur in compressed data by chance, and a record may
hold a gzip file. So a place is believed only if member follows member from there to the end of the file, or to the next
damage. Inside a member nothing is found again after the damage, since what follows refers back to it: a file of one
single member, as most tools write, is lost from there on.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from io import FileIO
from typing import Final

from ...format.tfrecord.gzip_members import Form, InflateLimits
from ..records.record_scan import HeldPieces

_CHUNK_BYTES: Final = 64 << 10
_OUTPUT_BYTES: Final = 1 << 20
_SEARCH_BYTES: Final = 1 << 20
_MAGIC: Final = b"\x1f\x8b\x08"
_HEADER_BYTES: Final = 10
_HEADER_LIMIT: Final = 64 << 10  # names and remarks in a header are short; this bounds what is read to skip them
_RAW: Final = -15

_TRIED_TIMES: Final = 16
"""So many times the file's size is inflated at most to find members again: a file can be made to hold a million."""

_NO_FORM: Final = {"gzip": "no gzip member begins here", "zlib": "no zlib data begin here"}


class _Broken(Exception):
    """A member cannot be inflated further; `after` is where it ends, if its data were all there."""

    def __init__(self, reason: str, after: int | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Stretch(HeldPieces):
    """The contents of members that follow each other; read like a file, until `problem` says why it ends early.

    `damaged` is where the member with the problem begins, in compressed bytes, and `after` where its end is known to
    be.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__(pieces)
        self.damaged = 0
        self.after: int | None = None


class CompressedFile:
    """A compressed file, and how much of it has been inflated."""

    def __init__(self, file: FileIO, form: Form, limits: InflateLimits | None = None) -> None:
        self._file = file.fileno()
        self._form: Form = form
        self._limits = limits or InflateLimits()
        self._made = 0
        self._tried = 0
        self._headless: set[int] = set()  # members whose header is damaged, and all else proven
        self.size = os.fstat(self._file).st_size

    def stretch(self, start: int) -> Stretch:
        """Return the contents from the member on that begins at `start`."""
        stretch = Stretch(iter(()))
        stretch._pieces = self._members(start, stretch)
        return stretch

    def next_start(self, stretch: Stretch) -> int | None:
        """Return where the next member begins that can be believed, None if there is none."""
        if self._form == "zlib" or self._made > self._bound():
            return None
        if stretch.after is not None and self._read(stretch.after, 3) == _MAGIC:
            return stretch.after
        if stretch.damaged not in self._headless and self._is_headless(stretch.damaged):
            self._headless.add(stretch.damaged)
            return stretch.damaged
        start = stretch.damaged + 1
        while start < self.size:
            found = self._read(start, _SEARCH_BYTES + 2)
            place = found.find(_MAGIC)
            while place >= 0:
                if self._leads_on(start + place):
                    return start + place
                place = found.find(_MAGIC, place + 1)
            start += _SEARCH_BYTES
        return None

    def _members(self, start: int, stretch: Stretch) -> Iterator[bytes]:
        while start < self.size:
            member = _Member(self._file, start, self._form, headless=start in self._headless)
            try:
                for piece in member.pieces():
                    self._made += len(piece)
                    if self._made > self._bound():
                        raise _Broken(f"{self._made} bytes came of it so far: a decompression bomb?")
                    yield piece
            except _Broken as error:
                stretch.problem = f"byte {start} of the compressed file: {error}"
                stretch.damaged, stretch.after = start, error.after
                return
            start = member.offset

    def _bound(self) -> float:
        limits = self._limits
        bound = max(limits.ratio_from_bytes, limits.ratio * self.size)
        return bound if limits.output_bytes is None else min(bound, limits.output_bytes)

    def _is_headless(self, start: int) -> bool:
        """Return whether a member is there that is whole but for its header, of the size that most writers give it."""
        if self._read(start, 3) == _MAGIC:
            return False
        member = _Member(self._file, start, "gzip", headless=True)
        made = 0
        try:
            for piece in member.pieces():
                made += len(piece)
                if made > self._bound():
                    return False
        except _Broken:
            return False
        finally:
            self._tried += member.offset - start
        return True

    def _leads_on(self, start: int) -> bool:
        """Return whether members follow each other from `start` to the end of the file, or to a damage."""
        begun = start
        while start < self.size:
            if self._read(start, 3) != _MAGIC:
                return not any(self._read(start, _SEARCH_BYTES))
            member = _Member(self._file, start, "gzip")
            made = 0
            try:
                for piece in member.pieces():
                    made += len(piece)
                    if self._tried + member.offset - start > _TRIED_TIMES * self.size or made > self._bound():
                        return False
            except _Broken:
                # One that is damaged too: it is believed if it was not the first, or gave a good deal.
                return start > begun or made >= _CHUNK_BYTES // 2
            finally:
                self._tried += member.offset - start
            start = member.offset
        return True

    def _read(self, offset: int, size: int) -> bytes:
        return os.pread(self._file, size, offset)


class _Member:
    """One gzip member, or the one zlib stream; `offset` is how far it has been inflated, in compressed bytes."""

    def __init__(self, file: int, start: int, form: Form, *, headless: bool = False) -> None:
        self._file = file
        self._form = form
        self._headless = headless
        self.offset = start

    def pieces(self) -> Iterator[bytes]:
        """Yield the contents, as much of them as there is.

        Raises:
            _Broken: something is wrong, or missing; what could be had has been yielded.
        """
        self.offset = self.offset + _HEADER_BYTES if self._headless else self._skip_header(self.offset)
        inflater = zlib.decompressobj(_RAW)
        check, size = (0, 0) if self._form == "gzip" else (1, 0)
        update = zlib.crc32 if self._form == "gzip" else zlib.adler32
        while not inflater.eof:
            data = os.pread(self._file, _CHUNK_BYTES, self.offset)
            if not data:
                raise _Broken(f"the {self._form} stream is cut: its end and its checksum are missing")
            before = inflater.copy()
            try:
                piece = inflater.decompress(data, _OUTPUT_BYTES)
            except zlib.error:
                yield from self._last_pieces(before, data)
                return
            # At the end both hold the bytes after it, if the bound on the output was ever met (CPython's zlib).
            left = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            self.offset += len(data) - len(left)
            check, size = update(piece, check), size + len(piece)
            if piece:
                yield piece
        self._check_trailer(check, size)

    def _last_pieces(self, inflater: zlib._Decompress, data: bytes) -> Iterator[bytes]:
        """Yield what comes of the bytes before the one that cannot be."""
        for place in range(len(data)):
            try:
                piece = inflater.decompress(data[place : place + 1])
            except zlib.error as error:
                raise _Broken(f"the {self._form} member that begins here is damaged ({error})") from None
            self.offset += 1
            if piece:
                yield piece

    def _check_trailer(self, check: int, size: int) -> None:
        wanted = check.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")
        if self._form == "zlib":
            wanted = check.to_bytes(4, "big")
        trailer = os.pread(self._file, len(wanted), self.offset)
        self.offset += len(trailer)
        if len(trailer) < len(wanted):
            raise _Broken(f"the {self._form} stream is cut: its end and its checksum are missing")
        if trailer != wanted:
            raise _Broken(f"the checksum of the {self._form} member that begins here is wrong", self.offset)

    def _skip_header(self, start: int) -> int:
        """Return where the deflate stream begins (RFC 1952, section 2.3; RFC 1950, section 2.2)."""
        head = os.pread(self._file, _HEADER_LIMIT, start)
        if self._form == "zlib":
            return start + 2
        if not head.startswith(_MAGIC) or len(head) < _HEADER_BYTES or head[3] & 0xE0:
            raise _Broken(_NO_FORM[self._form])
        place = _HEADER_BYTES
        if head[3] & 0x04:
            place += 2 + int.from_bytes(head[place : place + 2], "little")
        for flag in (0x08, 0x10):
            if head[3] & flag:
                place = head.find(b"\0", place) + 1
                if not place:
                    raise _Broken(_NO_FORM[self._form])
        return start + place + (2 if head[3] & 0x02 else 0)
