"""How the package and its extras are installed: from a clone, since the package is in no index."""

from __future__ import annotations


def install_line(extra: str) -> str:
    """Return the commands that install an extra, to be run in a clone of the repository.

    >>> install_line("aws")
    "in your clone of Shardmill: uv tool install '.[aws]', or for one command: uv run --extra aws shardmill ..."
    """
    return (
        f"in your clone of Shardmill: uv tool install '.[{extra}]', or for one command: uv run --extra {extra} "
        "shardmill ..."
    )


def reinstall_line() -> str:
    """Return the command that installs the package and all that it needs again, to be run in a clone.

    >>> reinstall_line()
    'in your clone of Shardmill: uv tool install --reinstall .'
    """
    return "in your clone of Shardmill: uv tool install --reinstall ."
