"""COCO's annotations as a source: they are read once, while planning, and each piece holds the rows that it is of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from ...errors import SourceError
from ...format.flow.rows import RowOrigin, Rows
from ...format.nested.keys import is_flat
from ...format.schema.arrow_types import feature_of
from ...format.schema.schema import Choice, Schema
from ..contract.source import Frozen, Listing, ParallelMap, Piece, SourceEntry, Survey, Task
from ..files.listing import list_entries
from ..files.stamp import check_stamp
from .parse import read_coco

SUFFIXES: Final = (".json",)
_ROWS: Final = 256
"""Rows of a piece: as many pictures as a batch of images has at most."""

_REASONS: Final = {"file_name": "the path of the picture"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CocoPiece(Piece):
    """Some rows of a file: `data` is them as one Arrow stream, packed."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CocoSource:
    """Read COCO's JSON files, which say something of the same pictures; without `masks` segmentations are left out."""

    paths: tuple[str, ...]
    base: str = ""
    masks: bool = True

    def list_files(self) -> Listing:
        """Return the files to read.

        Raises:
            InputError: a path matches nothing.
        """
        return list_entries(self.paths, self.base, SUFFIXES, file_format="coco")

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:  # noqa: ARG002
        """Read all files; return the columns, and pieces that hold the rows.

        Raises:
            SourceError: a file is not one of COCO's annotations, or no picture is listed.
        """
        found = read_coco(listing.entries, masks=self.masks)
        if not any(found.rows.values()):
            raise SourceError(listing.entries[0].name, "lists no picture")
        pieces = [
            piece
            for number, entry in enumerate(listing.entries)
            for piece in _pieces(number, entry, found.rows[number], found.schema)
        ]
        features = [feature_of(one)[0] for one in found.schema if is_flat(one.type)]
        choices = tuple(Choice(one.name, one.type, "of COCO's annotations") for one in features)
        schema = Schema(tuple(sorted(features, key=lambda feature: feature.name)))
        return Survey(Frozen(schema), choices, pieces, found.warnings, fields=tuple(found.schema))

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:  # noqa: ARG002
        """Yield the rows of a task, those of a piece at a time.

        Raises:
            SourceError: a file is not what was listed.
        """
        for ordinal, piece in enumerate(task.pieces):
            assert isinstance(piece, CocoPiece)
            check_stamp(piece)
            with pa.ipc.open_stream(piece.data) as reader:
                (batch,) = reader
            yield Rows(task.ordinal, ordinal, piece.entry, batch, RowOrigin(piece.name, piece.first_row + 1))


def _pieces(number: int, entry: SourceEntry, rows: list[dict[str, Any]], schema: pa.Schema) -> Iterator[CocoPiece]:
    for start in range(0, len(rows), _ROWS):
        batch = pa.RecordBatch.from_pylist(rows[start : start + _ROWS], schema=schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(batch)
        data = sink.getvalue().to_pybytes()
        yield CocoPiece(
            entry=number, path=entry.path, name=entry.name, stamp=entry.stamp, rows=batch.num_rows, first_row=start,
            bytes=entry.bytes * batch.num_rows // len(rows), data=data,
        )  # fmt: skip
