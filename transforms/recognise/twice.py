"""Name files that seem to hold one content twice, so that every row of it would come twice.

    a.csv        a.csv.gz               one name in two compressions
    a.parquet    a (1).parquet          a copy by its name, of the same size and content
    flights.csv  flights/flights.csv    a file, and a folder of its name that holds it, as archives are unpacked

Names alone make a suspect; sizes and fingerprints, which the listing has, decide. No file is opened for it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from ..format.wording.nearest import first_names
from ..sources.contract.source import SourceEntry

_PACKED: Final = re.compile(r"(?:\.(?:gz|bz2|xz|zst))$|(?<=\.t)gz$", re.IGNORECASE | re.MULTILINE)
_ENDINGS: Final = (".gz", ".bz2", ".xz", ".zst", ".tgz")
_MARKS: Final = ("(", "copy", "kopie", "copie")
_COPY: Final = re.compile(
    r"(?: ?\([0-9]{1,3}\)| - (?:copy|kopie|copie)(?: ?\([0-9]{1,3}\))?|[ _-]copy(?:[ _]?[0-9]{1,3})?)(?=\.|$)"
    r"|^copy of ",
    re.IGNORECASE,
)
"""What browsers and file managers add to the name of a copy."""

_SHOWN: Final = 3


def content_twice(entries: Sequence[SourceEntry]) -> tuple[str, ...]:
    """Return the warnings of files that seem to be there twice."""
    packed = list(_in_two_compressions(entries))
    copies = list(_copies(entries))
    found = []
    for pairs, why in ((packed, "one name in two compressions"), (copies, "a copy by its name, with the same content")):
        if pairs:
            shown = first_names([f"{one} and {other}" for one, other in pairs], _SHOWN)
            found.append(f"{shown}: {why}, so that the same rows come twice; name only the files that you want")
    return tuple(found)


def _in_two_compressions(entries: Sequence[SourceEntry]) -> Iterator[tuple[str, str]]:
    text = "\0".join(entry.name for entry in entries).lower()  # a million names are asked at once
    if not any(ending in text for ending in _ENDINGS):
        return
    by_stem: dict[str, str] = {}
    for entry in entries:
        stem = _PACKED.sub("ar" if entry.name.lower().endswith(".tgz") else "", entry.name)
        first = by_stem.setdefault(stem, entry.name)
        if first != entry.name:
            yield first, entry.name


def _copies(entries: Sequence[SourceEntry]) -> Iterator[tuple[str, str]]:
    prints = [entry.fingerprint for entry in entries]
    if len(set(prints)) == len(prints):
        return
    alike = defaultdict[str, set[str]](set)
    for print_, entry in zip(prints, entries, strict=True):
        if entry.bytes:
            alike[print_].add(entry.name)
    text = "\0".join(name for names in alike.values() if len(names) > 1 for name in names).lower()
    marked = any(sign in text for sign in _MARKS)
    for print_, entry in zip(prints, entries, strict=True):
        names = alike[print_]
        if len(names) < 2:
            continue
        original = next((one for one in _originals(entry.name, marked=marked) if one in names), None)
        if original is not None:
            yield original, entry.name


def _originals(name: str, *, marked: bool) -> Iterator[str]:
    """Yield the names of the files that a file may be a copy of, by its own name; some are `marked` as copies."""
    folder, _, base = name.rpartition("/")
    plain = _COPY.sub("", base) if marked else base
    if plain != base:
        yield f"{folder}/{plain}" if folder else plain
    above, _, own = folder.rpartition("/")
    if own and own in (base, base.partition(".")[0]):
        yield f"{above}/{base}" if above else base
