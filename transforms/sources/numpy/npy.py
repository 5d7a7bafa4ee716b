r"""Read the array of a `.npy` file, or those of an `.npz`, without numpy's loader and so without pickles.

    \x93NUMPY | 1 0 | header's length | {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} \n | data
    6 bytes    | 2   | 2; 4 from 2.0 | at most 10,000                                                 |

https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import ast
import errno
import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, Final, cast

import numpy as np
import numpy.typing as npt

from ...errors import SchemaError, ShardmillError
from ...format.wording.hints import Set
from ...format.wording.printable import printable
from ...inputs.contract.selection import Selection
from ...inputs.contract.source import ListedFile
from ...inputs.files.open_file import OpenFile, expect, open_file, open_unbuffered, size_of

HEADER_READ_BYTES: Final = 16 * 1024
"""The most bytes that a header may take; numpy too refuses one of more than 10,000 bytes."""

_MAGIC: Final = b"\x93NUMPY"
HEADER_LIMIT: Final = 10_000
_DTYPE: Final = re.compile(r"[<>|=]?([a-zA-Z])([0-9]*)(\[[0-9]*[a-zA-Z]+\])?")
_KINDS: Final = "biufcMmSU"
_ROWS_ONLY: Final = {"m": "durations", "S": "bytes", "U": "text"}
"""Kinds of dtypes that only columns hold: the bytes of such an array say little to who reads them with TensorFlow."""

_KNOWN: Final = "bool, integers, floats, complex or datetime64"
_MAX_RANK: Final = 64
"""numpy's own limit."""

_LONG: Final = re.compile(r"(?<=[0-9])L(?=[,) ])")
"""Python 2 wrote `(3L,)`."""


class NpyError(ValueError):
    """A `.npy` file cannot be read: `code` is that of its reject, `expected` what should be there."""

    def __init__(self, code: str, message: str, value: str = "", expected: str = "a .npy array") -> None:
        super().__init__(message)
        self.code = code
        self.value = value
        self.expected = expected


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """The contents of a header: the dtype as stored, the shape, the order, and where in the file the data begins."""

    descr: str
    shape: tuple[int, ...]
    fortran_order: bool
    data_offset: int

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        return np.dtype(self.descr)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.stored_dtype.newbyteorder("<")

    @property
    def data_bytes(self) -> int:
        """The size of the data; a Python int, since a hostile shape may have any product."""
        return math.prod(self.shape) * self.stored_dtype.itemsize

    @property
    def kept_order(self) -> bool:
        """Whether the file's bytes are what is written: little-endian, C order."""
        in_c_order = not self.fortran_order or sum(n != 1 for n in self.shape) <= 1
        return in_c_order and self.stored_dtype == self.dtype

    @property
    def is_for_rows(self) -> bool:
        """Whether only rows hold what the array has, and no record the whole of it."""
        return self.dtype.kind in _ROWS_ONLY

    def check_whole(self) -> None:
        """Raise `NpyError` (BAD_DTYPE) where only rows hold such arrays."""
        kind = _ROWS_ONLY.get(self.dtype.kind)
        if kind is not None:
            raise NpyError(
                "BAD_DTYPE",
                f"it holds {kind} (dtype {self.descr}), which only rows do; make each row a record: "
                f"{Set('input.rows', True)}",
                self.descr,
                _KNOWN,
            )

    def check_size(self, size: int) -> None:
        """Check the shape against the size of the whole file (or zip member) in bytes, before anything is allocated.

        Raises `NpyError`: TRUNCATED where the file is too short, CORRUPT where something follows the array.
        """
        expected = self.data_offset + self.data_bytes
        described = f"{self.dtype.name} of shape {_shown_shape(self.shape)}"
        if size < expected:
            raise NpyError(
                "TRUNCATED", f"the header says {described}, which is a file of {expected} bytes; this one has {size}",
                f"{size} bytes", f"{expected} bytes",
            )  # fmt: skip
        if size > expected:
            raise NpyError(
                "CORRUPT", f"{size - expected} bytes follow the array ({described}); save one array in a file",
                f"{size} bytes", f"{expected} bytes",
            )  # fmt: skip

    def little_c_bytes(self, data: memoryview | bytes) -> memoryview:
        """Return the array's bytes, little-endian and in C order; those of `data` itself where they are so already."""
        if self.kept_order or not self.data_bytes:
            return memoryview(data)
        array = np.frombuffer(data, self.stored_dtype).reshape(self.shape, order="F" if self.fortran_order else "C")
        return memoryview(np.ascontiguousarray(array, self.dtype).reshape(-1).view(np.uint8).data)


def parse_header(head: bytes) -> NpyHeader:
    """Parse the header at the beginning of a file; `head` is its first `HEADER_READ_BYTES`, or all of it.

    Raises `NpyError`: it is no `.npy` header (CORRUPT), it is cut (TRUNCATED), or its dtype cannot be written
    (BAD_DTYPE): an object array above all, which is a pickle, and is never loaded.
    """
    if head[:6] != _MAGIC:
        if not head:
            raise NpyError("TRUNCATED", "the file is empty (0 bytes)", "0 bytes")
        if _MAGIC.startswith(head[:6]):
            raise NpyError("TRUNCATED", f"the file ends inside of its header, after {len(head)} bytes")
        raise NpyError("CORRUPT", "it does not begin with the signature of a .npy file", printable(head[:8]))
    version = tuple(head[6:8])
    if len(head) >= 8 and version not in {(1, 0), (2, 0), (3, 0)}:
        raise NpyError("CORRUPT", f"the version of its format is {version[0]}.{version[1]}; 1.0 to 3.0 are known")
    start = 10 if head[6:7] == b"\x01" else 12
    length = int.from_bytes(head[8:start], "little")
    if len(head) >= start and length > HEADER_LIMIT:
        raise NpyError("CORRUPT", f"its header is {length} bytes long; at most {HEADER_LIMIT} are read")
    if len(head) < start + length:
        raise NpyError("TRUNCATED", f"the file ends inside of its header, after {len(head)} bytes")
    text = head[start : start + length].decode("utf-8" if version == (3, 0) else "latin-1", "replace")
    descr, fortran_order, shape = _fields(text)
    return NpyHeader(_canonical(descr), shape, fortran_order, start + length)


def dtype_text(dtype: npt.DTypeLike) -> str:
    """Return the form of a dtype that is in the schema, always little-endian.

    >>> dtype_text(">f4"), dtype_text("bool")
    ('<f4', '|b1')
    """
    return np.dtype(dtype).newbyteorder("<").str


def _fields(text: str) -> tuple[object, bool, tuple[int, ...]]:
    try:
        # Only literals are evaluated, and at most 10,000 characters: longer ones can exhaust the parser's stack.
        fields = ast.literal_eval(_LONG.sub("", text).strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise NpyError("CORRUPT", "its header is not a dictionary of literals", printable(text.strip())) from error
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise NpyError("CORRUPT", "its header does not hold descr, fortran_order and shape", printable(text.strip()))
    order, shape = fields["fortran_order"], fields["shape"]
    if not isinstance(order, bool):
        raise NpyError("CORRUPT", f"fortran_order is {printable(order)}, not True or False", printable(order))
    if not isinstance(shape, tuple) or not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        raise NpyError("CORRUPT", f"its shape {printable(shape)} is not a tuple of sizes", printable(shape))
    if len(shape) > _MAX_RANK:
        raise NpyError("CORRUPT", f"its shape has {len(shape)} axes; at most {_MAX_RANK} are read", printable(shape))
    return fields["descr"], order, shape


def _canonical(descr: object) -> str:
    match = _DTYPE.fullmatch(descr) if isinstance(descr, str) else None
    kind = match[1] if match else ""
    if kind == "O":
        raise NpyError(
            "BAD_DTYPE", "it holds Python objects (a pickle), which are never loaded; save it with a numeric dtype",
            "object", _KNOWN,
        )  # fmt: skip
    try:
        dtype = np.dtype(str(descr)) if match and match[2] and kind in _KINDS else None
    except (TypeError, ValueError, OverflowError):
        dtype = None
    # Extended precision (16-byte floats, 32-byte complex) means another thing on every machine.
    # Values of no bytes would let a small file have any number of them.
    if dtype is None or not dtype.itemsize or (dtype.kind in "fc" and dtype.char in "gG"):
        message = f"its dtype {printable(descr)} is not supported; save it as {_KNOWN}, or for rows as text"
        raise NpyError("BAD_DTYPE", message, printable(descr), _KNOWN)
    return dtype.str


def _shown_shape(shape: tuple[int, ...]) -> str:
    return "(" + printable(", ".join(str(n) for n in shape)) + ")"


# Open the members of a `.npz` file, a zip of `.npy` files, without trusting its sizes.


ZIP_MAGIC: Final = b"PK"
ZIP_ERRORS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    struct.error,
)

DIRECTORY_LIMIT: Final = 64 << 20
"""Bytes of an archive's directory: `zipfile` makes an object of each of its entries, ten times as large."""

_METHODS: Final = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_SUFFIX: Final = ".npy"
_ENCRYPTED: Final = 0x1


class _BoundedFile(io.BufferedReader):
    """A file of which no more is read at once than the `limit`, as long as there is one."""

    limit: int | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        limit = self.limit
        if limit is not None and size is not None and size > limit:
            raise NpyError(
                "CORRUPT", f"the directory of its members has {size} bytes; at most {limit} are read",
                f"{size} bytes", f"at most {limit} bytes",
            )  # fmt: skip
        return super().read(size)


@contextmanager
def open_npz(listed: ListedFile, *, directory_limit: int = DIRECTORY_LIMIT) -> Iterator[zipfile.ZipFile]:
    """Open an archive for the length of a `with`; whatever is wrong with it, then or later, is an NpyError.

    It is damaged or its directory is too large (CORRUPT), or its end is missing (TRUNCATED).
    """
    with _BoundedFile(open_unbuffered(listed)) as file:
        file.limit = directory_limit
        try:
            archive = zipfile.ZipFile(file)
            file.limit = None
        except (NpyError, ShardmillError):
            raise
        except zipfile.BadZipFile as error:
            raise NpyError(
                "TRUNCATED", "its zip directory, at its end, is missing: the file is cut", expected="a .npz file"
            ) from error  # fmt: skip
        except ZIP_ERRORS as error:
            raise NpyError("CORRUPT", f"it is not a sound .npz file: {printable(error)}") from error
        try:
            with archive:
                yield archive
        except (NpyError, ShardmillError):
            raise
        except ZIP_ERRORS as error:
            raise NpyError("CORRUPT", f"it is not a sound .npz file: {printable(error)}") from error
        except OSError as error:
            # A member's offset that is before the file is a seek that the system refuses.
            if error.errno != errno.EINVAL:
                raise
            raise NpyError("CORRUPT", "a member of it is not inside the file") from error


def array_members(archive: zipfile.ZipFile, limit_bytes: int | None) -> dict[str, zipfile.ZipInfo]:
    """Return the arrays of an archive by name, sorted, once their directory entries were looked at.

    `limit_bytes` caps what all of them take unpacked. No cap on the ratio is needed: numpy writes stored and deflated
    members only, others are refused, and deflate cannot exceed 1032 to 1; an array of zeros comes near that by right.
    `zipfile` unpacks no more of a member than its directory entry says. Raises `NpyError`: a member is not an array,
    appears twice, is encrypted or packed by another method (UNSUPPORTED or CORRUPT), or they are over the limit
    (RECORD_TOO_LARGE).
    """
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        shown = printable(info.filename)
        if not info.filename.endswith(_SUFFIX):
            raise NpyError("UNSUPPORTED", f'its member "{shown}" is not a .npy file', shown)
        name = info.filename.removesuffix(_SUFFIX)
        if name in members:
            raise NpyError("CORRUPT", f'two of its members are named "{shown}"', shown)
        if info.flag_bits & _ENCRYPTED:
            raise NpyError("UNSUPPORTED", f'its member "{shown}" is encrypted', shown)
        if info.compress_type not in _METHODS:
            raise NpyError("UNSUPPORTED", f'its member "{shown}" is neither stored nor deflated', shown)
        members[name] = info
    total = sum(info.file_size for info in members.values())
    if limit_bytes is not None and total > limit_bytes:
        raise NpyError(
            "RECORD_TOO_LARGE", f"unpacked it has {total} bytes, over limits.record_bytes = {limit_bytes}",
            f"{total} bytes", f"at most {limit_bytes} bytes",
        )  # fmt: skip
    return dict(sorted(members.items()))


# Open a NumPy file as named arrays, whether it is a `.npy` with one or a `.npz` with several.


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
