"""How the package and its extras are installed: from a clone, since the package is in no index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_MARKS: Final = {
    "aws": "boto3", "gcp": "google-cloud-storage", "dataflow": "google-cloud-dataflow-client", "images": "simplejpeg"
}  # fmt: skip
"""A distribution of each extra that shows that the extra is there."""


def install_line(extra: str, others: Iterable[str] | None = None) -> str:
    """Return the commands that install an extra, to be run in a clone of the repository.

    `uv tool install` removes the extras that it does not name, so the command names the `others` that are there.

    >>> install_line("aws", ["images"])
    "in your clone of Shardmill: uv tool install '.[aws,images]', or for one command: uv run --extra aws shardmill ..."
    """
    names = ",".join(sorted({extra, *(_installed() if others is None else others)}))
    return (
        f"in your clone of Shardmill: uv tool install '.[{names}]', or for one command: uv run --extra {extra} "
        "shardmill ..."
    )


def reinstall_line() -> str:
    names = ",".join(sorted(_installed()))
    what = f"'.[{names}]'" if names else "."
    return f"in your clone of Shardmill: uv tool install --reinstall {what}"


def _installed() -> set[str]:
    from importlib.metadata import PackageNotFoundError, version  # takes 20 ms

    found = set()
    for extra, distribution in _MARKS.items():
        try:
            version(distribution)
        except PackageNotFoundError:
            continue
        found.add(extra)
    return found
