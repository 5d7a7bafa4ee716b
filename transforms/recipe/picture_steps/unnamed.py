"""Count the pictures of folders that no row of their table names: they become no records, which may be a mistake."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ...format.buffers.arrow_memory import binary_array
from ...format.nested.flatten import stored
from ...format.nested.keys import is_any_list
from ...format.wording.printable import printable_path
from ...sources.files.skipped_names import pictures_below
from ..step import Step

_AT_ONCE: Final = 1 << 16
"""Paths that are compared at once."""


@dataclass(frozen=True, slots=True)
class UnnamedPictures(Step):
    """Look at the paths in some columns, and count the pictures without one.

    Paths begin in the folder `begin`, or where it is empty in that of their table. `roots` are the folders of pictures,
    absolute. `count` are those that no row names, `example` is one of them.
    """

    columns: tuple[str, ...]
    roots: tuple[str, ...]
    begin: bytes = b""
    count: int | None = None
    example: str = ""

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns

    @property
    def learns(self) -> bool:
        return self.count is None

    @property
    def detected(self) -> str:
        if not self.count:
            return ""
        pictures, are = ("1 picture", "is") if self.count == 1 else (f"{self.count:,} pictures", "are")
        return f"{pictures} that no row names {are} left out, as {self.example}"

    def at(self, path: bytes) -> UnnamedPictures:
        return self if self.begin else replace(self, begin=os.path.dirname(path))

    def look(self, batch: pa.RecordBatch) -> pa.Array:
        there = [stored(batch[name]) for name in self.columns if name in batch.schema.names]
        texts = [(values.flatten() if is_any_list(values.type) else values).cast(pa.large_binary()) for values in there]
        return pc.unique(_absolute(self.begin, pa.concat_arrays(texts))) if texts else pa.nulls(0, pa.large_binary())

    def merge(self, one: pa.Array, other: pa.Array) -> pa.Array:
        return pc.unique(pa.concat_arrays([one, other]))

    def learned(self, summary: pa.Array | None) -> UnnamedPictures:
        named, count, example = summary if summary is not None else pa.nulls(0, pa.large_binary()), 0, ""
        for paths in _pictures_of(self.roots):
            unnamed = paths.filter(pc.invert(pc.is_in(paths, value_set=named)))
            count += len(unnamed)
            example = example or (printable_path(os.path.relpath(unnamed[0].as_py())) if len(unnamed) else "")
        return replace(self, count=count, example=example)


def _absolute(folder: bytes, paths: pa.Array) -> pa.Array:
    """Return paths as those of the walk are: below the folder, without empty parts and dots between slashes."""
    for pattern, by in ((r"/(?:\.?/)+", "/"), (r"^(?:\.?/)+", "")):
        paths = pc.replace_substring_regex(paths, pattern, by)
    start, slash = binary_array([folder, b"/"]).cast(pa.large_binary())
    return pc.binary_join_element_wise(start, paths, slash)


def _pictures_of(roots: Sequence[str]) -> Iterator[pa.Array]:
    paths = chain.from_iterable(pictures_below(os.fsencode(root)) for root in roots)
    while some := list(islice(paths, _AT_ONCE)):
        yield pa.array(some, pa.large_binary())
