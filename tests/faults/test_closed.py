"""Folders and files that may not be read or written are told in one line, and cost no record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

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
