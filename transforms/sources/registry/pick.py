"""Pick the source of some paths by what they look like, with every option at its default."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ...errors import InputError
from ...recipe.partitions import Partitions
from ...recipe.recipe import Recipe
from ...recipe.source import RecipeSource
from ..contract.source import Source
from ..files.listing import detect_format


def pick_source(paths: Sequence[str], base: str | None = None) -> Source:
    """Return the source that reads these files, globs or folders: by their suffixes, and CSV by its delimiter.

    `base` is the folder that relative paths start from, and that names are shown relative to: the working folder.

    Raises:
        InputError: a path matches nothing, the formats differ, or a format is unknown or has a source elsewhere.
    """
    folder = os.getcwd() if base is None else base
    kind = detect_format(paths, folder)
    if kind == "csv":
        from ..csv.delimiter import detect_delimiter
        from ..csv.source import CsvSource

        found = detect_delimiter(paths, folder)
        notes = (found.evidence,) if found.evidence else ()
        tables: Source = CsvSource(
            tuple(paths), folder, delimiter=found.sign, check_header=True, partitions="read", detected=notes
        )
        return _with_folders(tables, paths)
    if kind == "parquet":
        from ..parquet.source import ParquetSource

        return _with_folders(ParquetSource(tuple(paths), folder, partitions="read"), paths)
    if kind == "images":
        from ..images.source import ImageSource

        return ImageSource(tuple(paths), folder)
    if kind == "numpy":
        from ..numpy.source import NumpySource

        return NumpySource(tuple(paths), folder)
    raise InputError(f"{kind} files have no rows to read; the formats are csv, parquet, images, numpy")


def _with_folders(source: Source, paths: Sequence[str]) -> Source:
    """Return a source of tables with the columns that the names of folders tell."""
    return RecipeSource(source, Recipe((Partitions(tuple(paths)),)))
