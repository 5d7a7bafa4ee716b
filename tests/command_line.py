"""A command as its user types it: how it ended, and what it printed; the fixture `shardmill` runs it here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import pytest


@dataclass(frozen=True)
class Screen:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


Shardmill = Callable[..., Screen]


def lacking(reason: str) -> NoReturn:
    """Skip where a tool is missing on somebody's machine; in CI that is a failure."""
    if os.environ.get("SHARDMILL_CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def need_program(name: str) -> None:
    if shutil.which(name) is None:
        lacking(f"{name} is not installed: what it would write is not read")
