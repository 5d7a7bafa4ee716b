"""The commands on datasets, as they are typed: the options of each, and the module that does it."""

# ruff: noqa: FBT002  (typer makes a flag of a parameter with a default)
from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, NoReturn, TypeAlias

import typer

from .flags import Debug, Json, Quiet, answer, answered, flags_of, names_in, option, with_flags
from .session import Session


@answered(may_be_quiet=False)
def info(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A dataset's folder, or TFRecord files.")],
) -> None:
    """Show what a dataset holds: splits, schema, labels, readers.

    It reads the manifest and no record.
    """
    from .info import info_command

    info_command(path, session.screen)


@answered(may_be_quiet=False)
def inspect_command(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A dataset's folder, or any TFRecord file.")],
    count: Annotated[int, typer.Option("-n", "--count", metavar="N", min=0, help="How many records.")] = 3,
    start: Annotated[int, typer.Option(metavar="N", min=0, help="Leave out the first N records.")] = 0,
    split: Annotated[str | None, typer.Option(metavar="NAME", help="Only this split of a dataset.")] = None,
) -> None:
    """Show records as tables or JSON."""
    from .inspect_records import inspect

    inspect(path, count, session.screen, split, start)


@answered()
def verify(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A dataset's folder, or a TFRecord file.")],
    quick: Annotated[bool, typer.Option("--quick", help="Read no record: sizes, a store's checksums.")] = False,
) -> int:
    """Check every record, checksum and count of a dataset.

    Damage is listed with its place, and the exit code is 3.
    """
    from .upkeep import verify_command

    return verify_command(path, session.screen, quick=quick)


@answered()
def salvage(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="FILE", help="A damaged TFRecord file, plain or compressed.")],
    output: Annotated[str, option("FOLDER", "Where to write the new file, of the same name.", "-o", "--output")],
) -> int:
    """Copy the intact records out of a damaged TFRecord file.

    It says what was lost; the exit code is 3 if anything is damaged.
    """
    from .upkeep import salvage_command

    return salvage_command(path, output, session.screen)


@answered(may_be_quiet=False)
def log(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A dataset's folder.")],
) -> int:
    """List the generations of a dataset, and what each added."""
    from .upkeep import log_command

    return log_command(path, session.screen)


@answered()
def index(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A dataset's folder, or TFRecord files.")],
    text: Annotated[bool, typer.Option("--text", help="As text, for NVIDIA DALI and the tfrecord package.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Make those again that are there.")] = False,
) -> int:
    """Make indexes: where each record of a file begins.

    By them `dataset[i]` reads a record without reading its file first. They are written into the folder index beside
    the files, which are not changed.
    """
    from .upkeep import index_command

    return index_command(path, session.screen, text=text, overwrite=overwrite)


@answered()
def gc(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A dataset's folder.")],
    older_than: Annotated[str, option("TIME", "Only what did not change for so long: 7d, 36h, 0s.")] = "7d",
    keep: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Keep only the latest N generations, and those they came from."),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Remove it; without this it is only shown.")] = False,
) -> int:
    """Show or remove files that a dataset does not need.

    These are files that no generation names, and what dead runs left. Nothing is removed without --delete.
    """
    from .upkeep import gc_command

    return gc_command(path, older_than, keep, session.screen, delete=delete)


@answered()
def stats(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A dataset's folder, or TFRecord files.")],
    full: Annotated[bool, typer.Option("--full", help="Histograms, quantiles, distinct and top values too.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write stats.json and stats.tfdv beside the shards.")] = False,
) -> int:
    """Show statistics of each split and feature.

    What was counted when the dataset was made is shown as it is. Else the records are read and counted.
    """
    from .stats import stats_command

    return stats_command(path, session.screen, level="full" if full else "basic", write=write)


@answered()
def report(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A dataset's folder.")],
    output: Annotated[str, option("FILE", "The page to write.", "-o", "--output")] = "report.html",
    generation: Annotated[int | None, typer.Option(metavar="N", help="An older generation.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Read no records: figures only as far as counted before.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file that is there.")] = False,
) -> int:
    """Write a page that shows what a dataset holds.

    It is one HTML file that needs no network. Histograms are counted now, unless the dataset was made with stats.
    """
    from .stats import report_command

    return report_command(path, output, session.screen, generation, quick=quick, overwrite=overwrite)


@answered()
def export(
    session: Session,
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
    where: Annotated[
        str | None, typer.Option(metavar="EXPRESSION", help='Only rows for which it is true: "age >= 18".')
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="The first N rows only.")] = None,
    generation: Annotated[int | None, typer.Option(metavar="N", help="An older generation.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file that is there.")] = False,
) -> int:
    """Write a dataset as a table or a folder of pictures.

    The name says which. Or what describes the dataset: croissant.json, label_map.pbtxt and schema.pbtxt follow from
    the manifest. A target is written whole or not at all.
    """
    from .export import ExportOptions, export_command

    names = None if columns is None else names_in(columns)
    options = ExportOptions(split, names, generation, overwrite, where, limit)
    return export_command(path, output, options, session.screen)


@answered(may_be_quiet=False)
def snippet(
    session: Session,
    reader: Annotated[
        str, typer.Argument(metavar="READER", help="tf, keras, tfds, torch, grain, dali, tfrecord or mlcroissant.")
    ],
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A dataset's folder.")],
    split: Annotated[str | None, typer.Option(metavar="NAME", help="The split to read; train by default.")] = None,
) -> int:
    """Print a program that reads a dataset with a library.

    It has the features, types, shapes and paths of this very dataset, and runs as it is.
    """
    from .export import snippet_command

    return snippet_command(reader, path, split, session.screen)


@answered()
def diff(
    session: Session,
    a: Annotated[
        str, typer.Argument(metavar="A", help="A dataset's folder, a generation: FOLDER@3, or TFRecord files.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    records: Annotated[bool, typer.Option("--records", help="Read and compare the records themselves.")] = False,
) -> int:
    """Compare two datasets or generations, or the records of files.

    It compares schema, counts, figures, labels and sources by their manifests, and with --records the shards that
    differ. Of files without a manifest it compares the records. The exit code is 0 if all are equal, else 1.
    """
    from .diff import diff_command

    return diff_command(a, b, session.screen, records=records)


@answered()
def adopt(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder of TFRecord files, of any writer.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The name of the dataset; the folder's.")] = None,
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="The split of all files, whatever their names state.")
    ] = None,
) -> int:
    """Make a dataset of TFRecord files that are there.

    Every file is read, and none is changed: a manifest, indexes and sidecars are written beside them.
    """
    from .upkeep import adopt_command

    return adopt_command(path, name, split, session.screen)


_SINGLE_FILE_BYTES: Final = 1 << 50
"""The shard size of a dataset that is one file a split: no dataset of files reaches it, and JSON numbers hold it."""


_DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Show schema, tasks and sizes; write nothing.")]
_Single: TypeAlias = Annotated[bool, typer.Option("--single-file", help="Write one file for each split.")]
_Output: TypeAlias = Annotated[str, typer.Option("-o", "--output", metavar="FOLDER", help="The folder of the dataset.")]
_SET_HELP: Final = "Any key of the config, like output.sidecars=[]; may be given again and again."
_Set: TypeAlias = Annotated[list[str] | None, option("KEY=VALUE", _SET_HELP, "--set")]


@with_flags("merge")
def merge(
    sources: Annotated[
        list[str], typer.Argument(metavar="INPUTS...", help="Datasets, and TFRecord files, folders or globs of them.")
    ],
    *,
    output: _Output,
    single_file: _Single = False,
    set_values: _Set = None,
    dry_run: _DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
    **flags: object,
) -> None:
    """Merge datasets and TFRecord files into one dataset.

    Records are copied byte for byte, in the order given.
    """
    given = _with_size(flags_of({**flags, "output": output}), single_file=single_file)
    _run("merge", sources, given, set_values or [], dry_run=dry_run, as_json=as_json, quiet=quiet, debug=debug)


@with_flags("rebuild")
def rebuild(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="A dataset, or a TFRecord file.")],
    *,
    output: _Output,
    single_file: _Single = False,
    set_values: _Set = None,
    dry_run: _DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
    **flags: object,
) -> None:
    """Write the same records in shards of another size or compression.

    Also in other splits, or in a random order.
    """
    given = _with_size(flags_of({**flags, "output": output}), single_file=single_file)
    _run("rebuild", [source], given, set_values or [], dry_run=dry_run, as_json=as_json, quiet=quiet, debug=debug)


def _run(
    command: Literal["merge", "rebuild"],
    sources: Sequence[str],
    flags: dict[str, tuple[str, object]],
    set_values: Sequence[str],
    *,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    debug: bool,
) -> NoReturn:
    def body(session: Session) -> None:
        from ..runs.merge import plan_merge

        planned = plan_merge(command, sources, flags, set_values)
        if dry_run:
            session.screen.plan(planned.plan())
        else:
            session.screen.summary(planned.run(session.watch))

    answer(body, as_json=as_json, quiet=quiet, debug=debug)


def _with_size(flags: dict[str, tuple[str, object]], *, single_file: bool) -> dict[str, tuple[str, object]]:
    """Return the flags with the shard size of a single file, which is a shard that nothing fills."""
    if not single_file:
        return flags
    if "output.shard_size" in flags:
        raise typer.BadParameter("goes without --shard-size: there is one shard", param_hint="--single-file")
    return {**flags, "output.shard_size": ("--single-file", _SINGLE_FILE_BYTES)}
