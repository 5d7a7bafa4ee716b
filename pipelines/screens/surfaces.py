"""Where the line of a run is shown: live on a terminal, in its place in a notebook, now and then in a log.

terminal    one line that changes, gone in the end
notebook    one output of the cell that changes, and keeps its last state
log         a line that stays: at each tenth of the work, of each phase, and once a minute
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

_LIVE_SECONDS: Final = 0.5

_LOG_SECONDS: Final = 10.0
"""Lines of a log are kept forever: one in ten seconds is enough."""

_SILENT_SECONDS: Final = 60.0
"""So long a log says nothing, at most: a reader sees that the run is alive."""

_WAITING: Final = "Waiting"
"""A line that begins so says what is to be done: it must be read to its end."""


class Surface(ABC):
    """Shows a line again and again, while its context is open; `interval` are the seconds from one to the next.

    With `at_once` the first one is shown at the start, and not after that time. What `keeps` the last line is to show
    how the run ended.
    """

    interval: float
    at_once: bool
    keeps = False

    def __enter__(self) -> Self:
        return self

    def __exit__(  # noqa: B027  (most leave what they have shown)
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave of it what is to stay."""

    @abstractmethod
    def show(self, line: str, share: float | None) -> None:
        """Show the line; `share` is how much of the work is done, from 0 to 1, None where that is unknown."""


class TerminalSurface(Surface):
    """A line of a terminal."""

    interval = _LIVE_SECONDS
    at_once = True

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, line: str, share: float | None) -> None:  # noqa: ARG002
        is_short = not line.startswith(_WAITING)
        self._live.update(Text(line, overflow="ellipsis" if is_short else "fold", no_wrap=is_short), refresh=True)


class LogSurface(Surface):
    """Lines of a file, or of whatever is no terminal."""

    interval = _LOG_SECONDS
    at_once = False

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._last: tuple[str, int] | None = None
        self._shown_at = 0.0

    def show(self, line: str, share: float | None) -> None:
        now = self._clock()
        state = (line if line.startswith(_WAITING) else line.partition(" ")[0], int((share or 0) * 10))
        if state == self._last and now - self._shown_at < _SILENT_SECONDS:
            return
        self._last, self._shown_at = state, now
        self._console.print(Text(line), soft_wrap=True)


class NotebookSurface(Surface):
    """An output of a cell, which is updated; `notes` are above the line."""

    interval = _LIVE_SECONDS
    at_once = True
    keeps = True

    def __init__(self, notes: tuple[str, ...] = ()) -> None:
        self._notes = notes
        self._handle: Any = None

    def show(self, line: str, share: float | None) -> None:
        bar = "" if share is None or line.startswith(_WAITING) else f"  {_bar(share)}"
        content = {"text/plain": "\n".join([*self._notes, f"{line}{bar}"])}
        if self._handle is None:
            self._handle = import_module("IPython.display").display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def surface_of(console: Console) -> Surface:
    return TerminalSurface(console) if console.is_terminal else LogSurface(console)


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook: what is displayed is an output of a cell there."""
    if "IPython" not in sys.modules or "ipykernel" not in sys.modules:
        return False
    shell = import_module("IPython").get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def _bar(share: float, width: int = 20) -> str:
    """Return a share as a bar.

    >>> _bar(0.4, 5)
    '[##...] 40 %'
    """
    done = int(min(max(share, 0.0), 1.0) * width)
    return f"[{'#' * done}{'.' * (width - done)}] {min(max(share, 0.0), 1.0) * 100:.0f} %"
