"""What the fault tests share: programs of this folder run in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
MEMORY = "/dev/shm"
IN_MEMORY = {"sweep"}
"""Programs that make and remove thousands of files, which takes less time on a file system in memory."""

ROOM = 50_000_000
"""Bytes that must be free in memory for that; a few are used."""

Program = Callable[..., dict[str, Any]]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what takes an hour, but where it is asked for by name."""
    if collection_path == HERE / "long" and not any("faults/long" in arg for arg in config.args):
        return True
    return None


def _has_room(folder: str) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= ROOM


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run a program of this folder, and return its report."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONWARNINGS"] = "ignore"

    def run(name: str, *args: str, prefix: Sequence[str] = ()) -> dict[str, Any]:
        above = MEMORY if name in IN_MEMORY and _has_room(MEMORY) else tmp_path
        with tempfile.TemporaryDirectory(dir=above, prefix="shardmill-", ignore_cleanup_errors=True) as folder:
            command = [*prefix, sys.executable, str(HERE / f"{name}.py"), folder, *args]
            done = subprocess.run(command, check=False, capture_output=True, env=environment, cwd=tmp_path)
        lines = done.stdout.decode().splitlines()
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-4000:]
        report: dict[str, Any] = json.loads(lines[-1])
        return report

    return run


@pytest.fixture
def deaths(program: Program) -> Callable[[str, int, int], dict[str, Any]]:
    """Kill a command so many times; no death may break a promise, and a third must come in the middle of its work."""

    def kill(command: str, kills: int, seed: int) -> dict[str, Any]:
        report = program("kills", command, str(kills), str(seed))
        bad = [kill for kill in report["kills"] if kill["problems"]]
        assert not bad, bad
        assert len(report["kills"]) == kills
        report["unfinished"] = sum(kill["unfinished"] for kill in report["kills"])
        assert report["unfinished"] >= kills // 3
        return report

    return kill
