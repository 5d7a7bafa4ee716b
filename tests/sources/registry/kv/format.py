"""A toy format, which the product has never heard of: lines of `key=value`, each of them a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

import pyarrow as pa
from pydantic import StringConstraints
from shardmill.transforms.errors import SourceError
from shardmill.transforms.format.flow.rows import RowOrigin, Rows
from shardmill.transforms.format.schema.schema import Choice, Feature, Schema
from shardmill.transforms.sources.contract.source import Frozen, Listing, ParallelMap, Piece, Survey, Task
from shardmill.transforms.sources.files.listing import list_entries
from shardmill.transforms.sources.files.open_file import open_file
from shardmill.transforms.sources.registry.format import Format
from shardmill.transforms.sources.registry.formats import suffixes_of
from shardmill.transforms.sources.registry.options import Options
from shardmill.transforms.sources.registry.settings import Settings

COLUMNS: Final = ("key", "value")
FIELDS: Final = tuple(pa.field(name, pa.string(), nullable=False) for name in COLUMNS)


class KvInput(Options):
    format: Literal["kv"] = "kv"
    sign: Annotated[str, StringConstraints(min_length=1)] = "="


@dataclass(frozen=True)
class Signed:
    """A value in the fields of a piece that is not plain."""

    sign: str


@dataclass(frozen=True, kw_only=True)
class KvPiece(Piece):
    holds: ClassVar = (Signed,)

    signed: Signed


@dataclass(frozen=True)
class KvSource:
    paths: tuple[str, ...]
    base: str
    sign: str

    def list_files(self) -> Listing:
        return list_entries(self.paths, self.base, suffixes_of("kv"), file_format="kv")

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        pieces = [
            KvPiece(
                entry=index, path=entry.path, name=entry.name, stamp=entry.stamp, rows=None, first_row=0,
                bytes=entry.bytes, signed=Signed(self.sign),
            )
            for index, entry in enumerate(listing.entries)
        ]  # fmt: skip
        schema = Schema(tuple(Feature(name, "bytes", "string") for name in COLUMNS))
        choices = tuple(Choice(name, "string", "all text") for name in COLUMNS)
        return Survey(Frozen(schema), choices, pieces, fields=FIELDS)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        for ordinal, piece in enumerate(task.pieces):
            assert isinstance(piece, KvPiece)
            with open_file(piece) as file:
                pairs = [line.decode().rstrip("\n").partition(piece.signed.sign) for line in file]
            if not all(sign for _, sign, _ in pairs):
                raise SourceError(piece.name, f'a line has no "{piece.signed.sign}"; set input.sign')
            columns = [pa.array([pair[at] for pair in pairs], pa.string()) for at in (0, 2)]
            batch = pa.RecordBatch.from_arrays(columns, schema=pa.schema(FIELDS))
            yield Rows(task.ordinal, ordinal, piece.entry, batch, RowOrigin(piece.name, 1))


class KvFormat(Format[KvInput]):
    options = KvInput
    shows_columns = True

    def source(self, options: KvInput, settings: Settings) -> KvSource:
        return KvSource(tuple(options.paths), settings.base, options.sign)

    def starter(self, options: KvInput, columns: str, column: str) -> str:
        return f'  sign: "{options.sign}"\n  # columns: {columns}\n'


FORMAT: Final = KvFormat()
