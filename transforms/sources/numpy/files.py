"""Open a NumPy file as named arrays, whether it is a `.npy` with one or a `.npz` with several."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, cast

from ...errors import SchemaError, ShardmillError
from ...format.wording.printable import printable
from ..contract.selection import Selection
from ..contract.source import ListedFile
from ..files.open_file import OpenFile, expect, open_file, size_of
from .npy import HEADER_READ_BYTES, NpyError, NpyHeader, parse_header
from .npz import ZIP_ERRORS, ZIP_MAGIC, array_members, open_npz


@dataclass(frozen=True, slots=True)
class NumpyLimits:
    """The bytes of a batch of whole files, of a batch of rows, and of a piece of rows.

    Tasks are made of pieces: small enough that they come out even, large enough that a file of 1 TB has few.
    """

    file_batch: int = 8 << 20
    row_batch: int = 16 << 20
    piece: int = 4 << 20


@dataclass(frozen=True, slots=True)
class ArrayChoice:
    """Which arrays of a file are read: `feature` names that of a `.npy`, `selection` picks those to keep.

    `record_bytes` caps what one file may take in memory where it is loaded whole, `limits` what is read at a time.
    """

    feature: str
    selection: Selection
    record_bytes: int
    limits: NumpyLimits = field(default_factory=NumpyLimits)

    def pick(self, arrays: dict[str, Any]) -> list[str]:
        """Return the names, sorted. Raises `NpyError` where one that is asked for is not there (BAD_WIDTH)."""
        try:
            return self.selection.pick(sorted(arrays))
        except SchemaError as error:
            raise NpyError("BAD_WIDTH", str(error)) from error


@dataclass(frozen=True, slots=True)
class ArrayStream:
    """An open array: its parsed header, and its file, which is at the beginning of the data.

    `size` is that of the file or member in bytes; `packed` says that it can only be read from front to back.
    """

    header: NpyHeader
    file: OpenFile | IO[bytes]
    size: int
    packed: bool

    def expect(self, start: int, stop: int) -> None:
        if not self.packed:
            expect(cast(OpenFile, self.file), [(start, stop)])

    def read_exactly(self, count: int) -> bytes:
        """Raise `NpyError` where there are fewer bytes (TRUNCATED), or what is packed cannot be unpacked (CORRUPT)."""
        try:
            data = self.file.read(count)
        except ShardmillError:
            raise
        except ZIP_ERRORS as error:
            raise NpyError("CORRUPT", f"it cannot be unpacked: {printable(error)}") from error
        if len(data) != count:
            raise NpyError("TRUNCATED", f"it ends after {len(data)} of {count} bytes of data", f"{len(data)} bytes")
        return data

    def read_to_end(self) -> None:
        """Meet the end of a packed array, which is where `zipfile` compares its CRC32.

        Raises `NpyError` where the CRC32 is wrong, or data follows (CORRUPT).
        """
        try:
            rest = self.file.read(1)
        except ShardmillError:
            raise
        except ZIP_ERRORS as error:
            raise NpyError("CORRUPT", f"it cannot be unpacked: {printable(error)}") from error
        if rest:
            raise NpyError("CORRUPT", "data follows the array")


@contextmanager
def open_arrays(listed: ListedFile, choice: ArrayChoice, *, whole: bool) -> Iterator[dict[str, ArrayStream]]:
    """Open the chosen arrays of a file, sorted by name; each header has been checked against the file's size.

    The kind is detected by content. With `whole`, the file is to be loaded at once, and so must be under the limit.
    Raises `NpyError` where the file or one of its arrays is not sound, or cannot be written.
    """
    limit = choice.record_bytes if whole else None
    with open_file(listed) as file:
        head = file.read(HEADER_READ_BYTES)
        size = size_of(file)
        if not head.startswith(ZIP_MAGIC):
            choice.pick({choice.feature: None})
            header = parse_header(head)
            header.check_size(size)
            if limit is not None and size > limit:
                raise NpyError(
                    "RECORD_TOO_LARGE", f"it has {size} bytes, over limits.record_bytes = {limit}",
                    f"{size} bytes", f"at most {limit} bytes",
                )  # fmt: skip
            file.seek(header.data_offset)
            yield {choice.feature: ArrayStream(header, file, size, packed=False)}
            return
    with open_npz(listed) as archive:
        members = array_members(archive, limit)
        yield {name: _open_member(archive, name, members[name]) for name in choice.pick(members)}


def _open_member(archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> ArrayStream:
    try:
        head = archive.open(info).read(HEADER_READ_BYTES)
        header = parse_header(head)
        header.check_size(info.file_size)
        member = archive.open(info)
        member.read(header.data_offset)
    except NpyError as error:
        raise NpyError(error.code, f'array "{printable(name)}": {error}', error.value, error.expected) from error
    return ArrayStream(header, member, info.file_size, packed=True)
