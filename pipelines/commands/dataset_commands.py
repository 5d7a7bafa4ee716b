"""The commands that look at datasets and files of records: `info`, `verify`, `salvage`, `index`, `log`, and others."""

# ruff: noqa: FBT002  (typer makes a flag of a parameter with a default)
from __future__ import annotations

from typing import Annotated

import typer

from .option_hints import Debug, Json, Quiet, answer, option
from .session import Session


def info(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A dataset's folder, or TFRecord files.")],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what a dataset holds: splits, schema, labels, readers.

    It reads the manifest and no record.
    """

    def body(session: Session) -> None:
        from .info import info_command

        info_command(path, session.screen)

    answer(body, as_json=as_json, quiet=False, debug=debug)


def inspect_command(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A dataset's folder, or any TFRecord file.")],
    count: Annotated[int, typer.Option("-n", "--count", metavar="N", min=0, help="How many records.")] = 3,
    split: Annotated[str | None, typer.Option(metavar="NAME", help="Only this split of a dataset.")] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show records as tables or JSON."""

    def body(session: Session) -> None:
        from .inspect_records import inspect

        inspect(path, count, session.screen, split)

    answer(body, as_json=as_json, quiet=False, debug=debug)


def verify(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A dataset's folder, or a TFRecord file.")],
    quick: Annotated[bool, typer.Option("--quick", help="Read no record: sizes, a store's checksums.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Check every record, checksum and count of a dataset.

    Damage is listed with its place, and the exit code is 3.
    """

    def body(session: Session) -> int:
        from .verify import verify_command

        return verify_command(path, session.screen, quick=quick)

    answer(body, as_json=as_json, quiet=quiet, debug=debug)


def salvage(
    path: Annotated[str, typer.Argument(metavar="FILE", help="A damaged TFRecord file, plain or compressed.")],
    output: Annotated[str, option("FOLDER", "Where to write the new file, of the same name.", "-o", "--output")],
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Copy the intact records out of a damaged TFRecord file.

    It says what was lost; the exit code is 3 if anything is damaged.
    """

    def body(session: Session) -> int:
        from .salvage import salvage_command

        return salvage_command(path, output, session.screen)

    answer(body, as_json=as_json, quiet=quiet, debug=debug)


def log(
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A dataset's folder.")],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the generations of a dataset, and what each added."""

    def body(session: Session) -> int:
        from .log_and_gc import log_command

        return log_command(path, session.screen)

    answer(body, as_json=as_json, quiet=False, debug=debug)


def index(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A dataset's folder, or TFRecord files.")],
    text: Annotated[bool, typer.Option("--text", help="As text, for NVIDIA DALI and the tfrecord package.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Make those again that are there.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make indexes: where each record of a file begins.

    By them `dataset[i]` reads a record without reading its file first. They are written into the folder index beside
    the files, which are not changed.
    """

    def body(session: Session) -> int:
        from .log_and_gc import index_command

        return index_command(path, session.screen, text=text, overwrite=overwrite)

    answer(body, as_json=as_json, quiet=quiet, debug=debug)


def gc(
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A dataset's folder.")],
    older_than: Annotated[str, option("TIME", "Only what did not change for so long: 7d, 36h, 0s.")] = "7d",
    keep: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Keep only the latest N generations, and those they came from."),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Remove it; without this it is only shown.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show or remove files that a dataset does not need.

    These are files that no generation names, and what dead runs left. Nothing is removed without --delete.
    """

    def body(session: Session) -> int:
        from .log_and_gc import gc_command

        return gc_command(path, older_than, keep, session.screen, delete=delete)

    answer(body, as_json=as_json, quiet=quiet, debug=debug)
