"""What the names of folders say of the tables in them, and would be lost: columns, as Hive and Spark write, and splits.

hive/country=de/year=2023/part-0.parquet      two columns, `country` and `year`, that no file holds
data/train/a.csv  data/val/a.csv              two splits
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Sequence
from typing import Final

from ...errors import InputError
from ...format.wording.printable import printable, printable_path
from ..contract.call import Call, typed_path
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


def partition_columns(name: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the columns in the folders of a file's name: only in what was typed relative, or found below a path.

    >>> partition_columns("hive/country=de/a.csv", ["hive"]), partition_columns("/run=3/in/a.csv", ["/run=3/in"])
    (('country',), ())
    """
    folders = _folders_below(name, paths)
    return tuple(found[1] for folder in folders if (found := _PARTITION.fullmatch(folder)) is not None)


def _folders_below(name: str, paths: Sequence[str]) -> list[str]:
    """Return the folders of a file's name that were typed relative, or found below a path."""
    below = name
    if os.path.isabs(name) or "://" in name:
        roots = [_MAGIC.split(path)[0] for path in paths]
        below = name[max((len(root) for root in roots if name.startswith(root)), default=len(name)) :]
    return below.split("/")[:-1]


def _split_folder(name: str, paths: Sequence[str]) -> str | None:
    """Return the path of the folder with a split's name that a file is in."""
    for folder in _folders_below(name, paths):
        if is_split_folder(os.fsencode(folder)):
            return name[: f"/{name}".index(f"/{folder}/") + len(folder)]
    return None


def _refuse_splits(listing: Listing, paths: Sequence[str], call: Call) -> None:
    found = {folder.rpartition("/")[2]: folder for e in listing.entries if (folder := _split_folder(e.name, paths))}
    if len(found) > 1:
        (first, one), (second, other) = sorted(found.items(), key=lambda item: "train" not in item[0].lower())[:2]
        raise InputError(
            f'the folders "{printable(first)}" and "{printable(second)}" look like splits, and files of tables are '
            f"read as one; convert each folder as its split: shardmill {call.command} {_quoted(one)} -o "
            f"{_quoted(call.output)} --split {first.lower()}, then shardmill append {_quoted(other)} -o "
            f"{_quoted(call.output)} --split {second.lower()}; to read all files as one split: "
            f"--set input.partitions=none"
        )


def _quoted(path: str) -> str:
    return shlex.quote(printable_path(path))


def refuse_partitions(
    listing: Listing, paths: Sequence[str], base: str, call: Call, *, delimiter: str = ","
) -> Listing:
    """Return the listing of files whose folders name neither columns nor several splits.

    `paths` are as they were typed in the folder `base`, by a user who gave the command `call`.

    Raises:
        InputError: the folders of a file do; its rows would lose them.
    """
    _refuse_splits(listing, paths, call)
    for entry in listing.entries:
        columns = partition_columns(entry.name, paths)
        if columns:
            names = ", ".join(f'"{printable(column)}"' for column in columns)
            raise InputError(
                f"{entry.name}: its folders name the columns {names} (Hive partitions), which are not read yet; to "
                f"convert the files without these columns: --set input.partitions=none; to read them too, in Python:\n"
                f"{_program(listing, entry.name, paths, base, call, delimiter)}"
            )
    return listing


def _program(listing: Listing, name: str, paths: Sequence[str], base: str, call: Call, delimiter: str) -> str:
    """Return the program that converts partitioned files with their columns; they must fit into memory."""
    first = next(folder for folder in _folders_below(name, paths) if _PARTITION.fullmatch(folder))
    root = typed_path(os.path.join(base, name[: f"/{name}".index(f"/{first}/")]))
    typed = [typed_path(os.path.join(base, path)) for path in paths]
    files, lines = repr(root), ["import pyarrow.dataset as ds", f"from shardmill.pipelines import {call.command}"]
    if len(typed) == 1 and not _MAGIC.search(typed[0]):
        files = repr(typed[0])
    elif len(typed) == 1 and all(map(os.path.isfile, glob.iglob(typed[0], recursive=True))):
        files = f"glob.glob({typed[0]!r}, recursive=True)"
        lines.insert(0, "import glob")
    kind = repr(listing.format)
    if delimiter != ",":
        kind = f"ds.CsvFileFormat(csv.ParseOptions(delimiter={delimiter!r}))"
        lines.insert(-2, "from pyarrow import csv")
    data = f"ds.dataset({files}, format={kind}, partitioning='hive', partition_base_dir={root!r}).to_table()"
    return "\n".join(f"  {line}" for line in (*lines, call.of_data(data)))
