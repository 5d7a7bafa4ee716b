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
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import yaml

from ...errors import SourceError
from ...format.wording.nearest import first_names
from ...format.wording.printable import printable, printable_path
from ..contract.source import ParallelMap, SourceEntry
from ..files.open_file import open_file, open_listed
from ..files.skipped_names import pictures_below
from .rows import Annotated, AnnotationOptions, Picture, PictureFolder, annotated, too_large

NAMES: Final = ("classes.txt", "obj.names")
CONFIGS: Final = ("data.yaml", "dataset.yaml", "data.yml")
CONFIG_BYTES: Final = 4 << 20
"""A `data.yaml` of 20,000 classes has 600 KB."""

MOST_NODES: Final = 200_000

_CLASS_DIGITS: Final = 5
"""The number of a class has so many digits: a name is kept for each number up to the greatest."""

_ABOVE: Final = 2
"""Folders above all labels that may be part of the names of pictures: `train`, `part/train`."""

_BOX: Final = 5
_CORNERS: Final = 3


def read_yolo(entries: Sequence[SourceEntry], options: AnnotationOptions, run: ParallelMap) -> Annotated:
    """Return what the files say; one that is none of YOLO's, or whose picture is not there, has an error.

    Raises `SourceError` where the parts have other names of classes.
    """
    by_folder = defaultdict[PictureFolder, list[int]](list)
    for number, entry in enumerate(entries):
        by_folder[options.folder_of(entry)].append(number)
    besides = [beside_labels(_folder_of([entries[n] for n in numbers])) for numbers in by_folder.values()]
    beside = next(iter(besides), Beside())
    names = options.names if options.names is not None else beside.names
    other = next((one.names for one in besides if one.names != names), names) if options.names is None else names
    if other != names:
        first, second = (first_names(one, 4) or "none" for one in (names, other))
        raise SourceError(
            entries[0].name, f"files of labels have other classes in one folder ({first}) than in another ({second})"
        )
    pictures, errors, poses = list[Picture](), dict[int, str](), 0
    found = run(partial(_read, wanted=replace(options, names=names), keypoints=beside.keypoints), entries)
    for folder, numbers in by_folder.items():
        known = _pictures_in(folder.path)
        stems = _stems([entries[number] for number in numbers], known)
        for number, stem in zip(numbers, stems, strict=True):
            entry, one = entries[number], found[number]
            if stem not in known and os.fsdecode(os.path.basename(entry.path)) in NAMES:
                continue
            if isinstance(one, str):
                errors[number] = one
            elif stem not in known:
                errors[number] = f"there is no picture {printable(stem)} in the folder of pictures; restore it"
            else:
                objects, more = one
                poses += more
                pictures.append(Picture(number, folder.named(known[stem]), folder.named(stem), objects=objects))
    warnings = [f"objects with keypoints (kpt_shape), which are not read: {poses:,}"] if poses else []
    classes = dict(enumerate(names, options.label_offset))
    return annotated(pictures, len(entries), classes, errors=errors, warnings=warnings)


def _folder_of(entries: Sequence[SourceEntry]) -> str:
    return os.fsdecode(os.path.commonpath([os.path.dirname(entry.path) for entry in entries]))


@dataclass(frozen=True, slots=True)
class Beside:
    """What the files beside labels say: the names of classes by number, and how many numbers keypoints have."""

    names: tuple[str, ...] = ()
    keypoints: int = 0


def beside_labels(labels: str) -> Beside:
    """Return what files in a folder of labels, or above it, say; nothing where there is no such."""
    folder = labels
    for _ in range(3):
        for name in CONFIGS:
            if os.path.isfile(path := os.path.join(folder, name)):
                return _config_in(path)
        for name in NAMES:
            if os.path.isfile(path := os.path.join(folder, name)):
                lines = _text_of(path).rstrip().split("\n")  # not splitlines: U+2028 may be in a name
                return Beside(tuple(line.strip() for line in lines) if lines != [""] else ())
        folder = os.path.dirname(folder)
    return Beside()


class _Config(yaml.SafeLoader):
    """Composes the nodes of a `data.yaml`, without aliases: they make a short file mean billions of values."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.nodes += 1
        if self.nodes > MOST_NODES or self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has aliases, or far too many values")
        return super().compose_node(parent, index)


def _config_in(path: str) -> Beside:
    """Read names of classes as they are written, so that `no` is "no"."""
    text = _text_of(path)
    try:
        root = yaml.compose(text, Loader=_Config)
    except (yaml.YAMLError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise SourceError(printable_path(path), f"its names of classes cannot be read: {why}; fix it") from error
    values = dict(_members(root, path)) if isinstance(root, yaml.MappingNode) else {}
    return Beside(_names_in(values.get("names"), path), math.prod(_numbers_in(values.get("kpt_shape")) or [0]))


def _names_in(node: yaml.Node | None, path: str) -> tuple[str, ...]:
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
        return ()
    if not isinstance(node, yaml.SequenceNode | yaml.MappingNode):
        raise SourceError(
            printable_path(path), f'names: "{printable(str(node.value)[:80])}" is no list of names; fix it'
        )
    given = _members(node, path) if isinstance(node, yaml.MappingNode) else enumerate(node.value)
    names = {str(key): one.value for key, one in given if isinstance(one, yaml.ScalarNode)}
    if len(names) < len(node.value):
        raise SourceError(printable_path(path), "names: a name is a list or a mapping; put it in quotes")
    odd = next((one for one in names if not (one.isdecimal() and len(one) <= _CLASS_DIGITS)), None)
    if odd is not None:
        what = f'"{printable(odd[:80])}" is not the number of a class, 0 to {10**_CLASS_DIGITS - 1:,}'
        raise SourceError(printable_path(path), f"names: {what}; fix it")
    by_number = {int(number): name for number, name in names.items()}
    return tuple(by_number.get(number, str(number)) for number in range(max(by_number, default=-1) + 1))


def _members(node: yaml.MappingNode, path: str) -> list[tuple[str, yaml.Node]]:
    """Raise `SourceError` where a key appears twice: which one is meant is unknown."""
    members = [(str(key.value), value) for key, value in node.value]
    twice = next((key for key, count in Counter(key for key, _ in members).items() if count > 1), None)
    if twice is not None:
        raise SourceError(printable_path(path), f'"{printable(twice[:80])}" appears twice; leave one out')
    return members


def _text_of(path: str) -> str:
    """Return the text of a file of names. Raises `SourceError` where it is too large, or not UTF-8."""
    with open(path, "rb") as file:
        data = file.read(CONFIG_BYTES + 1)
    if len(data) > CONFIG_BYTES:
        why = f"it is over {CONFIG_BYTES >> 20} MiB"
    else:
        try:
            return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError as error:
            why = f"byte {error.start} is not UTF-8; save it as UTF-8"
    raise SourceError(printable_path(path), f"its names of classes cannot be read: {why}")


def _numbers_in(node: yaml.Node | None) -> list[int]:
    values = [one.value for one in node.value] if isinstance(node, yaml.SequenceNode) else []
    shape = [int(one) for one in values if isinstance(one, str) and one.isdecimal() and len(one) <= _CLASS_DIGITS]
    return shape if len(shape) == len(values) == 2 else []


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
        category, numbers = int(words[0].removesuffix(".0")), [float(word) for word in words[1:]]
    except ValueError:
        return None
    if not 0 <= category < 1 << 31 or not all(map(math.isfinite, numbers)):
        return None
    polygon = None
    if len(words) != _BOX:
        if len(numbers) < 2 * _CORNERS or len(numbers) % 2:
            return None
        polygon = json.dumps([numbers]) if wanted.masks else None
        low, high = (min(numbers[::2]), min(numbers[1::2])), (max(numbers[::2]), max(numbers[1::2]))
        numbers = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        numbers += [b - a for a, b in zip(low, high, strict=True)]
    names = wanted.names or ()
    label = names[category] if category < len(names) else None
    number = category + wanted.label_offset
    return {"center_box": numbers, "category": number, "label": label, "segmentation": polygon}
