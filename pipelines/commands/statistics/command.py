"""The commands `stats` and `report` as they are typed."""

# ruff: noqa: FBT002  (typer makes a flag of a parameter with a default)
from __future__ import annotations

from typing import Annotated

import typer

from ..option_hints import Debug, Json, Quiet, answer, option
from ..session import Session


def stats(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A dataset's folder, or TFRecord files.")],
    full: Annotated[bool, typer.Option("--full", help="Histograms, quantiles, distinct and top values too.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write stats.json and stats.tfdv beside the shards.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show statistics of each split and feature.

    What was counted when the dataset was made is shown as it is. Else the records are read and counted.
    """

    def body(session: Session) -> int:
        from .stats import stats_command

        return stats_command(path, session.screen, level="full" if full else "basic", write=write)

    answer(body, as_json=as_json, quiet=quiet, debug=debug)


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
        from .write_report import report_command

        return report_command(path, output, session.screen, generation, quick=quick, overwrite=overwrite)

    answer(body, as_json=as_json, quiet=quiet, debug=debug)
