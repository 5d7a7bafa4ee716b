"""Large pictures take turns: what they take together stays bounded over all threads and worker processes of a run.

    pixels      up to 2 million    nothing is asked
                up to 25 million   beside others of this size, while no larger one is at work
                more               alone

The turns are locks of a file that all workers open, so that the system ends those of a worker that was killed.
"""

from __future__ import annotations

import fcntl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

_SMALL: Final = 2_000_000
_LARGE: Final = 25_000_000

_making: Final = threading.Lock()
_own: list[IO[Any]] = []
_path: list[str] = []


def turns_path() -> str:
    """Return the file whose locks are the turns of this process; it is made at the first call."""
    with _making:
        if not _path:
            _own.append(tempfile.NamedTemporaryFile(prefix="shardmill-turns-"))  # noqa: SIM115 - gone with the process
            _path.append(_own[0].name)
        return _path[0]


def share_turns(path: str) -> None:
    """Take turns with the process that gave the path."""
    _path[:] = [path]


@contextmanager
def taking_turns(pixels: int) -> Iterator[None]:
    """Let a block wait, which decodes so many pixels, as long as it and others would take too much memory."""
    if pixels <= _SMALL:
        yield
        return
    with Path(turns_path()).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX if pixels > _LARGE else fcntl.LOCK_SH)
        yield
