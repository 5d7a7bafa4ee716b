"""The `tf.train.Example` message, as protobuf itself reads and writes it.

    message Example   { Features features = 1; }
    message Features  { map<string, Feature> feature = 1; }
    message Feature   { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
    message BytesList { repeated bytes value = 1; }
    message FloatList { repeated float value = 1 [packed = true]; }
    message Int64List { repeated int64 value = 1 [packed = true]; }

The message lives in a descriptor pool of its own: TensorFlow registers the same names in the default pool, and one
process may hold both. It is the oracle of the vectorised encoder and decoder, and reads records that others wrote in
an order or a form that the vectorised decoder does not know.

Source: tensorflow/core/example/{example,feature}.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

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
