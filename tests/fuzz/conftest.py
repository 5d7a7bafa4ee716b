"""What the fuzz tests share: a report of each target, which pytest prints at its end."""

from __future__ import annotations

from typing import Any

import pytest

_reports: list[str] = []


@pytest.fixture(scope="session")
def fuzz_reports() -> list[str]:
    return _reports


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _reports:
        terminalreporter.section("fuzz")
        for line in _reports:
            terminalreporter.line(line)
