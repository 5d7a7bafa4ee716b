"""What tests read of README and the guide: their commands, programs, and what README shows of its screens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

REPO = Path(__file__).parent.parent
README = REPO / "README.md"
PAGES = (README, REPO / "docs/guide.md")
"""The pages whose commands are run."""


def programs(*, of: str | None = None, without: Sequence[str] = ()) -> list[str]:
    """Return the Python programs of the pages: those that import `of`, or those that import none of `without`."""
    text = "\n".join(page.read_text() for page in PAGES)
    found: list[str] = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    imports = [re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE) for program in found]
    if of is not None:
        return [program for program, names in zip(found, imports, strict=True) if of in names]
    return [program for program, names in zip(found, imports, strict=True) if not set(names) & set(without)]


def recipes(having: str = "") -> list[tuple[list[str], list[str]]]:
    """Return what README's blocks tell to type, each with the lines that it shows behind them; those with `having`."""
    blocks = re.findall(
        r"^```sh\n((?:(?!^```).)*)^```\n+```text\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE
    )
    return [(typed.splitlines(), shown.splitlines()) for typed, shown in blocks if having in typed]
