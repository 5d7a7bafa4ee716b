"""Read the members of a tar archive in order: headers are parsed, and what is between them is skipped.

    512 bytes   512 bytes a block
    ├─ header ─┼─ data ────────┼·┼─ header ─┼─ data ─┼···┼─ 0 ─┼─ 0 ─┤   two blocks of zeros are the end

Python's tarfile keeps an object for each member, and takes a damaged header, or an end that is missing, for the end of
the archive. Here both are damage with an offset. Archives one after the other in one file are read as one.

The format: POSIX.1-2017 pax (ustar and pax), the GNU tar manual (long names, sparse files), old tar of Unix v7.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol

from ...format.wording.printable import printable_path
from ...inputs.files.open_file import ReadAt

# What archives of all kinds are made of: members, how they are read, and what is wrong with them.


class Kind(IntEnum):
    """What a member is: a file, or something that is not read."""

    FILE = 0
    FOLDER = 1
    LINK = 2
    OTHER = 3
    SPARSE = 4
    ENCRYPTED = 5


NOT_READ: Final = {
    Kind.LINK: "is a link, which is not followed; make the archive with the files themselves: tar --dereference "
    "--hard-dereference, or zip without -y",
    Kind.OTHER: "is no regular file, but a device, a pipe or of another kind; leave it out of the archive",
    Kind.SPARSE: "is stored as a sparse file; make the archive without tar --sparse",
    Kind.ENCRYPTED: "is encrypted; make the archive without a password",
}
"""What is to be said of a member that is not read."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an archive: its name as it is written there, and where its bytes are.

    It begins at `at`, an offset in tar, in zip that of its entry in the central directory. `header` is the offset that
    messages show. `packed` is its size as it is in the archive, `method` how it is packed there.
    """

    at: int
    header: int
    name: bytes
    data: int
    size: int
    kind: Kind = Kind.FILE
    packed: int = 0
    method: int = 0
    crc: int = 0


class Damage(Exception):
    """Nothing more can be read of an archive, from an offset on; no error of the tree, since it becomes a reject.

    With `cuts_sample` what is before the offset may be a part of a sample alone; `member` is the name of the member
    that is cut, where it is known. `of_all` says that nothing of the archive can be trusted.
    """

    def __init__(
        self,
        offset: int,
        code: str,
        text: str,
        *,
        cuts_sample: bool = True,
        member: bytes | None = None,
        of_all: bool = False,
    ) -> None:
        super().__init__(text)
        self.offset = offset
        self.code = code
        self.text = text
        self.cuts_sample = cuts_sample
        self.member = member
        self.of_all = of_all


class MemberError(Exception):
    """Why the bytes of one member are not given: the code of the reject, and the text."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Archive(Protocol):
    """An archive that is open to read, from front to back."""

    def members(self, start: int, stop: int | None) -> Iterator[Member]:
        """Yield the members that begin from `start` on and before `stop`, in order.

        Raises:
            Damage: nothing more can be read.
        """

    def read(self, member: Member) -> bytes | memoryview:
        """Return the bytes of the member that was yielded last.

        Raises:
            MemberError: they are damaged, or packed in a way that is not read.
        """

    @property
    def end(self) -> int:
        """Where the last member that was yielded ends, as `stop` of `members` counts."""


# Tar.


BLOCK: Final = 512
_ZEROS: Final = bytes(BLOCK)
MOST_EXTENDED: Final = 1 << 20
"""The most bytes of a long name or of the records before a member: names are far shorter."""

_USED: Final = (b"path", b"size", b"GNU.sparse.name")
_SPARSE: Final = b"GNU.sparse."

_CHECKSUM: Final = slice(148, 156)
_ADLER: Final = 65521
_FIELDS: Final = struct.Struct("100s24x12s12x8xc100x6s82x155s12x").unpack
_RECORD: Final = re.compile(rb"([0-9]{1,20}) ([^=]+)=")
_KINDS: Final = {
    b"0": Kind.FILE, b"\0": Kind.FILE, b"7": Kind.FILE, b"1": Kind.LINK, b"2": Kind.LINK, b"5": Kind.FOLDER,
    b"S": Kind.SPARSE,
}  # fmt: skip
_AGAIN: Final = "make or copy the archive again"


class TarBytes(Protocol):
    """The bytes of an archive, read from front to back."""

    def take(self, at: int, size: int) -> bytes | memoryview:
        """Return so many bytes from an offset on, fewer only at the end; no offset is before an earlier one."""

    @property
    def size(self) -> int | None:
        """How many bytes there are, None where only reading tells."""


class PlainBytes:
    """The bytes of a file, through a window of so many bytes."""

    def __init__(self, read: ReadAt, size: int, window: int) -> None:
        self._read, self.size, self._window = read, size, window
        self._at, self._held = 0, memoryview(b"")

    def take(self, at: int, size: int) -> memoryview:
        first = at - self._at
        if first < 0 or first + size > len(self._held):
            self._held = memoryview(b"")  # a large member is freed before more is read
            self._held, self._at, first = memoryview(self._read(max(size, self._window), at)), at, 0
        return self._held[first : first + size]


class StreamBytes:
    """The bytes of a stream, such as a compressed archive: what is not taken is passed over."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self._at, self._held = 0, b""
        self.size: int | None = None

    def take(self, at: int, size: int) -> bytes | memoryview:
        while at >= self._at + len(self._held) and self._go_on():
            pass
        first = at - self._at
        part = self._held[first : first + size]
        if len(part) == size:
            return part
        taken, done = memoryview(bytearray(size)), len(part)
        taken[:done] = part
        while done < size and self._go_on():
            part = self._held[: size - done]
            taken[done : done + len(part)] = part
            done += len(part)
        return taken[:done]

    def _go_on(self) -> bool:
        block = next(self._blocks, b"")
        if not block:
            self.size = self._at + len(self._held)
            return False
        self._at, self._held = self._at + len(self._held), block
        return True


class TarArchive:
    """A tar archive, open to read."""

    def __init__(self, source: TarBytes) -> None:
        self._source = source
        self._last = b""
        self.end = 0

    def members(self, start: int, stop: int | None) -> Iterator[Member]:
        """Without a `stop`, yield to the end mark. Raises `Damage`: a header is damaged, or the end is missing."""
        self.end = at = start
        first: int | None = None  # of the headers that are of the member after them
        extended: dict[bytes, bytes] = {}
        block = b""
        while stop is None or at < stop:
            block = block or bytes(self._source.take(at, BLOCK))
            if block == _ZEROS:
                if first is not None:
                    raise Damage(first, "CORRUPT", f"a header for the next member, and there is none; {_AGAIN}")
                at, block = self._after_zeros(at)
                if not block or (stop is not None and at >= stop):
                    return
            self._check_block(block, at)
            fields = _FIELDS(block)
            first = at if first is None else first
            if fields[2] in b"LKxXg":
                size = _number(fields[1], at)
                data = self._extended(at, size)
                if fields[2] == b"L":
                    extended[b"path"] = data.rstrip(b"\0")
                elif fields[2] in b"xX":
                    extended |= _records(data, at)
                elif fields[2] == b"g":
                    first = None if first == at else first
                at += BLOCK + _padded(size)
            else:
                yield self._member(first, at, fields, extended, sparse_more=block[482:483] > b"\0")
                at, first, extended = self.end, None, {}
            block = b""

    def read(self, member: Member) -> bytes | memoryview:
        return self._source.take(member.data, member.size)

    def _member(
        self, first: int, at: int, fields: tuple[bytes, ...], extended: dict[bytes, bytes], *, sparse_more: bool
    ) -> Member:
        name, size_field, flag, magic, prefix = fields
        size = _decimal(extended[b"size"], at) if b"size" in extended else _number(size_field, at)
        name, prefix = name.partition(b"\0")[0], prefix.partition(b"\0")[0]
        name = extended.get(b"path") or (prefix + b"/" + name if prefix and magic == b"ustar\0" else name)
        kind = _KINDS.get(flag, Kind.OTHER)
        if kind is Kind.FILE and _SPARSE in extended:
            kind, name = Kind.SPARSE, extended.get(b"GNU.sparse.name") or name
        if kind is Kind.FILE and name.endswith(b"/"):
            kind = Kind.FOLDER  # as old archives have them
        data = at + BLOCK
        more = flag == b"S" and sparse_more
        while more:
            more = bytes(self._source.take(data, BLOCK))[504:505] > b"\0"
            data += BLOCK
        without = flag in b"123456" or (kind is Kind.FOLDER and flag == b"\0")
        self._last, self.end = name, data if without else data + _padded(size)
        self._check_size(self.end)
        return Member(first, at, name, data, size, kind, size)

    def _extended(self, at: int, size: int) -> bytes:
        if size > MOST_EXTENDED:
            raise Damage(at, "CORRUPT", f"a header of {size:,} bytes; {_AGAIN}")
        data = bytes(self._source.take(at + BLOCK, size))
        if len(data) < size:
            raise _cut(at + BLOCK + len(data), "a header ends too soon")
        return data

    def _check_size(self, at: int) -> None:
        known = self._source.size
        if known is not None and known < at:
            shown = printable_path(self._last)
            text = f'the last {at - known:,} bytes of its member "{shown}" are missing'
            raise _cut(known, text, self._last)

    def _check_block(self, block: bytes, at: int) -> None:
        self._check_size(at)
        if not block:
            missing = "the end mark, two blocks of zeros, is missing, so more members may be"
            raise _cut(at, missing if at else "it is empty")
        if len(block) < BLOCK:
            raise _cut(at + len(block), "a header ends too soon" if at else "it is shorter than one header")
        if not _is_header(block):
            text = "the header of a member is damaged" if at else "is no tar archive: its first 512 bytes are no header"
            raise Damage(at, "CORRUPT", f"{text}; {_AGAIN}")

    def _after_zeros(self, at: int) -> tuple[int, bytes]:
        """Return where another archive begins after an end mark, and its first block; empty if there is none."""
        begin = at
        while True:
            at += BLOCK
            block = bytes(self._source.take(at, BLOCK))
            if block != _ZEROS[: len(block)]:
                break
            if len(block) < BLOCK:
                return at, b""
        if len(block) == BLOCK and _is_header(block):
            return at, block
        found = at + len(block) - len(block.lstrip(b"\0"))
        text = f"bytes that are no archive follow the end mark, which is at byte {begin:,}; {_AGAIN}"
        raise Damage(found, "CORRUPT", text, cuts_sample=False)


def _is_header(block: bytes) -> bool:
    """Return whether the checksum of a block is right: the sum of its bytes, with blanks in place of itself."""
    stored = _octal(block[_CHECKSUM])
    if stored is None:
        return False
    wanted = stored - 8 * 0x20 + sum(block[_CHECKSUM])
    if (zlib.adler32(block) & 0xFFFF) == (1 + wanted) % _ADLER:  # its lower half is that sum, and quick
        return True
    signed = sum(byte - 256 if byte > 127 else byte for byte in block)  # as some old programs wrote it
    return signed - sum(byte - 256 if byte > 127 else byte for byte in block[_CHECKSUM]) + 8 * 0x20 == stored


def _octal(field: bytes) -> int | None:
    digits = field.partition(b"\0")[0].strip(b" ")
    try:
        return int(digits, 8) if digits and digits.isdigit() else None if digits else 0
    except ValueError:
        return None


def _number(field: bytes, at: int) -> int:
    """Return a number of a header: octal digits, or binary where the first bit is set, as GNU and star write it."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    found = None if field[0] & 0x80 else _octal(field)
    if found is None:
        raise Damage(at, "CORRUPT", f"the header is damaged: its size is no number; {_AGAIN}")
    return found


def _decimal(value: bytes, at: int) -> int:
    if not value.isdigit() or len(value) > 19:
        raise Damage(at, "CORRUPT", f"the header is damaged: its size is no number; {_AGAIN}")
    return int(value)


def _records(data: bytes, at: int) -> dict[bytes, bytes]:
    r"""Return the records of a pax header that are used: each is its own length, a blank, KEY=VALUE and a newline.

    >>> _records(b"12 path=a/b\n", 0)
    {b'path': b'a/b'}
    """
    found = {}
    start = 0
    while start < len(data) and data[start]:
        match = _RECORD.match(data, start)
        stop = start + int(match[1]) if match else 0
        if match is None or stop > len(data) or stop <= match.end() or data[stop - 1 : stop] != b"\n":
            raise Damage(at, "CORRUPT", f"the extended header is damaged; {_AGAIN}")
        if match[2] in _USED:
            found[match[2]] = data[match.end() : stop - 1]
        if match[2].startswith(_SPARSE):
            found[_SPARSE] = b""
        start = stop
    return found


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _cut(at: int, what: str, member: bytes | None = None) -> Damage:
    return Damage(at, "TRUNCATED", f"the archive is cut: {what}; {_AGAIN}", member=member)
