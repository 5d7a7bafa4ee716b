"""The part of the page on the features: figures of each split, and histograms where they were counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ...transforms.format.schema.schema import Schema
from ...transforms.statistics.figures import FeatureFigures, SplitFigures, Statistics
from .charts import histogram
from .markup import note, number, section, share, table, text_of

MOST_CARDS: Final = 100
"""Features that have a part of their own; of more, all are in one table, so that the page stays small."""

_TOP: Final = 10

Cell = Callable[[FeatureFigures], str]


def _distinct(one: FeatureFigures) -> str:
    if one.distinct is None:
        return ""
    return number(one.distinct.count) if one.distinct.exact else f"about {number(one.distinct.count)}"


COLUMNS: Final[dict[str, Cell]] = {
    "present": lambda one: number(one.present),
    "missing": lambda one: number(one.missing),
    "missing, share": lambda one: share(one.missing, one.missing + one.present),
    "values": lambda one: number(one.values),
    "min": lambda one: number(one.numbers.min) if one.numbers and one.classes is None else "",
    "max": lambda one: number(one.numbers.max) if one.numbers and one.classes is None else "",
    "mean": lambda one: number(one.numbers.mean) if one.numbers and one.classes is None else "",
    "deviation": lambda one: number(one.numbers.deviation) if one.numbers and one.classes is None else "",
    "zeros": lambda one: number(one.numbers.zeros) if one.numbers and one.classes is None else "",
    "not a number": lambda one: number(one.numbers.nan) if one.numbers and one.classes is None else "",
    "infinite": lambda one: number(one.numbers.infinite) if one.numbers and one.classes is None else "",
    "shortest list": lambda one: number(one.lengths.min) if one.lengths else "",
    "longest list": lambda one: number(one.lengths.max) if one.lengths else "",
    "mean length": lambda one: number(one.lengths.mean) if one.lengths else "",
    "empty lists": lambda one: number(one.lengths.empty) if one.lengths else "",
    "least bytes": lambda one: number(one.sizes.min) if one.sizes else "",
    "most bytes": lambda one: number(one.sizes.max) if one.sizes else "",
    "mean bytes": lambda one: number(one.sizes.mean) if one.sizes else "",
    "empty values": lambda one: number(one.sizes.empty) if one.sizes else "",
    "distinct": _distinct,
}
"""The figures of a feature in a split, by the words above them."""

_ALWAYS: Final = ("present", "missing", "missing, share")
_UNLESS_ZERO: Final = {"not a number": "0", "infinite": "0"}


def features_section(statistics: Statistics | None, schema: Schema | None) -> str:
    """Return the figures of all features, split by split."""
    if statistics is None or schema is None:
        return section("features", "Features", note("The records are plain bytes without a schema."))
    splits = list(statistics.splits.values())
    names = list(dict.fromkeys(name for split in splits for name in split.features))
    types = {one.name: f"{one.type}{_shape(one.shape)}" for one in schema}
    if len(names) > MOST_CARDS:
        return section("features", "Features", _one_table(names, splits, types))
    return section("features", "Features", *(_card(name, splits, types.get(name, "")) for name in names))


def _shape(shape: tuple[int, ...]) -> str:
    return "" if not shape else " list" if shape == (-1,) else f" {' x '.join(map(str, shape))}"


def _card(name: str, splits: list[SplitFigures], kind: str) -> str:
    found = {split.name: split.features[name] for split in splits if name in split.features}
    shown = _columns_of(list(found.values()))
    rows = [[text_of(split), *(COLUMNS[column](one) for column in shown)] for split, one in found.items()]
    figures = table(f"Figures of {name} by split", ["split", *shown], rows)
    charts = "".join(_charts(name, found))
    return (
        f"<article><h3>{text_of(name)} <small>{text_of(kind)}</small></h3>{figures}"
        f"{f'<div class=charts>{charts}</div>' if charts else ''}</article>"
    )


def _columns_of(figures: list[FeatureFigures]) -> list[str]:
    """Return the columns that say something of a feature."""
    cells = {column: [cell(one) for one in figures] for column, cell in COLUMNS.items()}
    return [
        column
        for column, found in cells.items()
        if column in _ALWAYS or any(cell and cell != _UNLESS_ZERO.get(column) for cell in found)
    ]


def _charts(name: str, found: dict[str, FeatureFigures]) -> Iterator[str]:
    for split, one in found.items():
        drawn = histogram(one.histogram, f"{name} in {split}") if one.classes is None else ""
        if drawn:
            yield f"<div><h4>{text_of(split)}</h4>{drawn}{_quantiles(one)}</div>"
        elif one.top and one.classes is None:
            yield f"<div><h4>{text_of(split)}</h4>{_top(one)}</div>"
        if one.image is not None:
            formats = ", ".join(f"{text_of(kind)} {number(count)}" for kind, count in one.image.formats.items())
            sides = "".join(
                f", {side} {number(figures.min)} to {number(figures.max)} (mean {number(figures.mean)})"
                for side, figures in (("width", one.image.width), ("height", one.image.height))
                if figures is not None
            )
            yield f"<div><h4>{text_of(split)}</h4>{note(f'Pictures: {formats}{sides}')}</div>"


def _quantiles(one: FeatureFigures) -> str:
    if len(one.quantiles) != 11:
        return ""
    low, median, high = one.quantiles[1], one.quantiles[5], one.quantiles[9]
    return note(f"About a tenth is up to {number(low)}, half up to {number(median)}, nine tenths up to {number(high)}")


def _top(one: FeatureFigures) -> str:
    about = "" if one.distinct is None or one.distinct.exact else "about "
    lines = "".join(
        f"<li>{text_of(repr(top.value), 60)} <span>{about}{number(top.count)}</span></li>" for top in one.top[:_TOP]
    )
    return f"<ol>{lines}</ol>"


def _one_table(names: list[str], splits: list[SplitFigures], types: dict[str, str]) -> str:
    """Return all features in one table, with a small histogram of the largest split."""
    every = [split.features[name] for split in splits for name in names if name in split.features]
    shown = _columns_of(every)
    rows = []
    for name in names:
        for split in splits:
            if name in split.features:
                one = split.features[name]
                cells = [COLUMNS[column](one) for column in shown]
                rows.append([text_of(name), text_of(types.get(name, "")), text_of(split.name), *cells])
    return table("Figures of all features by split", ["feature", "type", "split", *shown], rows, numbers_from=3)
