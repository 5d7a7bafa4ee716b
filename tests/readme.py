"""What tests read of README: its commands' pages, and its programs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

REPO = Path(__file__).parent.parent
README = REPO / "README.md"
PAGES = (README, REPO / "docs/guide.md")
"""The pages whose commands are run."""


def programs(*, of: str | None = None, without: Sequence[str] = ()) -> list[str]:
    """Return README's Python programs: those that import `of`, or those that import none of `without`."""
    found: list[str] = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    imports = [re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE) for program in found]
    if of is not None:
        return [program for program, names in zip(found, imports, strict=True) if of in names]
    return [program for program, names in zip(found, imports, strict=True) if not set(names) & set(without)]
