"""A toy format, which the product has never heard of: lines of `key=value`, each of them a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, Literal

import pyarrow as pa
from pydantic import StringConstraints
from shardmill.transforms.errors import SchemaError, SourceError
from shardmill.transforms.format.batches.rows import RowOrigin, Rows
from shardmill.transforms.format.schema.arrow_types import feature_of
from shardmill.transforms.format.schema.schema import Choice, ColumnRule, Schema
from shardmill.transforms.inputs.contract.source import Frozen, Listing, ParallelMap, Piece, Source, Survey, Task
from shardmill.transforms.inputs.files.file_names import suffixes_of
from shardmill.transforms.inputs.files.listing import list_entries
from shardmill.transforms.inputs.files.open_file import open_file, open_listed
from shardmill.transforms.sources.registry.format import Format
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


@dataclass(frozen=True, slots=True)
class KvSource(Source):
    paths: tuple[str, ...]
    base: str
    sign: str
    rules: dict[str, ColumnRule] = field(default_factory=dict)

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
        for name in self.rules:
            if name not in COLUMNS:
                raise SchemaError(f'schema.columns names "{name}", which is not a column; choose one of key, value')
        found = [feature_of(field, self.rules.get(field.name)) for field in FIELDS]
        choices = tuple(Choice(feature.name, feature.type, reason) for feature, reason in found)
        return Survey(Frozen(Schema(tuple(feature for feature, _ in found))), choices, pieces, fields=FIELDS)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        for ordinal, piece in enumerate(task.pieces):
            assert isinstance(piece, KvPiece)
            with open_listed(piece, open_file) as file:
                text = file.read()
            try:
                pairs = [line.partition(piece.signed.sign) for line in text.decode().splitlines()]
            except UnicodeDecodeError as error:
                raise SourceError(piece.name, "is not UTF-8; convert it before") from error
            if not all(sign for _, sign, _ in pairs):
                raise SourceError(piece.name, f'a line has no "{piece.signed.sign}"; set input.sign')
            cells = {"key": [pair[0] for pair in pairs], "value": [pair[2] for pair in pairs]}
            batch = pa.RecordBatch.from_pydict(cells, pa.schema(FIELDS))
            yield Rows(task.ordinal, ordinal, piece.entry, batch, RowOrigin(piece.name, 1))


class KvFormat(Format[KvInput]):
    options = KvInput
    takes_types = True
    shows_columns = True

    def source(self, options: KvInput, settings: Settings) -> KvSource:
        return KvSource(tuple(options.paths), settings.base, options.sign, dict(settings.rules))

    def starter(self, options: KvInput, columns: str, column: str) -> str:
        return f'  sign: "{options.sign}"\n  # columns: {columns}\n'


FORMAT: Final = KvFormat()
