"""The tf.train.Example message, built from its descriptor."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

REPEATED, OPTIONAL = 3, 1


def build() -> type:
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow", syntax="proto3")
    for name, kind in (("BytesList", 12), ("FloatList", 2), ("Int64List", 3)):
        message = file.message_type.add(name=name)
        message.field.add(name="value", number=1, label=REPEATED, type=kind)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(("BytesList", "FloatList", "Int64List"), 1):
        field = name.replace("List", "_list").lower()
        feature.field.add(
            name=field, number=number, label=OPTIONAL, type=11, type_name=f".tensorflow.{name}", oneof_index=0
        )
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=OPTIONAL, type=9)
    entry.field.add(name="value", number=2, label=OPTIONAL, type=11, type_name=".tensorflow.Feature")
    features.field.add(name="feature", number=1, label=REPEATED, type=11, type_name=".tensorflow.Features.FeatureEntry")
    example = file.message_type.add(name="Example")
    example.field.add(name="features", number=1, label=OPTIONAL, type=11, type_name=".tensorflow.Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


Example = build()
