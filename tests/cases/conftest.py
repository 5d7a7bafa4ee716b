"""Cases are about what files mean, not about crashes or `--help`: commands are built once, and nothing is synced."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest
from shardmill.pipelines import cli
from typer.main import get_command


@cache
def built() -> Any:
    return get_command(cli.app)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(cli, "app", built())
