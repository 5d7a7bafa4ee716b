"""Steps about tables beside pictures: which split a row is of, and how many pictures no row names.

The split is the folder with a split's name that the table is in, or that the picture itself is in:

    pets/train/metadata.csv    0.jpg          train
    pets/metadata.csv          test/7.jpg     test
    pets/metadata.csv          images/test/7.jpg    test
    pets/metadata.csv          7.jpg          a reject, as other rows have a split
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...format.batches.arrow_memory import binary_array
from ...format.batches.rejects import CellError, CellProblem
from ...format.nested.keys import is_any_list
from ...format.wording.hints import Set
from ...format.wording.printable import printable, printable_path
from ...inputs.contract.source import Listing
from ...inputs.files.formats import suffixes_of
from ...inputs.files.skipped_names import pictures_below
from ...recognise.evidence.names import split_above, split_of_folder
from ..step import Column, Step, Stepped
from .files import holds_paths, texts_of, with_suffix


@dataclass(frozen=True, slots=True)
class SplitByFolder(Step):
    """Give each row the split that the folder of its table has the name of, or that of the picture in its `column`.

    `splits` are found by `of_files`.
    """

    is_of_file = True

    column: str
    splits: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def detected(self) -> str:
        return f"splits {', '.join(self.splits)}, from the names of folders" if self.splits else ""

    def of_files(self, listing: Listing) -> SplitByFolder | None:
        splits = listing.recognised.of_rows
        return replace(self, splits=splits) if splits else None

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:
        known: dict[str | None, int] = {split: code for code, split in enumerate(self.splits)}
        table = known.get(split_above(file))
        if table is not None:
            return Stepped(batch, split_codes=np.full(batch.num_rows, table, np.int64))
        paths = [path[0] if isinstance(path, list) and path else path for path in batch[self.column].to_pylist()]
        codes = np.array([known.get(_split_of(path), -1) for path in paths], np.int64)
        problems = tuple(CellProblem(row, self._no_split(paths[row])) for row in np.flatnonzero(codes < 0).tolist())
        return Stepped(batch, None, problems, codes)

    def _no_split(self, path: object) -> CellError:
        shown = "null" if not path else printable(str(path))
        known = ", ".join(self.splits)
        text = (
            f'"{shown}" is in no folder of a split ({known}), as other pictures are; move it into one, or read all '
            f"rows as one split: {Set('input.splits', 'none')}"
        )
        return CellError(self.column, "DECLARED_NOT_NULL", shown, "a picture in a split folder", text)


def _split_of(path: object) -> str | None:
    parts = [part for part in str(path or "").split("/") if part not in ("", ".")]
    return next(filter(None, map(split_of_folder, parts[:-1][:_LEVELS])), None)


_LEVELS: Final = 2
"""The folders of splits are the first of a path, or in these: `images/train/7.jpg`."""


# Count the pictures of folders that no row of their table names: they become no records, which may be a mistake.


_AT_ONCE: Final = 1 << 16
"""Paths that are compared at once."""


@dataclass(frozen=True, slots=True)
class UnnamedPictures(Step):
    """Look at the paths in some columns, and count the pictures without one.

    Paths begin in the folder `begin`, or where it is empty in that of their table; where they lack the `suffix`, it is
    added. `roots` are the folders of pictures, absolute; without them those are looked at that hold the pictures of
    rows, but not what is below. `count` are those that no row names, `example` is one of them. `masks` counts the files
    that are masks by their names or folders, `mask` is one of them. Files without a picture's suffix are not counted.
    """

    columns: tuple[str, ...]
    roots: tuple[str, ...]
    begin: bytes = b""
    suffix: str = ""
    count: int | None = None
    example: str = ""
    masks: int = 0
    mask: str = ""

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns

    @property
    def learns(self) -> bool:
        return self.count is None

    @property
    def is_of_file(self) -> bool:
        return not self.begin

    @property
    def detected(self) -> str:
        said = list[str]()
        if self.count:
            pictures, are = ("1 picture", "is") if self.count == 1 else (f"{self.count:,} pictures", "are")
            said.append(f"{pictures} {are} named by no row or annotation, and {are} left out, such as {self.example}")
        if self.masks:
            masks, are = ("1 mask", "is") if self.masks == 1 else (f"{self.masks:,} masks", "are")
            said.append(f"{masks}, by the names of files or folders, {are} not read, such as {self.mask}")
        return "; ".join(said)

    def at(self, path: bytes) -> UnnamedPictures:
        return self if self.begin else replace(self, begin=os.path.dirname(path))

    def look(self, batch: pa.RecordBatch) -> pa.Array:
        fields = {field.name: field for field in batch.schema}
        there = [name for name in self.columns if name in fields and holds_paths(Column(fields[name]))]
        paths = [with_suffix(batch[name], self.suffix) if self.suffix else texts_of(batch[name]) for name in there]
        texts = [(some.flatten() if is_any_list(some.type) else some).cast(pa.large_binary()) for some in paths]
        return pc.unique(_absolute(self.begin, pa.concat_arrays(texts))) if texts else pa.nulls(0, pa.large_binary())

    def merge(self, one: pa.Array, other: pa.Array) -> pa.Array:
        return pc.unique(pa.concat_arrays([one, other]))

    def learned(self, summary: pa.Array | None) -> UnnamedPictures:
        named = summary if summary is not None else pa.nulls(0, pa.large_binary())
        counts, first = Counter[bool](), dict[bool, bytes]()
        roots = list(map(os.fsencode, self.roots)) or _folders_of(named)
        for root, paths in ((one, paths) for one in roots for paths in _pictures_of(one, deep=bool(self.roots))):
            for path in filter(_PICTURE.search, paths.filter(pc.invert(pc.is_in(paths, value_set=named))).to_pylist()):
                is_mask = _MASK.search(path, len(root)) is not None
                counts[is_mask] += 1
                first.setdefault(is_mask, path)
        shown = {is_mask: printable_path(os.path.relpath(path)) for is_mask, path in first.items()}
        return replace(
            self, count=counts[False], example=shown.get(False, ""), masks=counts[True], mask=shown.get(True, "")
        )


def _absolute(folder: bytes, paths: pa.Array) -> pa.Array:
    """Return paths as those of the walk are: below the folder, without empty parts and dots between slashes."""
    for pattern, by in ((r"/(?:\.?/)+", "/"), (r"^(?:\.?/)+", "")):
        paths = pc.replace_substring_regex(paths, pattern, by)
    start, slash = binary_array([folder, b"/"]).cast(pa.large_binary())
    return pc.binary_join_element_wise(start, paths, slash)


_PICTURE: Final = re.compile(
    rb"(?:%s|/[^/.]+)\Z" % b"|".join(map(re.escape, map(str.encode, suffixes_of("images")))), re.I
)
"""A path with the suffix of a picture, or without any."""

_MASK: Final = re.compile(
    rb"/(?:[^/]*masks?|segmentations?|segmentation(?:class|object)|gt|ground_?truth|panoptic[^/]*|annotations?)/|"
    rb"[_-]masks?\.[a-z]+\Z",
    re.IGNORECASE,
)
"""A path below the root, of a mask."""


def _folders_of(paths: pa.Array) -> list[bytes]:
    folders = pc.unique(pc.replace_substring_regex(paths.drop_null(), r"/[^/]*\z", ""))
    return sorted(filter(os.path.isdir, folders.to_pylist()))


def _pictures_of(root: bytes, *, deep: bool) -> Iterator[pa.Array]:
    paths = pictures_below(root, deep=deep)
    while some := list(islice(paths, _AT_ONCE)):
        yield pa.array(some, pa.large_binary())
