"""Salvage a damaged TFRecord file: one command over `dataset/integrity/salvage`, and the screen of what was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...transforms.dataset.integrity.record_walk import DamagedRange
from ...transforms.dataset.integrity.salvage import SalvageReport, salvage_file
from ...transforms.errors import DamageError
from ...transforms.format.wording.printable import counted, escaped, printable_path
from ...transforms.format.wording.sizes import format_size

if TYPE_CHECKING:
    from ..screens.screen import Screen

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
