"""How an extra of the package is installed: from a clone, since the package is in no index."""

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
