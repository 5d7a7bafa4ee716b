"""The one object through which a command speaks: data on stdout, everything else on stderr.

                 people                        --json
    stdout       tables and text               one JSON document (inspect: one a line)
    stderr       progress, notes, errors       the same

Text that comes from data (names, values, paths) is escaped before it is printed, and is never read as rich's markup.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from ...transforms.dataset.integrity.findings import Report
from ...transforms.errors import ShardmillError
from ...transforms.format.wording.hints import Command
from ...transforms.format.wording.printable import counted, redacted
from ...transforms.format.wording.sizes import format_size
from ..report.summary import PlanReport, Submitted, Summary
from .plan_screen import print_plan
from .summary_screen import print_summary
from .terminal import Terminal, in_lines, shown_path


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

    def ended(self, ended: Summary | Submitted) -> None:
        if isinstance(ended, Summary):
            self.summary(ended)
        else:
            self.submitted(ended)

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

    def append_plan(self, plan: PlanReport | Summary) -> None:
        if isinstance(plan, Summary):
            self.summary(plan)
        else:
            self.plan(plan)

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
