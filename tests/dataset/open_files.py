"""Which files this process has open."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def files_open_below(folder: Path) -> list[str]:
    """Return the files below a folder that this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed just then
            found.append(os.readlink(link))
    return [name for name in found if name.startswith(f"{folder}/")]
