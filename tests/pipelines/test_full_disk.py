"""A full disk is its owner's matter: it is told in one line, and nothing is committed."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shardmill.pipelines.full_disk import full_disk

_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
from shardmill.pipelines.cli import main
main(sys.argv[1:])
"""
"""A limit on the size of a file stands for a full disk: the system refuses the write in the same place."""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_ends_a_run_with_one_line_and_without_a_generation(tmp_path: Path, workers: int) -> None:
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"{i},{i * 7}\n" for i in range(20_000)))
    args = ("convert", "a.csv", "-o", "out", "--json", "--workers", str(workers))
    command = [sys.executable, "-c", _LIMITED, *args]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith(f"error: {os.strerror(errno.EFBIG)}: nothing was committed; the staged work lies in out/")
    assert line.endswith("; make room for the output, or choose another folder (-o), and run the command again")
    assert "Traceback" not in ended.stderr
    assert "report it" not in ended.stderr
    assert json.loads(ended.stdout)["error"]["message"] == line.removeprefix("error: ")
    assert not os.path.exists(tmp_path / "out" / "manifest.json")


def test_a_full_disk_is_told_from_other_errors_however_an_engine_wraps_it() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    wrapped = RuntimeError("it failed")
    wrapped.__cause__ = full
    as_text = RuntimeError(f"Traceback (most recent call last):\n  File ...\nOSError: {full} [while running 'Stage']\n")
    for error in (full, wrapped, as_text):
        assert full_disk(error) == "No space left on device"
    for other in (OSError(errno.ENOENT, "gone"), RuntimeError("OSError: [Errno 2] gone"), ValueError("[Errno 28]")):
        assert full_disk(other) is None
