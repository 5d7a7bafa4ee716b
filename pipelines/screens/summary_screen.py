"""Print the outcome of a conversion or an append: what was written and rejected, how to read it, the time it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from ...transforms.errors import ShardmillError
from ...transforms.format.manifest.manifest import Manifest, SplitEntry
from ...transforms.format.schema.schema import Choice, Feature, Schema
from ...transforms.format.wording.hints import Add, Command, set_column
from ...transforms.format.wording.printable import counted, escaped, format_size, more, printable, redacted
from ...transforms.inputs.files.file_names import left_out_text
from ...transforms.stores.store_url import STORES, scheme_of
from ..outcomes.reject_groups import rejects_text
from ..outcomes.summary import PlanReport, Submitted, Summary, rejected_line, shares_of, unchanged_line
from .terminal import Terminal, in_lines, plain_table, shown_path, what_may_go

if TYPE_CHECKING:
    from ...transforms.dataset.integrity.verify_shard import Report

_RATES_AFTER: Final = 10.0
"""Seconds. Loading the engine takes up to two of them: of a shorter run that is much, and a rate would be too low."""


_CLASSES: Final = 10
"""The most classes that are shown with their counts: `stats` has all."""


def print_summary(terminal: Terminal, summary: Summary) -> None:
    """Print a summary; the first line says what was written, and where."""
    manifest, where = summary.manifest, shown_path(summary.path)
    size = f"{counted(manifest.counts.written, 'record')} in {counted(summary.shards, 'shard')}, "
    size += format_size(summary.bytes)
    if summary.command == "append":
        _print_append(terminal, summary, size)
        return
    if summary.nothing_to_do:
        terminal.text(f"Nothing to do: generation {manifest.generation} of {where} holds it ({size}).", "bold")
        return
    terminal.text(f"Wrote {where}: {size} (generation {manifest.generation}).", "bold green")
    _splits(terminal, manifest)
    print_shares(terminal, manifest)
    _classes(terminal, summary)
    _fractions(terminal, summary)
    terminal.text(_read_line(manifest))
    print_left_out(terminal, manifest.source.skipped, named=any(one.file for one in manifest.details.columns))
    print_notes(terminal, summary)
    print_schema(terminal, manifest.schema, summary.choices, planned=False)
    _narrowed(terminal, manifest)
    print_checks(terminal, manifest)
    _rejected(terminal, summary)
    if manifest.generation > 1:
        terminal.text(
            "\nReplaced the dataset in place: TFDS, tf.data and globs that read it now may mix old and new records, "
            "and open_dataset ends with an error. To let readers finish, convert into a new folder and swap a link.",
            "yellow",
        )
    if manifest.compression != "none":
        left_out = "dataset_info.json (TFDS), index/ (DALI)"
        terminal.text(f"\nLeft out, as their readers do not read gzip: {left_out}", "yellow")
    if manifest.splits:  # without records there is nothing to read
        terminal.text("\nRead it:", "bold")
        for line in reading_lines(where, manifest):
            terminal.text(f"  {line}")
    _ending(terminal, summary)


def _print_append(terminal: Terminal, summary: Summary, size: str) -> None:
    """Print what is new; schema, sidecars and how to read it are the dataset's, and as they were."""
    manifest, where = summary.manifest, shown_path(summary.path)
    if summary.nothing_to_do:
        held = sum(file.files for file in summary.unchanged)
        what = "the file" if held == 1 else f"all {counted(held, 'file')}"
        if held < summary.listed:
            what = f"{held:,} of {counted(summary.listed, 'file')}"
        rows = "the rows of " if any(file.under is not None for file in summary.unchanged) else ""
        holds = f"{where} holds {rows}{what}; {Add('--force')} appends again" if held else "no file is left to append"
        terminal.text(f"Nothing to do: {holds}.", "bold")
        if any(file.under is not None for file in summary.unchanged):
            terminal.text(f"Left out: {in_lines(unchanged_line(summary.unchanged))}")
        print_rejected_before(terminal, summary)
        print_notes(terminal, summary)
        return
    terminal.text(f"Appended to {where}: {size} (generation {manifest.generation}).", "bold green")
    if summary.unchanged:
        terminal.text(f"Left out: {in_lines(unchanged_line(summary.unchanged))}")
    print_rejected_before(terminal, summary)
    _splits(terminal, manifest, grown=True)
    print_shares(terminal, manifest)
    _classes(terminal, summary)
    _fractions(terminal, summary)
    terminal.text(_read_line(manifest))
    print_left_out(terminal, manifest.source.skipped)
    print_new_classes(terminal, summary.new_classes)
    print_notes(terminal, summary)
    _narrowed(terminal, manifest)
    print_checks(terminal, manifest)
    _rejected(terminal, summary)
    _ending(terminal, summary)


def _narrowed(terminal: Terminal, manifest: Manifest) -> None:
    since = " in all generations" if manifest.operation == "append" else ""
    for entry in manifest.narrowed:
        zeros = f", {entry.underflows:,} became zero" if entry.underflows else ""
        error = f"relative error up to {entry.max_relative_error:.1e}{zeros}"
        lost = error if entry.max_relative_error else "none changed"
        values = f"{counted(entry.values, 'value')}{since}"
        terminal.text(f"Narrowed {in_lines(entry.name)}: {entry.from_} to {entry.to}, {values}, {lost}")
        if entry.integers_changed:
            changed = f"{entry.integers_changed:,} of {counted(entry.values, 'integer')} became another number"
            fix = set_column(entry.name, "as", "int64")
            terminal.text(
                f"Warning: {in_lines(entry.name)}: {changed}; to keep all, convert again with {fix}", "yellow"
            )


def _rejected(terminal: Terminal, summary: Summary) -> None:
    rejects = summary.manifest.rejects
    if rejects.records:
        path = "" if rejects.path is None else f" ({shown_path(summary.path)}/{rejects.path})"
        terminal.text(f"\nRejected {counted(rejects.records, 'row')}{path}:", "bold yellow")
        terminal.text(rejects_text(summary.manifest.counts.read, rejects.by_code, summary.reject_groups))


def _ending(terminal: Terminal, summary: Summary) -> None:
    if summary.left_behind:
        where = shown_path(summary.path)
        terminal.text(
            f"\nEarlier runs that did not finish left {format_size(summary.left_behind)} in {where}/.staging; "
            f"{what_may_go(summary.path)}",
            "yellow",
        )
    if summary.seconds < 1:
        return
    counts, source = summary.manifest.counts, summary.manifest.source
    known = counts.read >= summary.seconds >= _RATES_AFTER and not summary.done_before  # these were read before
    rates = f", {counts.read / summary.seconds:,.0f} rows/s" if known else ""
    rate = source.bytes / 1e6 / summary.seconds
    if rates and rate >= 0.005:
        rates += f", {rate:.{1 if rate >= 1 else 2}f} MB/s read"
    terminal.text(f"\nTook {summary.seconds:.1f} s{rates}")


def _splits(terminal: Terminal, manifest: Manifest, *, grown: bool = False) -> None:
    in_all = " in all" if grown else ""
    titles = ("split", *(["added"] if grown else []), *(f"{what}{in_all}" for what in ("records", "shards", "bytes")))
    table = plain_table(*titles, "shard sizes")
    for name, split in manifest.splits.items():
        added = sum(shard.records for shard in split.shards if shard.generation == manifest.generation)
        table.add_row(name, *([f"{added:,}"] if grown else []), f"{split.records:,}", *_shard_cells(split))
    if manifest.splits:
        terminal.out.print()
        terminal.table(table)
        terminal.out.print()


def print_shares(terminal: Terminal, manifest: Manifest) -> None:
    """Print the shares of several splits: a test set in `train` is seen there."""
    shares = shares_of(manifest)
    if len(shares) > 1:
        shown = (f"{name} {100 * share:.3g} %" for name, share in shares.items())
        terminal.text(f"Shares of the records: {', '.join(shown)}")


def _classes(terminal: Terminal, summary: Summary) -> None:
    for feature, by_split in summary.class_counts.items():
        names = [name for name in summary.manifest.labels[feature] if not name.startswith("_unused_")]
        shown = []
        for name in names[:_CLASSES]:
            counts = {split: counts.get(name, 0) for split, counts in by_split.items()}
            parts = ", ".join(f"{split} {count:,}" for split, count in counts.items())
            called = printable(name) or repr(name)
            shown.append(f"{called} {sum(counts.values()):,}" + (f" ({parts})" if len(counts) > 1 else ""))
        more = f" and {len(names) - _CLASSES:,} more" if len(names) > _CLASSES else ""
        terminal.text(f"Classes of {in_lines(feature)}: {', '.join(shown)}{more}")


def _fractions(terminal: Terminal, summary: Summary) -> None:
    found = [f"{name} {share:.4g} ({summary.asked[name]:.4g} asked)" for name, share in summary.fractions.items()]
    if found:
        new = " of the new records" if summary.command == "append" else ""
        terminal.text(f"Fractions{new}: {', '.join(found)}")


def _shard_cells(split: SplitEntry) -> tuple[str, str, str]:
    sizes = [shard.bytes for shard in split.shards]
    span = " to ".join(dict.fromkeys(format_size(size) for size in (min(sizes), max(sizes)))) if sizes else ""
    return f"{len(sizes):,}", format_size(split.bytes), span


def _read_line(manifest: Manifest) -> str:
    counts, source = manifest.counts, manifest.source
    parts = [f"{counts.written:,} written", f"{counts.rejected:,} rejected"]
    if counts.dropped:
        parts.append(f"{counts.dropped:,} dropped")
    files = f" of {counted(source.files, 'file')} ({format_size(source.bytes)})" if source.files else ""
    return f"Read {counted(counts.read, 'row')}{files}: {', '.join(parts)}"


def reading_lines(where: str, manifest: Manifest) -> list[str]:
    """Return three lines of Python that read a dataset: its split `train`, or the first one."""
    split = "train" if "train" in manifest.splits else next(iter(manifest.splits), "train")
    in_tfds = manifest.compression == "none" and "dataset_info.json" in manifest.sidecars
    scheme = scheme_of(where)
    if in_tfds and (scheme is None or STORES[scheme].in_tensorflow):
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


_BOX: Final = "/object/bbox/xmin"


def nulls_text(schema: Schema, choices: Sequence[Choice] = ()) -> str | None:
    """Return which features have nulls, and what that is in a record; None if there are none.

    Where `choices` counted the nulls, only those that were found are meant: a sample cannot prove that there are none.
    Of pictures without boxes nothing is said: their lists of boxes and classes are empty in every reader.
    """
    counts = {choice.column: choice.nulls for choice in choices}
    ends = [feature.name.removesuffix(_BOX) for feature in schema if feature.name.endswith(_BOX)]
    boxed = tuple(f"{image}/object/" for image in ends)
    nullable = [one.name for one in schema if one.nullable and not (one.shape == (-1,) and one.name.startswith(boxed))]
    names = [name for name in nullable if counts.get(name) != 0]
    if not names:
        return None
    where = "in" if all(counts.get(name) for name in names) else "possible in"
    shown = ", ".join(map(name_text, names[:5]))
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return (
        f"Nulls {where} {shown}{more}: their records lack it, and TFDS reads the smallest number or empty text "
        "(docs/types.md, Nulls)"
    )


# The one object through which a command speaks: data on stdout, everything else on stderr.
#
#                  people                        --json
#     stdout       tables and text               one JSON document (inspect: one a line)
#     stderr       progress, notes, errors       the same
#
# Text that comes from data (names, values, paths) is escaped before it is printed, and is never read as rich's markup.


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


# What the screens of a run and of its plan share: notes, the schema, new classes, what was left out.


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
        terminal.text(f"and {more(len(schema) - most, 'feature')}; to list all of them, add --json")
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


def print_left_out(terminal: Terminal, skipped: Mapping[str, int], *, named: bool = False) -> None:
    """Say what was left out; rows may have `named` some of it, and then hold the bytes."""
    if skipped:
        terminal.text(f"Left out{' (but as values of rows that name them)' if named else ''}: {left_out_text(skipped)}")


# Print what the checks of a dataset found: after a run, and from its manifest.


_NOT_COMPARED: Final = {"one split": "all records are in one split", "no value": "no record has a value"}

_SHOWN_PAIRS: Final = 5
"""The most pairs of splits that share records which are shown; the manifest has all."""


def print_checks(terminal: Terminal, manifest: Manifest, *, later: bool = False) -> None:
    """Print what was found among the records that a generation added; `later` names it."""
    where = " among the new records" if manifest.operation == "append" else ""
    if later:
        where = f" in what generation {manifest.generation} added"
    _duplicates(terminal, manifest, where)
    _leaks(terminal, manifest, where)


def _leaks(terminal: Terminal, manifest: Manifest, where: str) -> None:
    check = manifest.details.checks.get("leaks")
    if check is None:
        return
    names = ", ".join(in_lines(name) for name in check["columns"])
    if "not_compared" in check:
        why = _NOT_COMPARED[check["not_compared"]]
        terminal.text(f"Leaks of {names}: nothing to compare{where}: {why}", "yellow")
        return
    if not check["groups"]:
        terminal.text(f"Leaks of {names}: none{where}")
        return
    are = "is" if check["groups"] == 1 else "are"
    values = f"{counted(check['groups'], 'value')} {are} in more than one split{where}"
    terminal.text(f"\nLeaks of {names}: {values}, with {counted(check['records'], 'record')}:", "bold yellow")
    _shared(terminal, check, "value", "")
    _examples(terminal, check, "value")
    column = str(check["columns"][0])
    scalars = [feature.name for feature in manifest.schema or () if feature.shape == ()]
    key = next((name for name in scalars if name == column or name.startswith(f"{column}/")), None)
    terminal.text(f"  {_leaks_fix(manifest.conversion.get('split', {}), key)}", "yellow")


def _leaks_fix(rule: Mapping[str, Any], column: str | None) -> str:
    """Return how values are kept in one split each, given the rule of the dataset and a feature of one value a row."""
    keep, key = "to keep each in one split", Add("--split-key", column or "COLUMN")
    if column is None and rule:
        return f"{keep}, add a column with one text or number for each, and split by it: {key}"
    if not rule:
        return f"the splits are those of the source; {keep}, move its rows into one of them"
    if "of" in rule:
        return f"{keep} of those that are cut out of {rule['of']}: {key}; move the rows of the other splits"
    if "column" in rule or "before" in rule:
        return f"{keep}, instead of this rule: {Add('--split-fractions', 'train=0.9,val=0.1', key)}"
    if rule.get("key") == column:
        return f"{keep}, split the new records by the rule of the dataset: leave theirs out"
    instead = next((f" instead of {name}" for name in ("key", "stratify") if name in rule), "")
    return f"{keep}: {key}{instead}"


def _shared(terminal: Terminal, check: Mapping[str, Any], what: str, of: str) -> None:
    shared = sorted(check.get("splits", {}).items(), key=lambda pair: -pair[1])
    for splits, groups in shared[:_SHOWN_PAIRS]:
        alike = f"{counted(groups, what)}{of} {'is' if groups == 1 else 'are'}"
        terminal.text(f"  {alike} in both {' and '.join(sorted(splits.split()))}", "yellow")
    if len(shared) > _SHOWN_PAIRS:
        terminal.text(f"  and {counted(len(shared) - _SHOWN_PAIRS, 'pair')} of splits more", "yellow")


def _examples(terminal: Terminal, check: Mapping[str, Any], what: str) -> None:
    for example in check.get("examples", ()):
        more = example["records"] - len(example["places"])
        others = f" and {more:,} more" if more else ""
        terminal.text(f"  {' = '.join(in_lines(place) for place in example['places'])}{others}")
    if check["groups"] > len(check.get("examples", ())):
        terminal.text(f"  and {counted(check['groups'] - len(check['examples']), what)} more")


def _duplicates(terminal: Terminal, manifest: Manifest, where: str) -> None:
    check = manifest.details.checks.get("duplicates")
    if check is None:
        return
    names = [in_lines(name) for name in check["columns"]]
    alike = f" in {', '.join(names)}" if names else ""
    if not check["records"]:
        terminal.text(f"Duplicates{alike}: none{where}")
        return
    left = "left out" if check.get("action") == "drop" else "kept"
    repeats = f"{counted(check['records'], 'record')} {'repeats' if check['records'] == 1 else 'repeat'}"
    terminal.text(f"\nDuplicates{alike}: {repeats} an earlier one{where}, {left}:", "bold yellow")
    _shared(terminal, check, "group", " of equal records")
    _examples(terminal, check, "group")
