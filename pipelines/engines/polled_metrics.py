"""How much a job has staged. Its engine is asked at most every few seconds, because each question is a request.

Neither the live line nor the end of a run waits long for an engine that does not answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread
from typing import Final

from ..report.summary import Counted

_SECONDS: Final = 3.0
_PATIENCE_SECONDS: Final = 1.0


class ThrottledCount:
    """A `Count` that remembers the last answer; `ask` returns None if the engine does not answer."""

    def __init__(self, ask: Callable[[], Counted | None]) -> None:
        self._ask = ask
        self._known = Counted()
        self._asked = float("-inf")
        self._asking: Thread | None = None

    def __call__(self) -> Counted:
        under_way = self._asking is not None and self._asking.is_alive()
        if not under_way and time.monotonic() - self._asked >= _SECONDS:
            self._asked = time.monotonic()
            self._asking = Thread(target=self._look, name="count", daemon=True)
            self._asking.start()
            self._asking.join(_PATIENCE_SECONDS)
        return self._known

    def _look(self) -> None:
        self._known = self._ask() or self._known
