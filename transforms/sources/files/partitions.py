"""What the names of folders say of the tables in them: columns, as Hive and Spark write, and splits.

hive/country=de/year=2023/part-0.parquet      two columns, `country` and `year`, that no file holds
data/train/a.csv  data/val/a.csv              two splits
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...errors import InputError
from ...format.wording.printable import printable, shell_path
from ..contract.call import Call

if TYPE_CHECKING:
    from ..contract.source import Listing

_PARTITION: Final = re.compile(r"([A-Za-z_][^=/]*)=[^/]*")
_MAGIC: Final = re.compile(r"[*?\[]")
_SPLITS: Final = ("train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval")
_SPLIT_FOLDER: Final = re.compile(rf"(?:{'|'.join(_SPLITS)})(?:_?[0-9]{{4}})?", re.IGNORECASE)
"""Names of top folders by which `auto` knows splits: `train`, and `train2017` as COCO has it."""


def is_split_folder(name: bytes) -> bool:
    """Return whether a folder has the name of a split.

    >>> is_split_folder(b"Train"), is_split_folder(b"val2017"), is_split_folder(b"cat")
    (True, True, False)
    """
    return _SPLIT_FOLDER.fullmatch(name.decode("utf-8", "replace")) is not None


def partition_values(name: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the columns in the folders of a file's name, and their values as they are written there.

    Only folders count that were typed relative, or found below a path.

    >>> partition_values("hive/country=de/year=2024/a.csv", ["hive"])
    {'country': 'de', 'year': '2024'}
    >>> partition_values("/run=3/in/a.csv", ["/run=3/in"])
    {}
    """
    return dict(folder.split("=", 1) for folder in folders_below(name, paths) if _PARTITION.fullmatch(folder))


def folders_below(name: str, paths: Sequence[str]) -> list[str]:
    below = name
    if os.path.isabs(name) or "://" in name:
        roots = [_root(path) for path in paths]
        below = name[max((len(root) for root in roots if f"{name}/".startswith(root)), default=len(name)) :]
    return below.split("/")[:-1]


def _root(path: str) -> str:
    """Return the folder below which a path finds files, with `/`: of a glob, the last one without a sign of a glob."""
    found = _MAGIC.search(path)
    return path[: path.rfind("/", 0, found.start()) + 1] if found else path.rstrip("/") + "/"


def _split_folder(name: str, paths: Sequence[str]) -> str | None:
    for folder in folders_below(name, paths):
        if is_split_folder(os.fsencode(folder)):
            return name[: f"/{name}".index(f"/{folder}/") + len(folder)]
    return None


def refuse_splits(listing: Listing, paths: Sequence[str], call: Call) -> None:
    """Refuse files in folders that are several splits; `paths` are as they were typed, in the command `call`.

    Raises:
        InputError: they are.
    """
    found = {folder.rpartition("/")[2]: folder for e in listing.entries if (folder := _split_folder(e.name, paths))}
    if len(found) > 1:
        (first, one), (second, other) = sorted(found.items(), key=lambda item: "train" not in item[0].lower())[:2]
        raise InputError(
            f'the folders "{printable(first)}" and "{printable(second)}" look like splits, and files of tables are '
            f"read as one; convert each folder as its split: shardmill {call.command} {shell_path(one)} -o "
            f"{shell_path(call.output)} --split {first.lower()}, then shardmill append {shell_path(other)} -o "
            f"{shell_path(call.output)} --split {second.lower()}; to read all files as one split: "
            f"--set input.partitions=none"
        )
