"""Statistics as tables on the screen: one for each split, a line for each feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from rich.table import Table

from ...transforms.format.schema.schema import Feature, Schema
from ...transforms.format.wording.printable import counted, printable
from ...transforms.observers.figures import (
    FeatureFigures,
    LengthFigures,
    NumberFigures,
    SplitFigures,
    Statistics,
    TimeWords,
)
from .summary_screen import MOST_FEATURES, name_text

if TYPE_CHECKING:
    from .summary_screen import Screen

_MOST_CLASSES: Final = 5
_MOST_TOP: Final = 3
_MOST_LETTERS: Final = 24
_NUMBERS: Final = ("missing", "min", "mean", "max", "deviation", "zeros")


def print_statistics(screen: Screen, statistics: Statistics, schema: Schema) -> None:
    features = {feature.name: feature for feature in schema}
    for split in statistics.splits.values():
        screen.text(f"{split.name}: {counted(split.records, 'record')}", "bold")
        screen.table(_table(split, features))
        if len(split.features) > MOST_FEATURES:
            left = counted(len(split.features) - MOST_FEATURES, "more feature")
            screen.text(f"and {left}; to list all of them, add --json")
        screen.text("")
    if not statistics.splits:
        screen.text("There are no records.")


def _table(split: SplitFigures, features: Mapping[str, Feature]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("feature", overflow="fold")
    for title in _NUMBERS:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for figures in list(split.features.values())[:MOST_FEATURES]:
        time = TimeWords.of(features[figures.name])
        table.add_row(
            name_text(figures.name),
            _unless_zero(figures.missing),
            *_cells(figures, time),
            "; ".join(_words(figures, time)),
        )
    return table


def _cells(figures: FeatureFigures, time: TimeWords | None) -> tuple[str, ...]:
    """Return smallest value, mean, largest, deviation and zeros; of text and bytes their lengths."""
    if figures.numbers is not None:
        return _number_cells(figures.numbers, time)
    sizes = figures.sizes
    if sizes is not None and sizes.mean is not None:
        return (f"{sizes.min:,} B", f"{_short(sizes.mean)} B", f"{sizes.max:,} B", "", _unless_zero(sizes.empty))
    return ("",) * 5


def _number_cells(numbers: NumberFigures, time: TimeWords | None) -> tuple[str, ...]:
    if numbers.min is None or numbers.max is None or numbers.mean is None or numbers.deviation is None:
        return ("",) * 5
    if time is not None:
        ends = (time.value(value) for value in (numbers.min, numbers.mean, numbers.max))
        return (*ends, time.span(numbers.deviation), _unless_zero(numbers.zeros) if time.has_zero else "")
    values = (numbers.min, numbers.mean, numbers.max, numbers.deviation)
    return (*map(_short, values), _unless_zero(numbers.zeros))


def _words(figures: FeatureFigures, time: TimeWords | None) -> Iterator[str]:
    numbers = figures.numbers
    if numbers is not None and numbers.nan:
        yield f"{numbers.nan:,} NaN"
    if numbers is not None and numbers.infinite:
        yield f"{numbers.infinite:,} infinite"
    if figures.lengths is not None:
        yield _lengths(figures.lengths)
    if figures.classes is not None:
        yield _counts(figures.classes, _MOST_CLASSES)
    if figures.image is not None:
        image = figures.image
        yield _counts(image.formats, _MOST_CLASSES)
        if image.width is not None and image.height is not None:
            yield f"{image.width.min} x {image.height.min} to {image.width.max} x {image.height.max} pixels"
    if figures.quantiles:
        yield f"median {_value(figures.quantiles[len(figures.quantiles) // 2], time)}"
    about = "" if figures.distinct is None or figures.distinct.exact else "about "
    if figures.distinct is not None:
        yield f"{about}{figures.distinct.count:,} distinct"
    if figures.top and figures.classes is None and figures.top[0].count > 1:
        yield ", ".join(f"{_value(one.value, time)} {about}{one.count:,}" for one in figures.top[:_MOST_TOP])


def _value(value: float | str, time: TimeWords | None) -> str:
    if isinstance(value, str):
        return printable(value[:_MOST_LETTERS]) or '""'
    return _short(value) if time is None else time.value(value)


def _lengths(lengths: LengthFigures) -> str:
    if lengths.min is None or lengths.max is None or lengths.mean is None:
        return "no lists"
    return f"{lengths.min:,} to {lengths.max:,} values, on average {_short(lengths.mean)}"


def _counts(counts: Mapping[str, int], most: int) -> str:
    found = sorted(((name, count) for name, count in counts.items() if count), key=lambda one: (-one[1], one[0]))
    shown = ", ".join(f"{printable(name[:_MOST_LETTERS])} {count:,}" for name, count in found[:most])
    return f"{shown} and {len(found) - most:,} more" if len(found) > most else shown


def _short(value: float) -> str:
    """Return a number in few letters.

    >>> _short(1234567), _short(0.000123456789), _short(12.0)
    ('1,234,567', '0.000123457', '12')
    """
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _unless_zero(count: int) -> str:
    return f"{count:,}" if count else ""
