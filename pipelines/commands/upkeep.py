"""The commands that look after a dataset: `log`, `gc`, `index`, `verify`, `salvage` and `adopt`."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from rich.table import Table

from ...transforms.dataset.integrity.garbage import GarbageReport, collect_garbage
from ...transforms.dataset.storage.manifest_files import GenerationInfo, list_history
from ...transforms.errors import DamageError, UsageError
from ...transforms.format.wording.hints import Add, Command
from ...transforms.format.wording.printable import (
    counted,
    escaped,
    format_duration,
    format_size,
    parse_duration,
    printable,
    printable_path,
)
from ..workers.worker_processes import Spread

if TYPE_CHECKING:
    from ...transforms.dataset.integrity.record_walk import DamagedRange
    from ...transforms.dataset.integrity.salvage import SalvageReport
    from ...transforms.dataset.reading.count_records import MadeIndex
    from ..screens.summary_screen import Screen


_MOST_THREADS: Final = 4

_SHOWN: Final = 100
"""The number of files to remove that are shown, the largest first."""


def log_command(path: str, screen: Screen) -> int:
    """Print the generations of a dataset; return 0, or 3 if a manifest is damaged."""
    history = list_history(path)
    if screen.as_json:
        screen.data({"path": printable_path(path), "generations": [entry.to_json() for entry in history]})
    else:
        screen.table(_history_table(history))
        for entry in history:
            for name in entry.functions:
                screen.text(f"From generation {entry.generation} on, {printable(name)}: another function")
            for name in entry.left:
                screen.text(f"From generation {entry.generation} on without {printable(name)}")
            if entry.problem is not None:
                screen.text(escaped(entry.problem), "red")
    return DamageError.exit_code if any(entry.problem for entry in history) else 0


def index_command(path: str, screen: Screen, *, text: bool, overwrite: bool) -> int:
    from ...transforms.dataset.reading.count_records import make_indexes
    from ...transforms.sources.tfrecord.schema import find_inputs

    files = [os.fsdecode(file.entry.path) for file in find_inputs([path], os.getcwd()).files]
    workers = min(os.cpu_count() or 1, _MOST_THREADS)
    with ThreadPoolExecutor(workers) as pool:
        made = make_indexes(files, "text" if text else "binary", overwrite=overwrite, run=pool.map)
    if any(one.outcome == "made" for one in made):
        screen.done = "indexes were written"
    if screen.as_json:
        screen.data({"path": printable_path(path), "files": [one.to_json() for one in made]})
        return 0
    if not screen.quiet:
        _print_indexes(made, screen)
    return 0


def _print_indexes(found: Sequence[MadeIndex], screen: Screen) -> None:
    from ..screens.terminal import shown_path

    by_outcome: dict[str, list[MadeIndex]] = defaultdict(list)
    for one in found:
        by_outcome[one.outcome].append(one)
    if made := by_outcome["made"]:
        records = counted(sum(one.records or 0 for one in made), "record")
        where = shown_path(os.path.dirname(made[0].index))
        screen.text(f"Indexed {counted(len(made), 'file')}, {records}: {where}", "bold green")
    if there := by_outcome["there"]:
        them = "it" if len(there) == 1 else "them"
        screen.text(f"{counted(len(there), 'file')} had an index already; {Add('--overwrite')} makes {them} again.")
    if compressed := by_outcome["compressed"]:
        screen.text(f"{counted(len(compressed), 'compressed file')} passed over: only plain ones can have an index.")


def _history_table(history: list[GenerationInfo]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("no.", "made by", "created (UTC)"):
        table.add_column(title, justify="right" if title == "no." else "left", no_wrap=True)
    table.add_column("source", overflow="fold")  # the one that gives way on a narrow terminal
    rejected = any(entry.rejected for entry in history)
    for title in ("records", "shards", "bytes", *(["rejected"] if rejected else []), "in all"):
        table.add_column(title, justify="right", no_wrap=True)
    for entry in history:
        if entry.problem is not None:
            table.add_row(f"{entry.generation}", "damaged")
            continue
        files = f", {counted(entry.files, 'file')}" if entry.files else ""
        table.add_row(
            f"{entry.generation}",
            entry.operation if entry.replaced_by is None else f"{entry.operation}, replaced by {entry.replaced_by}",
            printable(entry.created).removesuffix("Z").replace("T", " ")[:16],
            f"{printable(entry.source_format)}{files}",
            *(f"{entry.records:,}", f"{entry.shards:,}", format_size(entry.bytes)),
            *([f"{entry.rejected:,}"] if rejected else []),
            f"{entry.total_records:,}",
        )
    return table


def gc_command(path: str, older_than: str, keep: int | None, screen: Screen, *, delete: bool) -> int:
    """Print, and with `delete` remove, what no kept generation needs and what is old enough."""
    try:
        seconds = parse_duration(older_than)
    except ValueError as error:
        raise UsageError(f"--older-than: {error}") from error
    report = collect_garbage(path, older_than=seconds, keep=keep, delete=delete)
    if report.deleted:
        screen.done = f"{format_size(report.bytes)} of files was removed"
    if screen.as_json:
        screen.data(report.to_json())
    elif not screen.quiet:
        _print_garbage(report, seconds, keep, screen)
    return 0


def _print_garbage(report: GarbageReport, older_than: int, keep: int | None, screen: Screen) -> None:
    from ..screens.terminal import shown_path

    largest = sorted(report.items, key=lambda item: (-item.bytes, item.path))[:_SHOWN]
    for item in sorted(largest, key=lambda item: item.path):
        size = f"{counted(item.files, 'file')}, " if item.files != 1 else ""
        screen.text(f"{printable_path(item.path)}: {size}{format_size(item.bytes)}: {item.reason}")
    if len(report.items) > len(largest):
        screen.text(f"and {len(report.items) - len(largest):,} smaller ones; to list all of them, add --json")
    whole = tuple(number for number in report.kept if number not in report.replaced)
    kept = _numbers(whole)
    if report.dropped:
        kept += f"; not {_numbers(report.dropped)}"
    if report.kept:
        screen.text(f"Kept: generation{'s' if len(whole) > 1 else ''} {kept} of {shown_path(report.path)}")
        if report.replaced:
            screen.text(f"Replaced, its shards are gone: generation {_numbers(report.replaced)}")
        if keep is not None and len(whole) > keep and not report.young:
            command = f"{Command('rebuild', shown_path(report.path), '-o', 'FOLDER')}"
            screen.text(f"An append keeps what it was appended to; to make one generation of all records: {command}")
    else:
        screen.text(f"No generation was committed in {shown_path(report.path)} yet.")
    if report.young:
        stay = f"{report.young:,} more {'is' if report.young == 1 else 'are'}"
        screen.text(f"Not yet: {stay} younger than {format_duration(older_than)} (--older-than)")
    if report.live:
        screen.text(f"In use: {counted(report.live, 'staging folder')}, whose runs are alive")
    size = f"{counted(report.files, 'file')}, {format_size(report.bytes)}"
    if not report.items:
        screen.text("Nothing to remove.", "bold")
    elif report.deleted:
        screen.text(f"Removed {size}.", "bold green")
    else:
        screen.text(f"Would remove {size}; nothing was removed: {Add('--delete')} does it.", "bold")


def _numbers(numbers: tuple[int, ...]) -> str:
    """Return generations as people write them.

    >>> _numbers((1, 2, 3, 7))
    '1 to 3, 7'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


# What is damaged: `verify` looks at a dataset, on all processors; `salvage` copies what is left of one file.
#
# Checking records holds the interpreter's lock for most of its time, so threads gain nothing: 8 million records of 229
# bytes take 10.5 s in one thread, 10.6 s in two, and 5.7 s in two processes.


def verify_command(path: str, screen: Screen, *, quick: bool = False, run: Spread | None = None) -> int:
    """Print what is wrong with a dataset's folder or a TFRecord file; return 0, or 3 if anything is."""
    from ...transforms.dataset.integrity.verify import verify_dataset

    report = verify_dataset(
        path, quick=quick, run=run or Spread(lambda shard: 0 if shard.entry is None else shard.entry.bytes)
    )
    screen.verified(report)
    return 0 if report.ok else DamageError.exit_code


"""The number of damages that are shown; a file can have millions."""


def salvage_command(path: str, folder: str, screen: Screen) -> int:
    """Copy the intact records of a file, and print what was lost; return 0, or 3 if anything is damaged."""
    from ...transforms.dataset.integrity.salvage import salvage_file

    report = salvage_file(path, folder)
    if report.target is not None:
        screen.done = f"{printable_path(report.target)} was written"
    if screen.as_json:
        screen.data(report.to_json())
    else:
        _print(report, screen)
    return 0 if report.ok else DamageError.exit_code


def _print(report: SalvageReport, screen: Screen) -> None:
    from ..screens.terminal import shown_path

    for damage in report.damages[:_SHOWN]:
        screen.text(_line(damage), "yellow" if damage.recovered else "red")
    if len(report.damages) > _SHOWN:
        screen.text(f"and {len(report.damages) - _SHOWN:,} more damages; to list all of them, add --json")
    if screen.quiet:
        return
    if report.target is None and report.ok:
        screen.text(f"{report.path} is empty; nothing was written.", "bold green")
        return
    if report.target is None:
        screen.text(f"No record of {report.path} is intact; nothing was written.", "bold red")
    else:
        size = f"{counted(report.records, 'record')}, {format_size(report.bytes)}"
        screen.text(f"Wrote {shown_path(report.target)}: {size}.", "bold green")
    screen.text(_loss(report), "bold green" if report.ok else "bold red")


def _line(damage: DamagedRange) -> str:
    if damage.recovered:
        cost = "recovered"
    elif damage.records:
        cost = f"lost: {counted(damage.records, 'record')}"
    else:
        cost = "lost: what lay there"
    where = f"bytes {damage.offset:,} to {damage.end:,}" if damage.end > damage.offset else f"byte {damage.offset:,}"
    return escaped(f"record {damage.record:,}, {where}: {damage.reason} ({cost})")


def _loss(report: SalvageReport) -> str:
    if report.stated is not None:
        if not report.lost_records:
            return f"Nothing is lost: the manifest states {counted(report.stated, 'record')}."
        return f"Lost: {counted(report.lost_records, 'record')} of the {report.stated:,} that the manifest states."
    if not report.lost:
        unless = "unless the file was cut between two records"
        return f"Nothing is lost, {unless}: no manifest that can be read states its number."
    unknown = [damage for damage in report.lost if not damage.records]
    size = sum(damage.end - damage.offset for damage in report.lost)
    parts = [f"at least {counted(report.lost_records, 'record')}"] if report.lost_records else []
    if unknown:
        parts.append(f"what lay in {counted(len(unknown), 'range')} that cannot be read")
    return f"Lost: {', and '.join(parts)}{f' ({format_size(size)})' if size else ''}."


# `adopt` makes a dataset of TFRecord files that any program wrote, where they are.


def adopt_command(folder: str, name: str | None, split: str | None, screen: Screen) -> int:
    from ..runs.adopt import adopt_files
    from ..screens.summary_screen import print_shares
    from ..screens.terminal import shown_path

    folder, manifest, notes = adopt_files(folder, name=name, split=split, run=Spread(os.path.getsize))
    screen.done = f"{shown_path(folder)} was adopted"
    if screen.as_json:
        splits = {key: {"records": one.records, "files": len(one.shards)} for key, one in manifest.splits.items()}
        features = None if manifest.schema is None else len(manifest.schema)
        screen.data({"path": printable_path(folder), "splits": splits, "features": features, "notes": list(notes)})
        return 0
    if screen.quiet:
        return 0
    size = format_size(sum(one.bytes for one in manifest.splits.values()))
    files = counted(sum(len(one.shards) for one in manifest.splits.values()), "file")
    records = counted(manifest.counts.written, "record")
    screen.text(f"Adopted {shown_path(folder)}: {records} in {files}, {size}.", "bold green")
    for key, one in manifest.splits.items():
        screen.text(f"  {key}: {counted(one.records, 'record')} in {counted(len(one.shards), 'file')}")
    print_shares(screen, manifest)
    if manifest.schema is None:
        screen.text("Its records are not all tf.train.Example, so there is no schema.", "yellow")
    for note in notes:
        screen.text(f"Note: {note}", "yellow")
    screen.text(f"{Command('info', shown_path(folder))} shows its features.")
    return 0
