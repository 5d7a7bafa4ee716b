"""Look at the data that a config will read: its columns with the reason of each type, its first records, its rejects.

A conversion is prepared and some of its rows are converted, as for a dry run; nothing is written. What is much data is
looked at in part.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ...transforms.format.encode.example_proto import feature_values, iter_features, other_message, parse_example
from ...transforms.format.wording.printable import counted, escaped, more
from ...transforms.sources.contract.planning import first_pieces
from ...transforms.sources.contract.source import Source, Survey, Task
from ...transforms.sources.files.formats import FORMATS
from ..commands.inspect_records import shown_value
from ..forecast.sample import take_sample
from ..prepare.convert import prepare
from ..prepare.from_config import conversion_of
from ..report.reject_groups import group_rejects, rejects_text
from ..screens.schema_table import MOST_FEATURES, name_text, schema_table
from ..workers.worker_processes import WorkerProcesses

if TYPE_CHECKING:
    from ..config.model import Config
    from ..forecast.sample import Sample
    from ..prepare.conversion import Conversion
    from ..prepare.prepared import Prepared

_WHOLE_BYTES: Final = 64 << 20
"""Up to this size all rows are surveyed, as a run with `infer: auto` does; a larger source is looked at in part."""

_ROWS: Final = 10_000
"""The rows of a larger source that are looked at."""

_SHOWN_FEATURES: Final = 12
_SHOWN_VALUES: Final = 4
_WIDTH: Final = 60
"""The most characters of a value in a record, the most values of a list, and the most features of a record."""

_PAGE: Final = 114
"""Characters of a line of the table, so that `#   ` before it makes 118."""

_SHARES: Final = (1, 2, 5, 10, 20, 50, 100)
"""Percentages that `max_rejects` is set to where rows were rejected."""


@dataclass(frozen=True, slots=True)
class Look:
    """Findings: the `columns` of a table, a `key` whose values all differ, lines for the head, and `max_rejects`.

    `example` is the first column of the type that the format gives an example of, if it gives one and there is one.
    """

    columns: tuple[str, ...] = ()
    example: str | None = None
    key: str | None = None
    lines: tuple[str, ...] = ()
    max_rejects: str = "0"
    why_rejects: str = 'rows that may be rejected: a number, or "1%"'


def look_at(config: Config) -> Look:
    with WorkerProcesses(1, asked=False) as workers:
        prepared = prepare(_conversion_of(config), workers)
    sample = take_sample(prepared)
    survey = prepared.plan.survey
    columns, key, example = tuple[str, ...](), None, None
    form = FORMATS[config.input.format].load() if config.input is not None else None
    if form is not None and form.shows_columns:
        stated = tuple(column.name for column in survey.frozen.columns)
        columns = stated or tuple(choice.column for choice in survey.choices)
        key = _key_in(prepared.source, survey, columns)
        of_type = (one.name for one in survey.fields if str(one.type) == form.example_type)
        example = next((name for name in of_type if name in columns), None)
    share, why = _allowed(sample)
    return Look(columns, example, key, tuple(_lines(prepared, sample)), share, why)


def _conversion_of(config: Config) -> Conversion:
    """Return the conversion of a config, of its first rows alone where they are many."""
    section, whole = config.input, conversion_of(config)
    if section is None or section.limit is not None or whole.source.list_files().bytes <= _WHOLE_BYTES:
        return whole
    return conversion_of(config.model_copy(update={"input": section.model_copy(update={"limit": _ROWS})}))


def _lines(prepared: Prepared, sample: Sample) -> Iterator[str]:
    """Yield the lines that say what was found, without the sign of a comment."""
    plan = prepared.plan
    files = counted(plan.listing.files, "file")
    what = "all" if sample.whole else "some"
    yield f"Looked at: {counted(sample.rows, 'row')} ({what}) of {files}, {plan.listing.format}."
    for text in plan.survey.detected:
        yield f"Detected: {escaped(text)}"
    for text in plan.survey.warnings:
        yield f"Warning: {escaped(text)}"
    if sample.rejects:
        yield f"Rejected: {counted(len(sample.rejects), 'row')} of these:"
        documents = (json.loads(reject.to_json_line()) for reject in sample.rejects)
        groups = group_rejects(documents, plan.listing.format)
        codes = Counter(error.code for reject in sample.rejects for error in reject.errors[:1])
        yield from escaped(rejects_text(len(sample.rejects), codes, groups), keep="\n").splitlines()
    if len(plan.survey.frozen.schema):
        yield from ("", "Features, their types, and why:", "", *_table(prepared))
    if sample.payloads:
        yield from ("", f"The first {counted(len(sample.payloads), 'record')}:")
    for payload in sample.payloads:
        yield ""
        yield from _record(payload)


def _table(prepared: Prepared) -> Iterator[str]:
    from rich.console import Console

    survey = prepared.plan.survey
    file = io.StringIO()
    console = Console(file=file, width=_PAGE, markup=False, highlight=False, emoji=False, color_system=None)
    console.print(schema_table(survey.frozen.schema, survey.choices, reasons=True))
    yield from (f"  {line.rstrip()}" for line in file.getvalue().splitlines())
    if len(survey.frozen.schema) > MOST_FEATURES:
        yield f"  and {more(len(survey.frozen.schema) - MOST_FEATURES, 'feature')}"


def _record(payload: bytes) -> Iterator[str]:
    example = parse_example(payload) if other_message(payload) is None else None
    if example is None:
        yield f"  {_cut(shown_value(payload))}"
        return
    features = list(iter_features(example))
    for name, feature in features[:_SHOWN_FEATURES]:
        _, values = feature_values(feature)
        shown = ", ".join(_cut(shown_value(value)) for value in values[:_SHOWN_VALUES])
        rest = f", and {len(values) - _SHOWN_VALUES:,} more" if len(values) > _SHOWN_VALUES else ""
        yield f"  {name_text(name)}: {shown or '(empty)'}{rest}"
    if len(features) > _SHOWN_FEATURES:
        yield f"  and {more(len(features) - _SHOWN_FEATURES, 'feature')}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _allowed(sample: Sample) -> tuple[str, str]:
    """Return the value of `max_rejects` with which the rows that were looked at pass, and the words for it."""
    rejected, rows = len(sample.rejects), sample.rows
    default = Look()
    if not rejected:
        return default.max_rejects, default.why_rejects
    if not sample.payloads:
        return "0", "all rows that were looked at are rejects: see above"
    needed = 100 * rejected * (1 if sample.whole else 2) / rows
    share = next((one for one in _SHARES if one >= needed), 100)
    return f"{share}%", f"{rejected:,} of {counted(rows, 'row')} {'was' if rejected == 1 else 'were'}; 0 allows none"


def _key_in(source: Source, survey: Survey, columns: Sequence[str]) -> str | None:
    """Return the first column of integers or text whose values are all there and all different, `id` before others."""
    pieces = first_pieces(survey)[:1]
    batches = (rows.batch for rows in source.read(Task(0, tuple(pieces)), survey.frozen) if rows.batch.num_rows)
    batch = next(batches, None) if pieces else None
    if batch is None:
        return None
    unique = []
    for name in columns:
        values = batch.column(name) if name in batch.schema.names else None
        if values is None or not (pa.types.is_integer(values.type) or pa.types.is_string(values.type)):
            continue
        if batch.num_rows > 1 and not values.null_count and len(values.unique()) == batch.num_rows:
            unique.append(name)
    return min(unique, key=lambda name: not re.search(r"(?i)(^|_)(id|key|uuid)$", name), default=None)
