"""What the metadata of a table say of its columns, as Hugging Face writes them: classes of numbers, and sounds.

    schema.metadata    huggingface: {"info": {"features": {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}}}
    label              0  1  1  -1       neg  pos  pos  no class
    clip               {"_type": "Audio"}: {bytes, path} are no picture

Source of the form: huggingface/datasets, `features.py`. A list of numbers has the classes of its items, a struct or a
list of structs of objects those of its field of classes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from ..wording.printable import printable

Classes: TypeAlias = Mapping[str, Sequence[str] | str]
"""The names of the classes of each column, by number; of a column of sounds or other media what they are."""

CLASSES: Final = b"classes"
"""The key of the metadata that names classes here: of a schema all of them by column, of a field its own."""

OBJECT_CLASSES: Final = ("categories", "category", "label", "labels")
"""The fields of objects that hold their classes."""

_HUGGING_FACE: Final = b"huggingface"
_MEDIA: Final = ("Audio", "Video", "Pdf", "Nifti")
_LISTS: Final = ("List", "LargeList", "Sequence")


def named_classes(schema: pa.Schema) -> dict[str, list[str] | str]:
    """Return what the metadata of a schema say of each column."""
    try:
        features = json.loads((schema.metadata or {})[_HUGGING_FACE])["info"]["features"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}
    return classes_of_features(features)


def classes_of_features(features: Any) -> dict[str, list[str] | str]:
    """Return what features say of each column, as Hugging Face's `datasets` writes them in JSON."""
    found = {name: names_of(one) for name, one in features.items()} if isinstance(features, dict) else {}
    return {name: names for name, names in found.items() if names}


def with_classes(schema: pa.Schema, classes: Classes) -> pa.Schema:
    """Return the schema that says so of its columns, and nothing else beside."""
    held = {name: classes[name] for name in schema.names if name in classes}
    return schema.with_metadata({CLASSES: json.dumps(held).encode()} if held else None)


def classes_in(schema: pa.Schema) -> dict[str, list[str] | str]:
    """Return what `with_classes` says."""
    found: dict[str, list[str] | str] = json.loads((schema.metadata or {}).get(CLASSES, b"{}"))
    return found


def named_fields(fields: Iterable[pa.Field], classes: Classes) -> tuple[pa.Field, ...]:
    """Return fields of which each says so of itself."""
    return tuple(
        one.with_metadata({**(one.metadata or {}), CLASSES: json.dumps(classes[one.name]).encode()})
        if one.name in classes
        else one
        for one in fields
    )


def classes_of(field: pa.Field) -> tuple[str, ...]:
    """Return the classes that a field says it has."""
    found = json.loads((field.metadata or {}).get(CLASSES, b"[]"))
    return tuple(found) if isinstance(found, list) else ()


def media_of(field: pa.Field) -> str:
    """Return what a field says that it holds in place of pictures: Audio, Video; empty if it says nothing."""
    found = json.loads((field.metadata or {}).get(CLASSES, b"[]"))
    return found if isinstance(found, str) else ""


def media_lines(fields: Iterable[pa.Field]) -> tuple[str, ...]:
    """Return what to say of the columns of sounds and other media."""
    said = "whose bytes are kept as they are, and not looked at"
    return tuple(f"{printable(one.name)}: {kind}, {said}" for one in fields if (kind := media_of(one)))


def names_of(feature: Any) -> Any:
    """Return the names of the classes of a feature, what other media it is, None for all others."""
    if isinstance(feature, list):  # as older releases write lists
        return names_of(feature[0]) if len(feature) == 1 else None
    if not isinstance(feature, dict):
        return None
    kind = feature.get("_type")
    if kind == "ClassLabel":
        names = feature.get("names")
        right = isinstance(names, list) and all(isinstance(one, str) for one in names) and len({*names}) == len(names)
        return names if right else None
    if kind in _MEDIA:
        return str(kind)
    if kind in _LISTS:
        return names_of(feature.get("feature"))
    return next((names_of(feature[key]) for key in OBJECT_CLASSES if key in feature), None) if kind is None else None
