"""The one object through which a command speaks: data on stdout, everything else on stderr.

                 people                        --json
    stdout       tables and text               one JSON document (inspect: one a line)
    stderr       progress, notes, errors       the same

Text that comes from data (names, values, paths) is escaped before it is printed, and is never read as rich's markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.text import Text

from ...transforms.errors import ShardmillError
from ...transforms.format.wording.hints import Command
from ...transforms.format.wording.printable import counted, format_size, redacted
from ..outcomes.reject_groups import rejects_text
from ..outcomes.summary import PlanReport, Submitted, Summary, unchanged_line
from .summary_screen import (
    print_left_out,
    print_new_classes,
    print_notes,
    print_rejected_before,
    print_schema,
    print_summary,
)
from .terminal import Terminal, in_lines, plain_table, shown_path

if TYPE_CHECKING:
    from ...transforms.dataset.integrity.verify_shard import Report


class Screen(Terminal):
    """Prints the results of commands, as text or, with `as_json`, as JSON; `quiet` leaves out all but errors."""

    def error(self, error: ShardmillError, detected: Iterable[str] = ()) -> None:
        for note in detected:
            self.err.print(Text(f"Detected: {in_lines(note)}"), soft_wrap=True)
        text = redacted(str(error))
        self.err.print(Text.assemble(("error: ", "bold red"), in_lines(text)), soft_wrap=True)
        if self.as_json:
            kind = type(error).__name__
            self.error_data({"type": kind, "exit_code": error.exit_code, "message": text})

    def summary(self, summary: Summary) -> None:
        where = f"generation {summary.manifest.generation} of {shown_path(summary.path)}"
        self.done = f"{where} {'holds it already' if summary.nothing_to_do else 'was committed'}"
        if self.as_json:
            self.data(summary.to_json())
        elif not self.quiet:
            print_summary(self, summary)

    def ended(self, ended: Summary | Submitted | PlanReport) -> None:
        match ended:
            case Summary():
                self.summary(ended)
            case Submitted():
                self.submitted(ended)
            case PlanReport():
                self.plan(ended)

    def submitted(self, job: Submitted) -> None:
        self.done = f"job {job.job_id or job.name} was {'built' if job.job_id is None else 'submitted'}"
        if self.as_json:
            self.data(job.to_json())
        elif not self.quiet and job.job_id is None:
            self.text(f"The graph of job {job.name} was built, and nothing was sent.")
        elif not self.quiet:
            self.text(f"Submitted {job.job_id} ({job.name}). It commits {shown_path(job.path)} by itself.")
            for what, command in {**job.commands, "then": f"{Command('log', shown_path(job.path))}"}.items():
                self.text(f"  {what + ':':9}{command}")
            self.text(f"  {job.url}")

    def conversion(self, conversion: object) -> None:
        if not self.as_json and not self.quiet:
            self.text(f"{conversion}\n")

    def plan(self, plan: PlanReport) -> None:
        if self.as_json:
            self.data(plan.to_json())
        elif not self.quiet:
            print_plan(self, plan)

    def verified(self, report: Report) -> None:
        if self.as_json:
            self.data(report.to_json())
            return
        for finding in report.findings:
            self.text(in_lines(str(finding)), "red")
        if self.quiet:
            return
        for note in report.notes:
            self.text(f"Note: {in_lines(note)}", "yellow")
        what = "" if report.generation is None else f"generation {report.generation} of "
        size = f"{counted(report.shards, 'shard')}, {counted(report.records, 'record')}, {format_size(report.bytes)}"
        where = f"{what}{shown_path(report.path)}: {size}"
        if report.ok:
            self.text(f"OK{' (sizes only)' if report.quick else ''}: {where}", "bold green")
        else:
            self.text(f"Damaged, {counted(len(report.findings), 'finding')}: {where}", "bold red")


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
    rejects = plan.sampled_rejects
    if rejects.rows:
        looked_at = f"of the {plan.sampled:,} that were looked at" if plan.sampled > 1 else "looked at"
        terminal.text(f"\nWould reject {counted(rejects.rows, 'row')} {looked_at}:", "bold yellow")
        terminal.text(rejects_text(plan.sampled, rejects.by_code, rejects.groups))
        if plan.forecast is not None:
            terminal.text(plan.forecast.reject_line(), "bold red" if plan.forecast.fails else "yellow")
