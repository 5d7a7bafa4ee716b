"""The command `stats` as it is typed."""

# ruff: noqa: FBT002  (typer makes a flag of a parameter with a default)
from __future__ import annotations

from typing import Annotated

import typer

from ..option_hints import Debug, Json, Quiet, answer
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
