"""A place in a run where the first that comes is held until a test says so; all who come later pass."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Pause:
    """Wraps a function, and holds its first call that `when` takes, before or after it is made."""

    def __init__(self, when: Callable[..., bool] = lambda *_: True) -> None:
        self.go_on = threading.Event()
        self._held = threading.Event()
        self._when = when
        self._first = threading.Lock()

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            self._stop(*args)
            return function(*args, **more)

        return call

    def after(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            result = function(*args, **more)
            self._stop(*args)
            return result

        return call

    def _stop(self, *args: object) -> None:
        if self._when(*args) and self._first.acquire(blocking=False):
            self._held.set()
            assert self.go_on.wait(300), "held for ever"

    def wait_until_held(self, run: Future[Any]) -> None:
        """Return when the first call is held; fails where the run ends without."""
        while not self._held.wait(0.05):
            assert not run.done(), run.exception()
