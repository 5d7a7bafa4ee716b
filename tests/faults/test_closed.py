"""Folders and files that may not be read or written are told in one line, and cost no record."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines import open_dataset

pytestmark = pytest.mark.engine

Program = Callable[..., dict[str, Any]]
Say = Callable[[str, str], None]

_READS_NO_LIST = ("merge", "one", "0o333")
"""What is named in a manifest is found in a folder that cannot be listed."""


def test_what_is_closed_to_a_command_is_told_by_its_name_and_when_it_is_open_again_the_command_ends(
    program: Program, say: Say
) -> None:
    cases = program("closed")["cases"]
    assert Counter(case["command"] for case in cases) == {"create": 2, "append": 11, "merge": 5, "gc": 6}
    for case in cases:
        assert case["problems"] == [], case
        if (case["command"], case["path"], case["mode"]) == _READS_NO_LIST:
            assert (case["code"], case["err"]) == (0, "")
            continue
        assert case["code"] in (1, 2), case
        lines = case["err"].splitlines()
        assert lines[0].startswith("error: "), case
        assert "Permission denied" in lines[0]
        assert case["path"].removeprefix(".") in lines[0]
        assert "report it" not in case["err"]
        if case["code"] == 2:  # refused before anything is done
            assert not case["changed"], case
    say("faults", f"closed folders and files: {len(cases)}")


DONE = {
    "convert": "generation 1 of out was committed",
    "append": "generation 2 of out was committed",
    "merge": "generation 1 of out was committed",
    "rebuild": "generation 1 of again was committed",
    "adopt": "out was adopted",
    "index": "indexes were written",
    "stats": "stats.json and stats.tfdv of out were written",
    "export": "was written",
    "report": "report.html was written",
    "salvage": "saved/a.tfrecord was written",
}


def test_a_command_whose_standard_output_is_full_says_in_one_line_what_it_has_done(program: Program) -> None:
    cases = program("closed", "unprinted")["unprinted"]
    assert {case["command"][0] for case in cases} == DONE.keys()
    for case in cases:
        (line,) = (line for line in case["err"].splitlines() if line.startswith("error: "))
        assert line.startswith("error: standard output cannot be written: No space left on device; "), case
        assert DONE[case["command"][0]] in line
        assert line.endswith("only the summary is lost")
        assert "nothing was committed" not in case["err"]
        assert "Traceback" not in case["err"]
        assert case["code"] == 1
        assert case["again"][0] in (0, 2, 3), case  # done already, or what was written is in the way


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("convert a.csv -o out", "; generation 1 of out was committed, only the summary is lost"),
        ("convert a.csv -o out --json", "; generation 1 of out was committed, only the summary is lost"),
        ("convert a.csv -o out --dry-run", "; what was to be shown is lost or cut"),
        ("init a.csv -o -", "; what was to be shown is lost or cut"),
        ("--version", ""),
    ],
)
def test_a_standard_output_that_is_closed_is_named_and_takes_no_file_of_the_dataset(
    tmp_path: Path, command: str, said: str
) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    words = ["sh", "-c", f"exec {sys.executable} -m shardmill.pipelines {command} >&-"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"error: standard output cannot be written: Bad file descriptor{said}"


@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full", ">&- 2>&- <&-"])
def test_what_cannot_be_said_on_standard_error_fails_no_run(tmp_path: Path, stream: str) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    quiet = "-q" if ">&- 2" in stream else ""
    words = ["sh", "-c", f"exec {sys.executable} -m shardmill.pipelines convert a.csv -o out {quiet} {stream}"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["id"] for row in open_dataset(tmp_path / "out")] == [1]
