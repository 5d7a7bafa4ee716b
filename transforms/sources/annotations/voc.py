"""Read Pascal VOC's XML files, one for each picture.

    <annotation>
      <filename>7.jpg</filename>
      <object>
        <name>cat</name> <pose>Left</pose> <truncated>0</truncated> <difficult>1</difficult>
        <bndbox> <xmin>1</xmin> <ymin>2</ymin> <xmax>4</xmax> <ymax>6</ymax> </bndbox>
      </object>
    </annotation>

Classes are numbered in the order of their names, and corners are taken as they are written. Source of both:
tensorflow/models, `create_pascal_tf_record.py`. Only in files of supervision (`as_pascal_voc`) the first corner counts
pixels from 1 on: it is moved by 1, as supervision does when it reads them. A `labelmap.txt` beside `Annotations`
numbers the classes in its order, with those that no object has, as CVAT and Datumaro write and read it:

    # label:color_rgb:parts:actions
    background:0,0,0::
    cat:128,0,0:head,tail:sitting
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from xml.etree import ElementTree as ET

from ...format.wording.printable import counted, first_names, printable
from ...inputs.contract.selection import shown_path
from ...inputs.contract.source import ParallelMap, SourceEntry
from ...inputs.files.listing import beginning_of
from ...inputs.files.open_file import open_file, open_listed
from .rows import (
    MOST_BYTES,
    Annotated,
    AnnotationOptions,
    ObjectRows,
    Picture,
    annotated,
    in_parts,
    labels_in,
    number_by_names,
    too_large,
    with_numbers,
)

_LABEL_MAP: Final = "labelmap.txt"
_ABOVE: Final = "/Annotations/"
_MOST_FOLDERS: Final = 64
_OF_SUPERVISION: Final = ("VOC", "roboflow.ai")
"""The texts of <folder> and <source><database> in files of supervision; Roboflow itself writes no folder."""
_READ: Final = frozenset({"name", "bndbox", "difficult", "truncated", "pose"})


def read_voc(entries: Sequence[SourceEntry], options: AnnotationOptions, run: ParallelMap) -> Annotated:
    """A file that is none of VOC's has an error. Raises `SourceError` where a file cannot be opened."""
    pictures, errors, rows, unread, moved = list[Picture](), dict[int, str](), ObjectRows(), Counter[str](), 0
    for number, one in enumerate(in_parts(run, partial(_read, wanted=options), entries)):
        if isinstance(one, str):
            errors[number] = one
            continue
        picture, objects, others, first = one
        moved += first
        for each in objects:
            rows.add(len(pictures), each)
        pictures.append(replace(picture, entry=number))
        unread.update(others)
    found = rows.table()
    order, note = ((), "") if options.numeric or options.names is not None else _label_map(entries)
    classes, warnings = number_by_names(labels_in(found), options, order)
    warnings += [f"objects with <{printable(key)}>, which is not read: {count:,}" for key, count in unread.items()]
    found = with_numbers(found, classes)
    read = annotated(pictures, len(entries), classes, found, errors=errors, warnings=warnings)
    of = f"{counted(moved, 'file')} of supervision, whose first corners count pixels from 1: they are moved by 1"
    return replace(read, notes=(*read.notes, *filter(None, (note, of if moved else ""))))


def _label_map(entries: Sequence[SourceEntry]) -> tuple[Sequence[str], str]:
    """Return the classes that the label map beside the files, or above, lists, and what to say of it."""
    folders = dict.fromkeys(os.path.dirname(one.path) for one in entries)
    some = [os.fsdecode(one) for one in list(folders)[:_MOST_FOLDERS]]
    roots = dict.fromkeys(root for one in some for root in (one, f"{one}/".rpartition(_ABOVE)[0]) if root)
    found = dict[str, list[str]]()
    for root in roots:
        path = os.path.join(root, _LABEL_MAP)
        lines = beginning_of(path, MOST_BYTES).decode("utf-8-sig", "replace").splitlines()
        names = [line.strip().rsplit(":", 3)[0] for line in lines if line.count(":") > 2 and not line.startswith("#")]
        found |= {path: [*dict.fromkeys(filter(None, names))]} if any(names) else {}
    if not found:
        return (), ""
    shown, orders = first_names(list(map(shown_path, found)), 4), [*found.values()]
    if any(one != orders[0] for one in orders):
        return (), f"{shown} differ, so that the classes are in the order of their names"
    return orders[0], f"classes in the order of {shown}, with those that no object has"


def _read(entry: SourceEntry, wanted: AnnotationOptions) -> tuple[Picture, list[dict[str, Any]], list[str], int] | str:
    """Return a picture, its objects, the keys of these that are not read, and its first pixel; or what is wrong."""
    if (bare := wanted.bare_picture(entry)) is not None:
        return replace(bare, source_id=os.path.basename(bare.source_id)), [], [], 0
    if (why := too_large(entry)) is not None:
        return why
    with open_listed(entry, open_file) as file:
        data = file.read()
    if b"<!ENTITY" in data:
        return "declares entities, which files of VOC have none of; take them out"
    try:
        root = ET.fromstring(data)  # noqa: S314 - without entities there is nothing to expand
    except (ET.ParseError, ValueError, LookupError) as error:
        return f"is no XML: {printable(str(error))}; copy it again"
    if root.tag != "annotation":
        return f"is no file of VOC's annotations: it begins with <{printable(root.tag)}>, and not with <annotation>"
    name = (root.findtext("filename") or "").strip()
    if not name:
        return "names no picture: it has no <filename>; add it"
    stem = os.path.splitext(os.path.basename(name))[0]
    sides = _flag(root.findtext("size/width")) or 0, _flag(root.findtext("size/height")) or 0
    size = sides if all(sides) else None
    objects = root.findall("object")
    unread = [key for one in objects for key in {part.tag for part in one} - _READ]
    name = wanted.folder_of(entry).named(name)
    first = int((root.findtext("folder"), root.findtext("source/database")) == _OF_SUPERVISION)
    return Picture(0, name, stem, size), [_object(one, first) for one in objects], sorted(unread), first


def _object(one: ET.Element, first: int) -> dict[str, Any]:
    corners = [_number(one.findtext(f"bndbox/{side}")) for side in ("xmin", "ymin", "xmax", "ymax")]
    x, y, to_x, to_y = (math.nan if corner is None else corner for corner in corners)
    label = (one.findtext("name") or "").strip()
    return {
        "bbox": [x - first, y - first, to_x - x + first, to_y - y + first],
        "label": label or None,
        "difficult": _flag(one.findtext("difficult")),
        "truncated": _flag(one.findtext("truncated")),
        "view": (one.findtext("pose") or "").strip() or None,
    }


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _flag(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None or not math.isfinite(number) else int(number)
