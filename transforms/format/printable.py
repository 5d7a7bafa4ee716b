"""What data may look like on a terminal and in a log: one line, cut where it is long, nothing that moves a cursor.

Values, names and paths come from files that anyone may have written. Whatever is not printable is escaped, so that data
cannot forge a line of output.
"""

from __future__ import annotations

from typing import Final

VALUE_LIMIT: Final = 80
"""A value is cut at this many characters wherever it is shown: a cell may be megabytes long."""


def printable(value: object) -> str:
    r"""Return a value as one line of at most 80 characters; bytes are read as UTF-8.

    >>> printable(b"caf\xc3\xa9\x1b[2J")
    'café\\x1b[2J'
    """
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, (bytes, bytearray)) else str(value)
    shown = escaped(text[: VALUE_LIMIT + 1])
    return shown if len(shown) <= VALUE_LIMIT else shown[: VALUE_LIMIT - 1] + "…"


def printable_path(path: str | bytes) -> str:
    r"""Return a path as one line, never cut: its end tells the file.

    >>> printable_path(b"data/caf\xe9\n.csv")
    'data/caf\\xe9\\n.csv'
    """
    held = path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape")
    return escaped(held.decode("utf-8", "backslashreplace"))


def counted(number: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "record"), counted(1200, "record")
    ('1 record', '1,200 records')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def escaped(text: str, *, keep: str = "") -> str:
    r"""Return a text of ours, which holds values that are cut already, with all escaped but the characters in `keep`.

    >>> escaped("a\tb\nc", keep="\n")
    'a\\tb\nc'
    """
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape", "backslashreplace").decode() for c in text
    )
