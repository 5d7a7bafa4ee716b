"""Real commands die by `kill -9` at random moments: 2 of each command here, 100 of each in `long`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..tiers import but_some_thorough

pytestmark = pytest.mark.engine

Deaths = Callable[[str, int, int], dict[str, Any]]
Say = Callable[[str, str], None]

KILLS = 2
SEED = 20261121


@pytest.mark.parametrize(
    "command",
    but_some_thorough(
        [],
        ["create", "append", "merge", "gc-much"],
        "each death is one of the real command, which loads the engine",
        ["create", "append"],
    ),
)
def test_a_command_that_is_killed_leaves_the_old_or_the_new_generation_and_is_ended_by_itself(
    deaths: Deaths, say: Say, command: str
) -> None:
    report = deaths(command, KILLS, SEED)
    kills, unfinished = report["kills"], report["unfinished"]
    say(
        "faults",
        f"kill -9 of {command}: {len(kills)} deaths, {unfinished} unfinished, newest generations after them "
        f"{sorted({kill['generation'] for kill in kills})}, {report['seconds']:.0f} s",
    )
