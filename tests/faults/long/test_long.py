"""A hundred deaths of each command, every fault at every call, and deaths at the tasks of all pairs of settings.

They are not a part of CI, as they take an hour and a half.

uv run pytest tests/faults/long
SHARDMILL_KILLS=1000 SHARDMILL_KILLS_SEED=7 uv run pytest tests/faults/long
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ...pipelines.runs.test_killed_pairs import PAIRS, assert_resumed_on_and_on, command_of, desk_with, refusal_of
from ..test_every_call import assert_kept
from ..test_upkeep import COMMANDS

Deaths = Callable[[str, int, int], dict[str, Any]]
Program = Callable[..., dict[str, Any]]
Say = Callable[[str, str], None]

KILLS = int(os.environ.get("SHARDMILL_KILLS", "100"))
SEED = int(os.environ.get("SHARDMILL_KILLS_SEED", "20261122"))
"""Another one than in CI."""


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize(
    ("command", "outcomes"),
    [("create", 2), ("exact", 2), ("shuffle", 2), ("append", 2), ("merge", 2), ("rebuild", 2), ("gc-much", 1)],
)
def test_a_hundred_deaths_of_each_command_cost_no_record(deaths: Deaths, say: Say, command: str, outcomes: int) -> None:
    report = deaths(command, KILLS, SEED)
    kills, unfinished = report["kills"], report["unfinished"]
    newest = [kill["generation"] for kill in kills]
    if KILLS >= 100:
        assert len(set(newest)) == outcomes  # some died before the commit, some after it
    say(
        "faults",
        f"{datetime.now(UTC):%Y-%m-%d}, seed {SEED}: {len(kills)} deaths of {command}, {unfinished} unfinished, "
        f"{newest.count(max(newest))} after the commit, {report['seconds']:.0f} s",
    )


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_hundred_deaths_of_each_command_that_writes_beside_a_dataset_leave_nothing_behind(
    program: Program, say: Say, command: str
) -> None:
    cases = program("upkeep", command, str(KILLS), str(SEED))["cases"]
    bad = [case for case in cases if case["problems"]]
    assert not bad, f"{len(bad)} of {len(cases)} cases: {bad[:3]}"
    assert len(cases) == KILLS
    half = sum(case["half"] for case in cases)
    say("faults", f"seed {SEED}: {len(cases)} deaths of {command}, {half} of them half done")


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("command", ["create", "append", "merge", "gc"])
def test_every_fault_at_every_call_costs_no_record(program: Program, say: Say, command: str) -> None:
    report = program("sweep", command, "all")
    assert_kept(report)
    tried = {(*case["call"], case["fault"]) for case in report["cases"]}
    faults = {True: ["EIO"], False: ["KILL", "ENOSPC", "EIO"]}
    assert tried == {(*call, fault) for call in report["calls"] for fault in faults[call[0] == "look"]}
    say("faults", f"{command}: {len(tried)} faults at every call, {report['seconds']:.0f} s")


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("pair", [pair for pair in PAIRS if refusal_of(pair) is None])
def test_settings_that_are_killed_at_their_tasks_again_and_again_end_in_the_bytes_of_an_undisturbed_run(
    pair: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk_with(22_000, tmp_path, capsys) as desk:  # of several buckets and tasks as the product cuts them
        desk.kills = True
        assert_resumed_on_and_on(desk, *command_of(pair), "--shard-size", "1MiB", "--workers", "2")
