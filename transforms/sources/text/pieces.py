"""The pieces of files of text: whole records that follow each other, with what is before them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeVar

from ..contract.source import ListedFile, Piece, Stamp


@dataclass(frozen=True, slots=True)
class Cut:
    """A record start: its offset, and the non-blank records, blank lines and line ends before it."""

    offset: int
    records: int
    blanks: int
    lines: int


@dataclass(frozen=True, slots=True)
class TextJob:
    """A part of a file whose records are counted by one call: nominal bounds; the text begins at `text_start`."""

    path: bytes
    name: str
    stamp: Stamp
    text_start: int
    start: int
    stop: int


def text_jobs(file: ListedFile, text_start: int, job_bytes: int) -> list[TextJob]:
    edges = [*range(text_start, file.stamp.size, job_bytes), file.stamp.size]
    return [TextJob(file.path, file.name, file.stamp, text_start, *bounds) for bounds in pairwise(edges)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece(Piece):
    """Whole records of a file, about 1 MiB, more of wide ones; of a compressed file, or in UTF-16 and the like, all.

    `before` is where it starts, and the records, blank lines and lines between the first record of the file and there.
    `stop` is the offset of its end.
    """

    holds = (Cut,)

    before: Cut
    stop: int
    streamed: bool


_WIDE: Final = 288
_MOST_TIMES: Final = 5

TextPieceT = TypeVar("TextPieceT", bound=TextPiece)


def times_wider(columns: int) -> int:
    """Return how many times more text of so many columns is in a piece: each costs some 0.1 ms, whatever its rows."""
    return min(max(columns // _WIDE, 1), _MOST_TIMES)


def joined(pieces: Iterable[TextPieceT], most: int) -> Iterator[TextPieceT]:
    held: TextPieceT | None = None
    for piece in pieces:
        if held is None:
            held = piece
        elif (
            piece.before.offset == held.stop  # blank lines between them are in neither
            and held.bytes + piece.bytes <= most
            and held.rows is not None
            and piece.rows is not None
        ):
            held = replace(held, stop=piece.stop, rows=held.rows + piece.rows, bytes=held.bytes + piece.bytes)
        else:
            yield held
            held = piece
    if held is not None:
        yield held
