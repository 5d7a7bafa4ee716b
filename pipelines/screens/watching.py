"""Show the progress of a run that Python calls: in the cell of a notebook, on a terminal, or in a log."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..outcomes.summary import Count, Watch


def watch_of(progress: bool | None) -> Watch | None:  # noqa: FBT001  (an argument of the public calls, passed on)
    """Return what shows the progress of a run, None where nothing does.

    It is shown where it is asked for, and by default (None) in a notebook: there somebody waits for the cell.
    """
    if progress is False or (progress is None and "ipykernel" not in sys.modules):
        return None
    from .progress import in_notebook

    return _show if progress or in_notebook() else None


def _show(staging: str, notes: Sequence[str] = (), count: Count | None = None) -> AbstractContextManager[object]:
    from ..outcomes.summary import Counted
    from .progress import NotebookSurface, ProgressWatcher, in_notebook, surface_of
    from .terminal import Terminal, in_lines

    if in_notebook():
        surface = NotebookSurface(tuple(in_lines(note) for note in notes))
        return ProgressWatcher(staging, surface, count=count or Counted)
    terminal = Terminal()
    for note in notes:
        terminal.note(note)
    return ProgressWatcher(staging, surface_of(terminal.err), count=count or Counted)
