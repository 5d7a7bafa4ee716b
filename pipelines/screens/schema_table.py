"""A schema as a table: features, what holds them, what they mean, whether they may be null; with `reasons`, why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table

from ...transforms.format.schema.schema import Choice, Feature, Schema
from ...transforms.format.wording.printable import escaped, printable

MOST_FEATURES: Final = 200
"""The number of features that a schema shows; a table of 20,000 would push all else off the screen."""

FEATURES_AFTER_A_RUN: Final = 12
"""The number shown if the schema is one thing of several."""


def schema_table(schema: Schema, choices: Sequence[Choice] = (), *, reasons: bool, most: int = MOST_FEATURES) -> Table:
    """Return the table of the first features of a schema, in the order of the source if the choices give it."""
    known = {choice.column: choice for choice in choices}
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("feature", "kind", "type", "nulls", *(["reason"] if reasons else [])):
        table.add_column(title, overflow="fold")
    for feature in in_source_order(schema, choices)[:most]:
        why = [escaped(known[feature.name].reason) if feature.name in known else ""] if reasons else []
        table.add_row(
            name_text(feature.name), kind_text(feature), type_text(feature), "yes" if feature.nullable else "no", *why
        )
    return table


def in_source_order(schema: Schema, choices: Sequence[Choice]) -> list[Feature]:
    """Return the features as the source has its columns, where there is a choice for each; else by name."""
    places = {choice.column: number for number, choice in enumerate(choices)}
    if not all(feature.name in places for feature in schema):
        return list(schema)
    return sorted(schema, key=lambda feature: places[feature.name])


def name_text(name: str) -> str:
    return printable(name) or '""'


def kind_text(feature: Feature) -> str:
    return feature.kind if feature.shape == () else f"{feature.kind} list"


def type_text(feature: Feature) -> str:
    text = feature.type
    if feature.unit or feature.timezone:
        text += f" ({', '.join(printable(part) for part in (feature.unit, feature.timezone) if part)})"
    if feature.dtype:
        text += f" {feature.dtype}"
    if feature.shape == (-1,):
        return f"list of {text}"
    return f"{text}[{', '.join(map(str, feature.shape))}]" if feature.shape else text


def nulls_text(schema: Schema, choices: Sequence[Choice] = ()) -> str | None:
    """Return which features have nulls, and what that is in a record; None if there are none.

    Where `choices` counted the nulls, only those that were found are meant: a sample cannot prove that there are none.
    """
    counts = {choice.column: choice.nulls for choice in choices}
    names = [feature.name for feature in schema if feature.nullable and counts.get(feature.name) != 0]
    if not names:
        return None
    where = "in" if all(counts.get(name) for name in names) else "possible in"
    shown = ", ".join(map(name_text, names[:5]))
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return (
        f"Nulls {where} {shown}{more}: their records lack it, and TFDS reads the smallest number or empty text "
        "(docs/types.md, Nulls)"
    )
