"""Let large work take turns, so that its memory stays bounded over all threads and worker processes of a run.

                      beside others     alone
    pixels, decoded   over 2 million    over 25 million
    bytes, as rows    over 16 MiB       over 64 MiB         of a picture, a sample of an archive, a batch of Arrow

What takes less is not asked for. A thread that has rows may then wait to decode pixels, and never the other way round.
Turns are locks of files that all workers open: the system ends those of a worker that was killed.
"""

from __future__ import annotations

import fcntl
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

_making: Final = threading.Lock()
_own: list[tempfile.TemporaryDirectory[str]] = []
_path: list[str] = []
_held: Final = Counter[tuple[int, str]]()
"""The turns that threads have, by thread and by the name of what takes turns."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What takes turns: more than `beside` waits for what is alone, more than `alone` for all others."""

    name: str
    beside: int
    alone: int


PIXELS: Final = Shared("pixels", 2_000_000, 25_000_000)
ROW_BYTES: Final = Shared("row-bytes", 16 << 20, 64 << 20)


def turns_path() -> str:
    """Return the folder of the files whose locks are the turns of this process; it is made at the first call."""
    with _making:
        if not _path:
            _own.append(tempfile.TemporaryDirectory(prefix="shardmill-turns-"))  # gone with the process
            _path.append(_own[0].name)
        return _path[0]


def share_turns(path: str) -> None:
    _path[:] = [path]


class Turn:
    """A turn of one thread, which it takes when it needs more, and gives back when that is free again.

    A thread that has one already is not made to wait: nobody else could give it back.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._file: IO[bytes] | None = None
        self._is_alone = False
        self._owner = (0, "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_back()

    def take(self, size: int) -> None:
        alone = size > self._shared.alone
        if size <= self._shared.beside or (self._file is not None and self._is_alone >= alone):
            return
        if self._file is None:
            owner = (threading.get_ident(), self._shared.name)
            if _held[owner]:
                return
            self._file = (Path(turns_path()) / self._shared.name).open("ab")
            self._owner = owner
            _held[owner] += 1
        self._is_alone = alone
        fcntl.flock(self._file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)

    def give_back(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file, self._is_alone = None, False
            _held[self._owner] -= 1


@contextmanager
def taking_turns(shared: Shared, size: int) -> Iterator[None]:
    """Let a block wait as long as so much beside what others have would be too much."""
    with Turn(shared) as turn:
        turn.take(size)
        yield
