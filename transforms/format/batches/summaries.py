"""What is observed of rows, by the name of its observer: JSON that is merged from batches to tasks, and to the run.

What the product itself observes has its names here: values that were narrowed, formats of pictures, warnings, notes on
rows, records that were set aside, ranges of shards that were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from .observers import Observer
from .rows import Narrowing, Notes, added

NARROWED: Final = "narrowed"
"""Feature -> the six fields of its `Narrowing` after the name."""

IMAGE_FORMATS: Final = "image_formats"
"""The values of `image/format` that occur in records, sorted."""

DEALT: Final = "dealt"
"""Class -> how many of its records were set aside, and how many were dealt to each split (`format/splits/exact`)."""

WARNED: Final = "warned"
"""How many pictures there are with a warning, and the first of them, as they are shown."""

SHOWN_WARNINGS: Final = 10

PICTURES: Final = "pictures"
"""The check of a manifest that has them."""

NOTES: Final = "notes"
"""Source entry, text, and how many rows: a list of such triples."""


READ: Final = "read"
"""The ranges of shards of datasets that were read: a list of `ReadRange`."""


class ReadRange(NamedTuple):
    """A range of the file of a source entry, with its CRC32C; `stated` is the CRC32C of the whole file, as hex digits.

    A manifest states it.
    """

    entry: int
    start: int
    bytes: int
    crc: int
    stated: str


Summaries = dict[str, Any]
"""What is observed of some rows, by the name of the observer."""


def merged(one: Mapping[str, Any], other: Mapping[str, Any], observers: Sequence[Observer] = ()) -> Summaries:
    """Return what is observed of two runs of rows, of which `one` comes first."""
    merges = _MERGES | {observer.name: observer.merge for observer in observers}
    result = dict(one)
    for name, summary in other.items():
        result[name] = merges[name](result[name], summary) if name in result else summary
    return result


def sealed(observed: Mapping[str, Any], observers: Sequence[Observer]) -> Summaries:
    sealing = {observer.name: observer for observer in observers}
    return {name: sealing[name].sealed(one) if name in sealing else one for name, one in observed.items()}


def _merge_narrowed(one: Mapping[str, Any], other: Mapping[str, Any]) -> Any:
    result = dict(one)
    for name, more in other.items():
        if name in result:
            from_, to, values, error, zeros, changed = result[name]
            more = [from_, to, values + more[2], max(error, more[3]), zeros + more[4], added(changed, more[5])]
        result[name] = more
    return result


def _merge_formats(one: Sequence[str], other: Sequence[str]) -> list[str]:
    return sorted({*one, *other})


def _merge_dealt(one: Mapping[str, Sequence[int]], other: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    result = {name: list(counts) for name, counts in one.items()}
    for name, counts in other.items():
        result[name] = [a + b for a, b in zip(result[name], counts, strict=True)] if name in result else list(counts)
    return result


def _merge_notes(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    counts = {(entry, text): count for entry, text, count in one}
    for entry, text, count in other:
        counts[entry, text] = counts.get((entry, text), 0) + count
    return [[entry, text, count] for (entry, text), count in counts.items()]


def _merge_warned(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    return [one[0] + other[0], [*one[1], *other[1]][:SHOWN_WARNINGS]]


def _merge_read(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    return [*one, *other]


def narrowed_summary(narrowings: Iterable[Narrowing]) -> Summaries:
    found: dict[str, Narrowing] = {}
    for one in narrowings:
        found[one.name] = found[one.name].plus(one) if one.name in found else one
    rows = {
        n.name: [n.from_, n.to, n.values, n.max_relative_error, n.underflows, n.integers_changed]
        for n in found.values()
    }
    return {NARROWED: rows} if rows else {}


def narrowings_in(observed: Mapping[str, Any]) -> tuple[Narrowing, ...]:
    return tuple(Narrowing(name, *row) for name, row in sorted(observed.get(NARROWED, {}).items()))


def image_formats_in(observed: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(observed.get(IMAGE_FORMATS, ()))


def notes_in(observed: Mapping[str, Any]) -> Notes:
    return {(entry, text): count for entry, text, count in observed.get(NOTES, ())}


def warned_summary(warned: Sequence[str]) -> Summaries:
    return {WARNED: [len(warned), list(warned[:SHOWN_WARNINGS])]} if warned else {}


def warnings_check(observed: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    if WARNED not in observed:
        return {}
    count, first = observed[WARNED]
    examples = [{"records": 1, "places": [text]} for text in first]
    return {PICTURES: {"columns": [], "records": count, "groups": count, "examples": examples}}


def ranges_in(observed: Mapping[str, Any]) -> tuple[ReadRange, ...]:
    return tuple(ReadRange(*one) for one in observed.get(READ, ()))


def notes_summary(notes: Notes) -> Summaries:
    return {NOTES: [[entry, text, count] for (entry, text), count in notes.items()]} if notes else {}


_MERGES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    NARROWED: _merge_narrowed,
    IMAGE_FORMATS: _merge_formats,
    NOTES: _merge_notes,
    WARNED: _merge_warned,
    DEALT: _merge_dealt,
    READ: _merge_read,
}
