"""Read tables with a row for each box: a record for each picture, with all its boxes.

    filename,width,height,class,xmin,ymin,xmax,ymax    corners in pixels, as TensorFlow's and Roboflow's tables
    ImageID,LabelName,XMin,XMax,YMin,YMax              corners as parts of the picture, as Open Images has them
    image_id,x,y,w,h,class                             a corner, width and height
    image_id,width,height,bbox                         "[x, y, width, height]" in a cell
    images/1.jpg,1,2,5,6,cat                           no header: path, corners and class, as RetinaNet's readers take
    1.jpg,1,2,5,6,object,40,20                         and the size of the picture, as SKU-110K has it
    cat,0                                              in a file beside: the classes by number, for RetinaNet's readers

A picture may be named without its suffix, or its folder. A row without numbers says that its picture has no boxes.
Codes of classes, as Open Images has them, get their names from a `class-descriptions*.csv` beside or above the tables.
Corners are parts of the picture where no number in any file is over 1.5.
"""

from __future__ import annotations

import csv
import glob
import io
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from ...errors import SourceError
from ...format.wording.printable import first_names, printable
from ...inputs.contract.selection import shown_path
from ...inputs.contract.source import ParallelMap, SourceEntry
from ...inputs.files.file_names import pictures_below
from ...inputs.files.listing import beginning_of
from ...inputs.files.open_file import open_file, open_listed
from ...recipe.steps.objects import ID
from ...recognise.evidence.names import kind_of, split_in_words
from ...recognise.evidence.picture_tables import BoxColumns, box_columns, box_header, class_map
from .rows import (
    MOST_BYTES,
    Annotated,
    AnnotationOptions,
    ObjectRows,
    Picture,
    annotated,
    labels_in,
    number_by_names,
    with_numbers,
)

_PART: Final = 1.5
_DESCRIBED: Final = "class-descriptions*.csv"
_NO_CLASS: Final = "object"
_MOST_MAPS: Final = 64


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    picture: str
    numbers: tuple[float, ...] | None
    label: str | None
    size: tuple[int, int] | None


def read_boxes(entries: Sequence[SourceEntry], options: AnnotationOptions, run: ParallelMap) -> Annotated:
    """Return what tables say. Raises `SourceError` where one has no columns of boxes, or a row names no picture."""
    only = options.names[0] if options.names and len(options.names) == 1 else _NO_CLASS
    tables = run(partial(_read, only=only), entries)
    numbers = [one for _, rows, _ in tables for row in rows for one in row.numbers or ()]
    parts = bool(numbers) and max(numbers) <= _PART
    found, objects, known, described = list[Picture](), ObjectRows(), dict[str, _Pictures](), _descriptions(entries)
    for number, (columns, rows, _) in enumerate(tables):
        folder = options.folder_of(entries[number])
        pictures, here = known.get(folder.path) or _pictures_in(folder.path), dict[str, int]()
        known[folder.path] = pictures
        table = os.path.relpath(os.fsdecode(entries[number].path), folder.path)
        for row in rows:
            name = folder.named(pictures.named(row.picture, table))
            picture = here.setdefault(name, len(found))
            if picture == len(found):
                found.append(Picture(number, name, row.picture, None if parts else row.size))
            if row.numbers is not None:
                box = _box(row.numbers, corners=columns.corners, parts=parts)
                label = described.get(row.label or "", row.label)
                objects.add(picture, {ID: f"row {row.number}", "label": label} | box)
    boxes = objects.table()
    order, notes = _class_map(entries, labels_in(boxes)) if options.names is None and not options.numeric else ([], ())
    classes, warnings = number_by_names(labels_in(boxes), options, order)
    unread = Counter(name for _, _, others in tables for name in others)
    warnings += [f"columns of boxes that are not read: {first_names(list(unread), 8)}"] if unread else []
    read = annotated(found, len(entries), classes, with_numbers(boxes, classes), warnings=warnings)
    return replace(read, notes=(*read.notes, *notes))


def _class_map(entries: Sequence[SourceEntry], named: set[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the classes in the only file beside the tables that numbers those of all boxes, and what to say of it."""
    tables = {os.fsdecode(one.path) for one in entries}
    folders = dict.fromkeys(os.path.dirname(one) for one in tables)
    files = [file for one in folders for file in sorted(glob.glob(os.path.join(glob.escape(one), "*.csv")))]
    maps = dict[str, list[str]]()
    for file in [one for one in files if one not in tables][:_MOST_MAPS]:
        text = beginning_of(file, MOST_BYTES).decode("utf-8-sig", "replace")
        names = class_map([*csv.reader(io.StringIO(text, newline=""))])
        maps |= {file: names} if named and named <= {*names} else {}
    if len(maps) != 1:
        return [], ()
    ((file, names),) = maps.items()
    return names, (f"classes in the order of {shown_path(file)}, with those that no object has",)


def _descriptions(entries: Sequence[SourceEntry]) -> dict[str, str]:
    """Return the names of classes that Open Images has by codes, in a file beside tables or in the folder above."""
    folders = dict.fromkeys(os.path.dirname(os.fsdecode(one.path)) for one in entries)
    places = [os.path.join(*one) for above in folders for one in ((above,), (above, ".."))]
    file = next(
        (file for one in places for file in sorted(glob.glob(os.path.join(glob.escape(one), _DESCRIBED)))), None
    )
    if file is None:
        return {}
    with open(file, encoding="utf-8-sig", errors="replace", newline="") as lines:
        found = dict(row for row in csv.reader(lines) if len(row) == 2 and row[0].startswith("/"))
    return found if len({*found.values()}) == len(found) else {}


def _box(numbers: tuple[float, ...], *, corners: bool, parts: bool) -> dict[str, Any]:
    """Return the field of a box; of one that has no four numbers a field without a value, which is a reject."""
    name = "center_box" if parts else "bbox"
    if len(numbers) != 4:
        return {name: None}
    left, top, width, height = numbers
    if corners:
        width, height = width - left, height - top
    return {name: [left + width / 2, top + height / 2, width, height] if parts else [left, top, width, height]}


def _read(entry: SourceEntry, only: str) -> tuple[BoxColumns, list[_Row], list[str]]:
    with open_listed(entry, open_file) as file:
        text = file.read().decode("utf-8-sig", "replace")
    first = text.partition("\n")[0]
    sign = max("\t,;|", key=first.count)
    names = box_header(next(csv.reader([first], delimiter=sign), []))
    reader = csv.DictReader(io.StringIO(text, newline=""), names or None, delimiter=sign)
    columns = box_columns(reader.fieldnames or ())
    if columns is None:
        shown = first_names([printable(one) for one in reader.fieldnames or ()], 8)
        raise SourceError(
            entry.name,
            f"has no columns of pictures and boxes, but {shown}; name them filename, class, xmin, ymin, xmax, ymax",
        )
    rows = []
    for at, row in enumerate(reader, 1 if names else 2):
        name = (row[columns.picture] or "").strip()
        if not name:
            raise SourceError(entry.name, f'row {at}: "{printable(columns.picture)}" is empty; name the picture')
        label = only if columns.label is None else (row[columns.label] or "").strip() or None
        rows.append(_Row(at, name, _numbers(row, columns), label, _size(row, columns)))
    others = [one for one in reader.fieldnames or () if one not in columns.all]
    return columns, rows, others


def _numbers(row: Mapping[str, str | None], columns: BoxColumns) -> tuple[float, ...] | None:
    cells = [(row[name] or "").strip() for name in columns.box]
    if len(cells) == 1:
        cells = re.split(r"[\s,;]+", cells[0].strip("[]() "))
    if not any(cells) or all(cell.lower() == "nan" for cell in cells):
        return None
    try:
        numbers = tuple(map(float, cells))
    except ValueError:
        return ()
    return numbers if all(map(math.isfinite, numbers)) else ()


def _size(row: Mapping[str, str | None], columns: BoxColumns) -> tuple[int, int] | None:
    cells = [row[name] or "" for name in columns.size]
    return (int(cells[0]), int(cells[1])) if cells and all(map(str.isdecimal, cells)) else None


@dataclass(frozen=True, slots=True)
class _Pictures:
    """The pictures below a folder; by their paths, and by their names alone, each with and without its suffix."""

    paths: dict[str, list[str]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)

    def named(self, value: str, table: str) -> str:
        """Return the path of a picture that a row of a table names: below its folder, one of its name, or the root."""
        value = value.replace("\\", "/").removeprefix("./")
        folder, stem = os.path.dirname(table), os.path.splitext(os.path.basename(table))[0]
        for start in dict.fromkeys((folder, os.path.join(folder, stem), stem, "")):
            there = self.paths.get(os.path.normpath(os.path.join(start, value)), ())
            if there:
                return there[0] if len(there) == 1 else value
        split = split_in_words(os.path.basename(table)) or split_in_words(os.path.basename(folder))
        alike = [one for one in self.names.get(os.path.basename(value), ()) if split is None or _may_be(one, split)]
        return alike[0] if len(alike) == 1 else value


def _may_be(path: str, split: str) -> bool:
    others = filter(None, map(split_in_words, path.split("/")[:-1]))
    return all(kind_of(other) == kind_of(split) for other in others)


def _pictures_in(root: str) -> _Pictures:
    found = _Pictures()
    for one in pictures_below(os.fsencode(root)):
        path = os.path.relpath(os.fsdecode(one), root)
        for known, name in ((found.paths, path), (found.names, os.path.basename(path))):
            for key in dict.fromkeys((name, os.path.splitext(name)[0])):
                known.setdefault(key, []).append(path)
    return found
