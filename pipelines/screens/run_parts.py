"""What the screens of a run and of its plan share: notes, the schema, new classes, what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...transforms.format.schema.schema import Choice, Schema
from ...transforms.format.wording.printable import more, printable
from ...transforms.sources.files.skipped_names import left_out_text
from ..report.summary import PlanReport, Summary
from ..report.unchanged import rejected_line
from .schema_table import FEATURES_AFTER_A_RUN, MOST_FEATURES, name_text, nulls_text, schema_table
from .terminal import Terminal, in_lines, shown_path

_MAX_CLASSES: Final = 20


def print_notes(terminal: Terminal, done: Summary | PlanReport) -> None:
    for text in done.detected:
        terminal.text(f"Detected: {in_lines(text)}")
    for warning in done.warnings:
        terminal.text(f"Warning: {in_lines(warning)}", "yellow")
    if done.order_note:
        terminal.text(f"Order: {done.order_note}")


def print_schema(terminal: Terminal, schema: Schema | None, choices: tuple[Choice, ...], *, planned: bool) -> None:
    """Print a schema: of a plan with the reason of each type, after a run the first features alone."""
    if schema is None:
        return
    most = MOST_FEATURES if planned else FEATURES_AFTER_A_RUN
    terminal.out.print()
    terminal.table(schema_table(schema, choices, reasons=planned, most=most))
    if len(schema) > most:
        terminal.text(f"and {more(len(schema) - most, 'feature')}; --json has them all")
    names = {feature.name for feature in schema}
    for choice in choices[:MOST_FEATURES] if planned else ():
        if choice.column not in names:  # a column that became several features
            terminal.text(f"{name_text(choice.column)}: {in_lines(choice.type)}: {in_lines(choice.reason)}")
    nulls = None if planned else nulls_text(schema, choices)
    if nulls is not None:
        terminal.text(nulls)


def print_rejected_before(terminal: Terminal, done: Summary | PlanReport) -> None:
    if done.rejected_before:
        terminal.text(in_lines(rejected_line(done.rejected_before, shown_path(done.path))), "yellow")


def print_new_classes(terminal: Terminal, new: Mapping[str, Mapping[str, int]]) -> None:
    for feature, classes in new.items():
        shown = [f"{printable(name)} = {number}" for name, number in classes.items()]
        more = f" and {len(shown) - _MAX_CLASSES:,} more" if len(shown) > _MAX_CLASSES else ""
        what = "1 new class, and its number" if len(shown) == 1 else f"{len(shown):,} new classes, and their numbers"
        terminal.text(f"{what} in {name_text(feature)}: {', '.join(shown[:_MAX_CLASSES])}{more}")


def print_left_out(terminal: Terminal, skipped: Mapping[str, int]) -> None:
    if skipped:
        terminal.text(f"Left out: {left_out_text(skipped)}")
