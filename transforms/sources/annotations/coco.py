"""Read COCO's JSON files: what several of them say of one picture becomes one row.

    instances.json  {"images": [{"id": 7, "file_name": "7.jpg"}], "annotations": [{"image_id": 7, "bbox": [...]}], ...}
    captions.json   {"images": [{"id": 7, "file_name": "7.jpg"}], "annotations": [{"image_id": 7, "caption": "..."}]}
                                  │
    file_name  image/source_id  image/caption  objects
    7.jpg      "7"              ["..."]        {bbox: [...], category: [...], label: [...], area: [...], ...}

Rows are in the order of `images`, those of the first file first. Source of the format: cocodataset.org, "data format".
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...errors import SourceError
from ...format.wording.nearest import first_names
from ...format.wording.printable import printable
from ...recipe.picture_steps.objects import ID
from ...recipe.steps.label import MOST_CLASSES
from ..contract.source import ParallelMap, SourceEntry
from ..files.open_file import open_file, open_listed
from .options import AnnotationOptions
from .rows import Annotated, Picture, annotated

_READ: Final = frozenset({
    "id", "image_id", "category_id", "bbox", "area", "iscrowd", "segmentation", "keypoints", "num_keypoints", "caption",
})  # fmt: skip
_USED: Final = (
    "([.annotations[].category_id] | INDEX(.)) as $used | .categories |= "
    "map(select((.id | tostring) as $id | $used | has($id)))"
)
"""The jq program that leaves the categories that have objects."""


def read_coco(entries: Sequence[SourceEntry], options: AnnotationOptions, run: ParallelMap) -> Annotated:  # noqa: ARG001
    """Raise `SourceError` where a file is not COCO's JSON, or two files have two pictures of one id."""
    pictures: dict[int | str, Picture] = {}
    objects: dict[tuple[object, object], dict[str, Any]] = {}
    classes, counts = dict[int, str](), Counter[str]()
    for number, entry in enumerate(entries):
        document = _load(entry)
        _add_classes(entry, document, classes)
        _add(number, entry, document, pictures, objects, counts, masks=options.masks)
    _fill_keypoints([one for picture in pictures.values() for one in picture.objects])
    warnings = [f"annotations {text}: {count:,}" for text, count in counts.items()]
    return annotated([*pictures.values()], len(entries), classes, warnings=warnings)


def _load(entry: SourceEntry) -> dict[str, Any]:
    with open_listed(entry, open_file) as file:
        try:
            document = json.loads(file.read())
        except (ValueError, RecursionError) as error:
            raise SourceError(entry.name, f"is no JSON: {printable(str(error))}; copy it again") from error
    keys = list(document) if isinstance(document, dict) else []
    if not all(key in keys and isinstance(document[key], list) for key in ("images", "annotations")):
        shown = first_names([str(key) for key in keys], 8) or type(document).__name__
        raise SourceError(
            entry.name, f'is no file of COCO\'s annotations: it needs lists "images" and "annotations", and has {shown}'
        )
    known: dict[str, Any] = document
    return known


def _add_classes(entry: SourceEntry, document: Mapping[str, Any], classes: dict[int, str]) -> None:
    """Raise `SourceError` where a class has another name in a file before."""
    for one in _list_of(document, "categories"):
        number, name = (one.get("id"), one.get("name")) if isinstance(one, dict) else (None, None)
        if type(number) is not int or not isinstance(name, str):
            continue
        before = classes.setdefault(number, name)
        if before != name:
            raise SourceError(
                entry.name,
                f'the category {number} is "{printable(name)}", and "{printable(before)}" before: a number has one '
                f"class; give files with one list of categories",
            )
        if len(classes) > MOST_CLASSES:
            raise SourceError(
                entry.name,
                f"has more than {MOST_CLASSES:,} categories, which are no classes; leave out those without objects: "
                f"jq '{_USED}' {shlex.quote(entry.name)} > smaller.json",
            )


def _add(
    number: int,
    entry: SourceEntry,
    document: Mapping[str, Any],
    pictures: dict[int | str, Picture],
    objects: dict[tuple[object, object], dict[str, Any]],
    counts: Counter[str],
    *,
    masks: bool,
) -> None:
    for index, image in enumerate(document["images"]):
        known, name = (image.get("id"), image.get("file_name")) if isinstance(image, dict) else (None, None)
        if not isinstance(known, int | str) or not isinstance(name, str):
            raise SourceError(entry.name, f'images[{index}] has no "id" and "file_name": {printable(str(image)[:80])}')
        sides = _whole(image.get("width")), _whole(image.get("height"))
        before = pictures.setdefault(known, Picture(number, name, str(known), sides if all(sides) else None))
        if before.file_name != name:
            raise SourceError(
                entry.name,
                f"the picture {known} is {printable(name)}, and {printable(before.file_name)} before: these files are "
                f"of two sets of pictures; convert one, and append the other",
            )
    categories = {_key(one.get("id")): one for one in _list_of(document, "categories") if isinstance(one, dict)}
    for index, one in enumerate(document["annotations"]):
        if not isinstance(one, dict):
            raise SourceError(entry.name, f"annotations[{index}] is no object: {printable(str(one)[:80])}")
        picture = pictures.get(_key(one.get("image_id")))
        if picture is None:
            counts["left out, as their picture is not in the list of images"] += 1
        elif "bbox" in one or "category_id" in one:
            if _key(one.get("category_id")) not in categories:
                counts["whose class is not in the list of categories"] += 1
            others = one.keys() - _READ
            for name in others:
                counts[f'with "{printable(str(name))}", which is not read'] += 1
            found, key = _object(one, categories, masks=masks), (_key(one.get("image_id")), _key(one.get("id")))
            if not key[1] or key not in objects:
                objects[key] = found
                picture.objects.append(found)
            else:  # instances and keypoints of people are in two files
                objects[key] |= {name: value for name, value in found.items() if objects[key].get(name) is None}
        if picture is not None and isinstance(one.get("caption"), str):
            picture.captions.append(one["caption"])


def _object(one: Mapping[str, Any], categories: Mapping[Any, Any], *, masks: bool) -> dict[str, Any]:
    """Return the fields of an object; a value of another type than the field's is none."""
    category, box, segmentation = one.get("category_id"), one.get("bbox"), one.get("segmentation")
    if isinstance(category, float) and category.is_integer():
        category = int(category)
    known = type(category) is int and -(2**63) <= category < 2**63
    kind = categories.get(category, {}) if known else {}
    name, points, parts = kind.get("name"), one.get("keypoints"), kind.get("keypoints")
    sides = [_number(side) for side in box] if isinstance(box, list) else [None]
    return {
        ID: str(_key(one.get("id"))) or None,
        "bbox": None if None in sides else sides,
        "category": category if known else None,
        "label": name if isinstance(name, str) else str(category) if known else None,
        "iscrowd": 1 if one.get("iscrowd") else 0,
        "area": _number(one.get("area")),
        "segmentation": json.dumps(segmentation) if masks and segmentation else None,
        "keypoints": [_number(point) for point in points] if isinstance(points, list) else None,
        "num_keypoints": _whole(one.get("num_keypoints")) if isinstance(points, list) else None,
        "keypoint_names": [*map(str, parts)] if isinstance(points, list) and isinstance(parts, list) else None,
    }


def _key(value: object) -> int | str:
    return value if isinstance(value, int | str) else ""


def _list_of(document: Mapping[str, Any], key: str) -> list[Any]:
    found = document.get(key)
    return found if isinstance(found, list) else []


def _whole(value: object) -> int:
    number = _number(value)
    return int(number) if number is not None and abs(number) < 1 << 31 else 0


def _fill_keypoints(objects: Sequence[dict[str, Any]]) -> None:
    """Give objects without keypoints as many zeros as others have numbers, as TensorFlow's script does."""
    first = next((one for one in objects if one["keypoints"]), None)
    for one in objects:
        if first is None:
            del one["keypoints"], one["num_keypoints"], one["keypoint_names"]
        elif one["keypoints"] is None:
            zeros = [0.0] * len(first["keypoints"])
            one |= {"keypoints": zeros, "num_keypoints": 0, "keypoint_names": first["keypoint_names"]}


def _number(value: object) -> float | None:
    """Return a number of JSON, None if it is none that a float can hold."""
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except OverflowError:
        return None
