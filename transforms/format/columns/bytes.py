"""Strings and bytes as views into the column's own memory, checked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from ..buffers.arrow_memory import offsets_of, raw_values, valid_mask
from ..buffers.views import BUFFER_LIMIT, I64, Views, inline_views, reference_views, words_of
from ..schema.column_types import column_type, is_string
from ..schema.schema import Feature
from ..wording.hints import Set, set_column
from ..wording.printable import VALUE_LIMIT, printable
from .numbers import BadValues

Checked = tuple[Views, tuple[pa.Buffer, ...], list[BadValues]]


def bytes_values(values: pa.Array, feature: Feature, field_bytes_limit: int, *, reach: int = BUFFER_LIMIT) -> Checked:
    """Return views of strings, bytes or exact float64 values, and the buffers they refer to.

    What is under nulls is arbitrary. A buffer beyond the `reach` of views is sliced.
    """
    if types.is_float64(values.type):
        exact = raw_values(values, "<f8").view(np.uint32).reshape(-1, 2)
        return inline_views(exact, 8), (), []
    type_ = column_type(feature)
    limit = BUFFER_LIMIT if type_.own_limit else min(field_bytes_limit, BUFFER_LIMIT)
    bad = _too_large(values, limit)
    if bad:
        return np.zeros(len(values), np.complex128), (), bad  # its rows are dropped, and the others come again
    views, buffers = _views(values, reach)
    # A type says what is promised: bytes that the schema calls a string are checked as one.
    if type_.utf8:
        bad = _bad_utf8(values, feature)
    return views, buffers, bad


def _views(values: pa.Array, reach: int) -> tuple[Views, tuple[pa.Buffer, ...]]:
    if types.is_large_binary(values.type) or types.is_large_string(values.type):
        data = values.buffers()[2]
        if data is not None and data.size > reach:
            offsets = offsets_of(values, np.int64)
            span = data.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
            return reference_views(offsets[:-1] - offsets[0], np.diff(offsets), span, 0), (span,)
    array = values if types.is_binary_view(values.type) else values.cast(pa.binary_view())
    if not len(array):
        return np.zeros(0, np.complex128), ()
    _, views, *buffers = array.buffers()
    return np.frombuffer(views, np.complex128, len(array), array.offset * 16), tuple(buffers)


def value_lengths(values: pa.Array) -> I64:
    """Return the length in bytes of each value; under nulls it is arbitrary."""
    arrow = values.type
    if types.is_fixed_size_binary(arrow):
        return np.full(len(values), arrow.byte_width, np.int64)
    if types.is_binary_view(arrow) or types.is_string_view(arrow):
        lengths = raw_values(values, np.complex128)
        return words_of(lengths)[:, 0].astype(np.int64)
    wide = types.is_large_binary(arrow) or types.is_large_string(arrow)
    return np.diff(offsets_of(values, np.int64 if wide else np.int32))


def _too_large(values: pa.Array, limit: int) -> list[BadValues]:
    lengths = value_lengths(values)
    if not len(lengths) or int(lengths.max()) <= limit:
        return []
    valid = valid_mask(values)
    over = np.flatnonzero(lengths > limit if valid is None else (lengths > limit) & valid)
    if not len(over):
        return []
    raised = Set("limits.field_bytes", int(lengths[over].max()))
    says = f"is longer than {limit} bytes; raise the limit: {raised}"
    return [BadValues(over, "FIELD_TOO_LARGE", f"at most {limit} bytes", lambda i: f"{lengths[i]} bytes", says)]


def _bad_utf8(values: pa.Array, feature: Feature) -> list[BadValues]:
    """Find the values that are not UTF-8: first whether all are ASCII, then whether all are valid, then which not."""
    if _all_ascii(values):
        return []
    strings = values if is_string(values.type) else _as_strings(values)
    if strings is not None and _is_valid(strings):
        return []
    shown = _starts_of(values)
    bad = [row for row, value in enumerate(_bytes_of(values)) if value is not None and not _is_utf8(value)]
    if not bad:
        return []
    fix = f"declare it as bytes: {set_column(feature.name, 'type', 'bytes')}"
    return [BadValues(np.array(bad, np.int64), "BAD_UTF8", "UTF-8 text", shown, "is not UTF-8", fix)]


def _all_ascii(values: pa.Array) -> bool:
    """Return whether a column's memory is ASCII alone, where it is in one piece: a tenth of the cost of validation."""
    arrow = values.type
    if not (types.is_string(arrow) or types.is_large_string(arrow) or types.is_binary(arrow)):
        return False
    offsets = offsets_of(values, np.int64 if types.is_large_string(arrow) else np.int32)
    data = values.buffers()[2]
    if data is None or offsets[0] == offsets[-1]:
        return True
    text: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    whole = len(text) & ~7
    words = text[:whole].view(np.uint64)
    return not (int(np.bitwise_or.reduce(words)) & 0x8080808080808080 or int(np.bitwise_or.reduce(text[whole:])) & 0x80)


def _as_strings(values: pa.Array) -> pa.Array | None:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return None


def _is_valid(strings: pa.Array) -> bool:
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _bytes_of(values: pa.Array) -> list[bytes | None]:
    found: list[bytes | None] = values.cast(pa.large_binary()).to_pylist()
    return found


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _starts_of(values: pa.Array) -> Callable[[int], str]:
    raw = values.cast(pa.large_binary())

    def show(position: int) -> str:
        # Cut before it is decoded: a cell may be megabytes long.
        return printable(raw[position].as_py()[: 4 * VALUE_LIMIT + 4])

    return show
