"""Read the files beside YOLO's labels: the names of classes, and the lists of pictures of each split.

    labels/7.txt            data.yaml    names: {0: cat, 1: dog}
    obj_train_data/7.txt    obj.data     names = data/obj.names    train = data/train.txt

Labels are where `images` in a path is `labels`. YAML files of the same names may be called otherwise. Names of classes
are there, or in `classes.txt` or `obj.names`, above labels or in each folder of them; files that differ stop a run.
Source: ultralytics, "object detection datasets".
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Final

import yaml

from ...errors import SourceError
from ...format.wording.hints import Foreign
from ...format.wording.printable import first_names, printable, printable_path
from ...inputs.contract.selection import shown_path, typed_path
from ...inputs.files.listing import beginning_of, is_there, list_file
from ...inputs.files.open_file import open_file, open_listed, read_at

HEAD_BYTES: Final = 8 << 10
YOLO_LINES: Final = re.compile(rb"(?:[0-9]+(?:\.0+)?(?:[ \t]+[01]?\.?[0-9eE.+-]+){4,}[ \t]*(?:\r?\n|\Z))+")
_MOST_BYTES: Final = 64 << 20
NAMES: Final = ("classes.txt", "obj.names", "labels.txt")
OTHERS: Final = re.compile(
    r"(?:(?:predefined_)?classes|labels|notes.*|read[-_ ]?me.*|licen[cs]e.*)\.txt", re.IGNORECASE
)
"""Texts in folders of labels that are of no picture."""

_OF_DARKNET: Final = "obj.data"
CONFIGS: Final = ("data.yaml", "dataset.yaml", "data.yml")
CONFIG_BYTES: Final = 4 << 20
"""A `data.yaml` of 20,000 classes has 600 KB."""

MOST_NODES: Final = 200_000

_CLASS_DIGITS: Final = 5
"""The number of a class has so many digits: a name is kept for each number up to the greatest."""

_MOST_ENTRIES: Final = 1 << 12
"""A folder with more files and folders is one of pictures or labels."""

_LEVELS: Final = 4
"""The folder of labels, and so many above it less one, may have a `data.yaml`: `sets/a/labels`."""

_NEAR: Final = 2
_MOST_INNER: Final = 64
_SHOWN: Final = 4


def pictures_in_list(path: str) -> Iterator[str]:
    """Yield the paths of the pictures that a file lists; nothing where there is no such file."""
    folder = os.path.dirname(path)
    yield from (path_in(line.strip(), folder, path) for line in lines_in(path) if line.strip())


def lines_in(path: str) -> list[str]:
    if "://" in path:
        return beginning_of(path, _MOST_BYTES).decode("utf-8-sig", "replace").splitlines()
    if not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        return file.read(_MOST_BYTES).splitlines()


def labels_of(pictures: str) -> str:
    """Return where Ultralytics looks for the labels of a picture, or of a folder of pictures.

    >>> labels_of("/pets/images/train/7.jpg"), labels_of("/pets/7.jpg"), labels_of("/images/pets/images")
    ('/pets/labels/train/7.jpg', '/pets/7.jpg', '/images/pets/labels')
    """
    above, found, below = f"{pictures}/".rpartition("/images/")
    return f"{above}/labels/{below}".rstrip("/") if found else pictures


@dataclass(frozen=True, slots=True)
class Beside:
    """What files beside labels say: the names of classes by number, and how many numbers keypoints have.

    `splits` are where the pictures of each are, by the file `config`: absolute folders, and files that list pictures.
    `named_in` is the file that has the names.
    """

    names: tuple[str, ...] = ()
    keypoints: int = 0
    splits: Mapping[str, Sequence[str]] = field(default_factory=dict, compare=False)
    config: str = field(default="", compare=False)
    named_in: str = field(default="", compare=False)


def beside_labels(labels: str, levels: int = _LEVELS, inner: Iterable[str] = ()) -> Beside:
    """Return what files in a folder of labels, above it, or in `inner` folders of it say; nothing where there are none.

    Raises `SourceError` where two name other classes: one may name the first of another's.
    """
    folder, given = labels, [one for path in islice(inner, _MOST_INNER) if (one := _names_file(path)) is not None]
    found = Beside()
    for _ in range(min(levels, labels.count("/") - 1) if "://" in labels else levels):
        found = _config_of(folder, labels, alone=not given)
        if (one := _names_file(folder)) is not None and (folder == labels or not given):
            given.append(one)
        if found.config:
            break
        folder = os.path.dirname(folder)
    return _with_names(found, given)


def _config_of(folder: str, labels: str, *, alone: bool) -> Beside:
    """Return what a config of a folder says; where names of classes are known, one of these labels."""
    for name in CONFIGS:
        if is_there(path := os.path.join(folder, name)):
            found = _config_in(path)
            return found if alone or not any(found.splits.values()) or _is_of(found, labels) else Beside()
    return _other_config(folder, labels, alone=alone) or Beside()


def _names_file(folder: str) -> Beside | None:
    """Return the names in a `classes.txt` of a folder, and the splits of an `obj.data` beside it."""
    path = next((path for name in NAMES if is_there(path := os.path.join(folder, name))), None)
    if path is None or _has_boxes(path):
        return None
    lines = _text_of(path).rstrip().split("\n")  # not splitlines: U+2028 may be in a name
    names = tuple(line.strip() for line in lines) if lines != [""] else ()
    splits = _splits_of_darknet(folder) if "://" not in folder else {}
    return Beside(names, splits=splits, config=_OF_DARKNET if splits else "", named_in=path)


def _with_names(config: Beside, given: Sequence[Beside]) -> Beside:
    """Return what a config and lists of names say together."""
    every = [one for one in (config, *given) if one.names]
    best = max(every, key=lambda one: len(one.names), default=config)
    for one in every:
        if best.names[: len(one.names)] != one.names:
            kept, other = (one, best) if one is every[0] else (best, one)
            (path, names), (gone, others) = ((it.named_in, first_names(it.names, _SHOWN)) for it in (kept, other))
            unused = Foreign("mv", typed_path(gone), f"{typed_path(gone)}.unused")
            raise SourceError(
                shown_path(gone),
                f"names other classes ({others}) than {shown_path(path)} ({names}); make them the same, or take those "
                f"of {shown_path(path)}: {unused}",
            )
    splits = next((one for one in (config, *given) if one.splits), config)
    return replace(config, names=best.names, named_in=best.named_in, splits=splits.splits, config=splits.config)


def _other_config(folder: str, labels: str, *, alone: bool) -> Beside | None:
    """Return what YAML files of a folder say that name the same classes, of pictures of these labels, or of none."""
    if "://" in folder:
        return None
    with os.scandir(folder) as entries:
        names = sorted(one.name for one in islice(entries, _MOST_ENTRIES + 1))
    found, near = list[Beside](), alone and labels.count("/") - folder.count("/") <= _NEAR
    for name in names if len(names) <= _MOST_ENTRIES else ():
        with suppress(SourceError, OSError):  # a file of another program
            one = _config_in(os.path.join(folder, name)) if name.endswith((".yaml", ".yml")) else Beside()
            found += [one] if one.names and (_is_of(one, labels) if any(one.splits.values()) else near) else []
    if len({one.names for one in found}) != 1:
        return None
    return found[0] if len(found) == 1 else replace(found[0], splits={})


def _is_of(config: Beside, labels: str) -> bool:
    """Return whether a config names pictures of some labels."""
    places = [place for places in config.splits.values() for place in places]
    pictures = [next(pictures_in_list(place), place) if place.endswith(".txt") else place for place in places]
    folders = [f"{labels_of(one)}/" for one in pictures]
    return any(one.startswith(f"{labels}/") or f"{labels}/".startswith(one) for one in folders)


def is_label(path: str) -> bool:
    """Return whether a text beside labels is one: it has none of the names of others, or it holds boxes."""
    return not OTHERS.fullmatch(os.path.basename(path)) or _has_boxes(path)


def _has_boxes(path: str) -> bool:
    return YOLO_LINES.match(beginning_of(path, HEAD_BYTES)) is not None


def _splits_of_darknet(folder: str) -> dict[str, list[str]]:
    """Return the lists of pictures that the `obj.data` of a folder names, by their splits."""
    path = os.path.join(folder, _OF_DARKNET)
    values = (line.partition("=") for line in lines_in(path))
    given = {key.strip().lower(): value.strip() for key, _, value in values}
    return {key: [path_in(given[key], folder, path)] for key in ("train", "valid", "val", "test") if given.get(key)}


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
    keypoints = math.prod(_numbers_in(values.get("kpt_shape")) or [0])
    above = os.path.join(os.path.dirname(path), *_texts_in(values.get("path"))[:1])
    splits = {
        split: [path_in(one, above, path) for one in _texts_in(values.get(split))] for split in ("train", "val", "test")
    }
    return Beside(_names_in(values.get("names"), path), keypoints, splits, os.path.basename(path), path)


def _texts_in(node: yaml.Node | None) -> list[str]:
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    return [one.value for one in nodes if isinstance(one, yaml.ScalarNode) and one.value.strip("~") not in ("", "null")]


def path_in(path: str, above: str, file: str) -> str:
    """Return where a path is that `file` has: below the first of some folders in which it is there.

    Roboflow writes `../train/images` for `train/images`, and CVAT `data/images/1.jpg` for `images/1.jpg`.
    """
    if "://" in file:
        scheme, _, rest = os.path.join(above, path).partition("://")
        return f"{scheme}://{os.path.normpath(rest)}"
    folder = os.path.dirname(file)
    places = [os.path.join(one, path) for one in (above, folder)]
    places += [os.path.join(folder, path.partition("/")[2])]
    there = chain(filter(os.path.exists, places), (one for one in places if os.path.isdir(os.path.dirname(one))))
    return os.path.normpath(next(there, places[0]))


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
    with open_listed(list_file(os.fsencode(path), b"/"), open_file) as file:
        data = read_at(file)(CONFIG_BYTES + 1, 0)
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
