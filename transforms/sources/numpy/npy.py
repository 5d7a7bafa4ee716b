r"""Parse the header of a `.npy` file, without numpy's loader and so without a way to a pickle.

    \x93NUMPY | 1 0 | header's length | {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} \n | data
    6 bytes    | 2   | 2; 4 from 2.0 | at most 10,000                                                 |

https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...format.wording.hints import Set
from ...format.wording.printable import printable

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
