"""Files that are read at places all over them: the most recently used ones stay open."""

from __future__ import annotations

import os
import resource
import threading
from collections import OrderedDict
from collections.abc import Callable
from io import RawIOBase
from typing import Final

MOST_OPEN: Final = min(max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4, 64), 4096)
"""The most files that are open at a time, of each kind: a quarter of what the process may have."""


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

    def __init__(self) -> None:
        self._open: OrderedDict[int, OpenFile] = OrderedDict()
        self._lock = threading.Lock()

    def at(self, number: int, open_it: Callable[[], RawIOBase]) -> OpenFile:
        """Return the file of a number, which `open_it` opens where it is not open; raises what that raises."""
        with self._lock:
            file = self._open.get(number)
            if file is None:
                file = self._open[number] = OpenFile(open_it())
                if len(self._open) > MOST_OPEN:
                    self._open.popitem(last=False)
            else:
                self._open.move_to_end(number)
            return file
