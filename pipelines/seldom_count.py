"""How much a job has staged, asked of its engine every few seconds at most: each look is a request."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from .report import Counted

_SECONDS: Final = 3.0


class SeldomCount:
    """A `Count` that remembers what it was told; `ask` returns None where the engine does not say."""

    def __init__(self, ask: Callable[[], Counted | None]) -> None:
        self._ask = ask
        self._known = Counted()
        self._asked = float("-inf")

    def __call__(self) -> Counted:
        """Return what is known now."""
        now = time.monotonic()
        if now - self._asked >= _SECONDS:
            self._asked = now
            self._known = self._ask() or self._known
        return self._known
