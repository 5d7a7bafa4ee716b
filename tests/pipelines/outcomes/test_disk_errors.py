"""What a disk refuses is its owner's matter: it is told in one line, and nothing is committed."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shardmill.pipelines.outcomes.disk_errors import DiskError, disk_error

from ...command_line import Shardmill

_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
from shardmill.pipelines.cli import main
main(sys.argv[1:])
"""
"""A limit on the size of a file stands for a full disk: the system refuses the write in the same place."""


@pytest.mark.parametrize(
    "workers", [pytest.param(1, marks=pytest.mark.thorough("two workers are in the quick tier")), 2]
)
def test_a_full_disk_ends_a_run_with_one_line_and_without_a_generation(tmp_path: Path, workers: int) -> None:
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"{i},{i * 7}\n" for i in range(20_000)))
    args = ("convert", "a.csv", "-o", "out", "--json", "--workers", str(workers))
    command = [sys.executable, "-c", _LIMITED, *args]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith(f"error: {os.strerror(errno.EFBIG)}: out/.staging/")
    assert ": nothing was committed; the staged work is in out/" in line
    assert line.endswith("; make room there, and run the command again")
    assert "Traceback" not in ended.stderr
    assert "report it" not in ended.stderr
    assert json.loads(ended.stdout)["error"]["message"] == line.removeprefix("error: ")
    assert not os.path.exists(tmp_path / "out" / "manifest.json")


def test_what_a_disk_refuses_is_told_from_other_errors_however_an_engine_wraps_it() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out/a")
    wrapped = RuntimeError("it failed")
    wrapped.__cause__ = full
    cause = "OSError: [Errno 28] No space left on device\n\nThe above exception was the direct cause of the following"
    as_text = RuntimeError(f"{cause}:\n\nTraceback:\n  File ...\nOSError: {full} [while running 'Stage']\n")
    for error in (full, wrapped, as_text):
        assert disk_error(error) == DiskError("No space left on device", "out/a", "make room there", lasts=True)
    for other in (OSError(errno.ENOENT, "gone"), RuntimeError("OSError: [Errno 2] gone"), ValueError("[Errno 28]")):
        assert disk_error(other) is None


def test_a_name_that_is_too_long_is_no_fault_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shardmill: Shardmill
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id\n1\n")
    ended = shardmill("convert", "a.csv", "-o", "o" * 300)
    assert ended.code in (1, 2)
    assert ended.err.startswith("error: File name too long: ")
    assert "choose a shorter one (255 bytes for each name)" in ended.err


def test_of_two_names_the_new_one_is_told() -> None:
    link = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "staged/a", None, "out/a")
    as_text = RuntimeError(f"  File ...\nPermissionError: {link} [while running 'Publish shards']")
    for error in (link, as_text):
        told = disk_error(error)
        assert told is not None
        assert (told.words, told.path) == ("Permission denied", "out/a")


def test_an_error_without_a_name_is_told_by_the_words_of_the_system() -> None:
    assert disk_error(OSError(errno.EIO, os.strerror(errno.EIO))) == disk_error(
        RuntimeError("OSError: [Errno 5] Input/output error [while running 'Stage']")
    )
