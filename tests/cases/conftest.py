"""Cases are about what files mean, not about crashes: nothing is synced."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
