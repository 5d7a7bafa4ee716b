"""What is damaged: `verify` looks at a dataset, on all processors; `salvage` copies what is left of one file.

Checking records holds the interpreter's lock for most of its time, so threads gain nothing: 8 million records of 229
bytes take 10.5 s in one thread, 10.6 s in two, and 5.7 s in two processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...transforms.dataset.integrity.record_walk import DamagedRange
from ...transforms.dataset.integrity.salvage import SalvageReport, salvage_file
from ...transforms.dataset.integrity.verify import verify_dataset
from ...transforms.dataset.integrity.verify_shard import ShardCheck, ShardFacts
from ...transforms.errors import DamageError
from ...transforms.format.wording.printable import counted, escaped, printable_path
from ...transforms.format.wording.sizes import format_size
from ..workers.worker_count import count_workers

if TYPE_CHECKING:
    from ..screens.screen import Screen


@dataclass(frozen=True, slots=True)
class Spread:
    """Applies a function to each shard, in as many worker processes if that is faster (None: all processors).

    From `processes_from_bytes` on two are faster than one: each takes half a second to start, and reads 200 MB/s.
    """

    workers: int | None = None
    processes_from_bytes: int = 192 << 20

    def __call__(
        self, function: Callable[[ShardCheck], ShardFacts], checks: Iterable[ShardCheck]
    ) -> Iterable[ShardFacts]:
        shards: Sequence[ShardCheck] = list(checks)
        workers = min(self.workers or count_workers("auto"), len(shards))
        size = sum(0 if shard.entry is None else shard.entry.bytes for shard in shards)
        if workers < 2 or size < self.processes_from_bytes:
            return map(function, shards)
        from ..workers.worker_processes import map_in_processes

        return map_in_processes(function, shards, workers)


def verify_command(path: str, screen: Screen, *, quick: bool = False, run: Spread | None = None) -> int:
    """Print what is wrong with a dataset's folder or a TFRecord file; return 0, or 3 if anything is."""
    report = verify_dataset(path, quick=quick, run=run or Spread())
    screen.verified(report)
    return 0 if report.ok else DamageError.exit_code


_SHOWN: Final = 100
"""The number of damages that are shown; a file can have millions."""


def salvage_command(path: str, folder: str, screen: Screen) -> int:
    """Copy the intact records of a file, and print what was lost; return 0, or 3 if anything is damaged."""
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
