"""Where a table or annotations name the pictures of a folder, read these in place of the folder."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from ...errors import InputError
from ...format.wording.hints import Add, Set
from ...format.wording.printable import first_names, printable, printable_path
from ...inputs.contract.selection import Call
from ...inputs.files.file_names import FORMATS, why_skipped
from .names import is_split_folder


@dataclass(frozen=True, slots=True)
class Resolved:
    """Another section `input`, which says what the given one means, of another format.

    `columns` are added to `schema.columns`, where these do not say otherwise. `folders` are those, absolute, that its
    rows name pictures of. `evidence` is what to say to the user, `files_root` where the paths
    of pictures begin, None for the folder of each table. `known` are the columns that there are, as far as is known.
    """

    section: dict[str, Any]
    columns: dict[str, dict[str, Any]]
    folders: tuple[str, ...]
    evidence: str
    files_root: str | None = None
    known: frozenset[str] = frozenset()


def by_metadata(given: Mapping[str, Any], paths: Sequence[str], base: str, _call: Call) -> Resolved | None:
    """Tables beside pictures are read, in place of their folders.

    Raises:
        InputError: the tables do not fit, or an option is for folders alone.
    """
    said = any(given.get(key) is not None for key in ("annotations", "metadata", "detect"))
    found = None if given["format"] != "images" or said else _find(paths, base)
    if found is None:
        return None
    files, columns, known = found
    columns = _not_excluded(columns, given, f"; or read {printable_path(files[0])} alone, by its path")
    section = _section(given, files[0], tuple(columns))
    section |= {"format": _kind_of(files[0]), "paths": files, "partitions": "none"}
    one, more = files[0], len(files) - 1
    name = f"{one} and {more} more name" if more else f"{one} names"
    return Resolved(
        section,
        {name: {"name": feature, "image": "path"} for name, feature in columns.items()},
        tuple(os.path.join(base, root) for root in paths),
        f"{name} the pictures: rows become records, in their order (the folders alone: input.metadata=none)",
        known=frozenset(known),
    )


def _not_excluded(columns: Mapping[str, str], given: Mapping[str, Any], also: str = "") -> dict[str, str]:
    """Return the columns that name pictures, without those that are left out; `also` is what helps, too."""
    globs = [one for one in given.get("exclude_columns") or () if isinstance(one, str)]
    left = {name: of for name, of in columns.items() if not any(fnmatchcase(name, one) for one in globs)}
    if not left:
        name, feature = next(iter(columns.items()))
        leave = Add("--exclude-columns", f"{feature}/filename")
        raise InputError(
            f'"{printable(name)}" names the pictures, and input.exclude_columns leaves it out; to leave out the paths '
            f"alone: {leave}{also}"
        )
    return left


def by_given_annotations(given: Mapping[str, Any], paths: Sequence[str], base: str, _call: Call) -> Resolved | None:
    """Files of annotations that the user names are read, and name the pictures of one folder.

    Raises:
        InputError: there are several folders, or an option is for folders alone.
    """
    if given["format"] != "images" or given.get("annotations") is None:
        return None
    try:
        model = FORMATS["images"].load().options
        checked = model(format="images", paths=["."], annotations=given["annotations"])
    except ValueError:
        return None  # the model of the section says what is wrong
    annotations = checked.annotations.model_dump()
    kind = next(key for key in ("coco", "boxes", "voc", "yolo") if annotations[key] is not None)
    files = list(annotations[kind]) if kind in ("coco", "boxes") else [annotations[kind]]
    root = os.path.join(base, paths[0])
    if len(paths) != 1 or "://" in paths[0] or not os.path.isdir(root):
        raise InputError(
            "annotations are of the pictures of one local folder; convert it, and append others with theirs (with "
            f"{Add('--split', 'val')} where they are another split)"
        )
    section = annotated_section(given, kind, files, [paths[0]])
    if kind in ("coco", "yolo"):
        section["masks"] = annotations["masks"]
    section["classes"] = annotations["classes"]
    return Resolved(
        section,
        {"file_name": {"name": "image", "image": "path"}},
        (root,),
        f"{', '.join(files)}: the pictures that are named there become the records, in their order",
        files_root=paths[0],
    )


def annotated_section(
    given: Mapping[str, Any], kind: str, files: Sequence[str], pictures: Sequence[str]
) -> dict[str, Any]:
    """Return the section `input` of files of annotations, each of the pictures of a folder.

    Raises `InputError` where an option is for folders alone.
    """
    _not_excluded({"file_name": "image"}, given)
    section = _section(given, files[0], ("file_name",), annotated=True)
    section |= {"format": kind, "paths": [*files], "images": [*pictures]}
    if kind != "coco":
        section["label_offset"] = given.get("label_offset", 0)
    return section


def _section(given: Mapping[str, Any], file: str, columns: Sequence[str], *, annotated: bool = False) -> dict[str, Any]:
    model = FORMATS["images"].load().options
    shared = model.__base__.model_fields.keys() - {"ignore"}  # which is of the pictures here, and not of tables
    fields = {key: one for key, one in model.model_fields.items() if key not in shared}
    own = {key: one.get_default(call_default_factory=True) for key, one in fields.items()}
    way = "" if annotated else f", or read {_ALONE}"
    taken = ("annotations", "label_offset") if annotated else ("annotations",)
    alien = next((key for key in given if key in own and key not in taken and given[key] != own[key]), None)
    if alien is not None:
        raise InputError(f"{file} names the pictures, and input.{alien} is for folders alone; leave the key out{way}")
    section = {key: value for key, value in given.items() if key not in own}
    if section.get("columns") is not None:
        section["columns"] = list(dict.fromkeys([*columns, *section["columns"]]))
    return section


_NAMING: Final = (
    "filename", "imagefilename", "imageid", "imagename", "imagepath", "image", "img", "filepath", "path", "file", "id",
)  # fmt: skip
_CLASS: Final = (
    "classname", "labelname", "categoryname", "class", "label", "category", "name", "classid", "labelid", "categoryid",
)  # fmt: skip
_CORNERS: Final = (
    ("xmin", "ymin", "xmax", "ymax"), ("x1", "y1", "x2", "y2"), ("left", "top", "right", "bottom"),
)  # fmt: skip
_SIDES: Final = (
    ("x", "y", "w", "h"), ("x", "y", "width", "height"), ("xmin", "ymin", "width", "height"),
    ("left", "top", "width", "height"),
)  # fmt: skip
_SIZES: Final = (("imagewidth", "imageheight"), ("imgwidth", "imgheight"), ("width", "height"))


@dataclass(frozen=True, slots=True)
class BoxColumns:
    """The columns of a table with a box in each row: of the picture, the box, and of the class and size if there are.

    `box` are four columns, of the corners or of one corner and the lengths of the sides, or one that holds all.
    """

    picture: str
    box: tuple[str, ...]
    corners: bool
    label: str | None
    size: tuple[str, ...]

    @property
    def all(self) -> tuple[str | None, ...]:
        return (self.picture, self.label, *self.box, *self.size)


_WITHOUT_HEADER: Final = ("path", "x1", "y1", "x2", "y2", "class", "width", "height")
"""The columns of tables without a header: of RetinaNet's readers the first six, of SKU-110K all."""


def box_header(first: Sequence[str]) -> tuple[str, ...]:
    """Return names for the columns of a table of boxes whose first row is a box; nothing for another table.

    >>> box_header(["1.jpg", "1", "2", "5", "6", "cat"]), box_header(["1.jpg", "", "", "", "", ""])[:2]
    (('path', 'x1', 'y1', 'x2', 'y2', 'class'), ('path', 'x1'))
    """
    sides = [cell.strip() for cell in first[1:5]]
    known = len(first) in (6, 8) and first[0].lower().endswith(FORMATS["images"].suffixes)
    numbers = all(re.fullmatch(r"-?[0-9]+(?:\.[0-9]*)?", side) for side in sides)
    return _WITHOUT_HEADER[: len(first)] if known and (numbers or not any(sides)) else ()


def names_of_cells(first: Sequence[str]) -> tuple[str, ...]:
    """Return the names that columns get without a header, where the first row is one of data: it names a picture.

    >>> names_of_cells(["cat", "a 1.JPG"]), names_of_cells(["class", "image"]), names_of_cells(["1.png"])
    (('column_0', 'column_1'), (), ('column_0',))
    """
    named = any(cell.strip().lower().endswith(FORMATS["images"].suffixes) for cell in first)
    return box_header(first) or tuple(f"column_{at}" for at in range(len(first)) if named)


def class_map(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the classes of a table of their names and numbers, 0 to n - 1, without a header; nothing for others.

    >>> class_map([["dog", "1"], ["cat", "0"]]), class_map([["id", "n"], ["a", "0"]])
    (['cat', 'dog'], [])
    """
    if not all(len(row) == 2 and row[1].strip().isdecimal() and row[0].strip() for row in rows):
        return []
    found = {int(row[1]): row[0].strip() for row in rows}
    right = [*sorted(found)] == [*range(len(rows))] and len({*found.values()}) == len(rows)
    return [found[number] for number in range(len(rows))] if right else []


def box_columns(names: Iterable[str | None]) -> BoxColumns | None:
    """Return which columns say where the box of each row is; None where they are of no boxes.

    >>> box_columns(["ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax"]).box
    ('XMin', 'YMin', 'XMax', 'YMax')
    >>> box_columns(["image_id", "width", "height", "bbox"]).size, box_columns(["id", "x", "y", "width"])
    (('width', 'height'), None)
    """
    given = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in names if name}
    known = {re.sub(r"^(?:bbox|box)(?=.)", "", key): name for key, name in given.items()} | given
    every = (*_CORNERS, *_SIDES, ("bbox",), ("box",), ("boundingbox",))
    forms = [form for form in every if all(side in known for side in form)]
    picture = next((given[one] for one in _NAMING if one in given), None)
    if picture is None or not forms:
        return None
    box = tuple(known[side] for side in forms[0])
    sizes = (tuple(given[one] for one in size) for size in _SIZES if all(one in given for one in size))
    return BoxColumns(
        picture,
        box,
        forms[0] in _CORNERS,
        next((given[one] for one in _CLASS if one in given and given[one] != picture), None),
        next((size for size in sizes if not {*size} & {*box}), ()),
    )


_ALONE: Final = f"the folders alone: {Set('input.metadata', 'none')}"
_NAMES: Final = frozenset({"metadata.csv", "metadata.jsonl", "metadata.parquet"})
_LINES: Final = 1000
"""Lines of JSON whose keys are looked at for the columns that name pictures."""


def _find(paths: Sequence[str], base: str) -> tuple[list[str], dict[str, str], set[str]] | None:
    """Return the tables in the folders that `paths` name, and in the folders in these; None if there is none.

    Beside them are the columns that name pictures, with the names of their features, and all columns.

    They are as Hugging Face's imagefolder has them (huggingface/datasets, `folder_based_builder.py`):

        pets/metadata.csv       file_name,caption        pets/train/metadata.jsonl    {"file_name": "1.jpg", "age": 3}
        pets/cats/1.jpg         cats/1.jpg,a cat         pets/train/1.jpg

        file_name    the picture, whose features are named `image/...`        file_names    a list of them, `images/...`
        X_file_name  a picture whose features are named `X/...`               X_file_names  a list of them

    Paths begin in the folder of the table. All tables have one suffix.
    Raises `InputError`: they have several suffixes, not every path has one, or none of their columns names pictures.
    """
    found = {path: _tables_in(path, base) for path in paths if "://" not in path}
    files = [file for tables in found.values() for file in tables]
    if not files:
        return None
    kinds = {_kind_of(file): file for file in files}
    if len(kinds) > 1:
        one, other = (printable_path(file) for file in list(kinds.values())[:2])
        raise InputError(f"{one} and {other} are tables of two kinds beside pictures; keep one kind, or read {_ALONE}")
    without = next((path for path in paths if not found.get(path)), None)
    if without is not None:
        raise InputError(
            f"{printable_path(without)}: has no table beside its pictures, and {printable_path(files[0])} is one; give "
            f"folders that have one, or read {_ALONE}"
        )
    columns = {name for file in files for name in _columns_of(os.path.join(base, file), _kind_of(file))}
    pictures = {name: feature for name in sorted(columns) if (feature := _feature_of(name)) is not None}
    if not columns:
        raise InputError(f"{printable_path(files[0])}: names no column, so no pictures; fill it, or read {_ALONE}")
    if not pictures:
        shown = first_names(sorted(columns), 8)
        raise InputError(
            f"{printable_path(files[0])}: none of its columns names pictures ({shown}); call the one that does "
            f'"file_name" (or X_file_name, for features named X), or read {_ALONE}'
        )
    return files, pictures, columns


def is_picture_table(path: str) -> bool:
    return os.path.basename(path).lower() in _NAMES


def _kind_of(file: str) -> str:
    """Return the suffix of a table, which is what `input.format` calls it too."""
    return file.rpartition(".")[2].lower()


def _tables_in(path: str, base: str) -> list[str]:
    """Return the tables in a folder, and in each folder in it."""
    root = os.path.join(base, path)
    found: dict[str, list[str]] = {}
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if why_skipped(os.fsencode(name)) is None)
        if tables := list(filter(is_picture_table, names)):
            found[os.path.relpath(folder, root)] = sorted(tables)
    deep = next((folder for folder in sorted(found) if os.sep in folder), None)
    if deep is not None:
        raise InputError(
            f"{printable_path(os.path.join(path, deep, found[deep][0]))}: tables beside pictures are in the folder "
            f"that is given, or in those in it, and this one is deeper; give its folder, or read {_ALONE}"
        )
    splits = [] if "." in found or not found else _splits_in(root)
    without = next((split for split in splits if split not in found), None)
    if without is not None and any(split in found for split in splits):
        one = next(split for split in splits if split in found)
        raise InputError(
            f"{printable_path(os.path.join(path, without))}: has no table beside its pictures, and "
            f"{printable_path(os.path.join(path, one))} has one; add it, or read {_ALONE}"
        )
    return [os.path.normpath(os.path.join(path, folder, name)) for folder in sorted(found) for name in found[folder]]


def _splits_in(root: str) -> list[str]:
    with os.scandir(root) as entries:
        return sorted(one.name for one in entries if one.is_dir() and is_split_folder(os.fsencode(one.name)))


def _feature_of(column: str) -> str | None:
    for suffix, plain in (("file_name", "image"), ("file_names", "images")):
        if column == suffix:
            return plain
        if column.endswith(f"_{suffix}") and len(column) > len(suffix) + 1:
            return column[: -len(suffix) - 1]
    return None


def _columns_of(path: str, kind: str) -> Iterable[str]:
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return [str(name) for name in pq.read_schema(path).names]
        except pa.ArrowException as error:
            reason = printable(str(error))
            raise InputError(f"{printable_path(path)}: no Parquet file: {reason}; copy it again") from error
    try:
        with open(path, encoding=_encoding_of(path), errors="replace", newline="") as file:
            if kind == "csv":
                sign = FORMATS["csv"].load().detect({}, [path], "", Call()).value
                return next(csv.reader(file, delimiter=sign), [])
            rows = (_parsed(line) for line, _ in zip(file, range(_LINES), strict=False))
            return dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row)
    except OSError as error:
        raise InputError(f"{printable_path(path)}: cannot be read: {error.strerror}") from error


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None  # a bad line is a reject, as in any table


def _encoding_of(path: str) -> str:
    with open(path, "rb") as file:
        return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
