"""docs/guarantees.md names tests that there are, for each promise of docs/dev/design.md."""

from __future__ import annotations

import re
from pathlib import Path

REPO = Path(__file__).parent.parent
DOC = (REPO / "docs/guarantees.md").read_text()


def named_tests() -> list[tuple[str, str | None]]:
    """Return the files and functions that the page names; `::name` goes with the file before it."""
    found: list[tuple[str, str | None]] = []
    for path, name in re.findall(r"`(tests/[\w/.]+)?(?:::(\w+))?`", DOC):
        if path or name:
            found.append((path or found[-1][0], name or None))
    return found


def test_every_test_that_is_named_exists() -> None:
    named = named_tests()
    assert len(named) > 50
    missing = []
    for path, name in named:
        there = (REPO / path).is_file() if name else (REPO / path).exists()
        if not there or (name and not re.search(rf"^ *def {name}\(", (REPO / path).read_text(), re.MULTILINE)):
            missing.append(f"{path}::{name}" if name else path)
    assert not missing


def test_every_promise_is_proven_by_a_test_or_more() -> None:
    promises = re.findall(r"^(\d)\. \*\*", (REPO / "docs/dev/design.md").read_text(), re.MULTILINE)
    rows = re.findall(r"^\| (\d)\. [^|]+\| (.*) \|$", DOC, re.MULTILINE)
    assert [number for number, _ in rows] == promises
    assert all("`tests/" in proof for _, proof in rows)
