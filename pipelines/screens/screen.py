"""The one object through which a command speaks: data on stdout, everything else on stderr.

                 people                        --json
    stdout       tables and text               one JSON document (inspect: one a line)
    stderr       progress, notes, errors       the same

Text that comes from data (names, values, paths) is escaped before it is printed, and is never read as rich's markup.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import IO, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...transforms.dataset.integrity.findings import Report
from ...transforms.errors import ShardmillError
from ...transforms.format.manifest.manifest import Manifest, SplitEntry
from ...transforms.format.schema.schema import Choice, Schema
from ...transforms.format.wording.printable import counted as _count
from ...transforms.format.wording.printable import escaped, printable, printable_path, redacted, safe_json
from ...transforms.format.wording.sizes import format_size
from ..report.reject_groups import rejects_text
from ..report.summary import PlanReport, Submitted, Summary
from ..report.unchanged import rejected_line, unchanged_line
from .schema_table import FEATURES_AFTER_A_RUN, MOST_FEATURES, name_text, nulls_text, schema_table

_FILE_WIDTH: Final = 200
"""Columns where stdout is not a terminal: tables are not folded to a screen that is not there."""

_MAX_CLASSES: Final = 20


class Screen:
    """Prints what commands have to tell, as text or, with `as_json`, as JSON; `quiet` leaves out all but errors."""

    def __init__(
        self,
        *,
        as_json: bool = False,
        quiet: bool = False,
        stdout: IO[str] | None = None,
        stderr: IO[str] | None = None,
    ) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.out = _console(stdout or sys.stdout)
        self.err = _console(stderr or sys.stderr)

    def data(self, document: Mapping[str, Any]) -> None:
        """Print one JSON document as a line of stdout."""
        self.out.file.write(safe_json(json.dumps(document, ensure_ascii=False, allow_nan=False)) + "\n")
        self.out.file.flush()

    def text(self, line: str, style: str = "") -> None:
        """Print a line of text on stdout; whatever of data is in it cannot move the cursor."""
        self.out.print(Text(_escaped(line), style), soft_wrap=True)

    def table(self, table: Table) -> None:
        """Print a table on stdout; in a file its lines do not end in blanks."""
        if self.out.is_terminal:
            self.out.print(table)
            return
        with self.out.capture() as capture:
            self.out.print(table)
        for line in capture.get().splitlines():
            self.text(line.rstrip())

    def note(self, line: str, style: str = "") -> None:
        """Print a line on stderr, unless the screen is quiet."""
        if not self.quiet:
            self.err.print(Text(_escaped(line), style), soft_wrap=True)

    def error(self, error: ShardmillError, detected: Iterable[str] = ()) -> None:
        """Print an error on stderr, after what was detected before it and, with `--json`, a document on stdout."""
        for note in detected:
            self.err.print(Text(f"Detected: {_escaped(note)}"), soft_wrap=True)
        text = redacted(str(error))
        self.err.print(Text.assemble(("error: ", "bold red"), _escaped(text)), soft_wrap=True)
        if self.as_json:
            kind = type(error).__name__
            self.data({"error": {"type": kind, "exit_code": error.exit_code, "message": text}})

    def summary(self, summary: Summary) -> None:
        """Print what a conversion wrote, what it rejected and why, and how to read it."""
        if self.as_json:
            self.data(summary.to_json())
        elif not self.quiet:
            self._print_summary(summary)

    def ended(self, ended: Summary | Submitted) -> None:
        """Print what became of a command that may leave a job behind."""
        if isinstance(ended, Summary):
            self.summary(ended)
        else:
            self.submitted(ended)

    def submitted(self, job: Submitted) -> None:
        """Print the id of a job, and how to see what becomes of it."""
        if self.as_json:
            self.data(job.to_json())
        elif not self.quiet and job.job_id is None:
            self.text(f"The graph of job {job.name} was built, and nothing was sent.")
        elif not self.quiet:
            self.text(f"Submitted {job.job_id} ({job.name}). It commits {shown_path(job.path)} by itself.")
            for what, command in {**job.commands, "then": f"shardmill log {shown_path(job.path)}"}.items():
                self.text(f"  {what + ':':9}{command}")
            self.text(f"  {job.url}")

    def plan(self, plan: PlanReport) -> None:
        """Print what a conversion would write."""
        if self.as_json:
            self.data(plan.to_json())
        elif not self.quiet:
            self._print_plan(plan)

    def append_plan(self, plan: PlanReport | Summary) -> None:
        """Print what an append would write, or that it has nothing to."""
        if isinstance(plan, Summary):
            self.summary(plan)
        else:
            self.plan(plan)

    def verified(self, report: Report) -> None:
        """Print the place of every damage, and what was verified."""
        if self.as_json:
            self.data(report.to_json())
            return
        for finding in report.findings:
            self.text(_escaped(str(finding)), "red")
        if self.quiet:
            return
        for note in report.notes:
            self.text(f"Note: {_escaped(note)}", "yellow")
        what = "" if report.generation is None else f"generation {report.generation} of "
        size = f"{_count(report.shards, 'shard')}, {_count(report.records, 'record')}, {format_size(report.bytes)}"
        where = f"{what}{shown_path(report.path)}: {size}"
        if report.ok:
            self.text(f"OK{' (sizes only)' if report.quick else ''}: {where}", "bold green")
        else:
            self.text(f"Damaged, {_count(len(report.findings), 'finding')}: {where}", "bold red")

    def _print_summary(self, summary: Summary) -> None:
        manifest, where = summary.manifest, shown_path(summary.path)
        size = f"{_count(manifest.counts.written, 'record')} in {_count(summary.shards, 'shard')}, "
        size += format_size(summary.bytes)
        if summary.command == "append":
            self._print_append(summary, size)
            return
        if summary.nothing_to_do:
            self.text(f"Nothing to do: generation {manifest.generation} of {where} holds it ({size}).", "bold")
            return
        self.text(f"Wrote {where}: {size} (generation {manifest.generation}).", "bold green")
        self._splits(manifest)
        self.text(_read_line(manifest))
        self._notes(summary)
        self._schema(manifest.schema, summary.choices, planned=False)
        self._narrowed(manifest)
        self._rejected(summary)
        if manifest.compression != "none":
            self.text(
                "\nLeft out, as their readers do not read gzip: dataset_info.json (TFDS), index/ (DALI)", "yellow"
            )
        if manifest.splits:  # without records there is nothing to read
            self.text("\nRead it:", "bold")
            for line in reading_lines(where, manifest):
                self.text(f"  {line}")
        self._ending(summary)

    def _narrowed(self, manifest: Manifest) -> None:
        since = " in all generations" if manifest.operation == "append" else ""
        for entry in manifest.narrowed:
            zeros = f", {entry.underflows:,} became zero" if entry.underflows else ""
            error = f"exact ones among them; largest relative error {entry.max_relative_error:.1e}{zeros}"
            lost = error if entry.max_relative_error else "all exact"
            values = f"{_count(entry.values, 'value')}{since}"
            self.text(f"Narrowed {_escaped(entry.name)}: {entry.from_} to {entry.to}, {values}, {lost}")

    def _rejected(self, summary: Summary) -> None:
        rejects = summary.manifest.rejects
        if rejects.records:
            path = "" if rejects.path is None else f" ({shown_path(summary.path)}/{rejects.path})"
            self.text(f"\nRejected {_count(rejects.records, 'row')}{path}:", "bold yellow")
            self.text(rejects_text(rejects.records, rejects.by_code, summary.reject_groups))

    def _ending(self, summary: Summary) -> None:
        """Print what earlier runs left, and how long it took and how fast it was, where that means something."""
        if summary.left_behind:
            where = shown_path(summary.path)
            self.text(
                f"\nEarlier runs that did not finish left {format_size(summary.left_behind)} in {where}/.staging; "
                f"to see what may go: shardmill gc {shlex.quote(where)} --older-than 0s",
                "yellow",
            )
        if summary.seconds < 1:
            return
        counts, source = summary.manifest.counts, summary.manifest.source
        known = counts.read >= summary.seconds and not summary.done_before  # else it is no speed, or of other rows
        rates = f", {counts.read / summary.seconds:,.0f} rows/s" if known else ""
        rate = source.bytes / 1e6 / summary.seconds
        if rates and rate >= 0.005:
            rates += f", {rate:.{1 if rate >= 1 else 2}f} MB/s read"
        self.text(f"\n{summary.seconds:.1f} s{rates}")

    def _print_append(self, summary: Summary, size: str) -> None:
        """Print what is new; schema, sidecars and how to read it are the dataset's, and as they were."""
        manifest, where = summary.manifest, shown_path(summary.path)
        if summary.nothing_to_do:
            held = sum(file.files for file in summary.unchanged)
            what = "the file" if held == 1 else f"all {_count(held, 'file')}"
            if held < summary.listed:
                what = f"{held:,} of {_count(summary.listed, 'file')}"
            holds = f"{where} holds {what}; --force appends again" if held else "no file is left to append"
            self.text(f"Nothing to do: {holds}.", "bold")
            self._rejected_before(summary)
            self._notes(summary)
            return
        self.text(f"Appended to {where}: {size} (generation {manifest.generation}).", "bold green")
        if summary.unchanged:
            self.text(f"Left out: {_escaped(unchanged_line(summary.unchanged))}")
        self._rejected_before(summary)
        self._grown_splits(manifest)
        self.text(_read_line(manifest))
        self._new_classes(summary.new_classes)
        self._notes(summary)
        self._narrowed(manifest)
        self._rejected(summary)
        self._ending(summary)

    def _rejected_before(self, done: Summary | PlanReport) -> None:
        if done.rejected_before:
            self.text(_escaped(rejected_line(done.rejected_before, shown_path(done.path))), "yellow")

    def _new_classes(self, new: Mapping[str, Mapping[str, int]]) -> None:
        for feature, classes in new.items():
            shown = [f"{printable(name)} = {number}" for name, number in classes.items()]
            more = f" and {len(shown) - _MAX_CLASSES:,} more" if len(shown) > _MAX_CLASSES else ""
            what = (
                "1 new class, and its number" if len(shown) == 1 else f"{len(shown):,} new classes, and their numbers"
            )
            self.text(f"{what} in {name_text(feature)}: {', '.join(shown[:_MAX_CLASSES])}{more}")

    def _print_plan(self, plan: PlanReport) -> None:
        verb = "append to" if plan.command == "append" else "write"
        self.text(f"Would {verb} {shown_path(plan.path)} (dry run: nothing was written)", "bold")
        if plan.unchanged:
            self.text(f"Would leave out: {_escaped(unchanged_line(plan.unchanged))}")
        self._rejected_before(plan)
        about = "" if plan.rows_exact else "about "
        self.text(
            f"Source: {plan.source_format}, {_count(plan.files, 'file')}, {format_size(plan.bytes)}, "
            f"{about}{_count(plan.rows, 'row')}{_skipped(plan.skipped)}"
        )
        done = f" ({plan.done_before:,} of them are done)" if plan.done_before else ""
        self.text(
            f"Tasks:  {plan.tasks:,}{done}; shards of {format_size(plan.shard_size)}, compression {plan.compression}\n"
        )
        table = _table("split", "records", "bytes", "shards")
        for split in plan.splits:
            table.add_row(
                split.name, f"about {split.records:,}", f"about {format_size(split.bytes)}", f"{split.shards:,}"
            )
        self.table(table)
        self._new_classes(plan.new_classes)
        self._notes(plan)
        self._sampled_rejects(plan)
        if plan.command != "append":  # whose schema is the dataset's
            self._schema(plan.schema, plan.choices, planned=True)

    def _sampled_rejects(self, plan: PlanReport) -> None:
        rejected = sum(group.rows for group in plan.sampled_rejects)
        if rejected:
            looked_at = f"of the {plan.sampled:,} that were looked at" if plan.sampled > 1 else "looked at"
            self.text(f"\nWould reject {_count(rejected, 'row')} {looked_at}:", "bold yellow")
            self.text(rejects_text(rejected, {}, plan.sampled_rejects))

    def _splits(self, manifest: Manifest) -> None:
        table = _table("split", "records", "shards", "bytes", "shard sizes")
        for name, split in manifest.splits.items():
            table.add_row(name, f"{split.records:,}", *_shard_cells(split))
        if manifest.splits:
            self.out.print()
            self.table(table)
            self.out.print()

    def _grown_splits(self, manifest: Manifest) -> None:
        """Print the splits of a dataset, and what its latest generation added to each."""
        table = _table("split", "added", "records in all", "shards in all", "bytes in all", "shard sizes")
        for name, split in manifest.splits.items():
            added = [shard for shard in split.shards if shard.generation == manifest.generation]
            records = sum(shard.records for shard in added)
            table.add_row(name, f"{records:,}", f"{split.records:,}", *_shard_cells(split))
        if manifest.splits:
            self.out.print()
            self.table(table)
            self.out.print()

    def _notes(self, done: Summary | PlanReport) -> None:
        for text in done.detected:
            self.text(f"Detected: {_escaped(text)}")
        for warning in done.warnings:
            self.text(f"Warning: {_escaped(warning)}", "yellow")
        if done.order_note:
            self.text(f"Order: {done.order_note}")

    def _schema(self, schema: Schema | None, choices: tuple[Choice, ...], *, planned: bool) -> None:
        """Print a schema: of a plan with the reason of each type, after a run the first features alone."""
        if schema is None:
            return
        most = MOST_FEATURES if planned else FEATURES_AFTER_A_RUN
        self.out.print()
        self.table(schema_table(schema, choices, reasons=planned, most=most))
        if len(schema) > most:
            self.text(f"and {len(schema) - most:,} more features; --json has them all")
        names = {feature.name for feature in schema}
        for choice in choices[:MOST_FEATURES] if planned else ():
            if choice.column not in names:  # a column that became several features
                self.text(f"{name_text(choice.column)}: {_escaped(choice.type)}: {_escaped(choice.reason)}")
        nulls = None if planned else nulls_text(schema, choices)
        if nulls is not None:
            self.text(nulls)


def reading_lines(where: str, manifest: Manifest) -> list[str]:
    """Return three lines of Python that read a dataset: its split `train`, or the first one."""
    split = "train" if "train" in manifest.splits else next(iter(manifest.splits), "train")
    in_tfds = manifest.compression == "none" and "dataset_info.json" in manifest.sidecars
    if in_tfds and not where.startswith("s3://"):  # TensorFlow alone reads no S3
        return [
            "import tensorflow_datasets as tfds",
            f"dataset = tfds.builder_from_directory({where!r}).as_dataset(split={split!r})",
            "for example in dataset.take(1): print(example)",
        ]
    held = "plain bytes" if manifest.schema is None else "bytes of one tf.train.Example"
    return [
        "from shardmill.pipelines import open_dataset",
        f"dataset = open_dataset({where!r})",
        f"for record in dataset.records({split!r}): ...  # {held}",
    ]


def shown_path(path: str) -> str:
    """Return a folder relative to the working folder where it is below it, in one printable line."""
    if "://" in path:
        return printable_path(path)
    relative = os.path.relpath(path)
    return printable_path(path if relative.startswith("..") else relative)


class _PlainConsole(Console):
    def on_broken_pipe(self) -> None:
        """Let the error through: rich would exit with 1, which is a failed run."""
        raise  # noqa: PLE0704  (rich calls this while it handles the error)


def _console(file: IO[str]) -> Console:
    console = _PlainConsole(file=file, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    return console


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, title in enumerate(titles):
        table.add_column(title, justify="left" if index == 0 else "right")
    return table


def _shard_cells(split: SplitEntry) -> tuple[str, str, str]:
    """Return how many shards a split has, their bytes, and the sizes of the smallest and the largest."""
    sizes = [shard.bytes for shard in split.shards]
    span = " to ".join(dict.fromkeys(format_size(size) for size in (min(sizes), max(sizes)))) if sizes else ""
    return f"{len(sizes):,}", format_size(split.bytes), span


def _read_line(manifest: Manifest) -> str:
    counts, source = manifest.counts, manifest.source
    parts = [f"{counts.written:,} written", f"{counts.rejected:,} rejected"]
    if counts.dropped:
        parts.append(f"{counts.dropped:,} dropped")
    files = f" of {_count(source.files, 'file')} ({format_size(source.bytes)})" if source.files else ""
    return f"Read {_count(counts.read, 'row')}{files}: {', '.join(parts)}{_skipped(source.skipped)}"


def _skipped(skipped: Mapping[str, int]) -> str:
    text = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items() if count)
    return f"; skipped {text}" if text else ""


def _escaped(text: str) -> str:
    """Return text with everything that is not printable escaped, but for its line ends."""
    return escaped(text, keep="\n")
