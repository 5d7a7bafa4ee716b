"""The pieces of archives: whole samples that follow each other, or what is wrong with the rest of an archive."""

from __future__ import annotations

from dataclasses import dataclass

from ..contract.source import Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePiece(Piece):
    """Samples whose members begin from `start` on and before `stop`, as `Archive.members` counts.

    Their bytes are from `first` to `last` in the archive. `again` has a bit for each sample, set where its key was
    there before; it is empty where all keys are new. `large` has those of samples above a limit. A piece
    with an `error` is one reject, with a code and the offset from which on nothing can be read.
    """

    start: int
    stop: int
    first: int = 0
    last: int = 0
    again: bytes = b""
    large: bytes = b""
    error: str = ""
    code: str = ""
    offset: int = 0
