"""The command line: its parser and exit codes, and the commands `convert`, `append`, `init` and `doctor`.

Nothing heavy is imported before a command needs it, so that `--help` answers at once; `inspect`, `verify` and a wrong
config never import Beam or pandas.

    0 done, or nothing to do · 1 the run failed · 2 wrong usage or config · 3 damage found · 4 too many rejects
    129, 130, 143 interrupted
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from ..transforms.errors import ShardmillError
from .commands import dataset_commands, flink_commands
from .commands.flags import RUN_PANEL, Command, Debug, Json, Quiet, Verbose, answer, flags_of, option, with_flags
from .commands.session import Session

if TYPE_CHECKING:
    from .outcomes.summary import PlanReport, Submitted, Summary
    from .prepare.conversion import Conversion


GROUPS: Final = {
    "Make a dataset": ("convert", "append", "merge", "rebuild", "adopt", "init"),
    "Look at a dataset": ("info", "inspect", "stats", "report", "diff", "log"),
    "Maintain a dataset": ("verify", "salvage", "index", "gc", "doctor", "flink"),
    "Read a dataset elsewhere": ("snippet", "export"),
}
"""The commands by what they are for, as README groups them."""


class _CommandLine(TyperGroup):
    """The commands in groups; their `--help` does not wait for pydantic, by which typer turns None into False."""

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        for param in params:
            if param.default is None:
                param.default = False
        return params

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        width = max(map(len, self.commands))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), self.commands[name].get_short_help_str(formatter.width)) for name in names]
                )


app = typer.Typer(
    name="shardmill",
    cls=_CommandLine,
    help="Turn CSV, JSON lines, Parquet, pictures (class folders, COCO, VOC, YOLO), archives, NumPy arrays and "
    "TFRecords into tf.train.Example TFRecord shards of the size you choose, with a manifest that lists them.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _command(example: str, name: str | None = None) -> Callable[[Any], Any]:
    return app.command(name=name, cls=Command, epilog=f"Example: {example}")


_SOURCES_HELP: Final = "A config (.yaml), or the files, folders or globs to read; both: these instead of the config's."
_LIKE_HELP: Final = "Take what is not said from how it was made."
_SET_HELP: Final = "Any key of the config, like output.order=source; may be given again and again."


def _print_version(*, asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"shardmill {version('shardmill')}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=lambda v: _print_version(asked=v)),
    ] = False,
) -> None:
    pass


@_command("shardmill convert data/*.csv -o out/sales --shard-size 128MiB")
@with_flags("convert")
def convert(
    context: typer.Context,
    sources: Annotated[list[str], typer.Argument(help=_SOURCES_HELP)],
    *,
    set_values: Annotated[list[str] | None, option("KEY=VALUE", _SET_HELP, "--set")] = None,
    like: Annotated[str | None, option("DATASET", _LIKE_HELP, "--like", panel=RUN_PANEL)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show schema, tasks and sizes; write nothing.")] = False,
    verbose: Verbose = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
    **flags: object,
) -> None:
    """Convert tables, text, pictures, arrays or TFRecords to shards.

    Options after `--` go to Beam.
    """
    given = flags_of(flags)
    options: list[str] = context.obj or []

    def run(session: Session) -> Summary | Submitted | PlanReport:
        shown = dry_run and verbose
        conversion = _conversion_of(
            session, sources, set_values, given, "convert", shown=shown, like=like, writes=not dry_run
        )
        from .runs.convert import dry_run as plan_only
        from .runs.convert import run_convert

        if dry_run:
            return plan_only(conversion)
        return run_convert(conversion, beam_options=options, watch=session.watch)

    def body(session: Session) -> None:
        from .first_look.second_try import Typed, after_stop, with_command

        typed = Typed(sources, set_values or (), given, like, writes=not dry_run)
        try:
            ended = run(session)
        except ShardmillError as error:
            session.next = () if as_json else after_stop(error, typed)
            raise
        session.screen.ended(ended if as_json or quiet else with_command(ended, typed))

    answer(body, as_json=as_json, quiet=quiet, debug=debug)


@_command("shardmill append data/new/*.csv -o out/sales")
@with_flags("append")
def append(
    context: typer.Context,
    sources: Annotated[list[str], typer.Argument(help=_SOURCES_HELP)],
    *,
    force: Annotated[bool, typer.Option("--force", help="Append files again that the dataset holds.")] = False,
    changed: Annotated[str | None, option("HOW", "Files that have changed: append (all rows) or skip.")] = None,
    set_values: Annotated[list[str] | None, option("KEY=VALUE", _SET_HELP, "--set")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show files, tasks and sizes; write nothing.")] = False,
    verbose: Verbose = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
    **flags: object,
) -> None:
    """Add new files to a dataset.

    They become new shards and its next generation. The schema is the dataset's, and unchanged files are left out.
    Options after `--` go to Beam.
    """
    given = flags_of(flags)
    options: list[str] = context.obj or []

    def body(session: Session) -> None:
        conversion = _conversion_of(session, sources, set_values, given, "append", shown=dry_run and verbose)
        from .runs.append import dry_run_append, run_append

        if not dry_run:
            summary = run_append(conversion, force=force, changed=changed, beam_options=options, watch=session.watch)
            session.screen.summary(summary)
        else:
            session.screen.ended(dry_run_append(conversion, force=force, changed=changed))

    answer(body, as_json=as_json, quiet=quiet, debug=debug)


def _conversion_of(
    session: Session,
    sources: Sequence[str],
    set_values: Sequence[str] | None,
    flags: Mapping[str, object],
    command: Literal["convert", "append"],
    *,
    shown: bool,
    like: str | None = None,
    writes: bool = False,
) -> Conversion:
    """Return the conversion of a command, and show it where that is wanted; the first source may be a config."""
    from .config.load import load_config, split_sources

    file, paths = split_sources(sources)
    config = load_config(file, set_values=set_values or (), flags=flags, paths=paths, command=command, like=like)
    session.detected = config.detected
    from .prepare.from_config import conversion_of

    conversion = conversion_of(config, command, writes=writes)
    if shown:
        session.screen.conversion(conversion)
    return conversion


@_command("shardmill init data/*.csv -o sales.yaml")
@with_flags("init")
def init(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCES...", help="The files, folders or globs that the config will read."),
    ] = None,
    *,
    output: Annotated[
        str | None,
        option("FILE", "The config to write, by default shardmill.yaml; - is stdout.", "-o", "--output"),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Write the JSON Schema of configs alone, for editors.")
    ] = False,
    set_values: Annotated[list[str] | None, option("KEY=VALUE", _SET_HELP, "--set")] = None,
    as_json: Json = False,
    debug: Debug = False,
    **flags: object,
) -> None:
    """Write a commented config for your data.

    Beside it is the JSON Schema of configs, by which editors check it and complete its keys.
    """
    given = flags_of(flags)

    def body(session: Session) -> None:
        if schema:
            from .first_look.starter import write_schema

            write_schema(output, session.screen)
            return
        from .first_look.starter import write_starter

        if not sources:
            from ..transforms.errors import UsageError
            from ..transforms.format.wording.hints import Command as Proposed

            example = Proposed("init", "FILES", "-o", "sales.yaml")
            raise UsageError(f"init: name the files, folders or globs to read: {example}")
        write_starter(sources, output or "shardmill.yaml", session.screen, set_values=set_values or [], flags=given)

    answer(body, as_json=as_json, quiet=False, debug=debug)


@_command("shardmill doctor sales.yaml")
def doctor(
    places: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PLACES...]", help="Configs, folders or URLs: what they need must be there, too."),
    ] = None,
    *,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check what this machine has, and say what is missing for what.

    Python, packages, memory, disks, Java and Flink, credentials of stores; no request is made. The exit code is 1 if
    anything is missing that every command needs, or the places.
    """
    from .first_look.doctor import examine, print_report, usable_core
    from .screens.terminal import Terminal

    if not usable_core():  # a session's screen needs it
        raise typer.Exit(print_report(Terminal(as_json=as_json), examine(())))

    def body(session: Session) -> int:
        return print_report(session.screen, examine(places or ()))

    answer(body, as_json=as_json, quiet=False, debug=debug)


_command("shardmill info out/sales")(dataset_commands.info)
_command("shardmill inspect out/sales -n 3", "inspect")(dataset_commands.inspect_command)
_command("shardmill verify out/sales")(dataset_commands.verify)
_command("shardmill log out/sales")(dataset_commands.log)
_command("shardmill gc out/sales --older-than 36h --delete")(dataset_commands.gc)
_command("shardmill merge out/sales data/*.tfrecord -o out/all")(dataset_commands.merge)
_command("shardmill rebuild out/sales -o out/sales-gz --compression gzip")(dataset_commands.rebuild)
_command("shardmill stats out/sales")(dataset_commands.stats)
_command("shardmill report out/sales -o sales.html")(dataset_commands.report)
_command("shardmill index out/sales")(dataset_commands.index)
_command("shardmill salvage broken.tfrecord -o saved")(dataset_commands.salvage)
_command("shardmill export out/sales -o sales.parquet")(dataset_commands.export)
_command("shardmill adopt data/tfrecords")(dataset_commands.adopt)
_command("shardmill diff out/sales out/sales@1")(dataset_commands.diff)
_command("shardmill snippet torch out/sales")(dataset_commands.snippet)
app.add_typer(flink_commands.app, name="flink")


def split_beam_options(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return our arguments and those for Beam, which are after `--` in `convert` and `append`.

    >>> split_beam_options(["convert", "a.csv", "--", "--temp_location=/tmp"])
    (['convert', 'a.csv'], ['--temp_location=/tmp'])
    """
    ours = list(args)
    if ours[:1] not in (["convert"], ["append"]) or "--" not in ours:
        return ours, []
    at = ours.index("--")
    return ours[:at], ours[at + 1 :]


@cache
def _command_line() -> Callable[..., Any]:
    """Return the commands with their flags, for which typer reads a hundred signatures."""
    return typer.main.get_command(app)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Report a wrong command line as JSON, too, with `--json`."""
    ours, beam_options = split_beam_options(sys.argv[1:] if args is None else args)
    extra: dict[str, Any] = {"obj": beam_options, "standalone_mode": "--json" not in ours}
    try:
        sys.exit(_command_line()(ours, prog_name="shardmill", **extra) or 0)
    except TyperException as wrong:
        from ..transforms.errors import UsageError
        from .screens.summary_screen import Screen

        error = UsageError(wrong.format_message())
        Screen(as_json=True).error(error)
        sys.exit(error.exit_code)
    except OSError as error:  # of --help and --version, which print without a screen
        from .screens.streams import discard_output

        sys.stderr.write(f"error: standard output cannot be written: {error.strerror}\n")
        discard_output()
        sys.exit(1)
