"""Gather what `report` shows of a dataset: manifests, statistics, rejects, pictures, and how its splits differ."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from typing import Any, Final, TypeVar

import numpy as np

from ...transforms.dataset.commit.accounting import read_rejects
from ...transforms.dataset.reading.open_dataset import Dataset
from ...transforms.dataset.storage.manifest_files import GenerationInfo, lineage, list_history, read_manifest
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.schema.schema import Schema
from ...transforms.format.wording.printable import printable
from ...transforms.observers.figures import FeatureFigures, Statistics
from ...transforms.pictures.facts import ImageProblem
from ...transforms.pictures.pillow_decode import PILLOW_NAMES, opened
from ...transforms.pictures.structure import tell_image_format
from ..outcomes.summary import rule_text

EXAMPLES: Final = 3
"""Rejected rows of each code that are shown."""

_LOOKED_AT: Final = 10_000
"""Lines of a list of rejects that are looked at for them."""

_GENERATIONS: Final = 50
"""Generations, the latest, whose rejects and checks are shown."""


@dataclass(frozen=True, slots=True)
class Rejects:
    """The rejected rows of all generations: how many of each code, and a few of each as the list states them."""

    records: int = 0
    by_code: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, list[Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """All that the page says of one generation of the dataset at `path`; plain bytes have no statistics."""

    path: str
    manifest: Manifest
    statistics: Statistics | None
    history: list[GenerationInfo]
    rejects: Rejects
    checks: Sequence[tuple[int, Mapping[str, Any]]]
    pictures: list[Picture]

    @property
    def split_rule(self) -> str:
        rule = self.manifest.conversion.get("split")
        return "" if rule is None else rule_text(rule)


def _in_order(splits: Mapping[str, T]) -> dict[str, T]:
    """Return splits as they are used: for training, for validation, for tests, and then the others."""
    places = {name: place for place, names in enumerate(_ORDER) for name in names}
    return dict(sorted(splits.items(), key=lambda item: (places.get(item[0], len(_ORDER)), item[0])))


_ORDER: Final = (("train", "training"), ("val", "valid", "validation", "dev", "eval"), ("test", "testing"))


def gather_facts(path: str, statistics: Statistics | None, generation: int | None = None) -> ReportFacts:
    manifest = read_manifest(path, generation)
    manifest = replace(manifest, splits=_in_order(manifest.splits))
    statistics = None if statistics is None else replace(statistics, splits=_in_order(statistics.splits))
    history = [one for one in list_history(path) if one.generation <= manifest.generation]
    recent = list(islice(lineage(path, manifest), _GENERATIONS))
    checks = [(one.generation, one.details.checks) for one in recent if one.details.checks]
    pictures = sample_pictures(Dataset(path, manifest))
    return ReportFacts(path, manifest, statistics, history, _rejects(path, recent), checks, pictures)


def _rejects(path: str, generations: list[Manifest]) -> Rejects:
    records, by_code = 0, dict[str, int]()
    examples: dict[str, list[Mapping[str, Any]]] = {}
    for manifest in generations:
        records += manifest.rejects.records
        for code, count in manifest.rejects.by_code.items():
            by_code[code] = by_code.get(code, 0) + count
        for line in islice(read_rejects(path, manifest), _LOOKED_AT):
            for error in line["errors"]:
                known = examples.setdefault(error["code"], [])
                if len(known) < EXAMPLES:
                    numbers = [f", {word} {line[word]}" for word in ("row", "record") if word in line]
                    known.append({"place": "".join([line["source"], *numbers]), **error})
    return Rejects(records, dict(sorted(by_code.items(), key=lambda one: -one[1])), examples)


T = TypeVar("T")


# A few pictures of each split, small, with their boxes, classes and captions.


SIDE: Final = 224
"""Pixels of the longer side of a small picture."""

OF_SPLIT: Final = 8
MOST: Final = 24
"""Pictures of one split, and of all."""

_BYTES: Final = 40_000
"""The most that one small picture adds to the page."""

_BOX: Final = ("xmin", "ymin", "xmax", "ymax")
_TEXTS: Final = ("class/text", "class/label")


@dataclass(frozen=True, slots=True)
class Box:
    """A box, in shares of the width and the height, and what is in it."""

    left: float
    top: float
    right: float
    bottom: float
    label: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a record: its bytes as a `data:` URL, pixels as shown, boxes and words; `problem` where none is."""

    split: str
    record: int
    url: str
    width: int
    height: int
    boxes: tuple[Box, ...] = ()
    words: tuple[str, ...] = ()
    problem: str | None = None


def sample_pictures(dataset: Dataset) -> list[Picture]:
    """Return pictures of each split, spread evenly over its records, so always the same ones."""
    feature = _picture_feature(dataset.schema)
    if feature is None or dataset.schema is None:
        return []
    each = min(OF_SPLIT, max(1, MOST // max(len(dataset.splits), 1)))
    found: list[Picture] = []
    for split in dataset.splits[:MOST]:
        part = dataset[split]
        numbers = np.unique(np.linspace(0, len(part) - 1, min(each, len(part))).astype(int))
        columns = _columns(dataset.schema, feature)
        rows = part.take(numbers, columns).to_pylist() if len(part) else []
        found += [_picture(split, int(at), row, feature) for at, row in zip(numbers, rows, strict=True)]
    return found


def _picture_feature(schema: Schema | None) -> str | None:
    return next((one.name for one in schema or () if one.type == "image" and one.shape == ()), None)


def _columns(schema: Schema, feature: str) -> list[str]:
    base = feature.rpartition("/")[0] or feature
    wanted = {feature, f"{base}/caption", "caption", "text", f"{base}/filename"}
    wanted |= {f"{base}/{name}" for name in _TEXTS} | {f"{base}/object/{name}" for name in _TEXTS}
    wanted |= {f"{base}/object/bbox/{edge}" for edge in _BOX}
    return [one.name for one in schema if one.name in wanted]


def _picture(split: str, record: int, row: Mapping[str, Any], feature: str) -> Picture:
    base = feature.rpartition("/")[0] or feature
    words = _words(row, base)
    data = row[feature]
    if data is None:
        return Picture(split, record, "", 0, 0, (), words, "no picture")
    try:
        small, width, height = _small(data)
    except (ImageProblem, KeyError) as problem:
        return Picture(split, record, "", 0, 0, (), words, str(problem))
    url = f"data:image/jpeg;base64,{base64.b64encode(small).decode()}"
    return Picture(split, record, url, width, height, tuple(_boxes(row, base)), words)


def _small(data: bytes) -> tuple[bytes, int, int]:
    """Return a picture as a small JPEG, with its width and height."""
    name = tell_image_format(data)
    if name not in PILLOW_NAMES:
        raise KeyError("a format that is not shown")
    with opened(data, name) as image:
        image.draft("RGB", (2 * SIDE, 2 * SIDE))
        shown = image.convert("RGBA" if image.has_transparency_data else "RGB")
        shown.thumbnail((SIDE, SIDE))
        if shown.mode == "RGBA":
            from PIL import Image

            white = Image.new("RGB", shown.size, "white")
            white.paste(shown, mask=shown.getchannel("A"))
            shown = white
        for quality in (80, 60, 40, 20):
            file = io.BytesIO()
            shown.save(file, "JPEG", quality=quality)
            if file.tell() <= _BYTES:
                break
        return file.getvalue(), *shown.size


def _boxes(row: Mapping[str, Any], base: str) -> list[Box]:
    edges = [row.get(f"{base}/object/bbox/{edge}") or [] for edge in _BOX]
    labels: Sequence[Any] = next((found for name in _TEXTS if (found := row.get(f"{base}/object/{name}"))), [])
    names = [*map(str, labels), *[""] * (len(edges[0]) - len(labels))]
    each = zip(*edges, names, strict=False)
    return [Box(left, top, right, bottom, name) for left, top, right, bottom, name in each]


def _words(row: Mapping[str, Any], base: str) -> tuple[str, ...]:
    found: list[str] = []
    for name in (f"{base}/class/text", f"{base}/class/label", f"{base}/caption", "caption", "text"):
        value = row.get(name)
        values = value if isinstance(value, list) else [] if value is None else [value]
        found += [str(one) for one in values if str(one) not in found]
    return tuple(found[:4])


SHOWN: Final = 15

_SMALL: Final = 0.1
"""Means that are so close, in standard deviations, differ as those of any two samples do."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The greatest difference of one kind between two splits of a feature, from 0 on; `words` say what it is."""

    feature: str
    size: float
    one: str
    other: str
    words: str


def differences(statistics: Statistics) -> list[Difference]:
    """Return the greatest difference of each feature and kind, the greatest first.

    Of means it is in standard deviations (of the split that has the greater one), from a tenth on, and infinite where
    each split has one value alone; of classes the greatest difference of a class's share, known as the L-infinity
    distance, and of missing values that of their shares. Texts are as classes are, where they are counted exactly in
    both splits.
    """
    found: list[Difference] = []
    splits = [split for split in statistics.splits.values() if split.records]
    for name in splits[0].features if splits else ():
        pairs = [(a, b) for a, b in combinations(splits, 2) if name in a.features and name in b.features]
        each = [
            Difference(name, size, a.name, b.name, words)
            for a, b in pairs
            for size, words in _between(a.features[name], b.features[name])
            if size > (_SMALL if words.startswith("mean: in") else 0)
        ]
        kinds = {one.words.partition(":")[0] for one in each}
        found += [max((d for d in each if d.words.startswith(kind)), key=lambda d: d.size) for kind in kinds]
    return sorted(found, key=lambda one: (-one.size, one.feature, one.words))[:SHOWN]


def _between(one: FeatureFigures, other: FeatureFigures) -> list[tuple[float, str]]:
    found = []
    if one.classes is not None and other.classes is not None:
        totals = [sum(figures.classes.values()) for figures in (one, other) if figures.classes is not None]
        if all(totals):
            shares = {
                name: one.classes.get(name, 0) / totals[0] - other.classes.get(name, 0) / totals[1]
                for name in {**one.classes, **other.classes}
            }
            name = max(shares, key=lambda name: (abs(shares[name]), name))
            found.append((abs(shares[name]), f"class: share of {name}"))
    elif one.numbers is not None and other.numbers is not None:
        means = one.numbers.mean, other.numbers.mean
        spread = max(one.numbers.deviation or 0.0, other.numbers.deviation or 0.0)
        if means[0] is not None and means[1] is not None and spread > 0:
            found.append((abs(means[0] - means[1]) / spread, "mean: in standard deviations"))
        elif means[0] != means[1] and None not in means and min(one.values, other.values) > 1:
            found.append((math.inf, "mean: constant in each split"))
    else:
        shares_of_texts = [*_texts(one, other), *_texts(other, one)]
        found += [max(shares_of_texts)] if shares_of_texts else []
    missing = [figures.missing / max(figures.missing + figures.present, 1) for figures in (one, other)]
    found.append((abs(missing[0] - missing[1]), "missing: share of records"))
    return found


def _texts(one: FeatureFigures, other: FeatureFigures) -> Iterator[tuple[float, str]]:
    """Yield by how much, at least, the share of a text is greater in the first split; rare texts are not stated."""
    exact = all(figures.distinct is not None and figures.distinct.exact for figures in (one, other))
    if not exact or not one.values or not other.values:
        return
    known = {text.value: text.count for text in other.top}
    whole = other.distinct is not None and other.distinct.count == len(known)
    others = 0 if whole else min(known.values())
    for text in one.top:
        size = text.count / one.values - known.get(text.value, others) / other.values
        yield size, f"value: share of {printable(text.value)}"
