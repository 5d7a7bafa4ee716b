"""The report of `shardmill doctor`: the findings in groups, what is missing for what, and the exit code."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...transforms.format.wording.printable import escaped
from ...transforms.stores.common.store_url import scheme_of
from .findings import (
    CORE,
    NAME,
    Finding,
    crc_finding,
    flink_findings,
    machine_findings,
    package_findings,
    python_finding,
    store_findings,
    version_of,
)

if TYPE_CHECKING:
    from ..screens.terminal import Terminal

_STYLES: Final = {"ok": "green", "poor": "yellow", "missing": "yellow"}


@dataclass(frozen=True, slots=True)
class Report:
    """What was found; `needs` are the core's and those of what was named."""

    findings: Sequence[Finding]
    needs: frozenset[str]

    @property
    def required(self) -> list[Finding]:
        return [one for one in self.findings if one.state == "missing" and one.need in self.needs]

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": not self.required,
            "shardmill": version_of(NAME, "unknown"),
            "platform": platform.platform(),
            "checks": [one.to_json(self.needs) for one in self.findings],
        }


def examine(places: Sequence[str]) -> Report:
    """Look at this machine, and at what `places` need: configs, files and folders, URLs of stores."""
    needs, folders = needs_of(places)
    findings = [python_finding(), *package_findings(), crc_finding(), *machine_findings(folders), *flink_findings()]
    return Report([*findings, *store_findings()], needs)


def needs_of(places: Iterable[str]) -> tuple[frozenset[str], list[str]]:
    """Return who needs what in a run that names these places, and the folders of this machine among them."""
    needs, named = {CORE}, list[str]()
    for place in places:
        if not place.lower().endswith((".yaml", ".yml")):
            named.append(place)
            continue
        from ..config.load import load_config

        config = load_config(place)
        needs.add(config.runner.name)
        paths = config.input.paths if config.input is not None else []
        named += [*(path if scheme_of(path) else os.path.join(config.base, path) for path in paths), config.output.path]
    schemes = {place: scheme_of(place) for place in named}
    needs |= {scheme for scheme in schemes.values() if scheme is not None}
    return frozenset(needs), [
        place for place in dict.fromkeys(named) if schemes[place] is None and not set("*?[") & set(place)
    ]


def print_report(terminal: Terminal, report: Report) -> int:
    """Print the report; return the exit code: 0, or 1 if anything is missing that is needed."""
    if terminal.as_json:
        terminal.data(report.to_json())
        return 1 if report.required else 0
    terminal.text(f"Shardmill {version_of(NAME, 'unknown')}, {platform.platform()}\n", "bold")
    terminal.table(_table(report))
    lacking = [one for one in report.findings if one.state != "ok"]
    if lacking:
        terminal.text("")
    for one in lacking:
        what = "Missing" if one.state == "missing" else "Poor"
        style = "bold red" if one in report.required else "yellow"
        terminal.text(f"{what}: {escaped(one.what)}, for {one.needed_for}: {one.fix}", style)
    terminal.text("")
    if report.required:
        names = ", ".join(one.what for one in report.required)
        terminal.text(f"Not ready: {names} missing.", "bold red")
        return 1
    terminal.text("Ready: nothing that is needed is missing. Whether releases go together: uv pip check", "bold green")
    return 0


def _table(report: Report) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("state", "what", "found", "needed for"):
        table.add_column(title, overflow="fold")
    for one in report.findings:
        style = "bold red" if one in report.required else _STYLES[one.state]
        table.add_row(Text(one.state, style), *(Text(escaped(cell)) for cell in (one.what, one.found, one.needed_for)))
    return table
