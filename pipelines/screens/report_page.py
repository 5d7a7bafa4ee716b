"""Fill `page.html`, the page of `report`, from `ReportFacts`: tables, charts, and differences between splits.

It is light or dark as the reader's system is.
"""

from __future__ import annotations

import math
import statistics as medians
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup, escape

from ...transforms.format.batches.summaries import PICTURES
from ...transforms.format.schema.schema import Feature, Schema
from ...transforms.format.wording.printable import counted, format_size
from ...transforms.observers.figures import Bucket, FeatureFigures, SplitFigures, Statistics, TimeWords
from .report_facts import Difference, Rejects, ReportFacts, differences

LIGHT: Final = {
    "page": "#ffffff", "text": "#1a1c1e", "quiet": "#55606b", "line": "#c9d1d9", "link": "#0b5cad",
    "bar": "#3b78c2", "mark": "#b3261e", "card": "#f5f7f9",
}  # fmt: skip
DARK: Final = {
    "page": "#14171a", "text": "#e6e9ec", "quiet": "#a9b4be", "line": "#454f59", "link": "#8fc1ff",
    "bar": "#6aa5e8", "mark": "#ff8a80", "card": "#1d2226",
}  # fmt: skip
"""The colours, by what they are for: tests check their contrast."""


def html_page(facts: ReportFacts) -> str:
    from jinja2 import Environment, PackageLoader

    manifest, statistics = facts.manifest, facts.statistics
    splits = manifest.splits.values()
    made = f"generation {manifest.generation} of {manifest.run.created}"
    shards = counted(sum(len(split.shards) for split in splits), "shard")
    records, size = counted(sum(s.records for s in splits), "record"), format_size(sum(s.bytes for s in splits))
    classes = class_balance(statistics)
    several = statistics is not None and len(statistics.splits) > 1
    hidden = {"classes": not classes, "differences": not several, "pictures": not facts.pictures}
    environment = Environment(autoescape=True, trim_blocks=True, loader=PackageLoader(__package__, ""))
    environment.filters |= {"shown": shown, "number": number}
    return environment.get_template("page.html").render(
        title=manifest.name,
        summary=f"{records} in {shards}, {size}; {made}",
        codes=", ".join(f"{code} {count:,}" for code, count in facts.rejects.by_code.items()),
        light=LIGHT,
        dark=DARK,
        parts={name: heading for name, heading in PARTS.items() if not hidden.get(name)},
        splits=splits_table(facts),
        rule=facts.split_rule,
        asked=not manifest.details.adopted,
        shards=shard_sizes(facts),
        classes=classes,
        differences=differences_table(facts),
        pictures=facts.pictures,
        features=features_of(statistics, manifest.schema),
        rejected=counted(facts.rejects.records, "row"),
        rejects=rejects_table(facts.rejects),
        checks=[_check(number, name, one) for number, found in facts.checks for name, one in found.items()],
        lineage=lineage_table(facts),
        made=made_by(facts),
    )


# Figures as the page shows them, with their exact values beside them; the template escapes all that is no `Markup`.


NOTHING: Final = "-"

LONGEST: Final = 200

_EXACT: Final = Markup('<data value="{}">{}</data>')
_BAR: Final = Markup('{} <span class=bar aria-hidden=true><i style="width:{:.1f}%"></i></span>')


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page; the first cell of a row is its head, and cells from `numbers_from` on are at the right."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers_from: int = 1


def shown(value: object, longest: int = LONGEST) -> str:
    r"""Return a value without control characters, and not too long.

    >>> shown("a\tb"), shown("abcdef", 4)
    ('a�b', 'abc…')
    """
    text = str(value)
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(c if c.isprintable() or c == " " else "�" for c in text)


def number(value: float | None) -> str:
    """Return a figure: whole numbers as they are, others with four digits and the exact value beside them.

    >>> number(12345), str(number(0.123456)), number(None)
    ('12,345', '<data value="0.123456">0.1235</data>', '-')
    """
    if value is None:
        return NOTHING
    if isinstance(value, int):
        return f"{value:,}"
    return _EXACT.format(repr(value), f"{value:,.4g}") if math.isfinite(value) else str(value)


def number_in_words(value: float | None, words: Callable[[float], str]) -> str:
    """Return a figure in words, its exact value beside them.

    >>> str(number_in_words(19753, lambda days: "2024-01-31"))
    '<data value="19753">2024-01-31</data>'
    """
    return NOTHING if value is None else _EXACT.format(repr(value), shown(words(value)))


def share(part: int, whole: int) -> str:
    """Return a part as per cent of a whole.

    >>> share(1, 8), share(0, 0)
    ('12.5 %', '-')
    """
    if not whole:
        return NOTHING
    percent = 100 * part / whole
    return f"{percent:.2g} %" if 0 < percent < 1 else f"{percent:.3g} %"


def share_bar(part: int, whole: int) -> str:
    return _BAR.format(share(part, whole), 100 * part / whole if whole else 0)


def joined(between: str, parts: Sequence[str]) -> str:
    """Return parts as one; those that are no `Markup` are escaped."""
    return escape(between).join(parts)


# Charts as paths of SVG: the template draws them, with words for those who do not see them.


WIDTH: Final = 240
HEIGHT: Final = 56


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: what it shows in words, its path, the values at both ends, and its width; `mark` is a path of a line."""

    words: str
    path: str
    low: str
    high: str
    width: int = WIDTH
    height: int = HEIGHT
    mark: str = ""


def histogram(buckets: Sequence[Bucket], words: str, show: Callable[[float], str] = "{:,.4g}".format) -> Chart | None:
    """Return a histogram, None of no values; `words` say what it is of, and `show` gives the words for a value."""
    highest = max((bucket.count for bucket in buckets), default=0)
    low, high = (buckets[0].low, buckets[-1].high) if buckets else (0.0, 0.0)
    if not highest or not low < high:
        return None
    path = []
    for bucket in buckets:
        left, right = ((edge - low) / (high - low) * WIDTH for edge in (bucket.low, bucket.high))
        top = HEIGHT - bucket.count / highest * HEIGHT
        if bucket.count:
            path.append(f"M{left:.0f} {HEIGHT}V{top:.1f}H{max(right - 1, left + 1):.0f}V{HEIGHT}z")
    most = max(buckets, key=lambda one: one.count)
    fullest = f"the fullest of {len(buckets)} parts from {show(most.low)} to {show(most.high)}"
    label = f"{words}: {show(low)} to {show(high)}, {fullest}"
    return Chart(label, "".join(path), show(low), show(high))


def sizes(values: Sequence[int], target: int, words: str, bins: int = 40) -> Chart:
    """Return how many shards have which size, with a line at the target, if it is not 0; sizes are bytes."""
    top = max(*values, target, 1)
    counts = [0] * bins
    for value in values:
        counts[min(value * bins // (top + 1), bins - 1)] += 1
    highest, width = max(counts), WIDTH * 2
    step = width / bins
    path = "".join(
        f"M{at * step:.1f} {HEIGHT}v{-count / highest * HEIGHT:.1f}h{step - 1:.1f}V{HEIGHT}z"
        for at, count in enumerate(counts)
        if count
    )
    mark = f"M{target / (top + 1) * width:.1f} 0V{HEIGHT}" if target else ""
    return Chart(words, path, "0", format_size(top), width, mark=mark)


def splits_table(facts: ReportFacts) -> Table:
    manifest = facts.manifest
    records = sum(split.records for split in manifest.splits.values())
    rows = [
        [
            shown(name),
            number(split.records),
            share_bar(split.records, records),
            number(len(split.shards)),
            format_size(split.bytes),
            format_size(split.bytes // split.records) if split.records else NOTHING,
        ]
        for name, split in manifest.splits.items()
    ]
    head = ["split", "records", "share", "shards", "bytes", "bytes a record"]
    return Table("Records, shards and bytes of each split", head, rows)


def shard_sizes(facts: ReportFacts) -> dict[str, Chart]:
    """Return the sizes of the shards beside the size that was asked for; of files that were adopted none was."""
    manifest, asked = facts.manifest, not facts.manifest.details.adopted
    charts = {}
    for name, split in manifest.splits.items():
        held = sorted(shard.bytes for shard in split.shards)
        if held:
            median = format_size(int(medians.median(held)))
            words = f"{counted(len(held), 'shard')} of {name}: {format_size(held[0])} to {format_size(held[-1])}"
            words += f", median {median}" + (f"; asked for: {format_size(manifest.shard_size)}" if asked else "")
            charts[name] = sizes(held, manifest.shard_size if asked else 0, words)
    return charts


@dataclass(frozen=True, slots=True)
class Classes:
    """How often each class of a label occurs; `left` are not in the table, `missing` is where there is none."""

    name: str
    table: Table
    left: int
    missing: str


def class_balance(found: Statistics | None, most: int = 50) -> list[Classes]:
    """Return how often each class of a label occurs in each split; `most` are shown, the most frequent ones.

    Of boxes whose numbers are no labels, the names of their classes are counted.
    """
    splits = [] if found is None else list(found.splits.values())
    features = splits[0].features if splits else {}
    labels = [name for name, one in features.items() if one.classes is not None or _names_boxes(name, features)]
    return [_classes(label, splits, most) for label in labels]


def _names_boxes(name: str, features: Mapping[str, FeatureFigures]) -> bool:
    numbers, distinct = features.get(f"{name.removesuffix('text')}label"), features[name].distinct
    exact = distinct is not None and distinct.exact
    return name.endswith("/object/class/text") and (numbers is None or numbers.classes is None) and exact


def _classes(label: str, splits: Sequence[SplitFigures], most: int) -> Classes:
    figures = {split.name: split.features[label] for split in splits if label in split.features}
    if any(one.classes is None for one in figures.values()):
        return _named_classes(label, figures)
    counts = {name: dict(one.classes or {}) for name, one in figures.items()}
    totals: dict[str, int] = {}
    for classes in counts.values():
        for name, count in classes.items():
            totals[name] = totals.get(name, 0) + count
    order = sorted(totals, key=lambda name: (-totals[name], name))
    rows = [
        [shown(name) or "(empty)", *_cells([(of.get(name, 0), sum(of.values())) for of in counts.values()])]
        for name in order[:most]
    ]
    head = ["class", *(part for name in counts for part in (shown(name), "share"))]
    missing = ", ".join(f"{counted(one.missing, 'record')} of {name}" for name, one in figures.items() if one.missing)
    return Classes(label, Table(f"Classes of {label} by split", head, rows), max(len(order) - most, 0), missing)


def _named_classes(label: str, figures: Mapping[str, FeatureFigures]) -> Classes:
    """Return how often the frequent values of a feature occur; of one that is rare in a split that is not known."""
    counts = {split: {str(one.value): one.count for one in found.top} for split, found in figures.items()}
    different = {split: 0 if one.distinct is None else one.distinct.count for split, one in figures.items()}
    totals = Counter[str]()
    for known in counts.values():
        totals.update(known)
    rows = []
    for name, _ in sorted(totals.items(), key=lambda one: (-one[1], one[0])):
        cells = [shown(name) or "(empty)"]
        for split, known in counts.items():
            count, values = known.get(name, 0), figures[split].values
            is_known = name in known or len(known) == different[split]
            cells += [number(count), share_bar(count, values)] if is_known else [NOTHING, NOTHING]
        rows.append(cells)
    head = ["class", *(part for split in counts for part in (shown(split), "share"))]
    missing = ", ".join(f"{counted(one.missing, 'record')} of {split}" for split, one in figures.items() if one.missing)
    left = max(*different.values(), len(rows)) - len(rows)
    return Classes(label, Table(f"Classes of {label} by split", head, rows), left, missing)


def _cells(counts: list[tuple[int, int]]) -> list[str]:
    return [cell for count, total in counts for cell in (number(count), share_bar(count, total))]


def differences_table(facts: ReportFacts) -> Table | None:
    found = [] if facts.statistics is None else differences(facts.statistics)
    if facts.statistics is None or not found:
        return None
    times = {feature.name: TimeWords.of(feature) for feature in facts.manifest.schema or ()}
    rows = [
        [
            shown(one.feature),
            shown(one.words),
            f"{shown(one.one)} and {shown(one.other)}",
            number(one.size) if math.isfinite(one.size) else _two_values(facts.statistics, one, times[one.feature]),
        ]
        for one in found
    ]
    return Table("The greatest differences between two splits", ["feature", "what differs", "between", "by"], rows, 3)


def _two_values(statistics: Statistics, one: Difference, time: TimeWords | None) -> str:
    figures = (statistics.splits[split].features[one.feature].numbers for split in (one.one, one.other))
    values = [found.min for found in figures if found is not None and found.min is not None]
    shown_values = [number(value) if time is None else number_in_words(value, time.value) for value in values]
    return joined(" and ", shown_values)


def lineage_table(facts: ReportFacts) -> Table:
    rows = [
        [
            number(one.generation),
            shown(one.operation or one.problem or ""),
            shown(one.created),
            number(one.records),
            number(one.total_records),
            number(one.rejected),
            shown(f"{one.source_format}, {counted(one.files, 'file')}, {format_size(one.source_bytes)}"),
        ]
        for one in reversed(facts.history)
    ]
    head = ["generation", "operation", "created", "records added", "records in all", "rejected", "made of"]
    return Table("The generations of the dataset, the latest first", head, rows, 3)


def made_by(facts: ReportFacts) -> dict[str, str]:
    manifest, run = facts.manifest, facts.manifest.run
    tools = ", ".join(f"{name} {version}" for name, version in run.tool.items())
    return {
        "made by": f"{tools}, on {run.runner}",
        "schema": manifest.schema_fingerprint or "plain bytes",
        "config": _unless_none(manifest.config_fingerprint),
        "sources": _unless_none(run.source_fingerprint),
    }


def _unless_none(fingerprint: str) -> str:
    return fingerprint if fingerprint.removeprefix("sha256:").strip("0") else "none: the files were adopted"


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
        elif one.top and one.classes is None and not _are_all_different(one):
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


def _are_all_different(one: FeatureFigures) -> bool:
    return one.distinct is not None and one.distinct.count >= (1.0 if one.distinct.exact else 0.95) * one.values


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


PARTS: Final = {
    "splits": "Splits",
    "shards": "Shard sizes",
    "classes": "Class balance",
    "differences": "Splits side by side",
    "pictures": "Pictures",
    "features": "Features",
    "rejects": "Rejected rows",
    "checks": "Duplicates and leaks",
    "lineage": "Lineage",
}


def rejects_table(rejects: Rejects) -> Table | None:
    if not rejects.records:
        return None
    rows = [
        [shown(code), number(count), *_reject(example)]
        for code, count in rejects.by_code.items()
        for example in (rejects.examples.get(code) or [{}])
    ]
    head = ["code", "rows with it", "where", "column", "value", "what is wrong, and the fix"]
    return Table("Rejected rows by their code, with examples", head, rows, 9)


def _reject(error: Mapping[str, Any]) -> list[str]:
    if not error:
        return ["", "", "", ""]
    words = [error["place"], error.get("column") or ""]
    return [*map(shown, words), shown(error["value"], 60), shown(error["message"], 300)]


@dataclass(frozen=True, slots=True)
class Check:
    """What a check found, in words; `lists` have a heading each, which may be empty."""

    title: str
    words: str
    lists: Sequence[tuple[str, Sequence[str]]] = ()


def _check(generation: int, name: str, check: Mapping[str, Any]) -> Check:
    if name == PICTURES:
        first = [shown(place) for example in check["examples"] for place in example["places"]]
        words = f"libjpeg warns of {check['records']:,}. The first of them:"
        return Check(f"Damaged or padded JPEG pictures in generation {generation}", words, [("", first)])
    columns = ", ".join(check["columns"]) or "the whole record"
    title = f"{name.capitalize()} in generation {generation}, by {columns}"
    if "not_compared" in check:
        return Check(title, f"Nothing to compare: {shown(check['not_compared'])}.")
    what = "values in several splits" if name == "leaks" else "groups of equal records"
    of = "records have them" if name == "leaks" else "records repeat an earlier one"
    dropped = "; these were left out" if check.get("action") == "drop" else ""
    pairs = sorted(check.get("splits", {}).items(), key=lambda one: -one[1])
    shared = [f"{' and '.join(map(shown, sorted(pair.split())))}: {count:,}" for pair, count in pairs]
    examples = [
        f"{one['records']:,} records: {', '.join(map(shown, one['places']))}" for one in check.get("examples", ())
    ]
    lists = [("In both:", shared), ("The first of them:", examples)]
    words = f"{check['groups']:,} {what}; {check['records']:,} {of}{dropped}."
    return Check(title, words, [(heading, lines) for heading, lines in lists if lines])
