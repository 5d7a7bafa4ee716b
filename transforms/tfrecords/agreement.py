"""One schema and one label map for all inputs, or a refusal that shows both.

Records are bytes, and are not rewritten: so what they hold must mean the same everywhere. Two label maps go together
if one begins with the other, since then each number has one name; the longer one is taken. A feature that may be
absent in one input may be absent in all. Nothing else is reconciled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import SchemaError
from ..format.printable import printable
from ..format.schema import Feature, Schema
from ..format.schema_difference import differing_features, schemas_side_by_side
from .inputs import InputDataset
from .observed_schema import Observation, observe_together

Labels = dict[str, tuple[str, ...]]

_MEND = "records are merged as they are: convert one of the sources again so that both agree, or give --records opaque"


def agree_on_schema(datasets: Sequence[InputDataset]) -> Schema:
    """Return the schema of several datasets.

    Raises:
        SchemaError: two of them differ, or one has none.
    """
    agreed = _schema_of(datasets[0])
    for dataset in datasets[1:]:
        other = _schema_of(dataset)
        if differing_features(agreed, other):
            raise _differ(datasets[0].name, agreed, dataset.name, other)
        agreed = _with_nullable(agreed, {feature.name for feature in other if feature.nullable})
    return agreed


def agree_on_labels(datasets: Sequence[InputDataset]) -> Labels:
    """Return the label map of several datasets: the longer one, where one begins with the other.

    Raises:
        SchemaError: a number has two names.
    """
    agreed: Labels = {}
    stated_by: dict[str, str] = {}
    for dataset in datasets:
        for feature, names in dataset.manifest.labels.items():
            known = agreed.get(feature, ())
            short, long = sorted((known, names), key=len)
            if long[: len(short)] != short:
                at = next(i for i, pair in enumerate(zip(known, names, strict=False)) if pair[0] != pair[1])
                raise SchemaError(
                    f'{printable(feature)}: label {at} is "{printable(known[at])}" in {stated_by[feature]} and '
                    f'"{printable(names[at])}" in {dataset.name}: the numbers in the records cannot be changed; '
                    f"convert one of the sources again with the classes of the other"
                )
            if len(names) >= len(known):
                agreed[feature], stated_by[feature] = tuple(names), dataset.name
    return agreed


def agree_with_files(name: str, schema: Schema | None, observations: Sequence[Observation]) -> Schema:
    """Return the schema of files, or that of the dataset `name` if their records can be of it.

    Raises:
        SchemaError: two files differ in the kind of a feature, or a file has other features than the dataset.
    """
    first: dict[str, tuple[str, Observation]] = {}
    for observation in observations:
        for feature, seen in observation.features.items():
            kind, stated = first.setdefault(feature, (seen.kind, observation))
            if kind != seen.kind:
                raise _differ(stated.name, stated.schema(), observation.name, observation.schema())
        if schema is not None and not _fits(observation, schema):
            raise _differ(name, schema, observation.name, observation.schema())
    return schema if schema is not None else observe_together(observations, name).schema()


def _fits(observation: Observation, schema: Schema) -> bool:
    """Tell whether a file has the dataset's features and no other, each of its kind; values are checked when read."""
    if not observation.records:
        return True
    found = {feature.name: feature for feature in observation.schema()}
    wanted = {feature.name: feature for feature in schema}
    for name in {*found, *wanted}:
        ours, theirs = wanted.get(name), found.get(name)
        if ours is None or (theirs is None and not ours.nullable):
            return False
        if theirs is not None and (theirs.kind != ours.kind or (theirs.nullable and not ours.nullable)):
            return False
    return True


def _schema_of(dataset: InputDataset) -> Schema:
    schema = dataset.manifest.schema
    if schema is None:
        raise SchemaError(f"{dataset.name}: its records are plain bytes without a schema; merge with --records opaque")
    return schema


def _with_nullable(schema: Schema, names: set[str]) -> Schema:
    def widened(feature: Feature) -> Feature:
        return replace(feature, nullable=True) if feature.name in names else feature

    return Schema(tuple(map(widened, schema)))


def _differ(left_name: str, left: Schema, right_name: str, right: Schema) -> SchemaError:
    table = schemas_side_by_side(left, right, (left_name, right_name), marked=differing_features(left, right))
    return SchemaError(f"{right_name} has another schema than {left_name}; {_MEND}\n{table}")
