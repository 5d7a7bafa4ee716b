"""Eight processes append at once: all of them land, in some order, and nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.engine

Program = Callable[..., dict[str, Any]]
Say = Callable[[str, str], None]

WRITERS, ROWS = 8, 25
"""As in races.py, whose files have ids from 1,000 times their number on; every 20th row is rejected."""


def ids_of(files: range) -> list[int]:
    return sorted(i for file in files for i in range(1000 * file, 1000 * file + ROWS) if i % 20 != 7)


@pytest.mark.parametrize("count", [2, pytest.param(6, marks=pytest.mark.thorough("six rounds instead of two"))])
def test_eight_processes_that_append_at_once_all_land(program: Program, say: Say, count: int) -> None:
    rounds = program("races", str(count))["rounds"]
    assert len(rounds) == count
    for number, done in enumerate(rounds):
        assert done["ended"] == [[0, ""]] * WRITERS
        assert (done["doubled"], done["findings"], done["left"]) == ([], [], [])
        if number % 2 == 0:  # each with a file of its own
            assert done["ids"] == ids_of(range(WRITERS + 2))
            assert done["operations"] == ["create"] + ["append"] * WRITERS
        else:  # all of them with the same two files
            assert done["ids"] == ids_of(range(4))
            assert done["operations"][0] == "create"
            assert set(done["operations"][1:]) == {"append"}
            assert 1 <= len(done["operations"][1:]) <= 2
        assert done["generations"] == list(range(1, len(done["operations"]) + 1))
    say("faults", f"appends at once: {count} rounds of {WRITERS} processes")
