"""Serialized Examples become Arrow record batches: the encoder's inverse, vectorised.

    payloads ──walk──▶ spans of each feature ──▶ columns ──▶ record batch
       └── odd records ──protobuf──▶ canonical bytes ──walk──▶ ...

What we wrote is canonical and takes the upper way. A record that is not (keys in another order, values not packed, a
key twice, keys or fields that the schema does not know) is parsed by protobuf, made canonical from what protobuf
understood, and then decoded by the same code: so the two ways cannot differ in how values become Arrow's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from ...errors import DamageError
from ..batches.arrow_memory import varint
from ..schema.arrow_types import WIDEST_FIXED_LIST, arrow_type_of
from ..schema.schema import Feature, Schema
from ..tfrecord.framing import Payloads
from ..wording.printable import printable
from .example import map_key_order
from .example_proto import ExampleMessage, feature_values, other_message, parse_example
from .values import WORD, FeatureWalkers, Mask, Span, decode_columns, walk_examples

_NULL_VALUES: Final = 1 << 22

NO_EXAMPLE: Final = "it is not a tf.train.Example"

_BLOCK_ROWS: Final = 6144
"""Records that are walked together: their cursors and spans stay in the second cache."""


class ExampleError(DamageError):
    """A record is not an Example of the schema: number `row`, from 0, of those that were decoded."""

    def __init__(self, row: int, reason: str, offset: int | None = None) -> None:
        super().__init__(f"record {row} of the batch: {reason}")
        self.row = row
        self.reason = reason
        self.offset = offset

    def __reduce__(self) -> tuple[type[ExampleError], tuple[int, str, int | None]]:
        return type(self), (self.row, self.reason, self.offset)


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """Why a record is not an Example of the schema; `row` counts from 0 in the batch."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The decoded records; one that has a problem is null in every column."""

    batch: pa.RecordBatch
    problems: tuple[RecordProblem, ...]


class ExampleDecoder:
    """Decodes Examples of one schema.

    The columns of its batches are the features in the order of the schema, or those of `columns` in theirs; each has
    the type `arrow_type_of` gives. An absent feature is null, an empty list is an empty list. With
    `refuse_other_messages` a SequenceExample, of which an Example is but the beginning, is a problem.
    """

    def __init__(
        self, schema: Schema, columns: Sequence[str] | None = None, *, refuse_other_messages: bool = False
    ) -> None:
        self._refuse_others = refuse_other_messages
        self._features = tuple(sorted(schema, key=lambda feature: map_key_order(feature.name)))
        self._walkers = FeatureWalkers(self._features)
        self._reach = self._walkers.reach + 4 * WORD
        places = {feature.name: place for place, feature in enumerate(self._features)}
        names = [feature.name for feature in schema] if columns is None else list(columns)
        unknown = [name for name in names if name not in places]
        if unknown:
            known = ", ".join(map(printable, places))
            raise KeyError(f'column "{printable(unknown[0])}" is not a feature of the schema; it has: {known}')
        self._places = tuple(places[name] for name in names)
        widths = [math.prod(f.shape) for f in self._features if f.shape not in ((), (-1,))]
        wide = sum(width for width in widths if width <= WIDEST_FIXED_LIST)
        self.rows_at_once = max(_NULL_VALUES // max(wide, 1), 1)
        """How many records are decoded at once at most: null fixed-size lists take room for all of their values."""
        self.arrow_schema = pa.schema(
            [pa.field(f.name, arrow_type_of(f), f.nullable) for f in (self._features[place] for place in self._places)]
        )

    def decode(self, payloads: Payloads | pa.Array | Sequence[bytes]) -> pa.RecordBatch:
        """Raise `ExampleError` for a record that is no Example of the schema, `ValueError` for 2 GiB in a column."""
        decoded = self.try_decode(payloads)
        if decoded.problems:
            raise ExampleError(decoded.problems[0].row, decoded.problems[0].reason)
        return decoded.batch

    def try_decode(self, payloads: Payloads | pa.Array | Sequence[bytes]) -> Decoded:
        if not isinstance(payloads, Payloads):
            whole = payloads if isinstance(payloads, pa.Array) else None
            payloads = Payloads.from_bytes(payloads) if whole is None else Payloads.from_arrow(whole)
        batch, odd, _ = self._decode_canonical(payloads)
        if not odd.any():
            return Decoded(batch, ())
        return self._decode_odd(payloads, batch, np.flatnonzero(odd).tolist())

    def decode_canonical(self, payloads: Payloads) -> tuple[pa.RecordBatch, Mask]:
        """Return the batch, null in odd records, and which these are: not canonical, or with unknown features."""
        batch, odd, _ = self._decode_canonical(payloads)
        return batch, odd

    def _decode_canonical(self, payloads: Payloads) -> tuple[pa.RecordBatch, Mask, Mask]:
        """Return the batch, the odd records, and for each column of the batch the records that do not fit it."""
        count = max(-(-len(payloads) // _BLOCK_ROWS), 1)
        size = max(-(-len(payloads) // count), 1)  # blocks of one size: a small last one costs as much as a full one
        blocks = [self._decode_block(payloads.tail(i * size).head(size)) for i in range(count)]
        batches, odd, unfit = zip(*blocks, strict=True)
        batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        return batch, np.concatenate(odd), np.concatenate(unfit, axis=1)

    def _decode_block(self, payloads: Payloads) -> tuple[pa.RecordBatch, Mask, Mask]:
        payloads = _with_room_behind(payloads, self._reach)
        walk = walk_examples(payloads.data, payloads.starts, payloads.ends, self._walkers)
        odd = walk.odd
        for feature, span in zip(self._features, walk.spans, strict=True):
            if not feature.nullable:
                odd = odd | ~span.present
        unfit = np.zeros((len(self._places), len(payloads)), np.bool_)
        spans = [walk.spans[place] for place in self._places]
        if odd.any():
            spans = [Span(np.where(odd, 0, s.start), np.where(odd, 0, s.size), s.present & ~odd) for s in spans]
        columns = decode_columns([self._features[place] for place in self._places], payloads.data, spans)
        arrays = [column.array for column in columns]
        for number, column in enumerate(columns):
            unfit[number] = column.bad
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)
        if not arrays:
            batch = pa.RecordBatch.from_struct_array(pa.array([{}] * len(payloads), pa.struct([])))
        return batch, odd | unfit.any(axis=0), unfit

    def _decode_odd(self, payloads: Payloads, batch: pa.RecordBatch, rows: list[int]) -> Decoded:
        problems: list[RecordProblem] = []
        messages: list[tuple[int, ExampleMessage]] = []
        for row in rows:
            message = parse_example(payloads[row])
            other = other_message(payloads[row]) if self._refuse_others else None
            if message is None or other is not None:
                problems.append(RecordProblem(row, NO_EXAMPLE if other is None else f"{NO_EXAMPLE} but {other}"))
            else:
                messages.append((row, message))
        canonical = Payloads.from_bytes([self._make_canonical(message) for _, message in messages])
        fixed, odd, unfit = self._decode_canonical(canonical)
        order = np.arange(len(payloads))
        null = np.zeros(len(payloads), np.bool_)
        null[rows] = True
        for place, (row, message) in enumerate(messages):
            if odd[place]:
                columns = np.flatnonzero(unfit[:, place]).tolist()
                problems.append(RecordProblem(row, self._explain(message, columns)))
            else:
                order[row], null[row] = len(payloads) + place, False
        both = pa.concat_batches([batch, fixed])
        problems.sort(key=lambda problem: problem.row)
        return Decoded(both.take(pa.array(order, mask=null)), tuple(problems))

    def _make_canonical(self, message: ExampleMessage) -> bytes:
        message.DiscardUnknownFields()
        features = message.features.feature
        entries = b"".join(
            _delimited(_delimited(f.name.encode()) + _delimited(features[f.name].SerializeToString(), b"\x12"))
            for f in self._features
            if f.name in features
        )
        return _delimited(entries)

    def _explain(self, message: ExampleMessage, columns: list[int]) -> str:
        """Return why a canonical record does not fit; `columns` are those of the batch whose values do not."""
        features = message.features.feature
        for feature in self._features:
            name = printable(feature.name)
            kind, values = feature_values(features[feature.name]) if feature.name in features else ("none", ())
            if kind == "none":
                if not feature.nullable:
                    return f'feature "{name}" is missing, and the schema does not let it be'
                continue
            if kind != feature.kind:
                return f'feature "{name}" holds {kind} values, where the schema has {feature.kind}'
            if not _count_fits(feature, len(values)):
                wanted = 1 if feature.shape == () else "x".join(map(str, feature.shape))
                return f'feature "{name}" holds {len(values)} values, where the schema has {wanted}'
        unfit = self._features[self._places[columns[0]]]
        values = feature_values(features[unfit.name])[1]
        shown = printable(values[0] if len(values) == 1 else list(values))
        return f'feature "{printable(unfit.name)}": {shown} does not fit the type {unfit.type}'


def _delimited(content: bytes, tag: bytes = b"\x0a") -> bytes:
    return tag + varint(len(content)) + content


def _count_fits(feature: Feature, count: int) -> bool:
    if feature.shape == (-1,):
        return True
    return count == int(np.prod(feature.shape, dtype=np.int64))


def _with_room_behind(payloads: Payloads, reach: int) -> Payloads:
    """Return payloads in a buffer that has `reach` more bytes after the last one: the same one if it does."""
    stop = int(payloads.ends.max(initial=0))
    if len(payloads.data) >= stop + reach:
        return payloads
    first = int(payloads.starts.min(initial=stop))
    data = np.concatenate((payloads.data[first:stop], np.zeros(reach, np.uint8)))
    return Payloads(data, payloads.starts - first, payloads.ends - first)
