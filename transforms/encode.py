"""`EncodeExamples`: encode batches of rows as blocks of framed Examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import apache_beam as beam
import pyarrow as pa

from .elements import ELEMENTS, SourceInfo
from .errors import UsageError
from .format.batches.rows import Block, Rows, TaskEnd
from .format.examples.encode_rows import RowEncoder
from .format.manifest.naming import is_split_name
from .format.schema.arrow_types import schema_of
from .format.schema.schema import Schema
from .format.splits.splitter import OneSplit
from .format.wording.printable import printable


@dataclass(eq=False)
class EncodeExamples(beam.PTransform):
    """Encode `Rows`, or bare Arrow record batches, as `Block`s of framed `tf.train.Example` records.

    `encoder` is `info` of `ReadRows`; a schema, also an Arrow one without nested columns, for record batches of your
    own; or a `RowEncoder` with splits and limits of its own. All rows go to `split`, by default that of the encoder.
    Records are canonical: keys sorted, byte-equal to protobuf's deterministic serialization. Rows that cannot become an
    Example travel on as rejects of their block. End marks pass through.

        train = frames | "Train" >> EncodeExamples(schema)
        val = other_frames | "Val" >> EncodeExamples(schema, split="val")
        (train, val) | beam.Flatten() | WriteShards("out/", schema=schema)

    Raises:
        UsageError: `encoder` is something else, or names splits itself (when made); elements are no batches.
        SchemaError: no feature holds a type of the Arrow schema (when made).
    """

    encoder: RowEncoder | SourceInfo | Schema | pa.Schema
    split: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__init__()
        if isinstance(self.encoder, SourceInfo):
            self.encoder = self.encoder.encoder()
        if isinstance(self.encoder, pa.Schema):
            self.encoder = schema_of(self.encoder)
        if isinstance(self.encoder, Schema):
            self.encoder = RowEncoder(self.encoder)
        if not isinstance(self.encoder, RowEncoder):
            given = type(self.encoder).__name__
            raise UsageError(
                f"EncodeExamples takes `read.info` of ReadRows, a Schema, an Arrow schema or a RowEncoder, not {given}"
            )
        if self.split is not None:
            check_split(self.split)
            if folders := self.encoder.splits_by_code:
                raise UsageError(f"the folders of the source are its splits: {', '.join(folders)}; leave split out")
            self.encoder = replace(self.encoder, split=OneSplit(self.split))

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        return rows | "Encode rows" >> beam.ParDo(_EncodeRowsFn(self.encoder)).with_output_types(ELEMENTS)


@dataclass
class _EncodeRowsFn(beam.DoFn):
    encoder: RowEncoder

    def process(self, element: Rows | TaskEnd | pa.RecordBatch) -> Iterator[Block | TaskEnd]:
        if not isinstance(element, Rows | TaskEnd | pa.RecordBatch):
            raise UsageError(not_taken("EncodeExamples takes Rows or record batches", element))
        yield element if isinstance(element, TaskEnd) else self.encoder.encode(element)


def check_split(name: str) -> None:
    if not is_split_name(name):
        raise UsageError(f'split is "{printable(name)}": use [a-z][a-z0-9_]*, up to 64 characters')


def not_taken(takes: str, element: object) -> str:
    """Return what a step `takes` and was not given; of rows, the steps that make it."""
    said = f"{takes}, not {type(element).__name__}"
    write = "EncodeExamples(schema) | WriteShards(FOLDER, schema=schema)"
    if isinstance(element, pa.RecordBatch):
        return f"{said}; encode record batches first: | {write}"
    if isinstance(element, pa.Table):
        return f"{said}; make record batches of it, and encode them: | beam.FlatMap(pa.Table.to_batches) | {write}"
    if isinstance(element, list | Mapping):
        batched = "beam.BatchElements() | " if isinstance(element, Mapping) else ""
        return (
            f"{said}; make record batches of rows, and encode them: | {batched}"
            f"beam.Map(lambda rows: pa.RecordBatch.from_pylist(rows, schema=schema)) | {write}"
        )
    return said
