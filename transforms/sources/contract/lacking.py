"""What to say of files that lack columns of others, where their columns are united."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def lacking_files(files: Sequence[tuple[str, Sequence[str]]]) -> dict[str, str]:
    """Return in which files columns are missing, given the names of files and those of their columns.

    >>> lacking_files([("a.csv", ["id"]), ("b.csv", ["id", "x"]), ("c.csv", ["id"])])
    {'x': 'missing in a.csv and 1 more'}
    """
    had = Counter(name for _, names in files for name in names)
    lacked: dict[str, str] = {}
    for file, names in files:
        own = frozenset(names)
        for name, count in had.items():
            if name not in own and name not in lacked:
                more = len(files) - count - 1
                lacked[name] = f"missing in {file}{f' and {more:,} more' if more else ''}"
    return lacked


def files_apart(files: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return the files of several that have none of the columns of any other one.

    >>> files_apart([("a.csv", ["id"]), ("b.csv", ["id", "x"]), ("c.csv", ["y"])])
    ('c.csv',)
    """
    had = Counter(name for _, names in files for name in names)
    return tuple(file for file, names in files if len(files) > 1 and all(had[name] == 1 for name in names))


def apart_warning(apart: Sequence[str]) -> tuple[str, ...]:
    if not apart:
        return ()
    if len(apart) == 1:
        return (f"{apart[0]}: has no column in common with the other files: is it of the same table?",)
    return (
        f"{apart[0]} and {len(apart) - 1:,} more have no column in common with any other file: are all of the same "
        "table?",
    )
