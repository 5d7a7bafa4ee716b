"""Lists of pictures: of each split, as Pascal VOC and Ultralytics have them, and of classes; what a `data.yaml` says.

    Annotations/2007_000032.xml    ImageSets/Main/train.txt    2007_000032
    JPEGImages/2007_000032.jpg     ImageSets/Main/val.txt      2007_000027

    labels/7.txt    data.yaml     train: train.txt             names: {0: cat, 1: dog}
    images/7.jpg    train.txt     ./images/7.jpg

    obj_train_data/7.txt    obj.data     train = data/train.txt
    obj_train_data/7.jpg    train.txt    data/obj_train_data/7.jpg

`trainval.txt` is left out where it is both; other lists beside those are splits of their names, and `cat_train.txt`
says which pictures have a cat. In a `data.yaml` a split is a folder, a list of folders, or a file that lists pictures;
labels are where `images` in a path is `labels`. YAML files of the same names may be called otherwise. Names of classes
are there, or in `classes.txt` or `obj.names`, above labels or in each folder of them; files that differ stop a run.
Other lists beside pictures are named, with the command that reads their lines if each has a class or a text: `1.jpg
cat`. Sources: the development kit of VOC2012, section 8; ultralytics, "object detection datasets".
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Final

import yaml

from ..errors import InputError, SourceError
from ..format.wording.hints import Add, Foreign, Set, read_csv, set_column
from ..format.wording.nearest import first_names
from ..format.wording.printable import printable, printable_path
from ..sources.contract.call import shown_path, typed_path
from ..sources.files.formats import FORMATS, suffixes_of
from ..sources.files.listing import beginning_of, is_there, list_file
from ..sources.files.open_file import open_file, open_listed, read_at
from ..sources.files.skipped_names import SPLITS, pictures_below
from .beside import (
    AS_LABELS,
    BY_SPLIT,
    HEAD_BYTES,
    MOST,
    TAB,
    YOLO_LINES,
    Around,
    as_metadata,
    lines_of,
    rows_in,
    said_by_lists,
    written_as,
)
from .names import as_split, in_splits, kind_of, split_in_words, split_of_folder

_BOTH: Final = "trainval"
_OF_A_CLASS: Final = re.compile(rf".+_(?:{'|'.join(SPLITS)}|{_BOTH})", re.IGNORECASE)
"""The pictures of a split, and whether they show a class: `cat_train.txt`."""

_MOST_LISTS: Final = 16
IMAGE_SETS: Final = "ImageSets/Main"
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
PICTURES: Final = ("images", "JPEGImages")
"""Folders of pictures beside annotations."""

_TOP: Final = re.compile(r"(.*/(?:images|obj_[A-Za-z]+_data))/")
"""The folder of all pictures, in the path of one: Ultralytics' or CVAT's."""

_MOST_LISTED: Final = 1000
"""So many pictures of a list show which folders it names."""


def splits_by_lists(root: str, files: Sequence[str]) -> tuple[list[str], str] | None:
    """Return the split of each file of annotations below a folder, and what lists them; None without lists.

    A file that no list names has the split "".

    Raises:
        InputError: two lists have one name.
    """
    stems = [_stem_below(root, one) for one in files]
    listed = _lists_of_voc(root, {*stems, *map(os.path.basename, stems)})
    below, named = _split_of_each(listed, stems), _split_of_each(listed, list(map(os.path.basename, stems)))
    if any(named) or any(below):
        sets = _image_sets(os.path.join(os.path.dirname(root), "ImageSets", "Main"))
        said = "; ".join(filter(None, (one for *_, one in sets)))
        where = (
            f"{IMAGE_SETS}{said and f' ({said})'}"
            if sets
            else first_names([os.path.basename(path) for _, path, _ in listed], MOST)
        )
        return [one or other for one, other in zip(below, named, strict=True)], where
    splits, where = _splits_of_labels(root)
    found = _by_config(splits, root, files)
    return (found, where) if any(found) else None


@dataclass(frozen=True, slots=True)
class Without:
    """The `pictures` that a list or folder names and a set has no file of annotations for; it names `count` in all."""

    split: str
    path: str
    pictures: Sequence[str]
    count: int


def pictures_without_files(root: str, files: Sequence[str]) -> list[Without]:
    """Return the pictures that a set of annotations below a folder names and has no file for, by list or folder.

    Those that are there have no objects: Ultralytics says so, and Datumaro writes such sets.
    """
    stems = [_stem_below(root, one) for one in files]
    known = {*stems, *map(os.path.basename, stems)}
    found = list[Without]()
    for split, path, names in _lists_of_voc(root, known):
        pictures = [_picture_named(os.path.dirname(root), name) for name in names if name not in known]
        found.append(Without(split, path, pictures, len(names)))
    splits, _ = _splits_of_labels(root)
    labelled = {os.path.splitext(one)[0] for one in files}
    for split, place in ((split, place) for split, places in splits.items() for place in places):
        is_list = place.endswith(".txt")
        listed = [*(pictures_in_list(place) if is_list else map(os.fsdecode, pictures_below(os.fsencode(place))))]
        without = [one for one in listed if os.path.splitext(labels_of(one))[0] not in labelled]
        found.append(Without(split, place, without, len(listed)))
    return found


def _splits_of_labels(root: str) -> tuple[Mapping[str, Sequence[str]], str]:
    """Return where the pictures of each split of labels are, and what says so: a config, or lists beside them."""
    try:
        beside = beside_labels(root)
    except SourceError:
        return {}, ""  # the reader of labels says what is wrong
    if beside.splits and any(beside.splits.values()):
        if "://" in root:
            raise InputError(
                f"{beside.config} beside {root} states splits, which are read on a disk alone; copy the folder to a "
                f"disk, and give its path; or read all files as one split: {Set('input.splits', 'none')}"
            )
        return beside.splits, beside.config
    lists = _lists_beside(root)
    return {split: [path] for split, path in lists}, first_names([os.path.basename(path) for _, path in lists], MOST)


def _lists_of_voc(root: str, known: Container[str]) -> list[tuple[str, str, list[str]]]:
    """Return the lists beside a folder of annotations: the split of each, its path, and the names in it.

    Lists outside of `ImageSets/Main` may be of another kind: what they name beside its files is left out, unless it is
    missing from a list of pictures that are there.
    """
    if lists := _of_voc(root):
        return [(split, path, _names_in_list(path, known)) for split, path in lists]
    above = os.path.dirname(root)
    return [
        (split, path, _known_or_missing(_names_in_list(path, known), above, known))
        for split, path in _lists_beside(root)
    ]


def _known_or_missing(names: Sequence[str], above: str, known: Container[str]) -> list[str]:
    """Return the names of files, and where most others are pictures that are there, those that are not."""
    missing = [one for one in names if one not in known and not os.path.isfile(_picture_named(above, one))]
    lost = {*missing} if 2 * len(missing) < len(names) else set()
    return [one for one in names if one in known or one in lost]


def _of_voc(root: str) -> list[tuple[str, str]]:
    found = _image_sets(os.path.join(os.path.dirname(root), "ImageSets", "Main"))
    return [(split, path) for split, path, said in found if split or not said]


def _image_sets(folder: str) -> list[tuple[str, str, str]]:
    """Return the lists in a folder of Pascal VOC's: the split of each, its path, and what to say of it.

    Where one has the name of a split, all are of splits. The split is "" where none has: CVAT's default.txt.
    """
    texts = {os.path.splitext(name)[0]: os.path.join(folder, name) for name in _texts_of(folder)}
    lists = {stem: path for stem, path in texts.items() if not _OF_A_CLASS.fullmatch(stem)}
    lists = {stem: path for stem, path in lists.items() if not any(stem.endswith(f"_{other}") for other in lists)}
    if not any(split_of_folder(stem) or stem.lower() == _BOTH for stem in lists):
        return [("", path, "") for path in texts.values()]
    found = list[tuple[str, str, str]]()
    for stem, path in lists.items():
        parts = [other for one, other in lists.items() if kind_of(split_of_folder(one) or "") in ("train", "val")]
        is_union = (
            stem.lower() == _BOTH and parts and {*lines_in(path)} <= {line for part in parts for line in lines_in(part)}
        )
        said = f"{stem}.txt, which is others together, is left out" if is_union else ""
        split = split_of_folder(stem) or as_split(stem)
        said = f'"{printable(stem)}" is {split}' if split != stem.lower() and not split_of_folder(stem) else said
        found.append(("" if is_union else split, path, said))
    return found


_USUAL: Final = ("default.txt", "test.txt", "train.txt", "trainval.txt", "val.txt", "valid.txt")


def _texts_of(folder: str) -> list[str]:
    """Return the names of texts in a folder; a store is asked for the usual ones of lists alone."""
    if "://" in folder:
        return [name for name in _USUAL if is_there(os.path.join(folder, name))]
    return sorted(name for name in os.listdir(folder) if name.endswith(".txt")) if os.path.isdir(folder) else []


def _lists_beside(root: str) -> list[tuple[str, str]]:
    """Return the lists of splits in a folder of annotations, or the one above, that are two at least.

    One has the name of a split, `train.txt`; another may have any, where what it lists is there: `hold_out.txt`.
    """
    is_bucket = "://" in root and root.count("/") == len("//")
    for folder in (root,) if is_bucket else (root, os.path.dirname(root)):
        texts = [(os.path.splitext(name)[0], os.path.join(folder, name)) for name in _texts_of(folder)]
        named = [(split, path) for stem, path in texts if (split := split_of_folder(stem))]
        if {split for split, _ in named} == {"test"}:
            named += [(_BOTH, path) for stem, path in texts if stem.lower() == _BOTH]
        others = [
            (as_split(stem), path)
            for stem, path in (texts if named and len(texts) <= _MOST_LISTS else ())
            if not (
                split_of_folder(stem) or stem.lower() == _BOTH or _OF_A_CLASS.fullmatch(stem) or OTHERS.fullmatch(path)
            )
            and _lists_pictures(path, root)
        ]
        if len({split for split, _ in (*named, *others)}) > 1:
            return [*named, *others]
    return []


def _lists_pictures(path: str, root: str) -> bool:
    """Return whether the first lines of a text name pictures that are there."""
    names = [line.strip() for line in lines_in(path)[:_LIST_LINES] if line.strip()]
    folder, above = os.path.dirname(path), os.path.dirname(root)
    return bool(names) and all(
        os.path.isfile(_place(name, folder, path)) or os.path.isfile(_picture_named(above, name)) for name in names
    )


def _stem_below(root: str, file: str) -> str:
    return os.path.splitext(file)[0].removeprefix(f"{root}/")


def _picture_named(above: str, name: str) -> str:
    """Return the picture beside annotations that has a name without its suffix, or where it should be."""
    folders = [path for folder in PICTURES if os.path.isdir(path := os.path.join(above, folder))]
    names = dict.fromkeys((name, name.split()[0]))
    places = (os.path.join(one, stem + end) for stem in names for one in folders for end in suffixes_of("images"))
    return next(filter(os.path.isfile, places), os.path.join(*folders[:1] or [above], name))


def _by_config(splits: Mapping[str, Sequence[str]], root: str, files: Sequence[str]) -> list[str]:
    """Return the split of each file of labels by what the file above it says: that of its folder, or of a list."""
    places = [(split, place) for split, places in splits.items() for place in places]
    start = f"{root}/"
    listed = [
        (split, place, [os.path.splitext(labels_of(one))[0].removeprefix(start) for one in pictures_in_list(place)])
        for split, place in places
        if place.endswith(".txt")
    ]
    found = _split_of_each(listed, [os.path.splitext(one)[0].removeprefix(start) for one in files])
    splits_of = defaultdict[str, set[str]](set)
    for split, place in places:
        splits_of[place].add(split)
    # the innermost first; a folder of two splits says nothing
    folders = sorted((f"{labels_of(place)}/", split) for split, place in places if len(splits_of[place]) == 1)[::-1]
    for number, file in enumerate(files):
        found[number] = found[number] or next((split for start, split in folders if file.startswith(start)), "")
    return found


def _split_of_each(listed: Sequence[tuple[str, str, Sequence[str]]], wanted: Sequence[str]) -> list[str]:
    split_of = dict[str, str]()
    for split, path, names in listed:
        for name in names:
            if split_of.setdefault(name, split) != split:
                other = next(os.path.basename(one) for own, one, its in listed if own == split_of[name] and name in its)
                unused = Foreign("mv", typed_path(path), f"{typed_path(path)}.unused")
                raise InputError(
                    f'{printable_path(path)}: "{printable(name)}" is in {other} too, and a picture is of one split; '
                    f"take it out of one, or take this list away: {unused}; to read all files as one split: "
                    f"{Set('input.splits', 'none')}"
                )
    return [split_of.get(name, "") for name in wanted]


def _names_in_list(path: str, known: Container[str]) -> list[str]:
    """Return the names in a list, which may have blanks in them, or a number behind them."""
    lines = filter(None, (line.strip(' \t"') for line in lines_in(path)))
    return [first if line not in known and (first := line.split()[0]) in known else line for line in lines]


def folders_of_pictures(root: str) -> list[str]:
    """Return the folders of pictures that the `data.yaml` or `obj.data` of a folder names, itself or in lists."""
    try:
        splits = beside_labels(root, 1).splits
    except SourceError:
        return []  # the reader of labels says what is wrong
    found = dict[str, None]()
    for place in (place for places in splits.values() for place in places):
        pictures = islice(pictures_in_list(place), _MOST_LISTED) if place.endswith(".txt") else [f"{place}/"]
        for folder in map(os.path.dirname, pictures):
            top = _TOP.match(f"{folder}/") if place.endswith(".txt") else None
            found.setdefault(top[1] if top else folder)
    return [folder for folder in found if os.path.isdir(folder)]


def pictures_in_list(path: str) -> Iterator[str]:
    """Yield the paths of the pictures that a file lists; nothing where there is no such file."""
    folder = os.path.dirname(path)
    yield from (_place(line.strip(), folder, path) for line in lines_in(path) if line.strip())


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
    return {key: [_place(given[key], folder, path)] for key in ("train", "valid", "val", "test") if given.get(key)}


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
        split: [_place(one, above, path) for one in _texts_in(values.get(split))] for split in ("train", "val", "test")
    }
    return Beside(_names_in(values.get("names"), path), keypoints, splits, os.path.basename(path), path)


def _texts_in(node: yaml.Node | None) -> list[str]:
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    return [one.value for one in nodes if isinstance(one, yaml.ScalarNode) and one.value.strip("~") not in ("", "null")]


def _place(path: str, above: str, file: str) -> str:
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


@dataclass(frozen=True, slots=True)
class _List:
    """How a list of pictures is read: cells between signs, with a header or without; where paths begin and end."""

    sign: str
    header: bool
    comment: bool
    texts: bool
    width: int
    root: str
    suffix: str
    split: str | None
    aligned: bool
    picture: str = field(compare=False)

    @property
    def options(self) -> list[Add]:
        options = [Add("--format", "csv", "--delimiter", self.sign, *([] if self.header else ["--no-header"]))]
        options += [Set("input.trim", True)] if self.aligned else []
        names = ["image", "class", *(f"column_{n}" for n in range(2, self.width))]
        options += [] if self.header else [Set("input.names", names), set_column("image", "image", "path")]
        options += [Set("input.comment", "#")] if self.comment else []
        options += [set_column("class", "label", True)] if self.texts and not self.header else []
        options += [Set("schema.files_root", typed_path(self.root))] if self.root else []
        options += [Set("schema.files_suffix", self.suffix)] if self.suffix else []
        return options + written_as(self.picture)


def lists_of_classes(around: Around) -> Iterator[str]:
    """A list has a picture in each line, and its class or a caption, between blanks, tabs or commas: `1.jpg cat`."""
    notable = _lists_in(around)
    forms = defaultdict[_List, list[str]](list)
    for path in notable[:MOST]:
        if (found := _list_in(path, around)) is not None:
            forms[found].append(typed_path(os.fsdecode(path)))
    together = defaultdict[_List, list[str]](list)
    for form, lists in forms.items():
        together[replace(form, split=None) if form.split else form] += lists
    for form, lists in together.items():
        splits = sorted({one.split or "" for one in forms if replace(one, split=None) == form})
        options = [Set("input.splits", "names")] if len(lists) > 1 and all(splits) else []
        options += [Set("output.split", splits[0])] if len(lists) == 1 and splits[0] not in ("", "train") else []
        column = rows_in(os.fsencode(lists[0]))[0][0] if form.header else ""
        options += [set_column(column, "image", "path")] if form.header else []
        if not all(splits) and any(in_splits(row[0] for row in rows_in(os.fsencode(one)) if row) for one in lists):
            yield _with_folders(form, lists, around)
            continue
        file, names = ("", list[str]()) if form.header or form.texts else _names_of_numbers(lists, form.sign, around)
        options += [set_column("class", "label", names)] if names else []
        unread = f" ({shown_path(file)} with the names of classes is not read either)" if file and not names else ""
        read = around.call.plain(lists, *form.options, *options)
        lines, are = ("lists", "is") if len(lists) == 1 else ("list", "are")
        what = f"{first_names(lists, MOST)} {lines} pictures with a class or a text each, and {are} not read{unread}"
        yield f"{what}; to read the lines: {read}"


def _with_folders(form: _List, lists: Sequence[str], around: Around) -> str:
    """Say how lists are read whose paths of pictures begin in folders of splits, which their lines have not."""
    names = ["file_name", "class", *(f"column_{n}" for n in range(2, form.width))]
    sign = {"tab": "\t", " ": r"\s+" if form.aligned else " "}.get(form.sign, form.sign)
    more = {"comment": "#"} if form.comment else {}
    frames = [read_csv(repr(one), sign, header=None, names=names, skiprows=int(form.header), **more) for one in lists]
    frame = frames[0] if len(frames) == 1 else f"pandas.concat([{', '.join(frames)}])"
    frame += f".assign(file_name=lambda rows: rows['file_name'] + {form.suffix!r})" if form.suffix else ""
    options = [set_column("class", "label", True)] if form.texts else []
    folder = form.root or os.path.dirname(lists[0])
    how = as_metadata(around.call, folder, frame, [*options, *written_as(form.picture)])
    lines, are = ("lists", "is") if len(lists) == 1 else ("list", "are")
    what = f"{first_names(lists, MOST)} {lines} pictures in folders of splits, with a class or a text each"
    return f"{what}, and {are} not read; {how}"


def _lists_in(around: Around) -> list[bytes]:
    if around.form != "images" or "://" in around.root:
        return []
    notable = [one for one in around.notable if one.lower().endswith(_ENDINGS) and not _is_of_voc(one)]
    return notable + _texts_with_names(around)


_ENDINGS: Final = (b".txt", b".lst")


def _is_of_voc(path: bytes) -> bool:
    """Return whether a list says which pictures of Pascal VOC's are in a split, or show a class: `cat_train.txt`."""
    return os.path.basename(os.path.dirname(os.path.dirname(path))) == b"ImageSets"


def _names_of_numbers(lists: Sequence[str], sign: str, around: Around) -> tuple[str, list[str]]:
    """Return the `classes.txt` beside lists, and the names in it; no names where lists have other numbers than 0 to n.

    A list in which no class is 0 may count from 1.
    """
    cut = {"tab": "\t"}.get(sign, sign)
    rows = [
        row for one in lists for row in csv.reader(lines_of(os.fsencode(one)), delimiter=cut, skipinitialspace=True)
    ]
    numbers = [int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()]
    files = [os.path.join(folder, "classes.txt") for folder in (os.path.dirname(lists[0]), around.root)]
    file = next(filter(os.path.isfile, files), "")
    names = [name for line in lines_of(os.fsencode(file)) if (name := line.strip())]
    fits = min(numbers) == 0 and max(numbers) < len(names) <= _LIST_LINES and len({*names}) == len(names)
    return file, names if fits else []


def _list_in(path: bytes, around: Around) -> _List | None:
    """Return how a list is read, None if its first cell, or that below it, is no picture that is there.

    The numbers in a list of partitions are those of splits: `list_eval_partition.txt`.
    """
    if b"partition" in os.path.basename(path).lower():
        return None
    lines = [line.rstrip() for line in lines_of(path) if line.strip()]
    data = [line for line in lines if not line.startswith("#")][:_LIST_LINES]
    for sign in ("\t", ",", ";", " "):
        rows = [*csv.reader(data, delimiter=sign, skipinitialspace=sign == " ")]
        widths = set(map(len, rows))
        if len(widths) != 1 or widths == {1}:
            continue
        for header in (False, True):
            place = _place_of(rows[header][0], path, around) if len(rows) > header else None
            if place is not None:
                folder, suffix = place
                root = "" if folder == os.path.dirname(os.fsdecode(path)) else folder
                texts = not all(row[1].isdecimal() for row in rows[header:])
                split = split_in_words(os.path.basename(os.fsdecode(path)))
                comment = any(line[0] == "#" for line in lines)
                aligned = sign == " " and any("  " in line for line in data)
                typed = {"\t": "tab"}.get(sign, sign)
                picture = rows[header][0] + suffix
                return _List(typed, header, comment, texts, len(rows[0]), root, suffix, split, aligned, picture)
    return None


_LIST_LINES: Final = 100


def _place_of(name: str, path: bytes, around: Around) -> tuple[str, str] | None:
    """Return the only folder in which a picture of a list is, and the suffix that its name lacks there."""
    above = (os.path.dirname(os.fsdecode(path)), around.root)
    for suffix in ("", *FORMATS["images"].suffixes) if name and "\0" not in name else ():
        folders = (*above, *around.below, *(around.above if "/" in name else ()))
        there = [one for one in folders if os.path.isfile(os.path.join(one, name + suffix))]
        if there and (there[0] in above or len(set(there)) == 1):
            return there[0], suffix
    return None


def _texts_with_names(around: Around) -> list[bytes]:
    """Return the texts, whatever they are called, of which one of the first lines begins with the name of a picture."""
    return [
        path
        for path in sorted(around.texts)
        if path.lower().endswith(_ENDINGS)
        and any(
            ("/" in name or name.lower().endswith(FORMATS["images"].suffixes))
            and _place_of(name, path, around) is not None
            for name in (re.split(r"[\s,;]", line, maxsplit=1)[0].strip('"') for line in lines_of(path)[:_FIRST_LINES])
        )
    ]


_FIRST_LINES: Final = 3


def other_lists(around: Around) -> Iterator[str]:
    """Texts that name pictures are not read, nor lists of Pascal VOC without its annotations."""
    notable = [one for one in _lists_in(around) if _list_in(one, around) is None]
    others = [
        shown_path(one)
        for one in notable
        if one in around.texts and split_in_words(os.path.basename(os.fsdecode(one))) is None
    ]
    if others:
        its, are = ("its", "is") if len(others) == 1 else ("their", "are")
        what = f"{first_names(others, MOST)} {are} not read, and {its} lines begin with names of pictures"
        yield f"{what}; to read {its} rows, write them to metadata.csv beside the pictures, with a column file_name"
    local = around.form == "images" and "://" not in around.root
    voc = [one for one in around.notable if local and _is_of_voc(one) and one.lower().endswith(_ENDINGS)]
    voc = [one for one in voc if not os.path.isdir(os.path.join(one.rsplit(b"/", 3)[0], b"Annotations"))]
    if voc:
        what, are = ("a list", "is") if len(voc) == 1 else ("lists", "are")
        shown = first_names([*map(shown_path, voc)], MOST)
        yield f"{shown}: {what} of Pascal VOC, without Annotations, {are} not read"


def lists_of_annotations(around: Around) -> Iterator[str]:
    """Lists of splits beside annotations of Pascal VOC or YOLO, none of whose names is one of their files."""
    lists = _lists_beside(around.root) if around.form in ("voc", "yolo") and not any(around.splits) else []
    if lists and "://" not in around.root and splits_by_lists(around.root, around.files) is None:
        names = first_names([shown_path(os.fsencode(path)) for _, path in lists], MOST)
        yield f"{names}: lists of splits that name none of these files, and are not read"


def lists_of_splits(around: Around) -> Iterator[str]:
    """Lists such as train.txt have a picture in each line; those that are not read by a command are named."""
    notable = [one for one in _lists_in(around) if _list_in(one, around) is None] if not around.splits else []
    names = [name for one in notable if split_in_words(name := os.path.basename(os.fsdecode(one))) is not None]
    read = list(_with_their_lists(notable, around))
    yield from read
    if names and not read:
        yield (
            f"{first_names(names, MOST)}: may list the pictures of splits; lists are not read, and all pictures go to "
            f"one split; to have splits, put pictures into folders such as train/ and test/"
        )


def _with_their_lists(notable: Sequence[bytes], around: Around) -> Iterator[str]:
    """Yield how pictures are read with lists of splits, if none has a picture of another."""
    found = defaultdict[tuple[str, str], dict[str, list[str]]](dict)
    for path in dict.fromkeys(notable):
        lines = [line.strip() for line in lines_in(os.fsdecode(path)) if line.strip()]
        split = split_in_words(os.path.basename(os.fsdecode(path)))
        place = _place_of(lines[0], path, around) if lines and split else None
        if place is not None:
            found[place][os.fsdecode(path)] = lines
    for (folder, suffix), lists in found.items():
        names = [name for lines in lists.values() for name in lines]
        splits = {path: split_in_words(os.path.basename(path)) or "" for path in lists}
        if len({*splits.values()}) < 2 or len({*names}) < len(names):
            continue
        each = [
            f"{read_csv(repr(typed_path(path)), TAB, header=None, names=['file_name'])}.assign(split={splits[path]!r})"
            for path in lists
        ]
        more = [f"file_name=lambda rows: rows['file_name'] + {suffix!r}"] if suffix else []
        has_classes = all("/" in name for name in names)
        more += ["**{'class': lambda rows: rows['file_name'].str.rpartition('/')[0]}"] if has_classes else []
        frame = f"pandas.concat([{', '.join(each)}])" + (f".assign({', '.join(more)})" if more else "")
        options = [AS_LABELS, BY_SPLIT] if has_classes else [BY_SPLIT]
        yield said_by_lists([*map(typed_path, lists)], around, folder, frame, options)
