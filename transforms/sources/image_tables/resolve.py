"""What a section of images means where a table or a file of annotations names the pictures: one of another format."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ...errors import InputError
from ...format.wording.hints import Set
from ...format.wording.printable import printable, printable_path
from ..registry.format import Resolved
from .metadata import ALONE, find_metadata


def of_metadata(
    given: Mapping[str, Any], own: Mapping[str, object], paths: Sequence[str], base: str
) -> Resolved | None:
    """Return what reads the tables beside pictures, None if there is none.

    `given` is the section; `own` are the options that only images have, with their defaults. Raises `InputError` where
    the tables do not fit, or an option is for folders alone.
    """
    found = find_metadata(paths, base)
    if found is None:
        return None
    columns = _not_excluded(found.columns, given, f"; or read {printable_path(found.files[0])} alone, by its path")
    section = _section(given, own, found.files[0], tuple(columns))
    section |= {"format": found.format, "paths": list(found.files), "partitions": "none"}
    one, more = found.files[0], len(found.files) - 1
    name = f"{one} and {more} more name" if more else f"{one} names"
    return Resolved(
        section,
        {name: {"name": feature, "image": "path"} for name, feature in columns.items()},
        tuple(os.path.join(base, root) for root in found.roots),
        f"{name} the pictures: rows become records, in their order (the folders alone: input.metadata=none)",
        known=found.known,
    )


def _not_excluded(columns: Mapping[str, str], given: Mapping[str, Any], also: str = "") -> dict[str, str]:
    """Return the columns that name pictures, without those that are left out; `also` is what helps, too."""
    globs = [one for one in given.get("exclude_columns") or () if isinstance(one, str)]
    left = {name: of for name, of in columns.items() if not any(fnmatchcase(name, one) for one in globs)}
    if not left:
        name, feature = next(iter(columns.items()))
        leave = Set("input.exclude_columns", f"[{feature}/filename]")
        raise InputError(
            f'"{printable(name)}" names the pictures, and input.exclude_columns leaves it out; to leave out the paths '
            f"alone: {leave}{also}"
        )
    return left


def of_annotations(
    given: Mapping[str, Any],
    own: Mapping[str, object],
    paths: Sequence[str],
    base: str,
    annotations: Mapping[str, Any],
) -> Resolved:
    """Return what reads files of annotations, which name the pictures of one folder."""
    kind = next(key for key in ("coco", "voc", "yolo") if annotations[key] is not None)
    files = annotations["coco"] if kind == "coco" else [annotations[kind]]
    _not_excluded({"file_name": "image"}, given)
    section = _section(given, own, files[0], ("file_name",))
    root = os.path.join(base, paths[0])
    if len(paths) != 1 or "://" in paths[0] or not os.path.isdir(root):
        raise InputError(
            "annotations are of the pictures of one local folder; convert it, and append others with theirs (with "
            "--split val where they are another split)"
        )
    section |= {"format": kind, "paths": list(files)}
    if kind != "voc":
        section["masks"] = annotations["masks"]
    if kind != "coco":
        section["label_offset"] = given.get("label_offset", 0)
        section["classes"] = annotations["classes"]
    if kind == "yolo":
        section["images"] = paths[0]
    return Resolved(
        section,
        {"file_name": {"name": "image", "image": "path"}},
        (root,),
        f"{', '.join(files)}: the pictures that are named there become the records, in their order",
        files_root=paths[0],
    )


def _section(given: Mapping[str, Any], own: Mapping[str, object], file: str, columns: Sequence[str]) -> dict[str, Any]:
    way = "" if "annotations" in given else f", or read the folders alone: {ALONE}"
    taken = ("annotations", "label_offset") if "annotations" in given else ("annotations",)
    alien = next((key for key in given if key in own and key not in taken and given[key] != own[key]), None)
    if alien is not None:
        raise InputError(f"{file} names the pictures, and input.{alien} is for folders alone; leave the key out{way}")
    section = {key: value for key, value in given.items() if key not in own}
    if section.get("columns") is not None:
        section["columns"] = list(dict.fromkeys([*columns, *section["columns"]]))
    return section
