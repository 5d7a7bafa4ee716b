"""One schema and one label map for all inputs, or a refusal that shows both.

Records are bytes, and are not rewritten: so what they hold must mean the same everywhere. Two label maps go together
if one begins with the other, since then each number has one name; the longer one is taken. A feature that may be
absent in one input may be absent in all. Nothing else is reconciled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import SchemaError
from ...format.manifest.details import ColumnEntry
from ...format.schema.schema import Feature, Schema, differing_features, schemas_side_by_side
from ...format.wording.hints import Set
from ...format.wording.printable import printable
from ...recognise.tfds import StatedFeature
from .inputs import InputDataset
from .observed_schema import Observation, observe_together

Labels = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Stated:
    """The schema that a dataset states; `name` is how it is shown, without a schema its records are plain bytes."""

    name: str
    schema: Schema | None
    labels: Mapping[str, tuple[str, ...]]
    columns: tuple[ColumnEntry, ...] = ()


_OPAQUE = f"or make a new dataset of all records as plain bytes: {Set('input.records', 'opaque')}"

_FIX = f"records stay as they are: convert one of the sources again so that both agree, {_OPAQUE}"


def stated_by(dataset: InputDataset) -> Stated:
    manifest = dataset.manifest
    return Stated(dataset.name, manifest.schema, manifest.labels, manifest.columns)


def agree_on_schema(datasets: Sequence[Stated]) -> Schema:
    """Raise `SchemaError` where two of the datasets differ, or one has no schema."""
    agreed = _schema_of(datasets[0])
    for dataset in datasets[1:]:
        other = _schema_of(dataset)
        marked = differing_features(agreed, other)
        if marked:
            raise _differ(datasets[0].name, agreed, dataset.name, other, marked)
        agreed = _with_nullable(agreed, {feature.name for feature in other if feature.nullable})
    return agreed


def agree_on_columns(datasets: Sequence[Stated]) -> tuple[ColumnEntry, ...]:
    """Return nothing if no dataset states columns. Raises `SchemaError` where two say different things of one."""
    agreed: dict[str, ColumnEntry] = {}
    for dataset in datasets:
        found = {column.name: column for column in dataset.columns}
        if dataset is not datasets[0] and found != agreed:
            name = next(name for name in {**agreed, **found} if agreed.get(name) != found.get(name))
            shown = [f"{one[name].type}" if name in one else "not stated" for one in (agreed, found)]
            raise SchemaError(
                f'column "{printable(name)}" is {shown[0]} in {datasets[0].name}, and {shown[1]} in {dataset.name}; '
                f"{_FIX}"
            )
        agreed = found
    return tuple(agreed.values())


def agree_on_labels(datasets: Sequence[Stated]) -> Labels:
    """Return the longer label map, where one begins with the other."""
    agreed: Labels = {}
    stated_by: dict[str, str] = {}
    for dataset in datasets:
        for feature, names in dataset.labels.items():
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


def agree_on_classes(name: str, labels: Labels, observations: Sequence[Observation]) -> None:
    """Raise `SchemaError` where a file holds numbers of classes that the labels of the dataset `name` do not have."""
    for one in observations:
        for feature, names in labels.items():
            seen = one.features.get(feature)
            if seen is not None and (why := seen.why_not(StatedFeature("label", (), names))):
                raise SchemaError(
                    f'{one.name}: feature "{printable(feature)}" holds class {why}, and {name} names {len(names)} '
                    f"classes, from 0 on; leave the file out, {_OPAQUE}"
                )


def agree_with_files(name: str, schema: Schema | None, observations: Sequence[Observation]) -> Schema:
    """Return the schema of files, or that of the dataset `name` if their records can be of it.

    Raises `SchemaError` where two files differ in the kind of a feature, or a file has other features than the dataset,
    or none.
    """
    first: dict[str, Observation] = {}
    for one in observations:
        if one.is_foreign:
            but = f", they are {one.other}" if one.other else ""
            raise SchemaError(f"{one.name}: none of its records is a tf.train.Example{but}; leave it out, {_OPAQUE}")
        for feature, seen in one.features.items():
            other = first.setdefault(feature, one)
            if other.features[feature].kind != seen.kind:
                raise _differ(other.name, other.schema(), one.name, one.schema(), {feature: "re-typed"})
        if schema is not None and one.records:
            conflicts = _conflicts(schema, one.schema())
            if conflicts:
                raise _differ(name, schema, one.name, one.schema(), conflicts)
    return schema if schema is not None else observe_together(observations, name).schema()


def hold_no_examples(observations: Sequence[Observation]) -> bool:
    """Return whether files hold records, and all are plain bytes: neither Examples nor messages that look like them."""
    seen = [one for one in observations if one.records or one.bad]
    return bool(seen) and all(one.is_foreign and one.other is None for one in seen)


def allows_more(dataset: Stated, expected: Schema) -> bool:
    needed = {feature.name for feature in expected if not feature.nullable}
    return any(feature.nullable and feature.name in needed for feature in dataset.schema or ())


def _conflicts(expected: Schema, found: Schema) -> dict[str, str]:
    """Return the features for which no record of a file can be of a schema; others are decided record by record."""
    ours, theirs = ({feature.name: feature for feature in schema} for schema in (expected, found))
    conflicts = {}
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in ours:
            conflicts[name] = "added"
        elif name not in theirs:
            if not ours[name].nullable:
                conflicts[name] = "missing"
        elif theirs[name].kind != ours[name].kind or not _may_hold_as_many(ours[name], theirs[name]):
            conflicts[name] = "re-typed"
    return conflicts


def _may_hold_as_many(one: Feature, other: Feature) -> bool:
    return (-1,) in (one.shape, other.shape) or math.prod(one.shape) == math.prod(other.shape)


def _schema_of(dataset: Stated) -> Schema:
    if dataset.schema is None:
        raise SchemaError(f"{dataset.name}: its records are plain bytes without a schema; leave it out, {_OPAQUE}")
    return dataset.schema


def _with_nullable(schema: Schema, names: set[str]) -> Schema:
    def widened(feature: Feature) -> Feature:
        return replace(feature, nullable=True) if feature.name in names else feature

    return Schema(tuple(map(widened, schema)))


def _differ(left_name: str, left: Schema, right_name: str, right: Schema, marked: dict[str, str]) -> SchemaError:
    table = schemas_side_by_side(left, right, (left_name, right_name), marked=marked)
    return SchemaError(f"{right_name} has another schema than {left_name}; {_FIX}\n{table}")
