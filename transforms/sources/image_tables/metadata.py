"""Find the table beside the pictures of a folder, as Hugging Face's imagefolder has it.

    pets/metadata.csv       file_name,caption         pets/train/metadata.jsonl    {"file_name": "1.jpg", "age": 3}
    pets/cats/1.jpg         cats/1.jpg,a cat          pets/train/1.jpg

    file_name    the picture, whose features are named `image/...`         file_names    a list of them, `images/...`
    X_file_name  a picture whose features are named `X/...`                X_file_names  a list of them

Paths begin in the folder of the table. All tables have one suffix. Source of the rules: huggingface/datasets,
`folder_based_builder.py`.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ...errors import InputError
from ...format.wording.nearest import first_names
from ...format.wording.printable import printable, printable_path
from ..csv.delimiter import detect_delimiter

SUFFIXES: Final = ("csv", "jsonl", "parquet")
"""What a table beside pictures may be: the suffix is what `input.format` calls it too."""

ALONE: Final = "--set input.metadata=none"
_LINES: Final = 1000
"""Lines of JSON whose keys are looked at for the columns that name pictures."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """The tables of some folders: their format and paths, and which of their columns name pictures.

    `roots` are the folders as they were given; `columns` are the columns with the names of their features.
    """

    format: str
    files: tuple[str, ...]
    roots: tuple[str, ...]
    columns: dict[str, str]


def find_metadata(paths: Sequence[str], base: str) -> Metadata | None:
    """Return the tables in the folders that `paths` name, and in the folders in these; None if there is none.

    Raises:
        InputError: they have several suffixes, not every path has one, or none of their columns names pictures.
    """
    found = {path: _tables_in(path, base) for path in paths if "://" not in path}
    files = [file for tables in found.values() for file in tables]
    if not files:
        return None
    kinds = {file.rpartition(".")[2]: file for file in files}
    if len(kinds) > 1:
        one, other = (printable_path(file) for file in list(kinds.values())[:2])
        raise InputError(
            f"{one} and {other} are tables of two kinds beside pictures; keep one kind, or read {_alone()}"
        )
    without = next((path for path in paths if not found.get(path)), None)
    if without is not None:
        raise InputError(
            f"{printable_path(without)}: has no table beside its pictures, and {printable_path(files[0])} is one; give "
            f"folders that have one, or read {_alone()}"
        )
    (kind,) = kinds
    columns = {name for file in files for name in _columns_of(os.path.join(base, file), kind)}
    pictures = {name: feature for name in sorted(columns) if (feature := _feature_of(name)) is not None}
    if not pictures:
        shown = first_names(sorted(columns), 8)
        raise InputError(
            f"{printable_path(files[0])}: none of its columns names pictures ({shown}); call the one that does "
            f'"file_name" (or X_file_name, for features named X), or read {_alone()}'
        )
    return Metadata(kind, tuple(files), tuple(paths), pictures)


def _alone() -> str:
    return f"the folders alone: {ALONE}"


def _tables_in(path: str, base: str) -> list[str]:
    """Return the tables in a folder, and in each folder in it."""
    folder = os.path.join(base, path)
    if not os.path.isdir(folder):
        return []
    try:
        with os.scandir(folder) as entries:
            below = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError as error:
        raise InputError(f"{printable_path(path)}: cannot be listed: {error.strerror}") from error
    names = [os.path.join(path, name, f"metadata.{suffix}") for name in ("", *below) for suffix in SUFFIXES]
    return [name for name in names if os.path.isfile(os.path.join(base, name))]


def _feature_of(column: str) -> str | None:
    """Return the name of the features of the pictures that a column names, None if it names none."""
    for suffix, plain in (("file_name", "image"), ("file_names", "images")):
        if column == suffix:
            return plain
        if column.endswith(f"_{suffix}") and len(column) > len(suffix) + 1:
            return column[: -len(suffix) - 1]
    return None


def _columns_of(path: str, kind: str) -> Iterable[str]:
    """Return the columns of a table, as far as its beginning shows them."""
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return [str(name) for name in pq.read_schema(path).names]
        except pa.ArrowException as error:
            reason = printable(str(error))
            raise InputError(f"{printable_path(path)}: no Parquet file: {reason}; copy it again") from error
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            if kind == "csv":
                sign = detect_delimiter([path], "").sign
                return next(csv.reader(file, delimiter=sign), [])
            rows = [json.loads(line) for line, _ in zip(file, range(_LINES), strict=False) if line.strip()]
    except (OSError, ValueError) as error:
        raise InputError(f"{printable_path(path)}: cannot be read: {printable(str(error))}") from error
    return dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row)
