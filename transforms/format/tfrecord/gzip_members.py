"""Write and read gzip as a series of members; each one that is read is proven to be whole.

    file   ┌──────────┬──────────┬──────────┐      RFC 1952: a gzip file is one member or several; readers see
           │ member 0 │ member 1 │ member 2 │      the members' contents as one stream. So files concatenate,
           └──────────┴──────────┴──────────┘      and an index can point to the start of a member.
    member ┌───────────┬─────────────────┬───────────┬───────────┐
           │ 10 header │ deflate stream  │ 4 CRC-32  │ 4 size    │
           └───────────┴─────────────────┴───────────┴───────────┘

Most readers take a file that ends before the last trailer, or continues with something else, for a whole one.
Here every member must end, its CRC and size must be right, and nothing but another member may follow.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from isal import igzip_lib, isal_zlib

_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""Method deflate, no flags, no time, no name, unknown system: nothing that would differ between two runs."""

_LEVEL: Final = 2
"""On framed table records ISA-L level 2 is 13 times as fast as zlib's level 6 at 1.11 times its size; level 3 halves
the speed for 1.09 times the size, level 1 is no faster."""

_RAW: Final = -15
"""zlib's `wbits` for a bare deflate stream with the full window."""

_OUTPUT_BYTES: Final = 1 << 20
"""The largest piece that `inflate` yields: what a bomb can make us hold."""

_FIRST_SLICE: Final = 4 << 10
"""How many compressed bytes a member gets at first; each further slice has twice as many."""

Buffer = Any
"""Anything with the buffer protocol: bytes, a memoryview, an Arrow buffer."""

Form = Literal["gzip", "zlib"]


class InflateError(ValueError):
    """Compressed bytes are damaged, cut, or a bomb; `offset` is where, in compressed bytes."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"byte {offset} of the compressed file: {reason}")
        self.offset = offset
        self.reason = reason

    def __reduce__(self) -> tuple[type[InflateError], tuple[int, str]]:
        return type(self), (self.offset, self.reason)


@dataclass(frozen=True, slots=True)
class InflateLimits:
    """What a compressed file may become.

    More than `ratio` bytes of output per byte of input are refused once there are `ratio_from_bytes` of output:
    deflate reaches 1032 at most, real records of zeros can come near it, and such a file is small. `output_bytes`
    is an absolute bound, None for none. Memory is bounded without any of them.
    """

    ratio: float = 1000
    ratio_from_bytes: int = 256 << 20
    output_bytes: int | None = None


OnMember = Callable[[int, int], object]
"""Is called where a member begins: its offset in compressed bytes, and in the contents."""


def compress_member(data: Buffer | Sequence[Buffer]) -> bytes:
    r"""Return one gzip member that holds `data`, in one buffer or several: the same bytes however they are cut.

    They are the same for one `isal` release and CPU family, not for all.

    >>> compress_member(b"")[:10]
    b'\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff'
    """
    whole: Any = b"".join(data) if isinstance(data, (list, tuple)) else data  # how it is cut would change the stream
    deflated = isal_zlib.compress(whole, _LEVEL, _RAW)
    size = memoryview(whole).nbytes
    return b"".join((_HEADER, deflated, struct.pack("<II", isal_zlib.crc32(whole), size & 0xFFFFFFFF)))


def sniff_form(head: bytes) -> Form | None:
    """Return how a file that begins with `head` (two bytes at least) is compressed, or None if it is not.

    Magic bytes only: the caller asks first whether they make sense as what the file would be when not compressed.
    """
    if head[:2] == b"\x1f\x8b":
        return "gzip"
    if len(head) >= 2 and head[0] == 0x78 and int.from_bytes(head[:2], "big") % 31 == 0:
        return "zlib"
    return None


def inflate(
    chunks: Iterable[bytes],
    *,
    form: Form = "gzip",
    limits: InflateLimits | None = None,
    on_member: OnMember | None = None,
    to_last_byte: bool = False,
) -> Iterator[bytes]:
    """Yield the contents of a compressed stream in pieces of at most 1 MiB; none of its `chunks` is empty.

    With `to_last_byte` also what comes of a chunk before its damage, which takes longer. The last piece comes before
    the end is proven: take the stream for whole only when the iterator has ended. Raises `InflateError`: a member is
    damaged or cut, something follows the last one, or a limit is passed.
    """
    limits = limits or InflateLimits()
    flag = igzip_lib.DECOMP_GZIP if form == "gzip" else igzip_lib.DECOMP_ZLIB
    source = _Source(iter(chunks))
    made = 0
    while True:
        start = source.offset
        if on_member is not None:
            on_member(start, made)
        member = _CarefulInflater(form) if to_last_byte else igzip_lib.IgzipDecompressor(flag)
        for piece in _inflate_member(member, source, start, form):
            made += len(piece)
            _check_limits(made, source.taken, limits)
            yield piece
        source.end_member(member.unused_data)
        if not source.more(2):
            return
        if form == "zlib" or source.head != b"\x1f\x8b":
            raise InflateError(source.offset, f"bytes that are not {form} data follow the end of the stream")


class _Source:
    """The compressed bytes: a slice of a chunk at a time, with those back that a member did not use.

    Inflaters copy what they do not use. A member's first slice is short, so that thousands of tiny members in a chunk
    do not copy it thousands of times.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._chunk, self._at = b"", 0
        self._slice_bytes = _FIRST_SLICE
        self.taken = 0

    @property
    def offset(self) -> int:
        return self.taken - len(self._chunk) + self._at

    @property
    def head(self) -> bytes:
        return self._chunk[self._at : self._at + 2]

    def take(self) -> bytes:
        if not self.more(1):
            return b""
        taken = self._chunk[self._at : self._at + self._slice_bytes]
        self._at += len(taken)
        self._slice_bytes *= 2
        return taken

    def end_member(self, unused: bytes) -> None:
        self._at -= len(unused)
        self._slice_bytes = _FIRST_SLICE

    def more(self, wanted: int) -> bool:
        """Return whether any byte is left, with `wanted` of them at hand if there are as many."""
        while len(self._chunk) - self._at < wanted and (chunk := next(self._chunks, b"")):
            self.taken += len(chunk)
            self._chunk, self._at = self._chunk[self._at :] + chunk, 0
        return self._at < len(self._chunk)


class _CarefulInflater:
    """Inflates as `IgzipDecompressor` does, and gives what comes before a damage before it raises the error."""

    def __init__(self, form: Form) -> None:
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | (16 if form == "gzip" else 0))
        self._left = b""
        self._error: zlib.error | None = None

    @property
    def eof(self) -> bool:
        return self._inflater.eof and self._error is None

    @property
    def needs_input(self) -> bool:
        return not self._left and self._error is None

    @property
    def unused_data(self) -> bytes:
        return self._inflater.unused_data

    def decompress(self, data: bytes, most: int) -> bytes:
        if self._error is not None:
            raise self._error
        data, before = self._left or data, self._inflater.copy()
        try:
            piece = self._inflater.decompress(data, most)
            self._left = b"" if self._inflater.eof else self._inflater.unconsumed_tail
        except zlib.error as error:
            self._error, pieces = error, []
            with contextlib.suppress(zlib.error):
                for place in range(len(data)):
                    pieces.append(before.decompress(data[place : place + 1]))  # noqa: PERF401 - those before the error
            return b"".join(pieces)
        return piece


def _inflate_member(
    member: igzip_lib.IgzipDecompressor | _CarefulInflater, source: _Source, start: int, form: Form
) -> Iterator[bytes]:
    while not member.eof:
        data = source.take() if member.needs_input else b""
        if member.needs_input and not data:
            raise InflateError(source.offset, f"the {form} stream is cut: its end and its checksum are missing")
        try:
            piece = member.decompress(data, _OUTPUT_BYTES)
        except (igzip_lib.IsalError, zlib.error) as error:  # type: ignore[misc]  # its stub says an instance
            raise InflateError(start, f"the {form} member that begins here is damaged ({error})") from None
        if piece:
            yield piece


def _check_limits(made: int, taken: int, limits: InflateLimits) -> None:
    if limits.output_bytes is not None and made > limits.output_bytes:
        raise InflateError(taken, f"more than the {limits.output_bytes} bytes of output that are allowed")
    if made > limits.ratio_from_bytes and made > limits.ratio * taken:
        raise InflateError(
            taken,
            f"{taken} bytes became {made}, more than {limits.ratio:g} times as many: a decompression bomb? "
            f"If it is meant, decompress the file first",
        )
