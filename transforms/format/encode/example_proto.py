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

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Protocol, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

Values = int | float | bytes | str | Sequence[int] | Sequence[float] | Sequence[bytes] | Sequence[str]
"""What one feature of an Example may be made from; a scalar is a list of one."""


class BytesListMessage(Protocol):
    """A `tf.train.BytesList`."""

    value: list[bytes]


class FloatListMessage(Protocol):
    """A `tf.train.FloatList`."""

    value: list[float]


class Int64ListMessage(Protocol):
    """A `tf.train.Int64List`."""

    value: list[int]


class FeatureMessage(Protocol):
    """A `tf.train.Feature`: a list of one of three kinds, or of none."""

    bytes_list: BytesListMessage
    float_list: FloatListMessage
    int64_list: Int64ListMessage

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
    lists = (
        ("BytesList", field.TYPE_BYTES),
        ("FloatList", field.TYPE_FLOAT),
        ("Int64List", field.TYPE_INT64),
    )
    for name, type_ in lists:
        message = file.message_type.add(name=name)
        value = message.field.add(name="value", number=1, label=field.LABEL_REPEATED, type=type_)
        if type_ != field.TYPE_BYTES:
            value.options.packed = True

    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(("bytes_list", "float_list", "int64_list"), 1):
        feature.field.add(
            name=name,
            number=number,
            label=field.LABEL_OPTIONAL,
            type=field.TYPE_MESSAGE,
            type_name=f".tensorflow.{lists[number - 1][0]}",
            oneof_index=0,
        )

    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=field.LABEL_OPTIONAL, type=field.TYPE_STRING)
    entry.field.add(
        name="value", number=2, label=field.LABEL_OPTIONAL, type=field.TYPE_MESSAGE, type_name=".tensorflow.Feature"
    )
    features.field.add(
        name="feature",
        number=1,
        label=field.LABEL_REPEATED,
        type=field.TYPE_MESSAGE,
        type_name=".tensorflow.Features.FeatureEntry",
    )

    example = file.message_type.add(name="Example")
    example.field.add(
        name="features", number=1, label=field.LABEL_OPTIONAL, type=field.TYPE_MESSAGE, type_name=".tensorflow.Features"
    )
    return file


def _example_class() -> type[ExampleMessage]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file_descriptor())
    descriptor = pool.FindMessageTypeByName("tensorflow.Example")
    return cast("type[ExampleMessage]", message_factory.GetMessageClass(descriptor))


Example: type[ExampleMessage] = _example_class()
"""The message class; `Example()` is an empty one."""


def example_from_values(values: Mapping[str, Values], kinds: Mapping[str, str] | None = None) -> ExampleMessage:
    r"""Return an Example of the given values.

    The kind of a feature is `kinds[name]` (`int64`, `float` or `bytes`), else that of its first value: int and bool
    are int64, float is float, str and bytes are bytes. An empty list needs its kind; kind `none` sets no list at all.

    >>> example_from_values({"a": 1}).SerializeToString(deterministic=True)
    b'\n\x0c\n\n\n\x01a\x12\x05\x1a\x03\n\x01\x01'

    Raises:
        ValueError: an empty list has no kind in `kinds`, or a kind is unknown.
        TypeError: a value does not fit its kind.
    """
    example = Example()
    for name, value in values.items():
        items: list[Any] = [value] if isinstance(value, (int, float, bytes, str)) else list(value)
        kind = (kinds or {}).get(name) or _kind_of(name, items)
        feature = example.features.feature[name]
        if kind == "none":
            continue
        target = _list_of_kind(feature, kind)
        target.SetInParent()  # an empty list is a present one
        target.value.extend([v.encode() if isinstance(v, str) else v for v in items])
    return example


def feature_values(feature: FeatureMessage) -> tuple[str, Sequence[int] | Sequence[float] | Sequence[bytes]]:
    """Return the kind of a feature (`int64`, `float`, `bytes`, or `none`) and its values."""
    which = feature.WhichOneof("kind")
    if which == "int64_list":
        return "int64", feature.int64_list.value
    if which == "float_list":
        return "float", feature.float_list.value
    if which == "bytes_list":
        return "bytes", feature.bytes_list.value
    return "none", ()


def parse_example(payload: bytes) -> ExampleMessage | None:
    """Return the Example that a payload holds, or None if it holds none."""
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
    """Yield the features of an Example, sorted by name."""
    features = example.features.feature
    for name in sorted(features):
        yield name, features[name]


def _kind_of(name: str, items: list[Any]) -> str:
    if not items:
        raise ValueError(f"feature {name!r}: an empty list has no kind; give one in `kinds`")
    first = items[0]
    if isinstance(first, int):
        return "int64"
    return "float" if isinstance(first, float) else "bytes"


def _list_of_kind(feature: FeatureMessage, kind: str) -> Any:
    if kind == "int64":
        return feature.int64_list
    if kind == "float":
        return feature.float_list
    if kind == "bytes":
        return feature.bytes_list
    raise ValueError(f"kind {kind!r} is none of int64, float, bytes, none")
