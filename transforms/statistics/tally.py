"""What is counted of records, by split and feature: of a batch, of a task, of a dataset. It adds up in any order.

batch ──add──▶ Tally ──merge──▶ of a task ──JSON──▶ of the run ──merge──▶ of the dataset ──▶ Statistics
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..format.buffers.views import binary_array_of, words_of
from ..format.flow.feature_values import FeatureColumn
from ..format.schema.schema import Feature, Schema
from .counts import Lengths, Numbers
from .figures import FeatureFigures, ImageFigures, Level, SplitFigures, Statistics

_LABEL: Final = "label"
_IMAGE: Final = "image"


@dataclass(slots=True)
class FeatureTally:
    """What is counted of one feature in one split.

    `choices` are how often each value occurs, of classes and of formats of images: they are few.
    """

    present: int = 0
    values: int = 0
    numbers: Numbers | None = None
    lengths: Lengths | None = None
    sizes: Lengths | None = None
    choices: dict[int | str, int] | None = None

    @classmethod
    def of(cls, feature: Feature, *, is_format: bool = False) -> FeatureTally:
        """Return the tally of a feature, of nothing yet."""
        return cls(
            numbers=None if feature.kind == "bytes" else Numbers(feature.kind == "float"),
            lengths=Lengths() if -1 in feature.shape else None,
            sizes=Lengths() if feature.kind == "bytes" else None,
            choices={} if is_format or feature.type == _LABEL else None,
        )

    def add(self, column: FeatureColumn, rows: int) -> None:
        """Count the values of some more rows."""
        values, there = column.values, column.present
        self.present += rows if there is None else int(np.count_nonzero(there))
        if column.offsets is None:
            values = values if there is None else values[there]
        elif self.lengths is not None:
            lengths = np.diff(column.offsets)
            self.lengths.add(lengths if there is None else lengths[there])
        self.values += len(values)
        if self.numbers is not None:
            self.numbers.add(values)
        if self.sizes is not None:
            self.sizes.add(words_of(values)[:, 0])
        if self.choices is not None and len(values):
            for value, count in _choices(values, column):
                self.choices[value] = self.choices.get(value, 0) + count

    def merge(self, other: FeatureTally) -> None:
        """Count what others have counted of the same feature."""
        self.present += other.present
        self.values += other.values
        for own, more in ((self.numbers, other.numbers), (self.lengths, other.lengths), (self.sizes, other.sizes)):
            if own is not None and more is not None:
                own.merge(more)  # type: ignore[arg-type]
        if self.choices is not None:
            for value, count in (other.choices or {}).items():
                self.choices[value] = self.choices.get(value, 0) + count

    def to_json(self) -> dict[str, Any]:
        """Return what is counted, which `from_json` reads."""
        document: dict[str, Any] = {"present": self.present, "values": self.values}
        for name in ("numbers", "lengths", "sizes"):
            part = getattr(self, name)
            if part is not None:
                document[name] = part.to_json()
        if self.choices is not None:
            document["choices"] = [list(one) for one in sorted(self.choices.items())]
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> FeatureTally:
        """Read what `to_json` wrote."""
        found = cls(int(document["present"]), int(document["values"]))
        if "numbers" in document:
            found.numbers = Numbers.from_json(document["numbers"])
        if "lengths" in document:
            found.lengths = Lengths.from_json(document["lengths"])
        if "sizes" in document:
            found.sizes = Lengths.from_json(document["sizes"])
        if "choices" in document:
            found.choices = {value: int(count) for value, count in document["choices"]}
        return found


@dataclass(slots=True)
class SplitTally:
    """What is counted of one split: its records, and each of its features."""

    records: int = 0
    features: dict[str, FeatureTally] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """What is counted of records, by split."""

    level: Level = "basic"
    splits: dict[str, SplitTally] = field(default_factory=dict)

    def add(self, split: str, schema: Schema, columns: Iterable[FeatureColumn], rows: int) -> None:
        """Count some more records of a split, of all features of the schema."""
        tally = self.splits.get(split)
        if tally is None:
            formats = schema.format_features
            tallies = {one.name: FeatureTally.of(one, is_format=one.name in formats) for one in schema}
            tally = self.splits[split] = SplitTally(0, tallies)
        tally.records += rows
        for column in columns:
            tally.features[column.name].add(column, rows)

    def merge(self, other: Tally) -> None:
        """Count what others have counted of records of the same schema; they are not to be used after that."""
        for name, more in other.splits.items():
            tally = self.splits.setdefault(name, more)
            if tally is not more:
                tally.records += more.records
                for feature, counted in more.features.items():
                    tally.features[feature].merge(counted)

    @property
    def records(self) -> dict[str, int]:
        """How many records of each split are counted."""
        return {name: split.records for name, split in self.splits.items() if split.records}

    def to_json(self) -> dict[str, Any]:
        """Return what is counted, which `from_json` reads."""
        return {
            name: {
                "records": split.records,
                "features": {feature: tally.to_json() for feature, tally in split.features.items()},
            }
            for name, split in sorted(self.splits.items())
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], level: Level = "basic") -> Tally:
        """Read what `to_json` wrote."""
        found = cls(level)
        for name, split in document.items():
            features = {feature: FeatureTally.from_json(one) for feature, one in split["features"].items()}
            found.splits[name] = SplitTally(int(split["records"]), features)
        return found

    def statistics(self, schema: Schema, labels: Mapping[str, Sequence[str]]) -> Statistics:
        """Return the figures of records of a schema; `labels` are the names of classes, by feature."""
        splits = {name: _figures(name, split, schema, labels) for name, split in sorted(self.splits.items())}
        return Statistics(self.level, {name: split for name, split in splits.items() if split.records})


def _figures(name: str, split: SplitTally, schema: Schema, labels: Mapping[str, Sequence[str]]) -> SplitFigures:
    features = {}
    for feature in schema:
        tally = split.features[feature.name]
        features[feature.name] = FeatureFigures(
            feature.name,
            feature.kind,
            feature.type,
            tally.present,
            split.records - tally.present,
            tally.values,
            numbers=None if tally.numbers is None else tally.numbers.figures,
            lengths=None if tally.lengths is None else tally.lengths.figures,
            sizes=None if tally.sizes is None else tally.sizes.figures,
            classes=_by_name(tally, labels.get(feature.name, ())) if feature.type == _LABEL else None,
            image=_image(feature, split) if feature.type == _IMAGE else None,
        )
    return SplitFigures(name, split.records, features)


def _choices(values: npt.NDArray[Any], column: FeatureColumn) -> Iterable[tuple[int | str, int]]:
    """Return how often each number, or each text, occurs."""
    if column.kind == "bytes":
        counted = binary_array_of(values, column.buffers).value_counts()
        texts, counts = counted.field("values").to_pylist(), counted.field("counts").to_pylist()
        return [(text.decode("utf-8", "replace"), count) for text, count in zip(texts, counts, strict=True)]
    found, numbers = np.unique(values, return_counts=True)
    return zip(found.tolist(), numbers.tolist(), strict=True)


def _by_name(tally: FeatureTally, names: Sequence[str]) -> dict[str, int]:
    """Return how many values are of each class, of those without any too; one that has no name is its number."""
    counts = dict(tally.choices or {})
    found = {name: counts.pop(number, 0) for number, name in enumerate(names)}
    return found | {str(number): count for number, count in sorted(counts.items())}


def _image(feature: Feature, split: SplitTally) -> ImageFigures | None:
    """Return the figures of pictures, from the features beside them."""
    stem = feature.name.removesuffix("encoded")
    formats, height, width = (split.features.get(f"{stem}{name}") for name in ("format", "height", "width"))
    if formats is None or formats.choices is None:
        return None
    sizes = [None if one is None or one.numbers is None else one.numbers.figures for one in (height, width)]
    return ImageFigures({str(name): count for name, count in sorted(formats.choices.items())}, *sizes)
