"""docs/dev/testing.md names each test that has left the quick tier, and why; and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import tiers
from .conftest import COLLECTED

TESTS = Path(__file__).parent
ROWS = re.findall(r"^\| `tests/\S+::\S+` \| .* \|$", (TESTS.parent / "docs/dev/testing.md").read_text(), re.MULTILINE)


def file_of(row: str) -> str:
    return row[3:].partition("::")[0]


def test_each_test_that_left_the_quick_tier_is_a_row_with_its_reason(request: pytest.FixtureRequest) -> None:
    """Of the files that were collected, which are all of them unless some are named on the command line."""
    items = request.config.stash[COLLECTED]
    if any("::" in arg for arg in request.config.args):
        pytest.skip("tests are named on the command line: their files are not collected as a whole")
    files = {item.nodeid.partition("::")[0] for item in items}
    rows = [row for row in ROWS if file_of(row) in files or not (TESTS.parent / file_of(row)).is_file()]
    assert rows == [left.row() for left in tiers.left_quick_tier(items)]


def test_the_files_that_are_started_first_exist() -> None:
    assert [name for name in tiers.LONGEST if not (TESTS / name).is_file()] == []
