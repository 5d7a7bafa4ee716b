"""The names of classes that the metadata of a table give the numbers of its columns, as Hugging Face writes them.

    schema.metadata    huggingface: {"info": {"features": {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}}}
    label              0  1  1  -1       neg  pos  pos  no class

Source of the form: huggingface/datasets, `features.py`. A list of numbers has the classes of its items, a struct or a
list of structs of objects those of its field of classes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

Classes: TypeAlias = Mapping[str, Sequence[str]]

CLASSES: Final = b"classes"
"""The key of the metadata that names classes here: of a schema all of them by column, of a field its own."""

OBJECT_CLASSES: Final = ("categories", "category", "label", "labels")
"""The fields of objects that hold their classes."""

_HUGGING_FACE: Final = b"huggingface"
_LISTS: Final = ("List", "LargeList", "Sequence")


def named_classes(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the names of the classes of each column, as the metadata of a schema say; of no use are no names."""
    try:
        features = json.loads((schema.metadata or {})[_HUGGING_FACE])["info"]["features"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}
    return classes_of_features(features)


def classes_of_features(features: Any) -> dict[str, list[str]]:
    """Return the names of the classes of each column, of features as Hugging Face's `datasets` writes them in JSON."""
    found = {name: _names_of(one) for name, one in features.items()} if isinstance(features, dict) else {}
    return {name: names for name, names in found.items() if names}


def with_classes(schema: pa.Schema, classes: Classes) -> pa.Schema:
    """Return the schema that says of its columns which classes they have, and nothing else beside."""
    held = {name: list(classes[name]) for name in schema.names if name in classes}
    return schema.with_metadata({CLASSES: json.dumps(held).encode()} if held else None)


def classes_in(schema: pa.Schema) -> dict[str, list[str]]:
    """Return what `with_classes` says."""
    found: dict[str, list[str]] = json.loads((schema.metadata or {}).get(CLASSES, b"{}"))
    return found


def named_fields(fields: Iterable[pa.Field], classes: Classes) -> tuple[pa.Field, ...]:
    """Return fields of which each says which classes it has, if it has any."""
    return tuple(
        one.with_metadata({**(one.metadata or {}), CLASSES: json.dumps(list(classes[one.name])).encode()})
        if one.name in classes
        else one
        for one in fields
    )


def classes_of(field: pa.Field) -> tuple[str, ...]:
    """Return the classes that a field says it has."""
    return tuple(json.loads((field.metadata or {}).get(CLASSES, b"[]")))


def _names_of(feature: Any) -> list[str] | None:
    if isinstance(feature, list):  # as older releases write lists
        return _names_of(feature[0]) if len(feature) == 1 else None
    if not isinstance(feature, dict):
        return None
    kind = feature.get("_type")
    if kind == "ClassLabel":
        names = feature.get("names")
        right = isinstance(names, list) and all(isinstance(one, str) for one in names) and len({*names}) == len(names)
        return names if right else None
    if kind in _LISTS:
        return _names_of(feature.get("feature"))
    return next((_names_of(feature[key]) for key in OBJECT_CLASSES if key in feature), None) if kind is None else None
