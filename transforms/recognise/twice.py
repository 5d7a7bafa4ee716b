"""Name files that seem to hold one content twice, so that every row of it would come twice.

    a.csv        a.csv.gz               one name in two compressions
    a.parquet    a (1).parquet          a copy by its name, of the same size and content
    flights.csv  flights/flights.csv    a file, and a folder of its name that holds it, as archives are unpacked

Names alone make a suspect; sizes and fingerprints, which the listing has, decide. No file is opened for it.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from ..format.wording.nearest import first_names
from ..sources.contract.source import SourceEntry

_PACKED: Final = re.compile(r"(?:\.(?:gz|bz2|xz|zst))$|(?<=\.t)gz$", re.IGNORECASE)
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
    if not any(_PACKED.search(entry.name) for entry in entries):
        return
    by_stem: dict[str, SourceEntry] = {}
    for entry in entries:
        stem = _PACKED.sub("ar" if entry.name.lower().endswith(".tgz") else "", entry.name)
        first = by_stem.setdefault(stem, entry)
        if first is not entry:
            yield first.name, entry.name


def _copies(entries: Sequence[SourceEntry]) -> Iterator[tuple[str, str]]:
    alike = defaultdict[tuple[int, str], list[SourceEntry]](list)
    for entry in entries:
        alike[entry.bytes, entry.fingerprint].append(entry)
    for group in alike.values():
        names = {entry.name for entry in group} if len(group) > 1 and group[0].bytes else set()
        for name in sorted(names):
            original = next((one for one in _originals(name) if one in names), None)
            if original is not None:
                yield original, name


def _originals(name: str) -> Iterator[str]:
    """Yield the names of the files that a file may be a copy of, by its own name."""
    folder, base = os.path.split(name)
    plain = _COPY.sub("", base)
    if plain != base:
        yield os.path.join(folder, plain)
    above, own = os.path.split(folder)
    if own and own in (base, base.partition(".")[0]):
        yield os.path.join(above, base)
