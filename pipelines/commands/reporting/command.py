"""The command `report` as it is typed."""

# ruff: noqa: FBT002  (typer makes a flag of a parameter with a default)
from __future__ import annotations

from typing import Annotated

import typer

from ..option_hints import Debug, Json, Quiet, answer, option
from ..session import Session


def report(
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A dataset's folder.")],
    output: Annotated[str, option("FILE", "The page to write.", "-o", "--output")] = "report.html",
    generation: Annotated[int | None, typer.Option(metavar="N", help="An older generation.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Read no records: figures only as far as counted before.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file that is there.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a page that shows what a dataset holds.

    It is one HTML file that needs no network. Histograms are counted now, unless the dataset was made with stats.
    """

    def body(session: Session) -> int:
        from .write_report import ReportOptions, report_command

        options = ReportOptions(generation, quick=quick, overwrite=overwrite)
        return report_command(path, output, options, session.screen)

    answer(body, as_json=as_json, quiet=quiet, debug=debug)
