"""The columns in the names of folders, as Hive and Spark write them.

hive/country=de/year=2023/part-0.parquet      two columns, `country` and `year`, that no file holds
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    pass

_PARTITION: Final = re.compile(r"([A-Za-z_][^=/]*)=[^/]*")
_MAGIC: Final = re.compile(r"[*?\[]")


def partition_values(name: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the columns in the folders of a file's name, and their values as they are written there.

    Only folders count that were typed relative, or found below a path.

    >>> partition_values("hive/country=de/year=2024/a.csv", ["hive"])
    {'country': 'de', 'year': '2024'}
    >>> partition_values("/run=3/in/a.csv", ["/run=3/in"])
    {}
    """
    return dict(folder.split("=", 1) for folder in folders_below(name, paths) if _PARTITION.fullmatch(folder))


def folders_below(name: str, paths: Sequence[str]) -> list[str]:
    below = name
    if os.path.isabs(name) or "://" in name:
        roots = [_root(path) for path in paths]
        below = name[max((len(root) for root in roots if f"{name}/".startswith(root)), default=len(name)) :]
    return below.split("/")[:-1]


def _root(path: str) -> str:
    """Return the folder below which a path finds files, with `/`: of a glob, the last one without a sign of a glob."""
    found = _MAGIC.search(path)
    return path[: path.rfind("/", 0, found.start()) + 1] if found else path.rstrip("/") + "/"
