"""The part of the page on the features: figures of each split, and histograms where they were counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ...transforms.format.schema.schema import Feature, Schema
from ...transforms.observers.figures import FeatureFigures, SplitFigures, Statistics
from ...transforms.observers.time_words import TimeWords
from .markup import Chart, Table, histogram, joined, number, number_in_words, share, shown

MOST_CARDS: Final = 100
"""Features that have a part of their own; of more, all are in one table, so that the page stays small."""

_TOP: Final = 10

Cell = Callable[[FeatureFigures, TimeWords | None], str]


def _distinct(one: FeatureFigures, _: TimeWords | None) -> str:
    if one.distinct is None:
        return ""
    return f"{'' if one.distinct.exact else 'about '}{number(one.distinct.count)}"


def _of_records(name: str) -> Cell:
    return lambda one, _: number(getattr(one, name))


def _of_numbers(name: str) -> Cell:
    """Return the cell of a figure of numbers; those of labels are in the class balance."""

    def cell(one: FeatureFigures, time: TimeWords | None) -> str:
        if one.numbers is None or one.classes is not None:
            return ""
        value = getattr(one.numbers, name)
        if time is None or name in ("nan", "infinite"):
            return number(value)
        if name == "zeros":
            return number(value) if time.has_zero else ""
        return number_in_words(value, time.span if name == "deviation" else time.value)

    return cell


def _of_lengths(part: str, name: str) -> Cell:
    def cell(one: FeatureFigures, _: TimeWords | None) -> str:
        found = getattr(one, part)
        return "" if found is None else number(getattr(found, name))

    return cell


COLUMNS: Final[dict[str, Cell]] = {
    "present": _of_records("present"),
    "missing": _of_records("missing"),
    "missing, share": lambda one, _: share(one.missing, one.missing + one.present),
    "values": _of_records("values"),
    "min": _of_numbers("min"),
    "max": _of_numbers("max"),
    "mean": _of_numbers("mean"),
    "deviation": _of_numbers("deviation"),
    "zeros": _of_numbers("zeros"),
    "not a number": _of_numbers("nan"),
    "infinite": _of_numbers("infinite"),
    "shortest list": _of_lengths("lengths", "min"),
    "longest list": _of_lengths("lengths", "max"),
    "mean length": _of_lengths("lengths", "mean"),
    "empty lists": _of_lengths("lengths", "empty"),
    "least bytes": _of_lengths("sizes", "min"),
    "most bytes": _of_lengths("sizes", "max"),
    "mean bytes": _of_lengths("sizes", "mean"),
    "empty values": _of_lengths("sizes", "empty"),
    "distinct": _distinct,
}
"""The figures of a feature in a split, by the words above them."""

_ALWAYS: Final = ("present", "missing", "missing, share")
_UNLESS_ZERO: Final = {"not a number": "0", "infinite": "0"}


@dataclass(frozen=True, slots=True)
class Part:
    """What is shown of a feature in one split: a chart with words below it, or its frequent values."""

    split: str
    chart: Chart | None = None
    words: str = ""
    top: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Card:
    """A feature: its type, the figures of each split, and charts."""

    name: str
    type: str
    table: Table
    charts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Features:
    """All features: a card each, or one table."""

    cards: Sequence[Card] = ()
    table: Table | None = None


def features_of(statistics: Statistics | None, schema: Schema | None) -> Features | None:
    """Return the figures of all features, split by split; None of plain bytes."""
    if statistics is None or schema is None:
        return None
    splits = list(statistics.splits.values())
    names = list(dict.fromkeys(name for split in splits for name in split.features))
    features = {one.name: one for one in schema}
    if len(names) > MOST_CARDS:
        return Features(table=_one_table(names, splits, features))
    return Features([_card(features[name], splits) for name in names])


def _type_of(feature: Feature) -> str:
    if not feature.shape:
        return feature.type
    return f"{feature.type} {'list' if feature.shape == (-1,) else ' x '.join(map(str, feature.shape))}"


def _card(feature: Feature, splits: list[SplitFigures]) -> Card:
    name, time = feature.name, TimeWords.of(feature)
    found = {split.name: split.features[name] for split in splits if name in split.features}
    columns = _columns_of([(one, time) for one in found.values()])
    rows = [[shown(split), *(COLUMNS[column](one, time) for column in columns)] for split, one in found.items()]
    figures = Table(f"Figures of {name} by split", ["split", *columns], rows)
    return Card(name, _type_of(feature), figures, list(_charts(name, found, time)))


def _columns_of(figures: list[tuple[FeatureFigures, TimeWords | None]]) -> list[str]:
    cells = {column: [cell(one, time) for one, time in figures] for column, cell in COLUMNS.items()}
    return [
        column
        for column, found in cells.items()
        if column in _ALWAYS or any(cell and cell != _UNLESS_ZERO.get(column) for cell in found)
    ]


def _charts(name: str, found: dict[str, FeatureFigures], time: TimeWords | None) -> Iterator[Part]:
    show = "{:,.4g}".format if time is None else time.value
    for split, one in found.items():
        drawn = histogram(one.histogram, f"{name} in {split}", show) if one.classes is None else None
        if drawn is not None:
            yield Part(split, drawn, _quantiles(one, time))
        elif one.top and one.classes is None:
            yield Part(split, top=_top(one, time))
        if one.image is not None:
            formats = ", ".join(f"{kind} {count:,}" for kind, count in one.image.formats.items())
            sides = [
                _SIDES.format(side, number(figures.min), number(figures.max), number(figures.mean))
                for side, figures in (("width", one.image.width), ("height", one.image.height))
                if figures is not None
            ]
            yield Part(split, words=joined("", [f"Pictures: {shown(formats)}", *sides]))


_SIDES: Final = Markup(", {} {} to {} (mean {})")
_TENTHS: Final = Markup("About a tenth is up to {}, half up to {}, nine tenths up to {}")


def _quantiles(one: FeatureFigures, time: TimeWords | None) -> str:
    if len(one.quantiles) != 11:
        return ""
    values = (one.quantiles[1], one.quantiles[5], one.quantiles[9])
    return _TENTHS.format(*(number(value) if time is None else number_in_words(value, time.value) for value in values))


def _top(one: FeatureFigures, time: TimeWords | None) -> list[tuple[str, str]]:
    about = "" if one.distinct is None or one.distinct.exact else "about "
    return [(_value(top.value, time), f"{about}{number(top.count)}") for top in one.top[:_TOP]]


def _value(value: float | str, time: TimeWords | None) -> str:
    return repr(value) if time is None or isinstance(value, str) else time.value(value)


def _one_table(names: list[str], splits: list[SplitFigures], features: Mapping[str, Feature]) -> Table:
    times = {name: TimeWords.of(features[name]) for name in names}
    columns = _columns_of([(split.features[name], times[name]) for split in splits for name in split.features])
    rows = []
    for name in names:
        for split in splits:
            if name in split.features:
                cells = [COLUMNS[column](split.features[name], times[name]) for column in columns]
                rows.append([shown(name), shown(_type_of(features[name])), shown(split.name), *cells])
    return Table("Figures of all features by split", ["feature", "type", "split", *columns], rows, 3)
