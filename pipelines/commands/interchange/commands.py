"""The commands `export`, and others that go between datasets and what other tools have."""

# ruff: noqa: FBT002  (typer makes a flag of a parameter with a default)
from __future__ import annotations

from typing import Annotated

import typer

from ..flags import names_in
from ..option_hints import Debug, Json, Quiet, answer, option
from ..session import Session


def export(
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A dataset's folder.")],
    output: Annotated[
        str,
        option(
            "TARGET",
            "A .parquet, .arrow, .jsonl or .csv file, croissant.json, or a folder for pictures.",
            "-o",
            "--output",
        ),
    ],
    split: Annotated[str | None, typer.Option(metavar="NAME", help="Only this split.")] = None,
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Only these columns.")] = None,
    generation: Annotated[int | None, typer.Option(metavar="N", help="An older generation.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file that is there.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a dataset as a table or a folder of pictures.

    The name says which. Or what describes the dataset: croissant.json, label_map.pbtxt and schema.pbtxt follow from
    the manifest. A target is written whole or not at all.
    """

    def body(session: Session) -> int:
        from .export import ExportOptions, export_command

        names = None if columns is None else names_in(columns)
        return export_command(path, output, ExportOptions(split, names, generation, overwrite), session.screen)

    answer(body, as_json=as_json, quiet=quiet, debug=debug)


def snippet(
    reader: Annotated[
        str, typer.Argument(metavar="READER", help="tf, keras, tfds, torch, grain, dali, tfrecord or mlcroissant.")
    ],
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A dataset's folder.")],
    split: Annotated[str | None, typer.Option(metavar="NAME", help="The split to read; train by default.")] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print a program that reads a dataset with a library.

    It has the features, types, shapes and paths of this very dataset, and runs as it is.
    """

    def body(session: Session) -> int:
        from .snippet import snippet_command

        return snippet_command(reader, path, split, session.screen)

    answer(body, as_json=as_json, quiet=False, debug=debug)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A dataset's folder, or a generation: FOLDER@3.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    records: Annotated[bool, typer.Option("--records", help="Read and compare the records themselves.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare two datasets or generations.

    It compares schema, counts, figures, labels and sources by their manifests, and with --records the shards that
    differ. The exit code is 0 if schema, classes and records are equal, else 1.
    """

    def body(session: Session) -> int:
        from .diff import diff_command

        return diff_command(a, b, session.screen, records=records)

    answer(body, as_json=as_json, quiet=quiet, debug=debug)


def adopt(
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder of TFRecord files, of any writer.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The name of the dataset; the folder's.")] = None,
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="The split of all files, whatever their names state.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make a dataset of TFRecord files that are there.

    Every file is read, and none is changed: a manifest, indexes and sidecars are written beside them.
    """

    def body(session: Session) -> int:
        from .adopt import adopt_command

        return adopt_command(path, name, split, session.screen)

    answer(body, as_json=as_json, quiet=quiet, debug=debug)
