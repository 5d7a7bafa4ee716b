"""Read YOLO's label files, one for each picture, beside a folder of pictures of the same names.

    images/a/7.jpg      labels/a/7.txt      17 0.5 0.5 0.2 0.4      class, and the middle, width and height of a box,
                                                                    as parts of the picture's
    data.yaml, or classes.txt: the names of the classes, by number

A line of more numbers is the class and the corners of a polygon, x and y as parts of the picture's: its box is the one
around it, and the polygon becomes a mask. Where `data.yaml` has a `kpt_shape`, numbers after those of the box are
keypoints, which are not read. Source of the format: ultralytics, "object detection datasets", "instance segmentation
datasets" and "pose estimation datasets".
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ...errors import SourceError
from ...format.wording.printable import first_names, printable, printable_path
from ...inputs.contract.selection import shown_path
from ...inputs.contract.source import ParallelMap, SourceEntry
from ...inputs.files.file_names import pictures_below
from ...inputs.files.open_file import is_object, open_file, open_listed
from ...recognise.evidence.label_names import Beside, beside_labels
from .rows import (
    UNREAD,
    Annotated,
    AnnotationOptions,
    ObjectRows,
    Picture,
    PictureFolder,
    annotated,
    in_parts,
    numbered,
    too_large,
)

_NO_NAMES: Final = (
    "classes have no names, and are numbers: no YAML file or classes.txt beside the labels names them, or files name "
    "other ones"
)
_ABOVE: Final = 2
"""Folders above all labels that may be part of the names of pictures: `train`, `part/train`."""

_BOX: Final = 5
_ZEROS: Final = re.compile(r"\.0+$")
"""Tables of numbers are written with classes as 2.0 and 2.0000."""

_CORNERS: Final = 3


def read_yolo(entries: Sequence[SourceEntry], options: AnnotationOptions, run: ParallelMap) -> Annotated:
    """Return what the files say; one that is none of YOLO's, or whose picture is not there, has an error.

    Raises `SourceError` where the parts have other names of classes.
    """
    by_folder, bare = defaultdict[PictureFolder, list[int]](list), list[Picture]()
    for number, entry in enumerate(entries):
        if (picture := options.bare_picture(entry)) is not None:
            bare.append(replace(picture, entry=number))
        else:
            by_folder[options.folder_of(entry)].append(number)
    besides = [_beside([entries[n] for n in numbers]) for numbers in by_folder.values()]
    beside = max(besides, key=lambda one: len(one.names), default=Beside())
    other = next((one for one in besides if beside.names[: len(one.names)] != one.names), None)
    if options.names is None and other is not None:
        shown = [first_names(one.names, 4) for one in (beside, other)]
        files = [shown_path(one.named_in) for one in (beside, other)]
        raise SourceError(
            entries[0].name,
            f"files of labels have other classes in one folder ({shown[0]}) than in another ({shown[1]}); make "
            f"{files[1]} the same as {files[0]}, or convert the folders into two datasets",
        )
    names = options.names if options.names is not None else beside.names
    pictures, errors, rows, poses = bare, dict[int, str](), ObjectRows(), 0
    read = partial(_read, wanted=replace(options, names=names), keypoints=beside.keypoints)
    for folder, numbers in by_folder.items():
        known, labels = _pictures_in(folder.path), [entries[number] for number in numbers]
        for number, stem, one in zip(numbers, _stems(labels, known), in_parts(run, read, labels), strict=True):
            entry = entries[number]
            if isinstance(one, str):
                errors[number] = one
            elif stem not in known:
                base = entry.path.removesuffix(os.fsencode(entry.name))
                where = printable_path(os.fsdecode(os.fsencode(folder.path).removeprefix(base)))
                errors[number] = f"there is no picture {printable(stem)} in {where}; restore it"
            else:
                objects, more = one
                poses += more
                for each in objects:
                    rows.add(len(pictures), each)
                pictures.append(Picture(number, folder.named(known[stem]), folder.named(stem)))
    warnings = [f"objects with keypoints (kpt_shape), which are not read: {poses:,}"] if poses else []
    if options.names is None and not names and rows.count:
        warnings.append(_NO_NAMES)
    classes = numbered(names, options.label_offset)
    return annotated(pictures, len(entries), classes, rows.table(), errors=errors, warnings=warnings)


def _beside(entries: Sequence[SourceEntry]) -> Beside:
    folder = _folder_of(entries)
    own = (_folder_of([entry]) for entry in entries)
    return beside_labels(folder, inner=(one for one in dict.fromkeys(own) if one != folder))


def _folder_of(entries: Sequence[SourceEntry]) -> str:
    found = os.path.commonpath([os.path.dirname(entry.path) for entry in entries])
    return os.fsdecode(found.replace(b":/", b"://", 1) if is_object(entries[0].path) else found)


def _stems(entries: Sequence[SourceEntry], known: Container[str]) -> list[str]:
    """Return what the picture of each file is called: below the folder of all files, or one above it.

    Where all labels are of one split, `labels/train/1.txt` is of `images/train/1.jpg`, and of `train/1.jpg`.
    """
    folder = _folder_of(entries)
    below = [os.path.splitext(os.path.relpath(os.fsdecode(entry.path), folder))[0] for entry in entries]
    prefixes = [""]
    for _ in range(_ABOVE):
        folder, name = os.path.split(folder)
        prefixes.append(os.path.join(name, prefixes[-1]))
    prefix = max(prefixes, key=lambda one: sum(one + stem in known for stem in below))
    return [prefix + stem for stem in below]


def _pictures_in(root: str) -> dict[str, str]:
    paths = (os.fsdecode(os.path.relpath(path, os.fsencode(root))) for path in pictures_below(os.fsencode(root)))
    return {os.path.splitext(path)[0]: path for path in paths}


def _read(entry: SourceEntry, wanted: AnnotationOptions, keypoints: int) -> tuple[list[dict[str, Any]], int] | str:
    """Return the objects of a file, and how many had keypoints; or what is wrong with it."""
    if (why := too_large(entry)) is not None:
        return why
    with open_listed(entry, open_file) as file:
        text = file.read().decode("utf-8-sig", "replace")
    objects, poses = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        words = line.split()
        posed = keypoints > 0 and len(words) == _BOX + keypoints
        one = _object(words[:_BOX] if posed else words, wanted)
        if one is None:
            shown = printable(line[:80])
            return f'line {number}, "{shown}", is not a class and a box (or a polygon) as parts of the picture; fix it'
        objects.append(one)
        poses += posed
    return objects, poses


def _object(words: Sequence[str], wanted: AnnotationOptions) -> dict[str, Any] | None:
    try:
        category, numbers = int(_ZEROS.sub("", words[0])), [float(word) for word in words[1:]]
    except ValueError:
        return None
    if not 0 <= category < 1 << 31 or not all(map(math.isfinite, numbers)):
        return None
    polygon = None
    if len(words) != _BOX:
        if len(numbers) < 2 * _CORNERS or len(numbers) % 2:
            return None
        polygon = json.dumps([numbers]) if wanted.masks else UNREAD
        low, high = (min(numbers[::2]), min(numbers[1::2])), (max(numbers[::2]), max(numbers[1::2]))
        numbers = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        numbers += [b - a for a, b in zip(low, high, strict=True)]
    names = wanted.names or ()
    label = names[category] if category < len(names) else None
    number = category + wanted.label_offset
    return {"center_box": numbers, "category": number, "label": label, "segmentation": polygon}
