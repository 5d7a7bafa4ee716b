"""A command as its user types it: how it ended, and what it printed; the fixture `shardmill` runs it here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Screen:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


Shardmill = Callable[..., Screen]
