"""Two schemas side by side, where the features of one are not those of the other.

    feature  out, generation 2     the source
    fare     float64 (float)           string (bytes)  re-typed
    stops    list of int64 (int64 list)  -             missing
    tip      -                         int64 (int64)   added

Whether nulls are allowed is not part of it: that is decided row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..wording.printable import printable
from .schema import Feature, Schema

_SHOWN_EQUAL: Final = 40
"""Up to so many features the whole schemas are shown; of larger ones those that differ, up to as many."""


def same_feature(one: Feature, other: Feature) -> bool:
    """Return whether two features hold the same values in the same form; one of them may have nulls.

    >>> same_feature(Feature("a", "int64", "int64"), Feature("a", "int64", "int64", nullable=True))
    True
    """
    return _form(one) == _form(other)


def differing_features(expected: Schema, other: Schema) -> dict[str, str]:
    """Return the features in which `other` differs, by name, sorted: each is "added", "missing" or "re-typed"."""
    ours, theirs = ({feature.name: feature for feature in schema} for schema in (expected, other))
    differing = {}
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in ours:
            differing[name] = "added"
        elif name not in theirs:
            differing[name] = "missing"
        elif not same_feature(ours[name], theirs[name]):
            differing[name] = "re-typed"
    return differing


def schemas_side_by_side(expected: Schema, other: Schema, titles: tuple[str, str], *, marked: dict[str, str]) -> str:
    """Return both schemas as a table of text, a feature a line; `marked` are the words after those that differ."""
    rows = [("feature", *titles, ""), *_rows(expected, other, marked)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3])) for row in rows
    ]
    shown = len(rows) - 1
    count = len({feature.name for schema in (expected, other) for feature in schema})
    if shown < count:
        equal = count - len(marked)
        more = [f"{len(marked) - shown:,} more differ"] * (len(marked) > shown) + [f"{equal:,} are equal"] * (equal > 0)
        lines.append(f"({', '.join(more)})")
    return "\n".join(f"  {line.rstrip()}" for line in lines)


def feature_text(feature: Feature) -> str:
    """Return what a feature holds, in a few words.

    >>> feature_text(Feature("t", "int64", "timestamp", (-1,), unit="us", timezone="UTC"))
    'list of timestamp (us, UTC) (int64 list)'
    """
    details = [str(part) for part in (feature.unit, feature.timezone, feature.dtype) if part]
    if feature.rank is not None:
        details.append(f"rank {feature.rank}")
    text = feature.type + (f" ({', '.join(details)})" if details else "")
    if feature.shape == (-1,):
        text = f"list of {text}"
    elif feature.shape:
        text += f"[{', '.join(map(str, feature.shape))}]"
    return f"{text} ({feature.kind}{' list' if feature.shape else ''})"


def _form(feature: Feature) -> tuple[object, ...]:
    return feature.kind, feature.type, feature.shape, feature.unit, feature.timezone, feature.dtype, feature.rank


def _rows(expected: Schema, other: Schema, marked: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    ours, theirs = ({feature.name: feature for feature in schema} for schema in (expected, other))
    names = sorted(ours.keys() | theirs.keys())
    if len(names) > _SHOWN_EQUAL:
        names = [name for name in names if name in marked][:_SHOWN_EQUAL]
    for name in names:
        cells = (printable(feature_text(side[name])) if name in side else "-" for side in (ours, theirs))
        yield (printable(name) or '""', *cells, marked.get(name, ""))  # type: ignore[misc]
