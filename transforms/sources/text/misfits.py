"""Refuse text that is appended to a dataset none of whose types it fits, and find the keys that read it.

An append does not know the keys of `schema.columns` that the dataset was made with:

    "1.234,50 €"  float64    strip: "€", decimal: ",", thousands: "."
    "12 %"        float64    strip: "%", type: float64
    "31.12.2024"  date       format: "%d.%m.%Y"

What is found is tried on all values that are given, as the step that reads them would.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Final
from unicodedata import category

import pyarrow as pa

from ...format.flow.rows import Rows
from ...format.schema.column_types import DEFAULT_UNIT, column_type
from ...format.schema.schema import ColumnRule, Feature, Schema, same_feature
from ...format.wording.hints import Add, Set, set_column
from ...recipe.step import Column
from ..contract.dataset_schema import DatasetSchema, refuse_others
from ..contract.planning import first_pieces
from ..contract.source import Frozen, Survey, Task
from .written import Written

MOST_VALUES: Final = 100
"""Values of a column that are looked at."""

_AROUND: Final = re.compile(r"([^0-9]*)[0-9].*?([^0-9]*)", re.DOTALL)
_MOST_SIGNS: Final = 4
_SIGNS: Final = ((".", ""), (".", ","), (",", ""), (",", "."), (",", " "), (".", " "), (",", "\u00a0"), (".", "'"))
"""The decimal sign and that of thousands; `1,234` has thousands, where all values look so."""

_DAYS: Final = [f"{one}{sign}{two}{sign}{three}" for sign in "./-" for one, two, three in ("dmY", "mdY", "Ymd", "dmy")]
_TIMES: Final = ("%H:%M:%S", "%H:%M", "%I:%M %p", "%H.%M")


def refuse_misfits(
    read: Callable[[Task, Frozen], Iterator[Rows]], survey: Survey, cast: Schema, dataset: DatasetSchema
) -> None:
    """Raise `SchemaError` for a column of which no cell, in a sample, can be cast to the dataset's type.

    Single cells that cannot are rejects; but if none can, and no reject is allowed, the column has become another one,
    or keys are missing that the dataset was made with. The text shows both schemas, and the keys.
    """
    if not dataset.no_rejects:
        return
    good, bad = Counter[str](), defaultdict[str, list[str]](list)
    for piece in first_pieces(survey):
        for rows in read(Task(0, (piece,)), replace(survey.frozen, schema=dataset.schema)):
            for column, array in zip(rows.batch.schema.names, rows.batch.columns, strict=True):
                good[column] += len(array) - array.null_count
            for problem in rows.problems:
                if problem.error.column is not None:
                    bad[problem.error.column].append(problem.error.value)
            if rows.batch.num_rows:
                break
    inferred = {feature.name: feature for feature in survey.frozen.schema}
    wanted = {feature.name: feature for feature in cast}
    misfits = {
        name: values[:MOST_VALUES]
        for name, values in bad.items()
        if name in wanted and not good[name] and not same_feature(inferred[name], wanted[name])
    }
    found = Schema(tuple(inferred[feature.name] if feature.name in misfits else feature for feature in cast))
    options = missing_keys(misfits, wanted)
    fix = f"give the keys that the dataset was made with; these read the values: {Add(*options)}; or "
    leave = f"leave its rows out, where others fit: {Add('--max-rejects', 'N')}"
    refuse_others(dataset, found, f"{fix if options else ''}{leave}")


def missing_keys(values: Mapping[str, Sequence[str]], features: Mapping[str, Feature]) -> list[Set]:
    """Return the options that read text as the features of its columns, none for those where none are found.

    >>> print(*missing_keys({"n": ["12 %", "3 %"]}, {"n": Feature("n", "float", "float64")}))
    --set schema.columns.n.strip=% --set schema.columns.n.type=float64
    """
    options: list[Set] = []
    for name, cells in values.items():
        reads = (one for one in _candidates(name, cells, features[name]) if _reads(one, cells))
        found = list(islice(reads, 2))
        if not found:
            continue
        unclear = len(found) > 1 and bool(found[0].formats)  # 1/2 is a day of January, or of February
        keys = _keys(found[0]) | ({"format": "FORM"} if unclear else {})
        options += [set_column(name, key, value) for key, value in keys.items()]
    return options


def _keys(way: Written) -> dict[str, str]:
    """Return the keys of a column that is read so: its type too, where they do not imply it."""
    keys = {key: value for key, value in way.keys.items() if key != "type"}
    text = [Column(pa.field(way.column, pa.string()))]
    if keys and way.plan(text)[0].field.type != replace(way, rule=ColumnRule()).plan(text)[0].field.type:
        own = {"type": way.rule.type, "unit": way.rule.unit, "timezone": way.rule.timezone}
        keys |= {key: value for key, value in own.items() if value is not None}
    return keys


def _candidates(name: str, cells: Sequence[str], feature: Feature) -> Iterator[Written]:
    target = column_type(feature).arrow(feature.unit or DEFAULT_UNIT, feature.timezone)
    rule = ColumnRule(feature.type, None, feature.unit, feature.timezone, nullable=None)
    if pa.types.is_date(target) or pa.types.is_timestamp(target) or pa.types.is_time(target):
        days = ["".join(f"%{part}" if part.isalpha() else part for part in day) for day in _DAYS]
        forms = _TIMES if pa.types.is_time(target) else days
        if pa.types.is_timestamp(target):
            forms = [*(f"{day}{gap}{time}" for day, time, gap in product(days, _TIMES, " T")), *days]
        yield from (Written(name, rule, formats=(form,)) for form in forms)
    elif pa.types.is_integer(target) or pa.types.is_floating(target):
        around = [found for cell in cells if (found := _AROUND.fullmatch(cell.strip()))]
        signs = "".join(
            dict.fromkeys(sign for one in around for sign in one[1] + one[2] if not (sign.isspace() or sign in "+-."))
        )
        strip = signs or any(cell != cell.strip() for cell in cells)
        if len(signs) <= _MOST_SIGNS and all(map(_is_unit, signs)):
            yield from (Written(name, rule, strip, *both) for both in _SIGNS)


def _is_unit(sign: str) -> bool:
    """Return whether a sign is one of percent or of a currency, or a letter; brackets may mean less than zero."""
    return sign == "%" or sign.isalpha() or category(sign) == "Sc"


def _reads(way: Written, cells: Sequence[str]) -> bool:
    batch = pa.RecordBatch.from_arrays([pa.array(cells, pa.large_string())], names=[way.column])
    return not way.apply(batch, "").problems
