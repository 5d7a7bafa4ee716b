from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.sidecars.sidecar_files import label_map, label_maps


def string_int_label_map() -> Any:
    """Return the message of TensorFlow's Object Detection API, of `string_int_label_map.proto`."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="map.proto", package="object_detection.protos")
    item = file.message_type.add(name="StringIntLabelMapItem")
    item.field.add(name="name", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    item.field.add(name="id", number=2, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    whole = file.message_type.add(name="StringIntLabelMap")
    kind = ".object_detection.protos.StringIntLabelMapItem"
    whole.field.add(name="item", number=1, type=field.TYPE_MESSAGE, type_name=kind, label=field.LABEL_REPEATED)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("object_detection.protos.StringIntLabelMap"))


def test_ids_are_the_numbers_of_the_records_and_placeholders_below_the_offset_are_left_out() -> None:
    assert label_map(["_unused_0", "cat", 'a "dog"']).decode() == (
        'item {\n  id: 1\n  name: "cat"\n}\nitem {\n  id: 2\n  name: "a \\"dog\\""\n}\n'
    )


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True))
def test_protobuf_reads_the_same_names_and_numbers(names: list[str]) -> None:
    parsed = text_format.Parse(label_map(names), string_int_label_map()())
    named = [(number, name) for number, name in enumerate(names) if name != f"_unused_{number}"]
    assert [(item.id, item.name) for item in parsed.item] == named


def test_each_of_several_labels_has_a_file_of_its_own() -> None:
    schema = Schema((Feature("a/kind", "int64", "label"), Feature("color", "int64", "label")))
    labels = {"a/kind": ("x",), "color": ("red", "blue")}
    assert list(label_maps(schema, labels)) == ["a-kind.label_map.pbtxt", "color.label_map.pbtxt"]
    assert list(label_maps(schema, {"color": ("red",)})) == ["label_map.pbtxt"]
    assert label_maps(schema, {}) == {}
