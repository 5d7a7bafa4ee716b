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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from mmap import mmap
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import DecodeError, Raw
from msgspec.json import Decoder, decode

from ...errors import SchemaError, SourceError
from ...format.wording.hints import Foreign
from ...format.wording.printable import first_names, printable
from ...inputs.contract.source import ParallelMap, SourceEntry
from ...inputs.files.open_file import OpenFile, let_go, mapped, open_file, open_listed
from ...recipe.steps.label import MOST_CLASSES
from ...recipe.steps.objects import ID
from .rows import (
    PART,
    PICTURE,
    UNREAD,
    Annotated,
    AnnotationOptions,
    ObjectRows,
    Picture,
    PictureFolder,
    annotated,
    filled,
)

_READ: Final = frozenset({
    "id", "image_id", "category_id", "bbox", "area", "iscrowd", "segmentation", "keypoints", "num_keypoints", "caption",
})  # fmt: skip
_USED: Final = (
    "([.annotations[].category_id] | INDEX(.)) as $used | .categories |= "
    "map(select((.id | tostring) as $id | $used | has($id)))"
)
"""The jq program that leaves the categories that have objects."""
_SAYS: Final = frozenset({"bbox", "category_id", "caption"})
"""What an annotation says of its picture by: one without any of these says nothing that is read."""

_MOST_LOST: Final = 0.1
"""The share of a file's annotations that may be lost; more are a fault of the file, and end the run."""

_DECODER: Final = Decoder()
_SHOWN_IDS: Final = 3
_ID_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


def read_coco(entries: Sequence[SourceEntry], options: AnnotationOptions, run: ParallelMap) -> Annotated:  # noqa: ARG001
    """Read files whose splits are known with ids of their own, where their ids begin again.

    Raises `SourceError` where a file is not COCO's JSON, or two others have two pictures of one id.
    """
    found = _Found(options.masks)
    groups = Counter((options.folder_of(entry), entry.split) for entry in entries)
    sets = defaultdict[tuple[PictureFolder, str | None], list[_Known]](list)  # each has ids of its own
    for number, entry in enumerate(entries):
        group = options.folder_of(entry), entry.split
        with open_listed(entry, open_file) as file:
            document = _document(entry, file)
            same = (one for one in sets[group] if entry.split is None or not found.are_others(document, one))
            known = next(same, None)
            if known is None:
                sets[group].append(known := _Known(group[0], has_more=groups[group] > 1))
            found.add(number, entry, document, known)
    warnings = [f"{text}: {count:,}" for text, count in found.counts.items() if count]
    objects = _with_keypoints(filled(found.objects.table(), found.more.table(), found.more_of))
    classes = found.classes
    if options.dense:
        classes, objects = _dense(classes, objects, options.held or ())
    return annotated(found.pictures, len(entries), classes, objects, warnings=warnings)


def _dense(classes: Mapping[int, str], objects: pa.Table, held: Sequence[str]) -> tuple[dict[int, str], pa.Table]:
    """Return classes numbered from 0 in the order of their ids, behind those of a dataset, and objects with these.

    Raises `SchemaError` where two classes have one name.
    """
    ids = sorted(classes)
    names = [*dict.fromkeys((*held, *(classes[one] for one in ids)))]
    name, most = next(iter(Counter(classes.values()).most_common(1)), ("", 0))
    if most > 1:
        raise SchemaError(
            f'classes: dense: {most} categories are called "{printable(name)}"; give each a name of its own in the '
            f"list of categories, or leave the key out"
        )
    if "category" in objects.column_names:
        numbers = pa.array([names.index(classes[one]) for one in ids], pa.int64())
        index = pc.index_in(pa.concat_arrays(objects["category"].chunks), value_set=pa.array(ids, pa.int64()))
        objects = objects.drop_columns(["category"]).append_column("category", numbers.take(index))
    return dict(enumerate(names)), objects


@dataclass(frozen=True, slots=True)
class _Document:
    """What a file holds: its lists as text, which is parsed as it is gone through, where that is possible."""

    parts: Mapping[str, Any]
    text: mmap | bytes

    def items(self, key: str) -> Iterator[Any]:
        """Yield what is in a list, one after the other: all objects of COCO's own would take four gigabytes."""
        value: Any = self.parts.get(key)
        if not _is_list(value):
            return
        for number, one in enumerate(decode(value, type=list[Raw]) if isinstance(value, Raw) else value):
            if number % PART == 0:
                let_go(self.text)
            try:
                yield _DECODER.decode(one) if isinstance(one, Raw) else one
            except (DecodeError, RecursionError):  # a number that Python takes alone
                yield json.loads(bytes(one))


def _document(entry: SourceEntry, file: OpenFile) -> _Document:
    text = mapped(file) if entry.bytes else b""
    try:
        document = decode(text, type=dict[str, Raw])
    except (DecodeError, RecursionError):  # NaN, an encoding or a name that Python takes alone; or it is no JSON
        try:
            document = json.loads(bytes(text))
        except (ValueError, RecursionError) as error:
            raise SourceError(entry.name, f"is no JSON: {printable(str(error))}; copy it again") from error
    keys = list(document) if isinstance(document, dict) else []
    if not all(key in keys and _is_list(document[key]) for key in ("images", "annotations")):
        shown = first_names([str(key) for key in keys], 8) or type(document).__name__
        raise SourceError(
            entry.name, f'is no file of COCO\'s annotations: it needs lists "images" and "annotations", and has {shown}'
        )
    return _Document(document, text)


def _is_list(value: object) -> bool:
    return isinstance(value, list) or (isinstance(value, Raw) and bytes(memoryview(value)[:1]) == b"[")


@dataclass(slots=True)
class _Known:
    """The numbers of pictures by their ids, and the rows of objects by those of their pictures and their own.

    Of the latter only where more files of the same pictures come.
    """

    folder: PictureFolder
    has_more: bool
    pictures: dict[int | str, int] = field(default_factory=dict)
    objects: dict[tuple[int, object], int] = field(default_factory=dict)


def _add_classes(entry: SourceEntry, categories: Iterable[Any], classes: dict[int, str]) -> None:
    """Raise `SourceError` where a class has another name, or another number, in a file before."""
    known = {name: number for number, name in classes.items()}
    numbers = {*classes}
    for one in categories:
        number, name = (_key(one.get("id")), one.get("name")) if isinstance(one, dict) else (None, None)
        if type(number) is not int or not isinstance(name, str):
            continue
        if number not in numbers and name in known:
            raise SourceError(
                entry.name,
                f'the category "{printable(name)}" is {number}, and {known[name]} before: a class has one number; give '
                f"files with one list of categories",
            )
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


@dataclass(slots=True)
class _Found:
    """What all files say: pictures, each with a number, and a row for each object; `more` is said again of some."""

    masks: bool
    classes: dict[int, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    pictures: list[Picture] = field(default_factory=list)
    objects: ObjectRows = field(default_factory=ObjectRows)
    more: ObjectRows = field(default_factory=ObjectRows)
    more_of: list[int] = field(default_factory=list)

    def are_others(self, document: _Document, known: _Known) -> bool:
        """Return whether a file begins its ids again: it has some of these, and each is of another picture."""
        images = (one for one in document.items("images") if isinstance(one, dict))
        named = ((_key(one.get("id")), _name_of(one)) for one in images)
        both = [
            (self.pictures[known.pictures[key]].file_name, known.folder.named(str(name)))
            for key, name in named
            if key in known.pictures
        ]
        return bool(both) and all(one != other for one, other in both)

    def add(self, number: int, entry: SourceEntry, document: _Document, known: _Known) -> None:
        categories = list(document.items("categories"))
        _add_classes(entry, categories, self.classes)
        kinds = {_key(one.get("id")): one for one in categories if isinstance(one, dict)}
        self._add_pictures(number, entry, document.items("images"), known)
        homeless, silent, count, rows = list[object](), list[Mapping[str, Any]](), 0, dict[tuple[int, object], int]()
        for index, one in enumerate(document.items("annotations")):
            count += 1
            _refuse_others(entry, index, one)
            picture = known.pictures.get(_key(one.get("image_id")))
            if picture is None:
                homeless.append(one.get("image_id"))
                continue
            if _SAYS.isdisjoint(one):
                silent.append(one)
            is_caption = "caption" in one and not {"bbox", "segmentation", "keypoints"} & one.keys()
            if ("bbox" in one or "category_id" in one) and not is_caption:  # Datumaro gives captions the category 0
                if _key(one.get("category_id")) not in kinds:
                    self.counts["annotations whose class is not in the list of categories"] += 1
                for name in one.keys() - _READ:
                    self.counts[f'annotations with "{printable(str(name))}", which is not read'] += 1
                found, key = _object(one, kinds, masks=self.masks), (picture, _key(one.get("id")))
                if key[1] and key in known.objects:  # instances and keypoints of people are in two files
                    self.more_of.append(known.objects[key])
                    self.more.add(picture, found)
                else:
                    row = self.objects.add(picture, found)
                    if known.has_more:
                        rows.setdefault(key, row)
            if isinstance(one.get("caption"), str):
                self.pictures[picture].captions += (one["caption"],)
        known.objects = rows | known.objects
        _refuse_lost(entry, count, homeless, silent, known.pictures)
        self.counts["annotations left out, as their picture is not in the list of images"] += len(homeless)
        self.counts['annotations left out, as they have no "bbox", "category_id" or "caption"'] += len(silent)

    def _add_pictures(self, number: int, entry: SourceEntry, images: Iterable[Any], known: _Known) -> None:
        by_url = 'pictures that are named by the last part of "coco_url", as they have no "file_name"'
        of_windows = 'pictures whose "file_name" has "\\" between folders, which is read as "/"'
        for index, image in enumerate(images):
            fields = image if isinstance(image, dict) else {}
            key, given, name = fields.get("id"), fields.get("file_name"), _name_of(fields)
            self.counts[by_url] += given is None and name is not None
            self.counts[of_windows] += given is not None and given != name
            lacking = [
                f'"{part}"' for part, value in (("id", key), ("file_name", name)) if not isinstance(value, int | str)
            ]
            if not isinstance(key, int | str) or not isinstance(name, str):
                what = " and ".join(lacking) or '"file_name" as text'
                raise SourceError(entry.name, f"images[{index}] has no {what}: {printable(str(image)[:80])}")
            sides, path = (_whole(image.get("width")), _whole(image.get("height"))), known.folder.named(name)
            at = known.pictures.setdefault(_key(key), len(self.pictures))
            if at == len(self.pictures):
                self.pictures.append(Picture(number, path, str(key), sides if all(sides) else None))
            elif (before := self.pictures[at].file_name) != path:
                before = before.removeprefix(known.folder.named(""))
                raise SourceError(
                    entry.name,
                    f"the picture {key} is {printable(name)}, and {printable(before)} before: these files are of two "
                    f"sets of pictures; convert one, and append the other",
                )


def _refuse_others(entry: SourceEntry, index: int, one: object) -> None:
    if not isinstance(one, dict):
        raise SourceError(entry.name, f"annotations[{index}] is no object: {printable(str(one)[:80])}")
    if "segments_info" in one:
        raise SourceError(
            entry.name,
            "is a panoptic file: its annotations are segments of PNG masks, not boxes of objects, and are not read; "
            "give the file of instances of the same pictures (instances_*.json)",
        )


def _name_of(image: Mapping[str, Any]) -> object:
    name, url = image.get("file_name"), image.get("coco_url")
    if name is None and isinstance(url, str):
        return unquote(urlsplit(url).path).rpartition("/")[2] or None
    return name.replace("\\", "/") if isinstance(name, str) and "/" not in name else name


def _refuse_lost(
    entry: SourceEntry,
    count: int,
    homeless: Sequence[object],
    silent: Sequence[Mapping[str, Any]],
    pictures: Mapping[int | str, int],
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
        "segmentation": (json.dumps(segmentation) if masks else UNREAD) if segmentation else None,
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


def _whole(value: object) -> int:
    number = _number(value)
    return int(number) if number is not None and abs(number) < 1 << 31 else 0


def _with_keypoints(objects: pa.Table) -> pa.Table:
    """Give objects without keypoints as many zeros as others have numbers, as TensorFlow's script does."""
    if not objects.num_rows:
        return objects
    lengths = pc.fill_null(pc.list_value_length(objects["keypoints"]), 0).to_numpy()
    some = np.flatnonzero(lengths)
    if not len(some):
        return objects.drop_columns(["keypoints", "num_keypoints", "keypoint_names"])
    first = int(some[np.argmin(objects[PICTURE].to_numpy()[some])])
    zeros = {
        "keypoints": [0.0] * int(lengths[first]), "num_keypoints": 0,
        "keypoint_names": objects["keypoint_names"][first].as_py(),
    }  # fmt: skip
    lacking = np.flatnonzero(objects["keypoints"].is_null().to_numpy())
    zero = pa.Table.from_pylist([zeros], schema=objects.schema)
    return filled(objects, zero.take(pa.array(np.zeros(len(lacking), np.int64))), lacking)


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except OverflowError:
        return None
