"""Decode serialized Examples into Arrow record batches: the encoder's inverse.

    payloads ──walk──▶ spans of each feature ──▶ columns ──▶ record batch
       └── odd records ──protobuf──▶ canonical bytes ──walk──▶ ...

What we wrote is canonical and takes the upper way. A record that is not (keys in another order, values not packed, a
key twice, keys or fields that the schema does not know) is parsed by protobuf, made canonical from what protobuf
understood, and then decoded by the same code: so the two ways cannot differ in how values become Arrow's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, cast

import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from ...errors import DamageError
from ..batches.arrow_memory import varint
from ..schema.arrow_types import WIDEST_FIXED_LIST, arrow_type_of
from ..schema.schema import Schema
from ..tfrecord.framing import Payloads
from ..wording.printable import printable
from .example import map_key_order
from .values import WORD, FeatureWalkers, Mask, Span, decode_columns, walk_examples

# The `tf.train.Example` message, as protobuf itself reads and writes it.
#
#     message Example   { Features features = 1; }
#     message Features  { map<string, Feature> feature = 1; }
#     message Feature   { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
#     message BytesList { repeated bytes value = 1; }
#     message FloatList { repeated float value = 1 [packed = true]; }
#     message Int64List { repeated int64 value = 1 [packed = true]; }
#
# The message lives in a descriptor pool of its own: TensorFlow registers the same names in the default pool, and one
# process may hold both. It is the oracle of the vectorised encoder and decoder, and reads records that others wrote in
# an order or a form that the vectorised decoder does not know.
#
# Source: tensorflow/core/example/{example,feature}.proto.


V = TypeVar("V")


class ListMessage(Protocol[V]):
    """A `tf.train.BytesList`, `FloatList` or `Int64List`."""

    value: list[V]


class FeatureMessage(Protocol):
    """A `tf.train.Feature`: a list of one of three kinds, or of none."""

    bytes_list: ListMessage[bytes]
    float_list: ListMessage[float]
    int64_list: ListMessage[int]

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """Return the serialized form."""

    def WhichOneof(self, group: str) -> str | None:  # noqa: N802 - protobuf's name
        """Return the name of the list that is set in the oneof `kind`, or None."""


class FeaturesMessage(Protocol):
    """A `tf.train.Features`: the map."""

    feature: MutableMapping[str, FeatureMessage]


class ExampleMessage(Protocol):
    """A `tf.train.Example`."""

    features: FeaturesMessage

    def DiscardUnknownFields(self) -> None:  # noqa: N802 - protobuf's name
        """Forget the fields that the message type does not have, at every depth."""

    def ParseFromString(self, data: bytes) -> int:  # noqa: N802 - protobuf's name
        """Read a serialized Example into this one."""

    def SerializeToString(self, *, deterministic: bool = False) -> bytes:  # noqa: N802 - protobuf's name
        """Return the serialized form; `deterministic` sorts the keys of the map."""


def _file_descriptor() -> descriptor_pb2.FileDescriptorProto:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shardmill/example.proto", package="tensorflow", syntax="proto3")

    def add(message: Any, name: str, number: int, of: Any, label: Any = field.LABEL_OPTIONAL, **more: Any) -> Any:
        kind = {"type_name": f".tensorflow.{of}"} if isinstance(of, str) else {}
        type_ = field.TYPE_MESSAGE if kind else of
        return message.field.add(name=name, number=number, label=label, type=type_, **kind, **more)

    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    lists = (("Bytes", field.TYPE_BYTES), ("Float", field.TYPE_FLOAT), ("Int64", field.TYPE_INT64))
    for number, (name, of) in enumerate(lists, 1):
        values = add(file.message_type.add(name=f"{name}List"), "value", 1, of, field.LABEL_REPEATED)
        if of != field.TYPE_BYTES:
            values.options.packed = True
        add(feature, f"{name.lower()}_list", number, f"{name}List", oneof_index=0)
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    add(entry, "key", 1, field.TYPE_STRING)
    add(entry, "value", 2, "Feature")
    add(features, "feature", 1, "Features.FeatureEntry", field.LABEL_REPEATED)
    add(file.message_type.add(name="Example"), "features", 1, "Features")
    return file


def _example_class() -> type[ExampleMessage]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file_descriptor())
    descriptor = pool.FindMessageTypeByName("tensorflow.Example")
    return cast("type[ExampleMessage]", message_factory.GetMessageClass(descriptor))


Example: type[ExampleMessage] = _example_class()
"""The message class; `Example()` is an empty one."""


def feature_values(feature: FeatureMessage) -> tuple[str, Sequence[int] | Sequence[float] | Sequence[bytes]]:
    """Return the kind of a feature (`int64`, `float`, `bytes`, or `none`) and its values."""
    which = feature.WhichOneof("kind")
    return ("none", ()) if which is None else (which.removesuffix("_list"), getattr(feature, which).value)


def parse_example(payload: bytes) -> ExampleMessage | None:
    example = Example()
    try:
        example.ParseFromString(payload)
    except DecodeError:
        return None
    return example


def other_message(payload: bytes) -> str | None:
    r"""Return the name of the message that a payload is, if it has a second field, as no Example has; else None.

        message SequenceExample         { Features context = 1; FeatureLists feature_lists = 2; }
        message ExampleListWithContext  { repeated Example examples = 1; Example context = 2; }

    Read as an Example, the first gives its context alone, and the second features that nobody wrote.

    >>> other_message(b"\x0a\x00\x12\x00"), other_message(b"\x0a\x00")
    ('tf.train.SequenceExample', None)

    Source: tensorflow/core/example/example.proto, tensorflow/serving/apis/input.proto.
    """
    fields = _outer_fields(payload)
    if not any(number == 2 for number, _ in fields):
        return None
    inner = [parse_example(content) for _, content in fields]
    if all(one is not None for one in inner) and any(one is not None and one.features.feature for one in inner):
        return "ExampleListWithContext"
    return None if parse_example(payload) is None else "tf.train.SequenceExample"


def _outer_fields(payload: bytes) -> list[tuple[int, bytes]]:
    """Return numbers and contents of a message's fields; none if one is not the first or second, or has no length."""
    fields = []
    at = 0
    while at < len(payload):
        tag, at = payload[at], at + 1
        size = shift = 0
        while True:
            if tag not in (0x0A, 0x12) or at == len(payload) or shift > 28:
                return []
            size |= (payload[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if payload[at - 1] < 0x80:
                break
        if at + size > len(payload):
            return []
        fields.append((tag >> 3, payload[at : at + size]))
        at += size
    return fields


def iter_features(example: ExampleMessage) -> Iterator[tuple[str, FeatureMessage]]:
    features = example.features.feature
    for name in sorted(features):
        yield name, features[name]


# The decoder.


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
            if feature.shape != (-1,) and len(values) != int(np.prod(feature.shape, dtype=np.int64)):
                wanted = 1 if feature.shape == () else "x".join(map(str, feature.shape))
                return f'feature "{name}" holds {len(values)} values, where the schema has {wanted}'
        unfit = self._features[self._places[columns[0]]]
        values = feature_values(features[unfit.name])[1]
        shown = printable(values[0] if len(values) == 1 else list(values))
        return f'feature "{printable(unfit.name)}": {shown} does not fit the type {unfit.type}'


def _delimited(content: bytes, tag: bytes = b"\x0a") -> bytes:
    return tag + varint(len(content)) + content


def _with_room_behind(payloads: Payloads, reach: int) -> Payloads:
    stop = int(payloads.ends.max(initial=0))
    if len(payloads.data) >= stop + reach:
        return payloads
    first = int(payloads.starts.min(initial=stop))
    data = np.concatenate((payloads.data[first:stop], np.zeros(reach, np.uint8)))
    return Payloads(data, payloads.starts - first, payloads.ends - first)
