"""Prove that an input file is still the one that was listed: its size and its time of change."""

from __future__ import annotations

import os

from ..errors import SourceError


def check_stamp(path: bytes, name: str, stamp: tuple[int, int]) -> None:
    """Compare a file with its `stamp` from the listing: size in bytes, mtime in ns.

    Raises:
        SourceError: the file is gone, or is not what it was.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise SourceError(name, f"cannot be read any more: {error.strerror}; run again") from error
    if status.st_size != stamp[0]:
        raise SourceError(
            name, f"changed while it was read: {stamp[0]} bytes when listed, {status.st_size} now; run again"
        )
    if status.st_mtime_ns != stamp[1]:
        raise SourceError(name, "changed while it was read: it was written to after it was listed; run again")
