"""A command dies at every call that changes a file, and meets a disk that is full or broken: no promise breaks.

The disk fails once at each place of the code that calls; `long` has every fault at every call.
`calls.py` says which calls and which ways, `sweep.py` what is looked at, `states.py` what has to hold at any moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ..tiers import CAMPAIGN

pytestmark = pytest.mark.engine

Program = Callable[..., dict[str, Any]]
Say = Callable[[str, str], None]

KINDS = {"open", "write", "fsync", "link", "rename", "unlink", "mkdir", "rmdir"}


def assert_kept(report: dict[str, Any]) -> None:
    """No case has a problem; the first of those that have are shown."""
    bad = [case for case in report["cases"] if case["problems"]]
    lines = [f"{case['fault']} at {case['call']}: {case['problems']}" for case in bad[:5]]
    assert not bad, "\n".join([f"{len(bad)} of {len(report['cases'])} cases", *lines])


def assert_all_tried(report: dict[str, Any]) -> None:
    """Every call of the undisturbed run was a death, and each place that calls met each error; looks only EIO."""
    tried = {(*case["call"], case["fault"]) for case in report["cases"]}
    assert len(tried) == len(report["cases"])
    killed = {tuple(call) for call in report["calls"] if call[0] != "look"}
    assert {case[:3] for case in tried if case[3] == "KILL"} == killed
    placed = [(tuple(call), (call[0], place)) for call, place in zip(report["calls"], report["places"], strict=True)]
    assert all(place for _, (_, place) in placed), "each call is made by the product"
    for fault in ("ENOSPC", "EIO"):
        wanted = {place for call, place in placed if fault == "EIO" or call[0] != "look"}
        assert {place for call, place in placed if (*call, fault) in tried} == wanted


def assert_committed_from(report: dict[str, Any], generation: int) -> None:
    """A death between the commit and each publish, or after it, leaves the new generation."""
    manifest = f"out/manifests/{generation:08d}.json"
    commit = next(i for i, call in enumerate(report["calls"]) if call[0] == "link" and call[1].endswith(manifest))
    later = {tuple(call) for call in report["calls"][commit + 1 :]}
    published = {call for call in later if call[0] in ("link", "rename") and ".staging" not in call[1].split(" -> ")[1]}
    assert len(published) >= 6  # shards, indexes, lists, sidecars and manifest.json
    killed = {tuple(case["call"]): case["generation"] for case in report["cases"] if case["fault"] == "KILL"}
    assert {call: killed[call] for call in published} == dict.fromkeys(published, generation)


def ends(report: dict[str, Any]) -> dict[str, set[int]]:
    """Return, for each fault, which generations were the newest one after it."""
    return {
        fault: {case["generation"] for case in report["cases"] if case["fault"] == fault}
        for fault in ("KILL", "ENOSPC", "EIO")
    }


@pytest.mark.thorough("each call of a command in a process of its own, and the command again")
@pytest.mark.parametrize(
    ("command", "least", "before", "after"),
    [
        ("exact", 150, 0, 1),  # every call of one without exact splits, and more: see below
        pytest.param("shuffle", 200, 0, 1, marks=CAMPAIGN),
        ("append", 150, 1, 2),
        pytest.param("merge", 120, 0, 1, marks=CAMPAIGN),
        ("gc", 20, 2, 2),
    ],
)
def test_whatever_call_fails_a_dataset_is_the_old_or_the_new_one_and_the_same_command_ends_it(
    program: Program, say: Say, command: str, least: int, before: int, after: int
) -> None:
    report = program("sweep", command)
    assert_kept(report)
    assert_all_tried(report)
    assert report["unseen"] == []  # no byte was written by a call that is not failed here
    made = Counter(call[0] for call in report["calls"] if call[0] != "look")
    assert set(made) <= KINDS
    if command != "gc":
        assert set(made) == KINDS
        assert_committed_from(report, after)
        assert ends(report) == {fault: {before, after} for fault in ("KILL", "ENOSPC", "EIO")}
    assert made.total() >= least, made
    say(
        "faults",
        f"{command}: {len(report['cases'])} faults at {made.total()} calls, {report['states']} states run again, "
        f"{report['seconds']:.0f} s",
    )


def test_a_conversion_with_exact_splits_makes_every_call_of_one_without(program: Program) -> None:
    plain, exact = (
        Counter(map(tuple, program("sweep", command, "1000000")["calls"])) for command in ("create", "exact")
    )
    assert plain.total() > 150
    lost = [call for call in plain - exact if "statistics.json" not in call[1]]  # each shard is counted by itself
    assert lost == []
    assert exact - plain


def test_whatever_kind_of_call_fails_a_dataset_is_the_old_or_the_new_one(program: Program) -> None:
    report = program("sweep", "append", "kinds")
    assert_kept(report)
    tried = {(case["call"][0], case["fault"]) for case in report["cases"]}
    assert tried == {(kind, fault) for kind in KINDS for fault in ("KILL", "ENOSPC", "EIO")} | {("look", "EIO")}
    assert report["unseen"] == []


@pytest.mark.thorough("each case starts the engine")
def test_an_engine_makes_the_same_calls_and_its_errors_are_told_alike(program: Program, say: Say) -> None:
    command = "append"
    report = program("sweep", command, "engine", "kinds")
    assert_kept(report)
    assert len(report["cases"]) > 15
    assert {case["fault"] for case in report["cases"]} == {"KILL", "ENOSPC", "EIO"}
    without = program("sweep", command, "1000000")
    assert sorted(report["calls"]) == sorted(without["calls"])
    say("faults", f"{command} on the engine: {len(report['cases'])} faults, {report['seconds']:.0f} s")


@pytest.mark.thorough("each call on the parts, in each way")
def test_whatever_fails_of_the_parts_of_a_manifest_it_is_the_old_one_or_the_new_one(program: Program, say: Say) -> None:
    report = program("sweep", "append", "parts")
    assert_kept(report)
    assert_all_tried(report)
    made = Counter(call[0] for call in report["calls"])
    assert made["link"] >= 2, made
    written = [case for case in report["cases"] if case["call"][0] != "look"]
    assert {case["generation"] for case in written} == {1}  # parts are made before the commit, and read after it too
    say("faults", f"parts: {len(report['cases'])} faults, {report['seconds']:.0f} s")
