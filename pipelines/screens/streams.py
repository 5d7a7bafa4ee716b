"""Write to stdout and stderr, which may be closed or on a full disk. Nothing here takes time to import."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import IO, Any


class OutputError(Exception):
    """Standard output cannot be written, as its disk is full or it is closed: the text is the system's words."""


class Stream:
    """A stream of text; an error of standard error is passed over, since there is no place for it."""

    def __init__(self, stream: IO[str], *, may_fail: bool) -> None:
        self._stream, self._may_fail = stream, may_fail

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, call: Callable[[], object]) -> None:
        try:
            call()
        except BrokenPipeError:  # its reader has seen enough
            raise
        except OSError as error:
            if not self._may_fail:
                raise OutputError(error.strerror) from error


def discard_output() -> None:
    """Send nowhere what is left for stdout, which Python writes when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
