"""Files that are read at places all over them: the most recently used ones stay open."""

from __future__ import annotations

import os
import resource
import threading
from collections import OrderedDict
from collections.abc import Callable
from io import RawIOBase
from typing import ClassVar, Final

MOST_OPEN: Final = min(max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 8), 8192)
"""The most files that all datasets of a process keep open together: half of what the process may have."""


class OpenFile:
    """A file that stays open as long as anything refers to this; `os.pread` has no place, so that threads share it."""

    __slots__ = ("number",)

    def __init__(self, opened: RawIOBase) -> None:
        with opened:
            self.number = os.dup(opened.fileno())

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # at its end a process takes `os` apart
        if hasattr(self, "number"):
            close(self.number)


class OpenFiles:
    """Open files by number; one that has not been asked for in a long time is closed when its readers are done."""

    _open: ClassVar[OrderedDict[tuple[int, int], OpenFile]] = OrderedDict()
    """All open files of this process, by the identity of their `OpenFiles` and their number; used last, last."""

    _lock: ClassVar = threading.RLock()  # the garbage collector may call `__del__` in a thread that holds it

    def __del__(self) -> None:
        with self._lock:
            for key in [key for key in self._open if key[0] == id(self)]:
                del self._open[key]

    def at(self, number: int, open_it: Callable[[], RawIOBase]) -> OpenFile:
        """Return the file of a number, which `open_it` opens where it is not open."""
        key = (id(self), number)
        with self._lock:
            file = self._open.get(key)
            if file is not None:
                self._open.move_to_end(key)
                return file
            while len(self._open) >= MOST_OPEN:
                self._open.popitem(last=False)
        file = OpenFile(open_it())  # without the lock, as a slow disk would stop all readers
        with self._lock:
            self._open[key] = file
        return file


def _renew_lock() -> None:
    OpenFiles._lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)  # another thread of the parent may have held it
