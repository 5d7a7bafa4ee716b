"""Prove that an input file is still the one that was listed: its size and its time of change.

Of an object in a store that is proven by each request that reads it: it names the version that was listed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from itertools import groupby
from typing import TypeVar

from ...errors import SourceError
from ...format.wording.printable import printable_path
from ..contract.source import ListedFile, Piece, Task
from .open_file import is_object

PieceT = TypeVar("PieceT", bound=Piece)


def files_of(task: Task, kind: type[PieceT]) -> Iterator[list[PieceT]]:
    """Yield the pieces of each file of a task, and check its stamp before they are read and after."""
    for _, group in groupby(task.pieces, key=lambda piece: piece.entry):
        pieces = [piece for piece in group if isinstance(piece, kind)]
        check_stamp(pieces[0])
        yield pieces
        check_stamp(pieces[0])


def check_stamp(file: ListedFile) -> None:
    """Raise `SourceError` where a file is gone, or is not what it was when it was listed."""
    if is_object(file.path):
        return
    try:
        status = os.stat(file.path)
    except FileNotFoundError as error:
        raise SourceError(file.name, not_here(error, os.path.dirname(file.path))) from error
    except OSError as error:
        raise SourceError(file.name, f"cannot be read any more: {error.strerror}; run again") from error
    size = file.stamp[0]
    if status.st_size != size:
        raise SourceError(
            file.name, f"changed while it was read: {size} bytes when listed, {status.st_size} now; run again"
        )
    if status.st_mtime_ns != file.stamp[1]:
        raise SourceError(file.name, "changed while it was read: it was written to after it was listed; run again")


def not_here(error: OSError, folder: bytes) -> str:
    """Return what is to be said of a file that was listed and is not here: deleted, or never on this machine."""
    return (
        f"cannot be read any more: {error.strerror} (on {socket.gethostname()}). Either it was deleted after it was "
        f"listed, or only the launching machine has {printable_path(folder)}; put that where all workers have it under "
        f"the same path, or run again"
    )
