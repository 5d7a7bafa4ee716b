"""Detect the delimiter of CSV files from the first records of the first file that holds any.

    header      id;price;note        ';' gives 3 columns, ',' gives 1
    records     1;2,50;ok            ... and 3 again; ',' gives 2

A sign is the delimiter if the header has at least two columns by it, and nine tenths of the records as many. If no sign
is, it is the comma, with a word where blanks would do; if more than one is, only the person who has the file knows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...errors import InputError, SourceError
from ...format.wording.printable import printable
from ..contract.call import Call
from ..contract.source import SourceEntry
from ..files.listing import expand_paths, list_file
from ..registry.formats import suffixes_of
from ..text.open_text import is_transparent, plain_encoding, sniff_text, stream_text

SIGNS: Final = ",;\t|"
"""What files with the suffix .csv are delimited by, the most common first."""

_TAB_SUFFIXES: Final = tuple(suffix for suffix in suffixes_of("csv") if suffix.startswith(".tsv"))
_RECORDS: Final = 100
_TEXT_BYTES: Final = 1 << 18
_ALIGNED: Final = 3
"""Lines that blanks must cut alike: two lines of text may have as many words by chance."""

_WIDE: Final = 0.9
"""The share of records that must be as wide as the header: bad rows are rejects, and have no say."""


@dataclass(frozen=True, slots=True)
class Delimiter:
    """A delimiter, and where it was detected and how; no evidence where the suffix or the default says it."""

    sign: str
    evidence: str | None = None


def detect_delimiter(
    paths: Sequence[str],
    base: str = "",
    *,
    encoding: str = "utf-8",
    quote: str | None = '"',
    call: Call | None = None,
) -> Delimiter:
    """Return a tab if all CSV files that `paths` name are .tsv, else what the first records say.

    Paths that match nothing, and files that cannot be read, have no say: the listing and the survey refuse them.
    `call` is the command that the evidence proposes.

    Raises:
        InputError: more than one sign would do.
    """
    try:
        files, _ = expand_paths(paths, base, suffixes_of("csv"), names_only=True)
        if files and all(_has_suffix(path, _TAB_SUFFIXES) for path in files):
            return Delimiter("\t")
        for path in files:
            if not _has_suffix(path, _TAB_SUFFIXES):
                entry = list_file(path, b"/" if not base else base.encode())
                if text := _first_text(entry, encoding):
                    return _detect(entry.name, text, quote, call or Call())
    except (InputError, SourceError) as error:
        if isinstance(error, AmbiguousDelimiter):
            raise
    return Delimiter(",")


class AmbiguousDelimiter(InputError):
    """More than one sign gives whole columns."""


def _has_suffix(path: bytes, suffixes: tuple[str, ...]) -> bool:
    return path.decode("utf-8", "surrogateescape").lower().endswith(suffixes)


def _first_text(entry: SourceEntry, encoding: str) -> str:
    """Return the first records of a file, without one that is cut; no text if there is none."""
    data = b""
    for block in stream_text(entry, encoding, sniff_text(entry, encoding), whole=False):
        data += block
        if len(data) >= _TEXT_BYTES:
            break
    if len(data) > _TEXT_BYTES:
        data = data[: data.rfind(b"\n", 0, _TEXT_BYTES) + 1] or data[:_TEXT_BYTES]
    return data.decode(plain_encoding(encoding) if is_transparent(encoding) else "utf-8", "replace")


def _detect(name: str, text: str, quote: str | None, call: Call) -> Delimiter:
    widths = {sign: _widths(text, sign, quote) for sign in SIGNS}
    likely = [sign for sign in SIGNS if _is_delimiter(widths[sign])]
    if len(likely) > 1:
        found = " and ".join(f'"{printable(sign)}" gives {widths[sign][0]}' for sign in likely)
        raise AmbiguousDelimiter(
            f"{name}: the delimiter is unclear: {found} columns in the first {len(widths[','])} records; declare it: "
            f"--set 'input.delimiter={printable(likely[0])}'"
        )
    if not likely:  # of ragged records, what the header says
        likely = [sign for sign in SIGNS if widths[sign] and widths[sign][0] > 1][:1]
    if not likely or likely == [","]:
        return Delimiter(",", _blanks_evidence(name, text, call) if not likely else None)
    columns, records = widths[likely[0]][0], len(widths[likely[0]])
    shown = printable(likely[0])
    return Delimiter(
        likely[0],
        f'{name}: the delimiter is "{shown}": {columns} columns in the first {records} records; if it is not: '
        f"--set input.delimiter=,",
    )


def _blanks_evidence(name: str, text: str, call: Call) -> str | None:
    """Return what to say of records that no sign cuts, and blanks cut into as many words each."""
    lines = [line.split() for line in text.splitlines()[:_RECORDS] if line.strip()]
    widths = {len(words) for words in lines}
    if len(lines) < _ALIGNED or len(widths) > 1 or widths == {1}:
        return None
    data = rf"pandas.read_csv({name!r}, sep=r'\s+')"
    return (
        f"{name}: no delimiter, so a record is one column; blanks give {len(lines[0])} columns in the first "
        f"{len(lines)} lines, which is not supported yet; in Python: {call.of_data(data)}"
    )


def _is_delimiter(widths: Sequence[int]) -> bool:
    return bool(widths) and widths[0] > 1 and widths.count(widths[0]) >= _WIDE * len(widths)


def _widths(text: str, sign: str, quote: str | None) -> list[int]:
    """Return how many columns the first records have by a sign; blank lines are none."""
    quoting = csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=sign, quotechar=quote, quoting=quoting)  # type: ignore[arg-type]
    widths = []
    try:
        for row in rows:
            if row:
                widths.append(len(row))
            if len(widths) == _RECORDS:
                break
    except csv.Error:  # a cell over the csv module's limit, or a NUL: what came before counts
        pass
    return widths
