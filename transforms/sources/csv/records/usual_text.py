r"""Write records of an odd dialect as Arrow reads them: without comments, and without blanks around cells.

    raw      # made by x \n  1 ,  "a b" , c\n        trim, comment: "#"
    usual    1,"a b",c\n

Arrow takes escapes itself, and so they stay.
"""

from __future__ import annotations

import numpy as np

from .odd_dialects import Flags, Positions, without_escapes
from .quote_bits import CR, LF, Bytes, Dialect
from .record_starts import quote_states, record_ends


def usual_text(text: bytes, dialect: Dialect) -> bytes:
    """Return whole records as they are without comments, and without blanks around cells; others as they are."""
    if not dialect.is_odd:
        return text
    if dialect.comment is not None:
        text = _without_comments(text, dialect)
    if dialect.trim and text:
        text = _without_blanks(np.frombuffer(text, np.uint8), dialect)
    if dialect.escape is not None and (len(text) - len(text.rstrip(bytes([dialect.escape])))) % 2:
        text += bytes([dialect.escape])  # at the end of the file it escapes nothing, and stays
    return text


def padded(text: bytes, dialect: Dialect, missing: dict[int, int], cell: bytes) -> bytes:
    """Return usual text in which some records have more cells at their end: how many, by the number of the record."""
    found = record_ends(np.frombuffer(text, np.uint8), dialect)
    ends = found.ends[found.of_records]
    more = bytes([dialect.delimiter]) + cell
    parts, done = [], 0
    for record in sorted(missing):
        end = int(ends[record]) if record < len(ends) else len(text)
        end -= end > 0 and end < len(text) and text[end - 1 : end + 1] == b"\r\n"
        parts += [text[done:end], more * missing[record]]
        done = end
    return b"".join([*parts, text[done:]])


def _without_comments(text: bytes, dialect: Dialect) -> bytes:
    data = np.frombuffer(text, np.uint8)
    found = record_ends(data, dialect)
    starts = np.concatenate([np.zeros(1, np.int64), found.ends + 1])
    comments = np.zeros(len(found.ends), bool) if found.comment is None else found.comment
    if found.tail and not comments.any():
        return text
    begins, ends = starts[:-1][comments], starts[1:][comments]
    if not found.tail:
        begins, ends = np.append(begins, starts[-1]), np.append(ends, len(text))
    return data[_ranges_removed(len(text), begins, ends)].tobytes()


def _without_blanks(data: Bytes, dialect: Dialect) -> bytes:
    masked = without_escapes(data, dialect)
    blank = np.isin(masked, np.frombuffer(dialect.blanks, np.uint8))
    edges = np.flatnonzero(np.diff(blank, prepend=False, append=False))
    begins, ends = edges[::2], edges[1::2]
    positions, states = quote_states(masked, dialect)
    outside = ~states[np.searchsorted(positions, begins)]
    begins, ends = begins[outside], ends[outside]
    fences = [LF, CR] if dialect.delimiter in dialect.blanks else [LF, CR, dialect.delimiter]
    left = (begins == 0) | np.isin(masked[np.maximum(begins - 1, 0)], fences)
    right = (ends == len(data)) | np.isin(masked[np.minimum(ends, len(data) - 1)], fences)
    edge = left | right
    if dialect.delimiter not in dialect.blanks:
        return data[_ranges_removed(len(data), begins[edge], ends[edge])].tobytes()
    data = data.copy()
    data[begins] = dialect.delimiter  # of a run between two cells the first blank stays
    return data[_ranges_removed(len(data), begins + ~edge, ends)].tobytes()


def _ranges_removed(size: int, begins: Positions, ends: Positions) -> Flags:
    steps = np.zeros(size + 1, np.int8)
    np.add.at(steps, begins, 1)
    np.add.at(steps, ends, -1)
    kept: Flags = np.cumsum(steps[:-1], dtype=np.int8) == 0
    return kept
