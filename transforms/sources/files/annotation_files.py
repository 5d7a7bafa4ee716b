"""Files of annotations in folders of images, known by their names: what to type where nobody asked for them.

    train/_annotations.coco.json   train/1.jpg      shardmill convert train ... input.annotations.coco=train/_anno...
    Annotations/1.xml              JPEGImages/1.jpg                             input.annotations.voc=Annotations
    labels/1.txt                   images/1.jpg                                 input.annotations.yolo=labels

Nothing is opened: names that a walk passes over anyway are all that is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ...format.wording.hints import Command, Set
from ..contract.call import shown_path

_KINDS: Final = {"coco": "COCO", "voc": "Pascal VOC", "yolo": "YOLO"}
_LABELS: Final = b"labels"
_NO_LABELS: Final = (b"classes.txt", b"readme.txt", b"license.txt", b"notes.txt")
_PICTURES: Final = (b"images", b"jpegimages")


@dataclass(frozen=True, slots=True)
class AnnotationFile:
    """A file that has the name of annotations, by its absolute path; `beside` are pictures in its own folder."""

    kind: str
    path: bytes
    beside: bool

    def hint(self, folders: Sequence[bytes], split_of: Callable[[str], str | None]) -> str:
        """Return the command that reads the file; `split_of` gives the split whose name a folder has."""
        folder = os.path.dirname(self.path)
        files, pictures = folder, folder if self.beside else _pictures_of(folder, folders)
        if self.kind == "coco":
            files, stem = self.path, os.path.splitext(self.path)[0]
            pictures = next((one for one in folders if stem.endswith(b"_" + os.path.basename(one))), pictures)
        elif self.kind == "yolo":
            files, pictures = _labels_of(folder), _pictures_of(_labels_of(folder), folders)
        shown = "PICTURES" if pictures is None else shown_path(pictures)
        split = "train" if pictures is None else _split_of_all(pictures, folders, split_of)
        given = [Set(f"input.annotations.{self.kind}", shown_path(files))]
        given += [Set("output.split", split)] if split != "train" else []
        read = Command("convert", shown, "-o", "OUT", *given)
        where = " (PICTURES: the folder of its pictures)" if pictures is None else ""
        return (
            f"{shown_path(self.path)} has the name of {_KINDS[self.kind]} annotations, which are not read; to "
            f"read them: {read}{where}"
        )


def annotation_kind(folder: bytes, name: bytes) -> str | None:
    """Return the kind of annotations that a file has the name of, None if it has not; `folder` is below the root.

    >>> annotation_kind(b"train", b"_annotations.coco.json"), annotation_kind(b"labels/train", b"7.txt")
    ('coco', 'yolo')
    >>> annotation_kind(b"train", b"7.txt"), annotation_kind(b"train", b"package.json")
    (None, None)
    """
    lower = name.lower()
    if lower.endswith(b".json"):
        return "coco" if lower.endswith(b".coco.json") or lower.startswith(b"instances") else None
    if lower.endswith(b".txt"):
        return "yolo" if _LABELS in folder.lower().split(b"/") and lower not in _NO_LABELS else None
    return "voc" if lower.endswith(b".xml") else None


def annotations_of(kind: str, folder: bytes, name: bytes, near: bytes | None) -> AnnotationFile | None:
    """Return the file, None if its place is none of annotations.

    `near` is the picture of its folder whose name comes next, None if the folder holds no pictures.
    """
    stem = os.path.splitext(name)[0]
    if kind == "voc" and near is None and os.path.basename(folder).lower() != b"annotations":
        return None
    if (kind == "voc" and near is not None and os.path.splitext(near)[0] != stem) or (kind == "yolo" and near):
        return None
    return AnnotationFile(kind, os.path.join(folder, name), near is not None)


def _split_of_all(pictures: bytes, folders: Sequence[bytes], split_of: Callable[[str], str | None]) -> str:
    """Return the split whose name a folder of pictures has, or the one above `images`; folders in it have their own."""
    start = len(pictures) + 1
    inner = {part for one in folders if one.startswith(pictures + b"/") for part in one[start:].split(b"/")}
    above, name = os.path.split(pictures)
    own = (name, os.path.basename(above)) if name.lower() in _PICTURES else (name,)
    splits = [split_of(os.fsdecode(part)) for part in own]
    return "train" if any(split_of(os.fsdecode(part)) for part in inner) else next(filter(None, splits), "train")


def _labels_of(folder: bytes) -> bytes:
    while os.path.basename(folder).lower() != _LABELS and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _pictures_of(folder: bytes, folders: Sequence[bytes]) -> bytes | None:
    """Return the folder of pictures beside one of annotations: `images`, or the only one that is read."""
    above = os.path.dirname(folder)
    for name in _PICTURES:
        for path in folders:
            below = path[len(above) + 1 :].split(b"/")[0] if path.startswith(above + b"/") else b""
            if below.lower() == name:
                return os.path.join(above, below)
    return folders[0] if len(folders) == 1 else None
