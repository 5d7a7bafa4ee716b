"""What the folders of images mean: a class, a split and a class, or nothing.

    flat            label           split_label
    root/1.jpg      root/cat/1.jpg  root/train/cat/1.jpg
                    ▲ class         ▲ split  ▲ class

A class is the path of its folder below the root (or below its split), so that two folders of one name stay two classes.
A split is its folder's own name in lower case. Paths are bytes here: only names that are UTF-8 become classes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ..errors import UsageError
from ..format.printable import printable

Layout = Literal["label", "split_label", "flat"]
_BY_NAME: Final[dict[str, Layout]] = {"label": "label", "split_label": "split_label", "flat": "flat"}
LAYOUTS: Final = ("auto", *_BY_NAME)
SPLIT_FOLDERS: Final = frozenset(
    {"train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval"}
)  # fmt: skip
"""Names of top folders, in lower case, by which `auto` knows the layout `split_label`."""

_SPLIT_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_CHOICES: Final = "say what they mean: --set input.layout=label|split_label|flat"


@dataclass(frozen=True, slots=True)
class FolderRole:
    """The split and the class that a folder gives its images, None where it gives none."""

    split: str | None = None
    class_name: str | None = None


def choose_layout(folders: Iterable[bytes], layout: str) -> Layout:
    """Return the layout, told by the folders that hold files where it is `auto`; their paths are below the root.

    >>> choose_layout([b"cat", b"dog"], "auto"), choose_layout([b"train/cat", b"val/cat"], "auto")
    ('label', 'split_label')

    Raises:
        UsageError: the layout is unknown, or cannot be told.
    """
    if layout in _BY_NAME:
        return _BY_NAME[layout]
    if layout != "auto":
        raise UsageError(f'input.layout: "{layout}" is no layout; choose one of {", ".join(LAYOUTS)}')
    by_depth: dict[int, bytes] = {}
    tops: dict[str, bytes] = {}
    for folder in folders:
        parts = folder.split(b"/") if folder else []
        by_depth.setdefault(len(parts), folder)
        if parts:
            tops.setdefault(parts[0].decode("utf-8", "backslashreplace"), folder)
    if by_depth.keys() <= {0}:
        return "flat"
    if by_depth.keys() == {1}:
        return "label"
    if len(by_depth) > 1:
        shown = " and ".join(f'in "{printable(f)}"' if f else "in the root" for _, f in sorted(by_depth.items())[:2])
        raise UsageError(f"the layout of the images cannot be told: there are files {shown}; {_CHOICES}")
    strange = next((top for top in tops if top.lower() not in SPLIT_FOLDERS), None)
    if by_depth.keys() == {2} and strange is None:
        return "split_label"
    (depth, folder), *_ = by_depth.items()
    why = f"files lie {depth} levels down" if depth > 2 else f'"{printable(strange)}" is no name of a split'
    shown_folder = printable(folder if depth > 2 or strange is None else tops[strange])
    raise UsageError(f'the layout of the images cannot be told: {why} (in "{shown_folder}"); {_CHOICES}')


def role_of(folder: bytes, layout: Layout) -> FolderRole:
    """Return what a folder, whose path is below the root, means in a layout.

    Raises:
        UsageError: its split cannot be named, or its class holds a line break.
    """
    try:
        parts = folder.decode().split("/") if folder else []
    except UnicodeDecodeError:
        return FolderRole()  # all its images are rejects: their names cannot be features
    split = None
    if layout == "flat":
        return FolderRole()
    if layout == "split_label" and parts:
        split = parts.pop(0).lower()
        if not _SPLIT_NAME.fullmatch(split):
            raise UsageError(
                f'the folder "{printable(folder)}" names the split "{printable(split)}"; a split begins with a letter '
                f"and has letters, digits and _ only: rename it, or set another input.layout"
            )
    name = "/".join(parts) or None
    if name is not None and len(name.splitlines()) > 1:
        raise UsageError(f'the class folder "{printable(name)}" has a line break in its name; rename it')
    return FolderRole(split, name)


def class_warnings(names: Sequence[str], layout: Layout) -> tuple[str, ...]:
    """Return what a user should know of the class names: those that differ in case or Unicode form only."""
    seen: dict[str, str] = {}
    warnings = []
    for name in names:
        key = unicodedata.normalize("NFC", name).casefold()
        if key in seen:
            warnings.append(
                f'the classes "{printable(ascii(seen[key])[1:-1])}" and "{printable(ascii(name)[1:-1])}" differ only '
                f"in case or Unicode form; they stay two classes"
            )
        seen.setdefault(key, name)
    if layout == "label" and names and {name.lower() for name in names} <= SPLIT_FOLDERS:
        listed = ", ".join(names)
        warnings.append(f"the classes are named like splits: {listed}; if they are splits, put class folders into them")
    return tuple(warnings)
