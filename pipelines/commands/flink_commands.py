"""The commands `flink install`, `flink up` and `flink down`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from ...transforms.format.wording.hints import Add, Set
from .flags import Command, answered
from .session import Session

if TYPE_CHECKING:
    from ..engines.flink.cluster import Cluster

app = typer.Typer(help="Install Flink, and run a cluster of it on this machine.", no_args_is_help=True)

_MOST: Final = 64
"""Task managers of one machine, and slots of one: each slot has a Python worker of its own."""

_Folder: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--folder", metavar="FOLDER", help="The folder of its logs and its list of processes; each cluster has its own."
    ),
]


@app.command(cls=Command, epilog="Example: shardmill flink install")
@answered(may_be_quiet=False)
def install(session: Session) -> None:
    """Fetch Flink's jars with Maven, once, and check them."""
    from ..engines.flink.jars import install as fetch
    from ..engines.flink.jars import jars_folder, pinned
    from ..screens.terminal import shown_path

    is_new = fetch(session.screen.note)
    if session.screen.as_json:
        session.screen.data({"flink": pinned().version, "folder": str(jars_folder()), "fetched": is_new})
    else:
        what = "Installed" if is_new else "Nothing to do: installed before is"
        session.screen.text(f"{what} Flink {pinned().version} in {shown_path(str(jars_folder()))}")


@app.command(cls=Command, epilog="Example: shardmill flink up --task-managers 2")
@answered(may_be_quiet=False)
def up(
    session: Session,
    task_managers: Annotated[int, typer.Option("--task-managers", metavar="N", min=1, max=_MOST)] = 1,
    slots: Annotated[int, typer.Option(metavar="N", min=1, max=_MOST, help="Task slots in each task manager.")] = 2,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of its REST interface; 0: a free one.")] = 8081,
    pool_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of its worker pool; 0: a free one.")] = 50000,
    folder: _Folder = None,
) -> None:
    """Start a cluster on this machine.

    A job manager, task managers, and a pool of Python workers, on the loopback.
    """
    from ..engines.flink.cluster import default_folder
    from ..engines.flink.cluster import up as start

    where = Path(folder).absolute() if folder is not None else default_folder()
    cluster = start(where, task_managers, slots, port, pool_port)
    if session.screen.as_json:
        session.screen.data(cluster.to_json())
    else:
        session.screen.text(_is_up(cluster))


@app.command(cls=Command, epilog="Example: shardmill flink down")
@answered(may_be_quiet=False)
def down(session: Session, folder: _Folder = None) -> None:
    """Stop the cluster that `up` started."""
    from ..engines.flink.cluster import default_folder
    from ..engines.flink.cluster import down as stop

    cluster = stop(Path(folder).absolute() if folder is not None else default_folder())
    if session.screen.as_json:
        session.screen.data({"stopped": None if cluster is None else cluster.master})
    else:
        session.screen.text("No cluster is up." if cluster is None else f"Stopped the cluster at {cluster.master}.")


def _is_up(cluster: Cluster) -> str:
    from ..engines.flink.cluster import stopping

    managers = "1 task manager" if cluster.task_managers == 1 else f"{cluster.task_managers} task managers"
    where = Set("runner.master", cluster.master), Set("runner.worker_pool", cluster.worker_pool)
    return (
        f"Flink is up: {managers} of {cluster.slots} slots, http://{cluster.master}; logs in {cluster.folder}/logs\n"
        f"Convert on it:  {Add('--runner', 'flink', *where)}\n"
        f"Stop it:        {stopping(Path(cluster.folder))}"
    )
