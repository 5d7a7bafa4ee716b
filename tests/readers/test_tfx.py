"""TFX's schema proto reads `schema.pbtxt`."""

from __future__ import annotations

import math
from pathlib import Path

from google.protobuf import text_format
from shardmill.transforms.dataset.reading.open_dataset import Dataset
from tensorflow_metadata.proto.v0 import schema_pb2

TYPES = {"int64": schema_pb2.INT, "float": schema_pb2.FLOAT, "bytes": schema_pb2.BYTES}


def test_every_sample_has_a_schema_that_says_what_its_manifest_says(any_sample: Dataset) -> None:
    text = (Path(any_sample.path) / "schema.pbtxt").read_text(encoding="utf-8")
    parsed = text_format.Parse(text, schema_pb2.Schema())
    assert any_sample.schema is not None
    assert [feature.name for feature in parsed.feature] == [feature.name for feature in any_sample.schema]
    for found, feature in zip(parsed.feature, any_sample.schema, strict=True):
        assert found.type == TYPES[feature.kind]
        if -1 in feature.shape:
            assert found.value_count.min == 0
            assert not found.HasField("shape")
        elif feature.nullable:
            assert found.value_count.min == found.value_count.max == math.prod(feature.shape)
            assert not found.HasField("shape")
        else:
            assert tuple(dim.size for dim in found.shape.dim) == feature.shape
            assert found.presence.min_fraction == 1.0


def test_labels_have_a_categorical_domain(any_sample: Dataset) -> None:
    text = (Path(any_sample.path) / "schema.pbtxt").read_text(encoding="utf-8")
    parsed = text_format.Parse(text, schema_pb2.Schema())
    domains = {feature.name: feature.int_domain for feature in parsed.feature}
    for name, classes in any_sample.labels.items():
        assert domains[name].is_categorical
        assert (domains[name].min, domains[name].max) == (0, len(classes) - 1)
