"""Print for a command: data on stdout, everything else on stderr; text or, with `--json`, documents.

Text that comes from data (names, values, paths) is escaped before it is printed, and is never read as rich's markup.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import IO, Any, Final, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...transforms.format.wording.hints import Command
from ...transforms.format.wording.printable import escaped, printable_path, safe_json
from .streams import OutputError, Stream, discard_output

_FILE_WIDTH: Final = 200
"""Columns where stdout is not a terminal: tables are not folded to a screen that is not there."""


class Terminal:
    """Prints text and tables, or, with `as_json`, documents; `quiet` leaves out all but errors.

    `done` is a sentence on what was written or committed before anything is printed, empty where nothing was.
    """

    done = ""

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
        self.out = _console(stdout or sys.stdout, may_fail=False)
        self.err = _console(stderr or sys.stderr, may_fail=True)

    def data(self, document: Mapping[str, Any]) -> None:
        self.out.file.write(safe_json(json.dumps(document, ensure_ascii=False, allow_nan=False)) + "\n")
        self.out.file.flush()

    def error_data(self, error: Mapping[str, Any]) -> None:
        """Print the document of an error, which is on stderr too: a stdout that fails changes nothing."""
        try:
            self.data({"error": error})
        except OutputError:
            discard_output()

    def text(self, line: str, style: str = "") -> None:
        """Print a line of text on stdout; whatever of data is in it cannot move the cursor."""
        self.out.print(Text(in_lines(line), style), soft_wrap=True)

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
        if not self.quiet:
            self.err.print(Text(in_lines(line), style), soft_wrap=True)


def plain_table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, title in enumerate(titles):
        table.add_column(title, justify="left" if index == 0 else "right")
    return table


def in_lines(text: str) -> str:
    """Return text with everything that is not printable escaped, but for its line ends."""
    return escaped(text, keep="\n")


def shown_path(path: str) -> str:
    """Return a folder relative to the working folder where it is below it, in one printable line."""
    if "://" in path:
        return printable_path(path)
    relative = os.path.relpath(path)
    return printable_path(path if relative.startswith("..") else relative)


def what_may_go(folder: str) -> str:
    return f"to see what may go: {Command('gc', shown_path(folder), '--older-than', '0s')}"


class _PlainConsole(Console):
    def on_broken_pipe(self) -> None:
        """Raise the error again: rich would exit with 1, which is a failed run."""
        raise  # noqa: PLE0704  (rich calls this while it handles the error)


def _console(file: IO[str], *, may_fail: bool) -> Console:
    stream = cast("IO[str]", Stream(file, may_fail=may_fail))
    console = _PlainConsole(file=stream, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    return console
