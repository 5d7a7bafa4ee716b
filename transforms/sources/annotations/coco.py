"""Read COCO's JSON files: what several of them say of one picture becomes one row.

    instances.json  {"images": [{"id": 7, "file_name": "7.jpg"}], "annotations": [{"image_id": 7, "bbox": [...]}], ...}
    captions.json   {"images": [{"id": 7, "file_name": "7.jpg"}], "annotations": [{"image_id": 7, "caption": "..."}]}
                                  │
    file_name  image/source_id  image/caption  objects
    7.jpg      "7"              ["..."]        {bbox: [...], category: [...], label: [...], area: [...], ...}

Rows are in the order of `images`, those of the first file first. Source of the format: cocodataset.org, "data format".
The id "7" is the id 7: exporters write one as text and the other as a number. LVIS has `coco_url` for `file_name`.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ...errors import SourceError
from ...format.wording.hints import Foreign
from ...format.wording.nearest import first_names
from ...format.wording.printable import printable
from ...recipe.steps.label import MOST_CLASSES
from ...recipe.steps.objects import ID
from ..contract.source import ParallelMap, SourceEntry
from ..files.open_file import open_file, open_listed
from .rows import Annotated, AnnotationOptions, Picture, PictureFolder, annotated

_READ: Final = frozenset({
    "id", "image_id", "category_id", "bbox", "area", "iscrowd", "segmentation", "keypoints", "num_keypoints", "caption",
})  # fmt: skip
_USED: Final = (
    "([.annotations[].category_id] | INDEX(.)) as $used | .categories |= "
    "map(select((.id | tostring) as $id | $used | has($id)))"
)
"""The jq program that leaves the categories that have objects."""
_SAYS: Final = ("bbox", "category_id", "caption")
"""What an annotation says of its picture by: one without any of these says nothing that is read."""

_MOST_LOST: Final = 0.1
"""The share of a file's annotations that may be lost; more are a fault of the file, and end the run."""

_SHOWN_IDS: Final = 3
_ID_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


def read_coco(entries: Sequence[SourceEntry], options: AnnotationOptions, run: ParallelMap) -> Annotated:  # noqa: ARG001
    """Read files whose splits are known with ids of their own, where their ids begin again.

    Raises `SourceError` where a file is not COCO's JSON, or two others have two pictures of one id.
    """
    sets = defaultdict[tuple[PictureFolder, str | None], list[_Known]](list)  # each has ids of its own
    classes, counts = dict[int, str](), Counter[str]()
    for number, entry in enumerate(entries):
        document, folder = _load(entry), options.folder_of(entry)
        _add_classes(entry, document, classes)
        some = sets[folder, entry.split]
        known = next((one for one in some if entry.split is None or not one.is_of_others(document["images"])), None)
        if known is None:
            some.append(known := _Known())
        _add(number, entry, document, known, counts, masks=options.masks)
    pictures = list[Picture]()
    for (folder, _), some in sets.items():
        for picture in (picture for known in some for picture in known.pictures.values()):
            picture.file_name = folder.named(picture.file_name)
            pictures.append(picture)
    _fill_keypoints([one for picture in pictures for one in picture.objects])
    warnings = [f"{text}: {count:,}" for text, count in counts.items() if count]
    return annotated(pictures, len(entries), classes, warnings=warnings)


@dataclass(slots=True)
class _Known:
    """The pictures by their ids, and the objects by those of their pictures and their own."""

    pictures: dict[int | str, Picture] = field(default_factory=dict)
    objects: dict[tuple[object, object], dict[str, Any]] = field(default_factory=dict)

    def is_of_others(self, images: Sequence[Any]) -> bool:
        """Return whether a file begins its ids again: it has some of these, and each is of another picture."""
        named = ((_key(one.get("id")), _name_of(one)) for one in images if isinstance(one, dict))
        both = [(self.pictures[key].file_name, name) for key, name in named if key in self.pictures]
        return bool(both) and all(known != name for known, name in both)


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
        number, name = (_key(one.get("id")), one.get("name")) if isinstance(one, dict) else (None, None)
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
                f"{Foreign('jq', _USED, entry.name)} > smaller.json",
            )


def _add(
    number: int,
    entry: SourceEntry,
    document: Mapping[str, Any],
    known: _Known,
    counts: Counter[str],
    *,
    masks: bool,
) -> None:
    pictures, objects = known.pictures, known.objects
    _add_pictures(number, entry, document["images"], pictures, counts)
    categories = {_key(one.get("id")): one for one in _list_of(document, "categories") if isinstance(one, dict)}
    homeless, silent = list[object](), list[Mapping[str, Any]]()
    for index, one in enumerate(document["annotations"]):
        if not isinstance(one, dict):
            raise SourceError(entry.name, f"annotations[{index}] is no object: {printable(str(one)[:80])}")
        if "segments_info" in one:
            raise SourceError(
                entry.name,
                "is a panoptic file: its annotations are segments of PNG masks, not boxes of objects, and are not "
                "read; give the file of instances of the same pictures (instances_*.json)",
            )
        picture = pictures.get(_key(one.get("image_id")))
        if picture is None:
            homeless.append(one.get("image_id"))
            continue
        if not any(name in one for name in _SAYS):
            silent.append(one)
        if "bbox" in one or "category_id" in one:
            if _key(one.get("category_id")) not in categories:
                counts["annotations whose class is not in the list of categories"] += 1
            others = one.keys() - _READ
            for name in others:
                counts[f'annotations with "{printable(str(name))}", which is not read'] += 1
            found, key = _object(one, categories, masks=masks), (_key(one.get("image_id")), _key(one.get("id")))
            if not key[1] or key not in objects:
                objects[key] = found
                picture.objects.append(found)
            else:  # instances and keypoints of people are in two files
                objects[key] |= {name: value for name, value in found.items() if objects[key].get(name) is None}
        if isinstance(one.get("caption"), str):
            picture.captions.append(one["caption"])
    _refuse_lost(entry, len(document["annotations"]), homeless, silent, pictures)
    counts["annotations left out, as their picture is not in the list of images"] += len(homeless)
    counts['annotations left out, as they have no "bbox", "category_id" or "caption"'] += len(silent)


def _name_of(image: Mapping[str, Any]) -> object:
    """Return the path of a picture below its folder."""
    name, url = image.get("file_name"), image.get("coco_url")
    if name is None and isinstance(url, str):
        return unquote(urlsplit(url).path).rpartition("/")[2] or None
    return name.replace("\\", "/") if isinstance(name, str) and "/" not in name else name


def _add_pictures(
    number: int,
    entry: SourceEntry,
    images: Sequence[Any],
    pictures: dict[int | str, Picture],
    counts: Counter[str],
) -> None:
    by_url = 'pictures that are named by the last part of "coco_url", as they have no "file_name"'
    of_windows = 'pictures whose "file_name" has "\\" between folders, which is read as "/"'
    for index, image in enumerate(images):
        fields = image if isinstance(image, dict) else {}
        known, given, name = fields.get("id"), fields.get("file_name"), _name_of(fields)
        counts[by_url] += given is None and name is not None
        counts[of_windows] += given is not None and given != name
        lacking = [
            f'"{key}"' for key, value in (("id", known), ("file_name", name)) if not isinstance(value, int | str)
        ]
        if not isinstance(known, int | str) or not isinstance(name, str):
            what = " and ".join(lacking) or '"file_name" as text'
            raise SourceError(entry.name, f"images[{index}] has no {what}: {printable(str(image)[:80])}")
        sides = _whole(image.get("width")), _whole(image.get("height"))
        before = pictures.setdefault(_key(known), Picture(number, name, str(known), sides if all(sides) else None))
        if before.file_name != name:
            raise SourceError(
                entry.name,
                f"the picture {known} is {printable(name)}, and {printable(before.file_name)} before: these files are "
                f"of two sets of pictures; convert one, and append the other",
            )


def _refuse_lost(
    entry: SourceEntry,
    count: int,
    homeless: Sequence[object],
    silent: Sequence[Mapping[str, Any]],
    pictures: Mapping[int | str, Picture],
) -> None:
    """Raise `SourceError` where more than a tenth of the annotations are of no picture, or say nothing that is read."""
    if len(homeless) > _MOST_LOST * count:
        lost = first_names([json.dumps(value)[:40] for value in homeless[:_SHOWN_IDS]], _SHOWN_IDS)
        ids = first_names([json.dumps(value)[:40] for value in list(pictures)[:_SHOWN_IDS]], _SHOWN_IDS) or "empty"
        raise SourceError(
            entry.name,
            f"{len(homeless):,} of {count:,} annotations are of no picture in the list of images: their image_id is "
            f"{lost}, and the id of images is {ids}; make them the same, add the pictures to the list of images, or "
            f"take these annotations out of the file",
        )
    if len(silent) > _MOST_LOST * count:
        keys = first_names([str(key) for key in silent[0]], 8)
        raise SourceError(
            entry.name,
            f'{len(silent):,} of {count:,} annotations have no "bbox", "category_id" or "caption", so that their '
            f"pictures would have no objects; the first has {keys}; name their keys as COCO does",
        )


def _object(one: Mapping[str, Any], categories: Mapping[Any, Any], *, masks: bool) -> dict[str, Any]:
    """Return the fields of an object; a value of another type than the field's is none."""
    category, box, segmentation = _key(one.get("category_id")), one.get("bbox"), one.get("segmentation")
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
    """Return an id as it is compared: a whole number where it is one, also as text; no text of what is no id.

    >>> _key("7"), _key(7.0), _key("007"), _key(None)
    (7, 7, '007', '')
    """
    if isinstance(value, str):
        return int(value) if _ID_NUMBER.fullmatch(value) else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else ""


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
