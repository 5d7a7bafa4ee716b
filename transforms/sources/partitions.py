"""Columns that stand in the names of folders, as Hive, Spark and pyarrow write partitioned tables.

hive/country=de/year=2023/part-0.parquet      two columns, `country` and `year`, that no file holds
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from ..errors import InputError
from ..format.printable import printable
from .source import Listing

_PARTITION: Final = re.compile(r"([A-Za-z_][^=/]*)=[^/]*")
_MAGIC: Final = re.compile(r"[*?\[]")


def partition_columns(name: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the columns in the folders of a file's name: only in what was typed relative, or found below a path.

    >>> partition_columns("hive/country=de/a.csv", ["hive"]), partition_columns("/run=3/in/a.csv", ["/run=3/in"])
    (('country',), ())
    """
    below = name
    if os.path.isabs(name) or "://" in name:
        roots = [_MAGIC.split(path)[0] for path in paths]
        below = name[max((len(root) for root in roots if name.startswith(root)), default=len(name)) :]
    folders = below.split("/")[:-1]
    return tuple(found[1] for folder in folders if (found := _PARTITION.fullmatch(folder)) is not None)


def refuse_partitions(listing: Listing, paths: Sequence[str]) -> Listing:
    """Return the listing of files whose folders name no columns.

    Raises:
        InputError: the folders of a file do; its rows would lose them.
    """
    for entry in listing.entries:
        columns = partition_columns(entry.name, paths)
        if columns:
            names = ", ".join(f'"{printable(column)}"' for column in columns)
            raise InputError(
                f"{entry.name}: its folders name the columns {names} (Hive partitions), which are not read yet; read "
                f"the table with pandas: convert(data=pandas.read_parquet(...), output=...); to convert the files "
                f"without these columns: --set input.partitions=none"
            )
    return listing
