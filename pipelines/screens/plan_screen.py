"""Print what a conversion or an append would write."""

from __future__ import annotations

from ...transforms.format.wording.printable import counted
from ...transforms.format.wording.sizes import format_size
from ..report.reject_groups import codes_of, rejects_text
from ..report.summary import PlanReport
from ..report.unchanged import unchanged_line
from .run_parts import print_left_out, print_new_classes, print_notes, print_rejected_before, print_schema
from .terminal import Terminal, in_lines, plain_table, shown_path


def print_plan(terminal: Terminal, plan: PlanReport) -> None:
    """Print a plan; the first line says that nothing was written."""
    verb = "append to" if plan.command == "append" else "write"
    terminal.text(f"Would {verb} {shown_path(plan.path)} (dry run: nothing was written)", "bold")
    if plan.unchanged:
        terminal.text(f"Would leave out: {in_lines(unchanged_line(plan.unchanged))}")
    print_rejected_before(terminal, plan)
    about = "" if plan.rows_exact else "about "
    terminal.text(
        f"Source: {plan.source_format}, {counted(plan.files, 'file')}, {format_size(plan.bytes)}, "
        f"{about}{counted(plan.rows, 'row')}"
    )
    print_left_out(terminal, plan.skipped)
    done = f" ({plan.done_before:,} already done)" if plan.done_before else ""
    terminal.text(
        f"Tasks:  {plan.tasks:,}{done}; shards of {format_size(plan.shard_size)}, compression {plan.compression}\n"
    )
    table = plain_table("split", "records", "bytes", "shards")
    sampled = plan.forecast
    about = "" if sampled is not None and sampled.splits_counted and sampled.exact else "about "
    for split in plan.splits:
        table.add_row(
            split.name, f"{about}{split.records:,}", f"{about}{format_size(split.bytes)}", f"{split.shards:,}"
        )
    terminal.table(table)
    if plan.splits_sampled:
        seen = f"the {counted(plan.sampled, 'row')} that were looked at" if plan.sampled else "no row yet"
        terminal.text(f"Splits are those of {seen}; others may have more.")
    if plan.forecast is not None:
        for text in plan.forecast.lines(plan.path):
            terminal.text(text)
    for text in plan.checks:
        terminal.text(f"Checks: {in_lines(text)}")
    print_new_classes(terminal, plan.new_classes)
    print_notes(terminal, plan)
    _sampled_rejects(terminal, plan)
    if plan.command != "append":  # whose schema is the dataset's
        print_schema(terminal, plan.schema, plan.choices, planned=True)


def _sampled_rejects(terminal: Terminal, plan: PlanReport) -> None:
    rejected = sum(group.rows for group in plan.sampled_rejects)
    if rejected:
        looked_at = f"of the {plan.sampled:,} that were looked at" if plan.sampled > 1 else "looked at"
        terminal.text(f"\nWould reject {counted(rejected, 'row')} {looked_at}:", "bold yellow")
        terminal.text(rejects_text(rejected, codes_of(plan.sampled_rejects), plan.sampled_rejects))
        if plan.forecast is not None:
            terminal.text(plan.forecast.reject_line(), "bold red" if plan.forecast.fails else "yellow")
