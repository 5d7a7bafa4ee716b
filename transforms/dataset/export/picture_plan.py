"""What of a dataset becomes files, folders and lines of a folder of pictures.

    image/encoded, image/format, ...        train/cat/1.jpg             the picture; what is known by it is left out
    image/class/text                        the folder `cat`
    photo/encoded, photo/filename           photo_file_name             a picture beside it
    pages/encoded, a list                   pages_file_names
    image/object/bbox/*, class/*, mask      objects {bbox, category}    see `picture_objects`
    caption                                 caption                     any other column, as JSON lines have it

The names are those that Hugging Face's imagefolder reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...errors import UsageError
from ...format.schema.schema import Feature, Schema
from ...format.wording.hints import Add
from ...format.wording.printable import printable
from .picture_names import safe_name
from .picture_objects import OBJECTS, Objects

_ENCODED: Final = "/encoded"
_KNOWN_BY_PICTURE: Final = ("encoded", "format", "height", "width", "channels", "colorspace", "filename")
_FIRST: Final = "image"


@dataclass(frozen=True, slots=True)
class Picture:
    """Pictures of one feature: `stem` is its name without `/encoded`, `many` says that a row has a list of them."""

    stem: str
    many: bool
    nullable: bool

    @property
    def column(self) -> str:
        ending = "file_names" if self.many else "file_name"
        plain = "images" if self.many else _FIRST
        return ending if self.stem == plain else f"{self.stem}_{ending}"


@dataclass(frozen=True, slots=True)
class PicturePlan:
    """The pictures of a dataset, the first of which names the files, and the feature whose classes name their folders.

    `objects` are the boxes in them, None if there are none. `columns` are all others, that lines have. Where the
    folders alone say it all, `with_lines` is False, and there are none.
    """

    pictures: tuple[Picture, ...]
    class_name: str | None
    objects: Objects | None
    columns: tuple[str, ...]
    with_lines: bool

    @classmethod
    def of(cls, schema: Schema, labels: Mapping[str, Sequence[str]], names: Sequence[str], where: str) -> PicturePlan:
        features = {feature.name: feature for feature in schema}
        found = [_picture(features[name]) for name in names if name in features and _is_picture(name, features)]
        if not found:
            raise UsageError(f"{where}: no column has pictures; export a table: -o NAME.parquet, or .jsonl")
        pictures = sorted(found, key=lambda one: (one.stem != _FIRST, one.many, one.stem))
        stem = pictures[0].stem
        class_name = next((name for name in _class_names(stem, features, labels) if name in names), None)
        objects = Objects.of(stem, names)
        read = {f"{one.stem}/{known}" for one in pictures for known in _KNOWN_BY_PICTURE}
        read |= set() if objects is None else set(objects.features)
        columns = tuple(name for name in names if name not in read)
        made = [one.column for one in pictures] + ([] if objects is None else [OBJECTS])
        taken = next((name for name in made if name in columns), None)
        if taken is not None:
            raise UsageError(
                f'{where}: the column "{printable(taken)}" has the name that paths or boxes of pictures get; choose '
                f"others with {Add('--columns')}, or export a table"
            )
        alone = len(pictures) == 1 and not pictures[0].many and not pictures[0].nullable and objects is None
        by_folder = alone and _folders_say(stem, columns, features, labels)
        return cls(tuple(pictures), class_name, objects, columns, with_lines=not by_folder)


def _folders_say(
    stem: str, columns: Sequence[str], features: Mapping[str, Feature], labels: Mapping[str, Sequence[str]]
) -> bool:
    """Return whether folders named by classes say all that columns do: no name needs another sign, no class is null."""
    label = f"{stem}/class/label"
    if label not in columns or label not in labels or not {label, f"{stem}/class/text"}.issuperset(columns):
        return False
    return all(safe_name(name) == name for name in labels[label]) and not any(features[one].nullable for one in columns)


def _is_picture(name: str, features: Mapping[str, Feature]) -> bool:
    """Return whether a feature has pictures; lists of them, and those of other writers, are bytes with a format."""
    feature = features[name]
    if feature.kind != "bytes" or feature.shape not in ((), (-1,)) or not name.endswith(_ENCODED):
        return False
    return feature.type == "image" or f"{name.removesuffix(_ENCODED)}/format" in features


def _picture(feature: Feature) -> Picture:
    return Picture(feature.name.removesuffix(_ENCODED), feature.shape == (-1,), feature.nullable)


def _class_names(stem: str, features: Mapping[str, Feature], labels: Mapping[str, Sequence[str]]) -> list[str]:
    wanted = [name for name in (f"{stem}/class/text", f"{stem}/class/label") if name in features]
    known = [name for name in wanted if features[name].shape == () and (name in labels or name.endswith("text"))]
    others = [name for name in labels if name in features and features[name].shape == ()]
    return known or (others if len(others) == 1 else [])
