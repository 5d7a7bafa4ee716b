"""Encode batches of rows as blocks of framed Examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa

from .errors import UsageError
from .format.encode.encode_rows import RowEncoder
from .format.flow.blocks import Block
from .format.flow.rows import Rows, TaskEnd
from .format.schema.arrow_types import schema_of
from .format.schema.schema import Schema
from .source_info import SourceInfo


@dataclass(eq=False)
class EncodeExamples(beam.PTransform):
    """Encode `Rows`, or bare Arrow record batches, as `Block`s of framed `tf.train.Example` records.

    `encoder` is `info` of `ReadRows`; a schema, also an Arrow one without nested columns, for record batches of your
    own; or a `RowEncoder` with splits and limits of its own. Records are canonical: keys sorted, byte-equal to
    protobuf's deterministic serialization. Rows that cannot become an Example travel on as rejects of their block. End
    marks pass through.

    Raises:
        UsageError: `encoder` is something else (when made).
        SchemaError: no feature holds a type of the Arrow schema (when made).
    """

    encoder: RowEncoder | SourceInfo | Schema | pa.Schema

    def __post_init__(self) -> None:
        """Make the encoder, where only the schema is given."""
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

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        """Return the PCollection of `Block | TaskEnd`."""
        return rows | "Encode rows" >> beam.ParDo(_EncodeRowsFn(self.encoder))


@dataclass
class _EncodeRowsFn(beam.DoFn):
    encoder: RowEncoder

    def process(self, element: Rows | TaskEnd | pa.RecordBatch) -> Iterator[Block | TaskEnd]:
        yield element if isinstance(element, TaskEnd) else self.encoder.encode(element)
