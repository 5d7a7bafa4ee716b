"""Read lists of the pictures of each split, as Pascal VOC, Ultralytics and Darknet have them.

    Annotations/2007_000032.xml    ImageSets/Main/train.txt    2007_000032
    JPEGImages/2007_000032.jpg     ImageSets/Main/val.txt      2007_000027

    labels/7.txt    data.yaml     train: train.txt             names: {0: cat, 1: dog}
    images/7.jpg    train.txt     ./images/7.jpg

`trainval.txt` is left out where it is both; other lists beside those are splits of their names, and `cat_train.txt`
says which pictures have a cat. In a `data.yaml` a split is a folder, a list of folders, or a file that lists pictures.
Sources: the development kit of VOC2012, section 8; ultralytics, "object detection datasets".
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ...errors import InputError, SourceError
from ...format.wording.hints import Foreign, Set
from ...format.wording.printable import first_names, printable, printable_path
from ...inputs.contract.selection import typed_path
from ...inputs.files.file_names import SPLITS, pictures_below, suffixes_of
from ...inputs.files.listing import is_there
from .label_names import OTHERS, beside_labels, labels_of, lines_in, path_in, pictures_in_list
from .names import as_split, kind_of, split_of_folder

BOTH: Final = "trainval"
_OF_A_CLASS: Final = re.compile(rf".+_(?:{'|'.join(SPLITS)}|{BOTH})", re.IGNORECASE)
"""The pictures of a split, and whether they show a class: `cat_train.txt`."""

_MOST_LISTS: Final = 16
_SHOWN: Final = 8
IMAGE_SETS: Final = "ImageSets/Main"
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
            else first_names([os.path.basename(path) for _, path, _ in listed], _SHOWN)
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
    lists = lists_beside(root)
    return {split: [path] for split, path in lists}, first_names([os.path.basename(path) for _, path in lists], _SHOWN)


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
        for split, path in lists_beside(root)
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

    Where one has the name of a split, all are of splits. The split is "" where none has: CVAT's default.txt. Lists of
    classes are one entry, without a split.
    """
    texts = {os.path.splitext(name)[0]: os.path.join(folder, name) for name in _texts_of(folder)}
    lists = {stem: path for stem, path in texts.items() if not _OF_A_CLASS.fullmatch(stem)}
    lists = {stem: path for stem, path in lists.items() if not any(stem.endswith(f"_{other}") for other in lists)}
    if not any(split_of_folder(stem) or stem.lower() == BOTH for stem in lists):
        return [("", path, "") for path in texts.values()]
    found = list[tuple[str, str, str]]()
    for stem, path in lists.items():
        parts = [other for one, other in lists.items() if kind_of(split_of_folder(one) or "") in ("train", "val")]
        is_union = (
            stem.lower() == BOTH and parts and {*lines_in(path)} <= {line for part in parts for line in lines_in(part)}
        )
        said = f"{stem}.txt, which is others together, is left out" if is_union else ""
        split = split_of_folder(stem) or as_split(stem)
        said = f'"{printable(stem)}" is {split}' if split != stem.lower() and not split_of_folder(stem) else said
        found.append(("" if is_union else split, path, said))
    if of_classes := [f"{stem}.txt" for stem in texts if stem not in lists]:
        say, are = ("says", "is") if len(of_classes) == 1 else ("say", "are")
        said = f"{first_names(of_classes, 2)} {say} which pictures show a class, and {are} not read"
        found.append(("", folder, said))
    return found


_USUAL: Final = ("default.txt", "test.txt", "train.txt", "trainval.txt", "val.txt", "valid.txt")


def _texts_of(folder: str) -> list[str]:
    """Return the names of texts in a folder; a store is asked for the usual ones of lists alone."""
    if "://" in folder:
        return [name for name in _USUAL if is_there(os.path.join(folder, name))]
    return sorted(name for name in os.listdir(folder) if name.endswith(".txt")) if os.path.isdir(folder) else []


def lists_beside(root: str) -> list[tuple[str, str]]:
    """Return the lists of splits in a folder of annotations, or the one above, that are two at least.

    One has the name of a split, `train.txt`; another may have any, where what it lists is there: `hold_out.txt`.
    """
    is_bucket = "://" in root and root.count("/") == len("//")
    for folder in (root,) if is_bucket else (root, os.path.dirname(root)):
        texts = [(os.path.splitext(name)[0], os.path.join(folder, name)) for name in _texts_of(folder)]
        named = [(split, path) for stem, path in texts if (split := split_of_folder(stem))]
        if {split for split, _ in named} == {"test"}:
            named += [(BOTH, path) for stem, path in texts if stem.lower() == BOTH]
        others = [
            (as_split(stem), path)
            for stem, path in (texts if named and len(texts) <= _MOST_LISTS else ())
            if not (
                split_of_folder(stem) or stem.lower() == BOTH or _OF_A_CLASS.fullmatch(stem) or OTHERS.fullmatch(path)
            )
            and _lists_pictures(path, root)
        ]
        if len({split for split, _ in (*named, *others)}) > 1:
            return [*named, *others]
    return []


def _lists_pictures(path: str, root: str) -> bool:
    """Return whether the first lines of a text name pictures that are there."""
    names = [line.strip() for line in lines_in(path)[:LIST_LINES] if line.strip()]
    folder, above = os.path.dirname(path), os.path.dirname(root)
    return bool(names) and all(
        os.path.isfile(path_in(name, folder, path)) or os.path.isfile(_picture_named(above, name)) for name in names
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


LIST_LINES: Final = 100
