"""Whatever call of a command is its last: the same command then leaves what an undisturbed one leaves, and no more."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from ..tiers import but_some_thorough

Program = Callable[..., dict[str, Any]]

COMMANDS = ["adopt", "index", "index-again", "stats", "export", "export-pictures", "report", "salvage"]
OTHERS = ["index", "export", "salvage"]
"""Which CI tries besides."""


@pytest.mark.parametrize(
    "command", but_some_thorough(["adopt", "stats"], COMMANDS, "each call of each command is a death", OTHERS)
)
def test_a_command_that_was_killed_at_any_call_is_finished_by_the_same_command_without_leftovers(
    program: Program, command: str
) -> None:
    cases = program("upkeep", command)["cases"]
    bad = [case for case in cases if case["problems"]]
    assert not bad, f"{len(bad)} of {len(cases)} cases: {bad[:3]}"
    assert sum(case["half"] for case in cases) >= 2, "some deaths come between two files"


@pytest.mark.parametrize(
    "command", but_some_thorough(["adopt"], COMMANDS, "each place of each command is a failure of its own", OTHERS)
)
def test_an_error_of_the_disk_names_its_file_and_the_same_command_then_ends(program: Program, command: str) -> None:
    cases = program("upkeep", command, "EIO")["cases"]
    for case in cases:
        assert case["problems"] == [], case
        if case["code"] in (0, 3) and not case["err"]:  # of what is not needed, such as the removal of a lock
            continue
        assert case["code"] in (1, 2), case
        (line,) = (line for line in case["err"].splitlines() if line.startswith("error: "))
        assert re.search(r"Input/output error: \S|\S: cannot be (read|written): Input/output error", line), case
        assert "salvage" not in line, case
