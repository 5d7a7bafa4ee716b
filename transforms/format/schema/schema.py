"""The schema of a dataset: the features that its Examples hold, their types and shapes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Literal

Kind = Literal["int64", "float", "bytes"]


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
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Feature:
        """Read what `to_json` wrote; unknown keys raise TypeError."""
        return cls(**{**document, "shape": tuple(document["shape"])})


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
    """What a config declares of one column (`schema.columns.<name>`); None leaves the choice to the source."""

    type: str | None = None
    as_: str | None = None
    unit: str | None = None
    timezone: str | None = None
    nullable: bool | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Why a column has the type that it has: printed by `--dry-run` and by the summary.

    `nulls` are those that were found in the rows that decided it; None where none were counted.
    """

    column: str
    type: str
    reason: str
    nulls: int | None = None
