"""Every line that installs something works from a clone: the package is in no index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "configs").glob("*.yaml"),
]
TEXTS += [path for folder in ("pipelines", "transforms") for path in (ROOT / folder).rglob("*.py")]


def test_no_line_installs_the_package_from_an_index() -> None:
    assert [path.name for path in TEXTS if re.search(r"install '?\"?shardmill", path.read_text())] == []


def test_extras_that_are_named_exist() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        name
        for path in TEXTS
        for listed, one in re.findall(r"'\.\[([\w,]+)\]'|--extra (\w+)", path.read_text())
        for name in (listed or one).split(",")
    }
    assert {"aws", "gcp", "dataflow"} <= named <= set(known)
