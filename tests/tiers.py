"""The two tiers of the suite: which tests have left the quick one, which files of tests are started first, and how many
examples property tests try in which of the profiles `quick`, `ci` and `campaign`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

PROFILES = {"quick": 0.25, "ci": 0.25, "campaign": 20.0}
"""What the examples of a property test are multiplied by."""

PROFILE = os.environ.get("SHARDMILL_EXAMPLES") or ("ci" if os.environ.get("CI") else "quick")


def examples(count: int) -> int:
    """Return how many examples a property test tries, of a number that stands for one twentieth of a campaign."""
    return max(20, int(count * PROFILES[PROFILE]))


LONGEST = (
    "faults/test_every_call.py",
    "test_image.py",
    "flink/test_cluster.py",
    "faults/test_kill.py",
    "contract/test_scale.py",
    "contract/test_hostile_files.py",
    "stores/test_picture_memory.py",
    "fuzz/test_fuzz.py",
    "pipelines/runs/test_resume.py",
    "pipelines/runs/test_convert.py",
    "stores/test_datasets.py",
    "contract/test_promises.py",
    "flink/test_embedded.py",
    "flink/test_memory.py",
    "pipelines/workers/test_worker_processes.py",
    "transforms/test_write.py",
    "stores/test_source_faults.py",
    "stores/test_dataset_races.py",
    "stores/test_table_source.py",
    "stores/test_store_memory.py",
    "contract/test_csv_screens.py",
    "contract/test_memory.py",
    "contract/test_hostile_screens.py",
    "pipelines/runs/test_append.py",
    "pipelines/test_cli.py",
    "faults/test_full_disk.py",
    "tasks/test_task_files.py",
    "transforms/test_lost_elements.py",
    "transforms/test_user_pipelines.py",
    "stores/test_faults.py",
    "stores/test_storage_contract.py",
    "faults/test_closed.py",
    "contract/test_image_folders.py",
    "test_docs.py",
)
"""Files of tests that take long, the longest first: what starts last is short, so that the processes end together."""


@dataclass
class Left:
    """A test that is not in the quick tier, or some of its cases."""

    test: str
    reasons: set[str]
    left: int = 0
    cases: int = 0
    campaigns: int = 0

    def row(self) -> str:
        """Return its line in the table of docs/dev/testing.md."""
        cases = "all" if self.left == self.cases else f"{self.left} of {self.cases}"
        cases += f", {self.campaigns} in campaigns" * (self.campaigns > 0)
        return f"| `{self.test}` | {cases} | {'; '.join(sorted(self.reasons))} |"


def left_quick_tier(items: Sequence[pytest.Item]) -> list[Left]:
    """Return the tests of which a case is marked as thorough, in the order of their names."""
    counted = Counter(_function(item) for item in items)
    found: dict[str, Left] = {}
    for item in items:
        mark = item.get_closest_marker("thorough")
        if mark is not None:
            (reason,) = mark.args
            left = found.setdefault(_function(item), Left(_function(item), set(), 0, counted[_function(item)]))
            left.left += 1
            left.campaigns += item.get_closest_marker("campaign") is not None
            left.reasons.add(reason)
    return [found[test] for test in sorted(found)]


def longest_first(items: list[pytest.Item]) -> None:
    """Order the files of tests; the tests of a file stay in their order."""
    places = {f"tests/{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def _function(item: pytest.Item) -> str:
    """Return a test's file and name, without its class and its parameters: what is named so is one row."""
    path, _, name = item.nodeid.partition("[")[0].partition("::")
    return f"{path}::{name}"


CAMPAIGN = pytest.mark.campaign
"""Marks a case that CI leaves to campaigns, as another case of its test shows the same."""


def of_this_run(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that this run has, and those that only a campaign runs."""
    sides: tuple[list[pytest.Item], list[pytest.Item]] = [], []
    for item in items:
        sides[PROFILE != "campaign" and item.get_closest_marker("campaign") is not None].append(item)
    return sides


def but_some_thorough(
    quick: Iterable[Any], cases: Iterable[Any], reason: str, ci: Iterable[Any] | None = None
) -> list[Any]:
    """Return the cases of a test, those not in `quick` as thorough; CI runs those in `ci`, or all."""
    quick, ci = list(quick), None if ci is None else list(ci)
    thorough = pytest.mark.thorough(reason)
    return [
        case if case in quick else pytest.param(case, marks=[thorough, *([CAMPAIGN] if ci and case not in ci else [])])
        for case in cases
    ]
