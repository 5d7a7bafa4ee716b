"""The commands `merge` and `rebuild`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, NoReturn, TypeAlias

import typer

from .flags import flags_of, with_flags
from .option_hints import Debug, Json, Quiet, answer, option
from .session import Session

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
