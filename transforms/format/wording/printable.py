"""Make text from files safe to print: one line, cut where it is long, no control characters, no credentials.

Values, names and paths come from files that anyone may have written. Whatever is not printable is escaped, so that data
cannot forge a line of output. And whatever gives access is left out: a URL is shown without its user, password, query
and fragment, which is where signatures and tokens are.

    https://ada:pw@host/a.csv?X-Amz-Signature=5f0c   ──▶   https://…@host/a.csv?…
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from ...errors import SchemaError

VALUE_LIMIT: Final = 80
"""A value is cut at this many characters wherever it is shown: a cell may be megabytes long."""


_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:/+)([^\s?#]*@)?([^\s?#]*)([?#](?!…)\S*)?")
"""One slash is enough: a URL that was taken for a path, and made absolute, has no more."""

_SIGNED: Final = re.compile(
    r"(?i)\b((?:x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|awsaccesskeyid|"
    r"signature|sig|(?:access_|refresh_|id_)?token|api_?key|(?:client_)?secret(?:_access_key)?|password|pwd|"
    r"(?:account|sharedaccess)_?key|sharedaccesssignature)=)(?!…)[^&\s]+"
)
"""What carries a signature or a key, also where no scheme is in front."""

_UNSAFE: Final = re.compile(
    "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""What JSON would let through: control characters above 0x20, marks without a width, marks that turn the direction."""


def redacted(text: str) -> str:
    """Return a text whose URLs have no user, password, query and fragment.

    >>> redacted("s3://key:secret@bucket/a.csv?versionId=1 is gone")
    's3://…@bucket/a.csv?… is gone'
    """
    text = _redacted_urls(text)
    return _SIGNED.sub(r"\1…", text) if "=" in text else text


def _redacted_urls(text: str) -> str:
    return _URL.sub(_bare_url, text) if ":/" in text else text


def _bare_url(match: re.Match[str]) -> str:
    scheme, user, rest, secret = match.groups()
    return f"{scheme}{'…@' if user else ''}{rest}{secret[0] + '…' if secret else ''}"


def safe_json(text: str) -> str:
    r"""Return JSON with what a terminal might obey as JSON's own escapes: the same document.

    >>> safe_json('"caf\u00e9 \u202e \x9b2J"')
    '"café \\u202e \\u009b2J"'
    """
    return text if text.isascii() and "\x7f" not in text else _UNSAFE.sub(lambda sign: json.dumps(sign[0])[1:-1], text)


def printable(value: object) -> str:
    r"""Return a value as one line of at most 80 characters; bytes are read as UTF-8.

    >>> printable(b"caf\xc3\xa9\x1b[2J")
    'café\\x1b[2J'
    """
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, (bytes, bytearray)) else str(value)
    text = redacted(text)
    shown = escaped(text[: VALUE_LIMIT + 1])
    return shown if len(shown) <= VALUE_LIMIT else shown[: VALUE_LIMIT - 1] + "…"


def quoted(value: object) -> str:
    """Return a value as a problem shows it.

    >>> quoted("a"), quoted(1.5)
    ('"a"', '1.5')
    """
    return f'"{printable(value)}"' if isinstance(value, str) else printable(repr(value))


def printable_path(path: str | bytes) -> str:
    r"""Return a path as one line, never cut: its end tells the file.

    >>> printable_path(b"data/caf\xe9\n.csv")
    'data/caf\\xe9\\n.csv'
    """
    held = path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape")
    return escaped(_redacted_urls(held.decode("utf-8", "backslashreplace")))


def shell_path(path: str | bytes) -> str:
    """Return a path as an argument of a command that a user may type: a printable path, in quotes where it needs them.

    >>> print(shell_path("out/a"), shell_path("my data [v1]"))
    out/a 'my data [v1]'
    """
    return shlex.quote(printable_path(path))


def shell_words(text: str) -> list[str]:
    """Return the words of a command as a shell splits them, and none where a quote is open, as in other text."""
    try:
        return shlex.split(text)
    except ValueError:
        return []


def counted(number: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "record"), counted(1200, "record"), counted(2, "class")
    ('1 record', '1,200 records', '2 classes')
    """
    return f"{number:,} {noun}{_ending(number, noun)}"


def more(number: int, noun: str) -> str:
    """Return how many things are not shown.

    >>> more(1, "feature"), more(1200, "feature"), more(2, "class")
    ('1 more feature', '1,200 more features', '2 more classes')
    """
    return f"{number:,} more {noun}{_ending(number, noun)}"


def _ending(number: int, noun: str) -> str:
    return "" if number == 1 else "es" if noun.endswith("s") else "s"


def escaped(text: str, *, keep: str = "") -> str:
    r"""Return a text of ours, which holds values that are cut already, with all escaped but the characters in `keep`.

    >>> escaped("a\tb\nc", keep="\n")
    'a\\tb\nc'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape", "backslashreplace").decode() for c in text
    )


_SHOWN: Final = 10
"""This many names are listed where none is near: more would bury the message."""


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the lowercase choice that `name` was most likely meant to be, or None if none is near."""
    return next(iter(difflib.get_close_matches(name.lower(), list(choices), n=1)), None)


def nearest_name(name: str, known: Sequence[str]) -> str:
    """Return a hint that ends a message about a name that is not known.

    >>> nearest_name("prcie", ["id", "price"])
    'did you mean "price"?'
    >>> nearest_name("zip", ["id", "price"])
    'there are: id, price'
    """
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f'did you mean "{printable(near[0])}"?'
    return f"there are: {first_names(known, _SHOWN)}" if known else "there are none"


class NoColumnError(SchemaError):
    """A key of the config names something that is not a column; `hint` ends the message.

    >>> str(NoColumnError("schema.columns", "prcie", ["id", "price"]))
    'schema.columns names "prcie", which is not a column; did you mean "price"?'
    """

    def __init__(self, key: str, name: str, known: Sequence[str], hint: str | None = None) -> None:
        ending = nearest_name(name, known) if hint is None else hint
        super().__init__(f'{key} names "{printable(name)}", which is not a column; {ending}')
        self.key, self.name = key, name
        self._given = (key, name, tuple(known), hint)

    def __reduce__(self) -> tuple[type[NoColumnError], tuple[str, str, Sequence[str], str | None]]:
        return type(self), self._given


def first_names(names: Sequence[str], count: int, others: int = 0) -> str:
    """Return the first names as a message lists them, and how many more there are, with `others` that are not here.

    >>> first_names(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = max(len(names) - count, 0) + others
    return ", ".join(printable(name) for name in names[:count]) + (f" and {more:,} more" if more else "")


# Sizes in bytes, as people write them.


DEFAULT_SHARD_SIZE: Final = "128MiB"

LEAST_SHARD_BYTES: Final = 64 << 10
"""Below this, framing and file systems cost more than the records, and cut points are closer than a record is long."""

_UNITS: Final = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([A-Za-z]*)")
_LARGEST: Final = 2**62
"""A size is added to others in int64 arithmetic, so it stays well below 2**63."""


def check_shard_size(size: int) -> int:
    """Raise `ValueError` where the size of shards is too small."""
    if size < LEAST_SHARD_BYTES:
        raise ValueError(f"{size} bytes is too small; the least is {LEAST_SHARD_BYTES >> 10}KiB")
    return size


def parse_size(value: object) -> int:
    """Return a size in bytes: an int, or a number and a unit (`128MiB` is 128 * 2**20, `1GB` is 10**9).

    The case of the unit does not matter; a bare `M` is refused, since it could be either.

    >>> parse_size("64KiB"), parse_size("1.5 GB"), parse_size(7)
    (65536, 1500000000, 7)

    Raises:
        ValueError: the value is not a size; the text says what one looks like.
    """
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError(f"{value!r} is not a size; write it like 128MiB, 1GB or 4096")
    match = _SIZE.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f'"{value}" is not a size; write it like 128MiB, 1GB or 4096')
    number, unit = match.groups()
    scale = 1 if not unit else _UNITS.get(unit.upper())
    if scale is None:
        fix = (
            f"write {number}{unit.upper()}iB or {number}{unit.upper()}B"
            if len(unit) == 1
            else "units: KiB MiB GiB KB MB GB"
        )
        raise ValueError(f'"{value}": "{unit}" is not a unit of size; {fix}')
    from decimal import Decimal  # not loaded by `--help`

    size = Decimal(number) * scale
    if size != int(size):
        raise ValueError(f'"{value}" is not a whole number of bytes')
    if size > _LARGEST:
        raise ValueError(f'"{value}" is more than 4 EiB')
    return int(size)


def format_size(size: int) -> str:
    """Return a size for people, with three digits or so.

    >>> format_size(65536), format_size(188204), format_size(0)
    ('64.0 KiB', '183.8 KiB', '0 B')
    """
    if size < 2**10:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 2**10
        if value < 1023.95:
            return f"{value:.1f} {unit}"
    return f"{value / 2**10:.1f} TiB"


# Durations, as people write them.


_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION: Final = re.compile(r"([0-9]{1,9})([a-z])")


def parse_duration(text: str) -> int:
    """Return a duration in seconds: a whole number and one unit of s, m (minutes), h, d, w.

    >>> parse_duration("7d"), parse_duration("90m"), parse_duration("0s")
    (604800, 5400, 0)

    Raises:
        ValueError: the text is not a duration; it says what one looks like.
    """
    match = _DURATION.fullmatch(text)
    if match is None or match[2] not in _SECONDS:
        raise ValueError(f'"{text}" is not a duration; write it like 7d, 36h, 90m or 0s (units: s m h d w)')
    return int(match[1]) * _SECONDS[match[2]]


def format_duration(seconds: int) -> str:
    """Return a duration for people, in the largest unit that it has two of, rounded down.

    >>> format_duration(604800), format_duration(90), format_duration(0)
    ('7 days', '90 seconds', '0 seconds')
    """
    for name, unit in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * unit:
            return f"{seconds // unit} {name}"
    return f"{seconds} seconds"
