"""The schema of a dataset: the features that its Examples hold, their types and shapes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

from ..wording.printable import printable

Kind = Literal["int64", "float", "bytes"]


class Pixels(NamedTuple):
    """What TFDS decodes a picture to, as a folder of its states it: a size of -1 and an `encoding` of "" are any."""

    dtype: str
    shape: tuple[int, ...]
    encoding: str = ""

    def joined(self, other: Pixels | None) -> Pixels | None:
        """Return what holds for pictures of both, or None where they are decoded in two ways.

        >>> Pixels("uint8", (40, 40, 3), "png").joined(Pixels("uint8", (40, 60, 3), "jpeg"))
        Pixels(dtype='uint8', shape=(40, -1, 3), encoding='')
        """
        ends = [(one.dtype, len(one.shape), one.shape[-1:]) for one in (self, other) if one is not None]
        if other is None or ends[0] != ends[1]:
            return None
        shape = tuple(a if a == b else -1 for a, b in zip(self.shape, other.shape, strict=True))
        return Pixels(self.dtype, shape, self.encoding if self.encoding == other.encoding else "")

    def of_any_size(self) -> Pixels:
        return self._replace(shape=(*(-1 for _ in self.shape[1:]), *self.shape[-1:]))


@dataclass(frozen=True, slots=True)
class Feature:
    """One key of the Example map.

    `kind` is the list that holds the values; `type` is what they mean: the name of one of `column_types`.
    `shape` is `()` for a scalar, `(-1,)` for a list of any length, `(n, m, ...)` for a fixed shape.
    A nullable feature may be absent from a record.
    """

    name: str
    kind: Kind
    type: str
    shape: tuple[int, ...] = ()
    nullable: bool = False
    unit: str | None = None
    timezone: str | None = None
    labels: str | None = None
    dtype: str | None = None
    rank: int | None = None
    pixels: Pixels | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the manifest's form of this feature, in its key order, without the keys that do not apply."""
        document: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "type": self.type,
            "shape": list(self.shape),
            "nullable": self.nullable,
        }
        for key in ("unit", "timezone", "labels", "dtype", "rank"):
            value = getattr(self, key)
            if value is not None:
                document[key] = value
        if self.pixels is not None:
            document["pixels"] = self.pixels._asdict()
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Feature:
        """Read what `to_json` wrote; unknown keys raise TypeError."""
        pixels = document.get("pixels")
        pixels = pixels and Pixels(**{**pixels, "shape": tuple(pixels["shape"])})
        return cls(**{**document, "shape": tuple(document["shape"]), "pixels": pixels})


_ENCODED: Final = "/encoded"


@dataclass(frozen=True, slots=True)
class Schema:
    """The features of a dataset, sorted by name; names are unique."""

    features: tuple[Feature, ...]

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as plain tuples, twenty times faster than objects: a schema of 20,000 columns goes to every step."""
        return _schema_of, (tuple(map(attrgetter(*Feature.__slots__), self.features)),)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def format_features(self) -> tuple[str, ...]:
        """The features that say of what format the images of others are: `image/format` of `image/encoded`."""
        names = {feature.name for feature in self}
        images = (feature.name for feature in self if feature.type == "image" and feature.name.endswith(_ENCODED))
        found = (f"{name.removesuffix(_ENCODED)}/format" for name in images)
        return tuple(name for name in found if name in names)

    def with_any_sizes(self) -> Schema:
        """Return the schema of more pictures, which need not have the sizes that are stated of the first ones."""
        return Schema(tuple(replace(one, pixels=one.pixels and one.pixels.of_any_size()) for one in self))

    def to_json(self) -> list[dict[str, Any]]:
        return [feature.to_json() for feature in self.features]

    @classmethod
    def from_json(cls, document: list[dict[str, Any]]) -> Schema:
        return cls(tuple(Feature.from_json(entry) for entry in document))

    def fingerprint(self) -> str:
        """Return `sha256:` and the digest of the canonical JSON form."""
        text = json.dumps(self.to_json(), ensure_ascii=True, separators=(",", ":"))
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=4)  # each step of a pipeline is unpickled several times, and each has the schema
def _schema_of(features: tuple[tuple[Any, ...], ...]) -> Schema:
    return Schema(tuple(Feature(*one) for one in features))


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """What a config declares of one column (`schema.columns.<name>`); None leaves the choice to the source.

    `nulls` are the words that are null in this column, and `decimal` is the decimal sign of its text.
    """

    type: str | None = None
    as_: str | None = None
    unit: str | None = None
    timezone: str | None = None
    nullable: bool | None = None
    nulls: tuple[str, ...] = ()
    decimal: str = "."


@dataclass(frozen=True, slots=True)
class Choice:
    """Why a column has the type that it has: printed by `--dry-run` and by the summary.

    `nulls` are those that were found in the rows that decided it; None where none were counted.
    """

    column: str
    type: str
    reason: str
    nulls: int | None = None


# Two schemas side by side, where the features of one are not those of the other.
#
#     feature  out, generation 2     the source
#     fare     float64 (float)           string (bytes)  re-typed
#     stops    list of int64 (int64 list)  -             missing
#     tip      -                         int64 (int64)   added
#
# Whether nulls are allowed is not part of it: that is decided row by row.


_SHOWN_EQUAL: Final = 40
"""The most features of which whole schemas are shown; of larger ones those that differ, up to the same number."""


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
