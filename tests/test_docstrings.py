"""The examples in the docstrings hold."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def _modules_with_examples() -> list[str]:
    """Return the names of the modules in whose source an example stands."""
    files = sorted(path for folder in ("pipelines", "transforms") for path in (ROOT / folder).rglob("*.py"))
    return [
        ".".join(("shardmill", *path.relative_to(ROOT).with_suffix("").parts))
        for path in files
        if ">>> " in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("name", _modules_with_examples())
def test_the_examples_of_a_module_are_what_it_does(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
