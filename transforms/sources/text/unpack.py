"""Unpack text in gzip, bzip2, xz or zstd, known by its first bytes, with proof that the end is there.

Most readers take a stream that is cut, or that something else follows, for a whole one. Here each stream of a file must
end, with its checksum where it has one, and only another stream may follow: files that were packed apart concatenate.
What comes out at a time is at most 1 MiB, whatever a file says of itself.
"""

from __future__ import annotations

import bz2
import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from ...errors import SourceError
from ...format.tfrecord.gzip_members import InflateError, inflate

_SUFFIXES: Final = (".gz", ".gzip", ".bz2", ".bzip2", ".xz", ".zst", ".zstd")
_OUTPUT_BYTES: Final = 1 << 20

_XZ_MEMORY: Final = 1 << 30
"""The most that the dictionary of an xz stream may take; `xz -9` needs 65 MB."""

_FIRST_BYTES: Final = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38\x50\x90)", re.DOTALL),
    "xz": re.compile(rb"\xfd7zXZ\0"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL),  # or a frame that readers skip
}


def sniff_packing(head: bytes) -> str | None:
    r"""Return how a file is packed whose first bytes, ten at least, are these; None if it is not.

    >>> sniff_packing(b"\x1f\x8b..."), sniff_packing(b"BZh, a b c"), sniff_packing(b"id,name\n")
    ('gzip', None, None)
    """
    return next((name for name, begins in _FIRST_BYTES.items() if begins.match(head)), None)


def says_packed(name: str) -> bool:
    return name.lower().endswith(_SUFFIXES)


def unpacked(blocks: Iterable[bytes], packing: str, name: str) -> Iterator[bytes]:
    """Yield the contents of a packed file, in pieces of at most 1 MiB; they are whole when the iterator has ended.

    Raises `SourceError` where a stream is damaged or cut, or something that is none follows the last one.
    """
    if packing == "gzip":
        try:
            yield from inflate(blocks)
        except InflateError as error:
            raise SourceError(name, str(error)) from error
    elif packing == "zstd":
        yield from _unzstd(blocks, name)
    else:
        yield from _by_streams(blocks, packing, name)


_CUT: Final = ": its end is missing"

_STREAMS: Final[dict[str, Callable[[], Any]]] = {
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY),
}


def _by_streams(blocks: Iterable[bytes], packing: str, name: str) -> Iterator[bytes]:
    source, left, taken = iter(blocks), b"", 0
    while True:
        stream, start = _STREAMS[packing](), taken - len(left)
        while not stream.eof:
            if stream.needs_input and not left:
                left = next(source, b"")
                taken += len(left)
                if not left:
                    raise SourceError(name, f"the {packing} stream is cut{_CUT}")
            try:
                piece, left = stream.decompress(left, _OUTPUT_BYTES), b""
            except (OSError, lzma.LZMAError) as error:
                what = "damaged" if not start else f"damaged, or is not {packing} data"
                where = f"from byte {start} of the compressed file on"
                raise SourceError(name, f"the {packing} stream {where} is {what} ({error})") from error
            if piece:
                yield piece
        padding = b"\0" if packing == "xz" else b""  # its streams are filled up to four bytes
        left = stream.unused_data.lstrip(padding)
        while not left:
            block = next(source, b"")
            if not block:
                return
            taken += len(block)
            left = block.lstrip(padding)


def _unzstd(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    try:
        with pa.CompressedInputStream(pa.PythonFile(_Blocks(iter(blocks)), mode="r"), "zstd") as stream:
            while piece := stream.read(_OUTPUT_BYTES):
                yield piece
    except OSError as error:
        if "Truncated" in str(error):
            raise SourceError(name, f"the zstd stream is cut{_CUT}") from error
        what = "the compressed file is damaged, or bytes that are not zstd data follow its end"
        raise SourceError(name, f"{what} ({error})") from error


class _Blocks:
    """Blocks as a file that Arrow reads from."""

    closed = False

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left = blocks, b""

    def read(self, size: int) -> bytes:
        self._left = self._left or next(self._blocks, b"")
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    def close(self) -> None:
        """Leave the file open: its owner closes it."""
