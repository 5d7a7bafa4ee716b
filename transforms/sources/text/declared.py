"""The types that the config declares of columns of text, and those that an append casts them to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError
from ...format.buffers.arrow_memory import array_of
from ...format.schema.column_types import DEFAULT_UNIT, column_type, named_type
from ...format.schema.schema import ColumnRule, Feature, Schema
from ...format.wording.printable import printable
from ..contract.dataset_schema import DatasetSchema


def text_type(feature: Feature) -> pa.DataType:
    return column_type(feature).arrow(feature.unit or DEFAULT_UNIT, feature.timezone)


def declared_type(name: str, rule: ColumnRule) -> pa.DataType:
    """Raise `SchemaError` where text cannot be read as the declared type, or the time zone is not known."""
    declared = named_type(rule.type)
    if declared is None or not declared.text:
        raise SchemaError(
            f'column "{printable(name)}": type {printable(rule.type)} cannot be read from text; declare it int64 '
            "or string"
        )
    target = declared.arrow(rule.unit or DEFAULT_UNIT, rule.timezone)
    if pa.types.is_timestamp(target) and target.tz is not None:
        try:
            pc.assume_timezone(array_of(np.zeros(1, np.int64)).view(pa.timestamp(target.unit)), target.tz)
        except pa.ArrowInvalid as error:
            raise SchemaError(f'column "{printable(name)}": there is no time zone "{printable(target.tz)}"') from error
    return target


def as_cast(rules: Mapping[str, ColumnRule], found: Schema, dataset: DatasetSchema) -> Schema:
    """Return the schema of text whose columns, but for those that the config declares, are cast to the dataset's."""
    wanted = {feature.name: feature for feature in dataset.schema}
    features = []
    for feature in found:
        wanted_feature = wanted.get(feature.name)
        declared = rules.get(feature.name, ColumnRule()).type is not None
        castable = wanted_feature is not None and wanted_feature.shape == () and column_type(wanted_feature).text
        features.append(wanted_feature if castable and not declared and wanted_feature is not None else feature)
    return Schema(tuple(features))
