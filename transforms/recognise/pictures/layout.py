"""What folders of pictures mean: classes, splits, both, or nothing.

    flat           root/1.jpg              no class, no split
    label          root/cat/1.jpg          class cat
    split          root/train/1.jpg        split train
    split_label    root/train/cat/1.jpg    split train, class cat
    label_split    root/cat/train/1.jpg    class cat, split train
    inner_label    root/patient1/cat/1.jpg class cat

A class is the path of its folder below the root (or below its split), so that two folders of one name stay two classes;
with `inner_label` it is the name of the innermost folder. A folder `images` in each class is no part of its name.
A split is its folder's own name in lower case. Paths are bytes here: only names that are UTF-8 become classes.
"""

from __future__ import annotations

import codecs
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from itertools import chain, pairwise
from string import ascii_letters
from typing import Final, Literal

from ...errors import UsageError
from ...format.wording.hints import Foreign, Set, runnable, set_column
from ...format.wording.printable import first_names, printable, printable_path, shell_path
from ...inputs.contract.selection import shown_path, typed_path
from ...inputs.files.file_names import SPLITS, format_of_name, why_skipped
from ...inputs.files.listing import beginning_of
from ...inputs.files.open_file import is_object
from ...pictures.facts import ImageProblem
from ..beside.files import MOST, Around
from ..evidence.label_names import HEAD_BYTES
from ..evidence.names import is_split_folder, kind_of, level_of, split_in_words, split_of_folder

Layout = Literal["flat", "label", "split", "split_label", "inner_label", "label_split"]
_DRAWN: Final[dict[Layout, str]] = {
    "flat": "root/1.jpg            no classes",
    "label": "root/cat/1.jpg        a class in each folder",
    "split": "root/train/1.jpg      a split in each folder",
    "split_label": "root/train/cat/1.jpg  splits, with a class in each folder",
    "inner_label": "root/p1/cat/1.jpg     classes in folders of something else, such as patients",
}
LAYOUTS: Final = ("auto", *_DRAWN)

_PARTS: Final = frozenset({
    "image", "images", "img", "imgs", "jpegimages", "mask", "masks", "label", "labels", "annotation", "annotations",
    "segmentation", "segmentations", "segmentationclass", "segmentationobject", "gt", "groundtruth", "ground_truth",
    "panoptic",
})  # fmt: skip
"""Names of folders, in lower case, that hold a part of each example, and not a class."""

_OF_KIND: Final = rb"(?:[_-](?:png|jpe?g|tiff?|bmp))?"
_OF_PICTURES: Final = re.compile(rb"(?:images?|imgs?|jpegimages)%s|image_[0-9]" % _OF_KIND, re.IGNORECASE)
"""Names of folders that hold all pictures; KITTI's cameras have numbers, others the kind of a file: images_png."""

_FEW: Final = 8
"""A command that helps lists no more classes."""

_SPLIT_AT_END: Final = re.compile(rf"[-_ ]?(?:trainval|{'|'.join(SPLITS)})$")
_SPLIT_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


def _choices(*, splits: bool, inner: bool = True) -> str:
    left = {"inner_label": inner, "split": splits, "split_label": splits}
    drawn = {layout: text for layout, text in _DRAWN.items() if left.get(layout, True)}
    lines = [f"  {Set('input.layout', layout)!s:<30} {text}" for layout, text in drawn.items()]
    return "\n".join(["choose one of:", *lines])


@dataclass(frozen=True, slots=True)
class FolderRole:
    """The split and the class that a folder gives its images, None where it gives none."""

    split: str | None = None
    class_name: str | None = None


@dataclass(frozen=True, slots=True)
class Meaning:
    """What folders that hold pictures mean: their layout, and the role of each."""

    layout: Layout
    roles: tuple[FolderRole, ...]

    @classmethod
    def of(
        cls,
        folders: Sequence[bytes],
        layout: str,
        hints: Sequence[str] = (),
        *,
        splits: bool = True,
        command: Callable[[bytes], str] | None = None,
    ) -> Meaning:
        """Return what folders mean, by `choose_layout`. Raises as it does, and as `role_of`."""
        chosen = choose_layout(folders, layout, hints, splits=splits, command=command)
        return cls(chosen, tuple(role_of(folder, chosen) for folder in folders))

    @property
    def classes(self) -> list[str]:
        return sorted({role.class_name for role in self.roles if role.class_name is not None})

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(sorted({role.split for role in self.roles if role.split is not None}))

    @property
    def is_labelled(self) -> bool:
        return "label" in self.layout

    def refuse_labels(self) -> None:
        """Raise `UsageError` where classes are given for folders without classes."""
        if not self.is_labelled:
            is_split, shown = self.layout == "split", _DRAWN[self.layout].split()[0]
            fix = f"where they are: {Set('input.layout', 'split_label')}" if is_split else "read the folder above"
            raise UsageError(
                f"input.labels: the folders are no classes (input.layout is {self.layout}: {shown}); leave it out, "
                f"or {fix}"
            )


def choose_layout(
    folders: Iterable[bytes],
    layout: str,
    hints: Sequence[str] = (),
    *,
    splits: bool = True,
    command: Callable[[bytes], str] | None = None,
) -> Layout:
    """Return the layout, detected from the folders that hold files if it is `auto`; their paths are below the root.

    `hints` are proposed first where it is unclear; without `splits` no folder is one. `command` gives the command that
    reads what a folder of the first level holds. Raises `UsageError`: the layout is unknown, or unclear.

    >>> choose_layout([b"cat", b"dog"], "auto"), choose_layout([b"train/cat", b"val/cat"], "auto")
    ('label', 'split_label')
    >>> choose_layout([b"train", b"test"], "auto"), choose_layout([b"cat/train", b"dog/test"], "auto")
    ('split', 'label_split')
    """
    chosen = next((name for name in _DRAWN if name == layout), None)
    if chosen is not None:
        return chosen
    if layout != "auto":
        raise UsageError(f'input.layout: "{layout}" is not a layout; choose one of {", ".join(LAYOUTS)}')
    folders = list(folders)
    by_depth: dict[int, bytes] = {}
    tops: dict[bytes, bytes] = {}
    names: dict[bytes, None] = {}
    for folder in folders:
        parts = folder.split(b"/") if folder else []
        by_depth.setdefault(len(parts), folder)
        if parts:
            tops.setdefault(parts[0], folder)
            names.setdefault(parts[-1])
    if by_depth.keys() <= {0}:
        return "flat"
    first = "".join(f"{hint}\nor " for hint in hints)
    if 0 not in by_depth and (parts := _parts_in(tops)):
        own = [command(part) for part in sorted(parts)[:_FEW]] if command is not None else []
        _refuse_parts(parts, tops, own, first, splits=splits)
    if splits and level_of(parts_of(folders)) == (1, True) and by_depth.keys() == {2}:
        return "label_split"
    strange = next((top for top in tops if not (splits and is_split_folder(top))), None)
    if one := _of_one_level(by_depth, names, in_splits=strange is None):
        return one
    found: dict[int, Layout] = {1: "label"} if strange is not None else {2: "split_label"}
    (depth, folder), *others = sorted(by_depth.items())
    unclear, parts = bool(others) or depth not in found, _parts_in(names)
    several = len(parts) > 1 and 0 not in by_depth
    _refuse_parts(parts if several or not unclear else (), names, (), first, splits=splits)
    if unclear:
        if command is not None and 0 not in by_depth and not (len(tops) == 1 and 1 in by_depth):
            first = _reading(tops, command, mixed=bool(others) and not strange and _are_even(folders)) + first
        inner = not are_pairs(names)
        if strange is None and not others and inner:
            by_words = f"{Set('input.layout', 'inner_label')} {Set('input.splits', 'names')}"
            first = f"to read these splits, with the innermost folders as classes: {by_words}\nor {first}"
        why = _why_unclear(by_depth, tops, strange)
        raise UsageError(f"it is unclear what the folders mean: {why}; {first}{_choices(splits=splits, inner=inner)}")
    return found[depth]


def _of_one_level(by_depth: Collection[int], names: Collection[bytes], *, in_splits: bool) -> Layout | None:
    """Return what folders mean that are all splits or batches, or hold the pictures or batches of a split each."""
    if {*by_depth} == {1} and (in_splits or are_batches(names)):
        return "split" if in_splits else "flat"
    return "split" if in_splits and {*by_depth} == {2} and (_hold_pictures(names) or are_batches(names)) else None


def are_pairs(names: Collection[bytes]) -> bool:
    """Return whether folders have the names of two sides of each picture, which are no classes.

    >>> are_pairs([b"low", b"High"]), are_pairs([b"low", b"cat"])
    (True, False)
    """
    return len(names) > 1 and all(one.lower() in _SIDES for one in names)


_SIDES: Final = frozenset(
    b"low high normal lr hr input target gt noisy clean blur blurry sharp hazy haze clear rain rainy norain".split()
)


def are_batches(names: Iterable[bytes]) -> bool:
    """Return whether folders are batches of pictures by their names.

    >>> are_batches([b"Batch 1", b"Batch 2"]), are_batches([b"set_part_1", b"set_part_2"]), are_batches([b"art 1"])
    (True, True, False)
    """
    found = [_BATCH.fullmatch(one) for one in names]
    return all(found) and len({one[1] for one in found if one}) == 1


_BATCH: Final = re.compile(rb"((?:.*[_ -])?)(?:batch|part|chunk|shard)[ _-]?[0-9]{1,4}", re.IGNORECASE)


def _are_even(folders: Sequence[bytes]) -> bool:
    """Return whether each folder of the first level has its files at one level."""
    return len({(one.split(b"/")[0], one.count(b"/")) for one in folders}) == len(
        {one.split(b"/")[0] for one in folders}
    )


def _hold_pictures(names: Collection[bytes]) -> bool:
    return len(names) == 1 and all(map(_OF_PICTURES.fullmatch, names))


def _reading(tops: Collection[bytes], command: Callable[[bytes], str], *, mixed: bool) -> str:
    """Return the command that reads the one folder that holds all, or each split, where they are of `mixed` depths."""
    commands = [command(top) for top in sorted(tops)] if mixed or len(tops) == 1 else []
    if len(commands) == 1 and not is_split_folder(next(iter(tops))):
        return f"to read that folder alone: {commands[0]}\nor "
    return f"to read each split: {' && '.join(commands)}\nor " if mixed else ""


def _refuse_parts(
    parts: Sequence[bytes], names: Iterable[bytes], own: Sequence[str], first: str, *, splits: bool
) -> None:
    """Raise `UsageError` where all folders that are no splits hold parts of examples; `own` are commands for each."""
    if parts and all(_is_part(name) or is_split_folder(name) for name in names):
        what = f"{_parts_text(parts)}{': ' if own else ''}{' or '.join(own)}"
        raise UsageError(f"it is unclear what the folders mean: {what}; {first or 'or '}{_choices(splits=splits)}")


def files_of_one_folder(folders: Sequence[bytes], paths: Sequence[bytes], *, splits: bool = True) -> list[bytes]:
    """Return files that may hold labels beside the one folder of pictures, or beside that of one name in each split.

    `paths` are those of the `folders`, absolute.
    """
    names = {one.rpartition(b"/") for one in folders}
    inner = {name for _, _, name in names}
    above = {one for one, _, _ in names}
    in_splits = splits and all(is_split_folder(one) for one in above)
    if len(inner) > 1 or inner & {b""} or not (above == {b""} or in_splits):
        return []
    if above == {b""} and (splits and is_split_folder(*inner)):
        return []
    places = sorted({os.path.dirname(path.rstrip(b"/")) for path in paths if not is_object(path)})
    return [one.path for place in places[:_FEW] for one in _files_in(place) if _may_hold_labels(one)]


def _files_in(place: bytes) -> list[os.DirEntry[bytes]]:
    with os.scandir(place) as entries:
        return sorted((one for one in entries if one.is_file()), key=lambda one: one.name)


def _may_hold_labels(file: os.DirEntry[bytes]) -> bool:
    """Return whether a file is of a kind that holds labels, has more than a few bytes, and is no setting or hidden."""
    name = file.name.lower()
    least = 1 if name.endswith(_TABLES) else _FEW_BYTES
    return name.endswith(_OF_LABELS) and why_skipped(name) is None and file.stat().st_size >= least


_OF_LABELS: Final = (
    b".json", b".jsonl", b".csv", b".tsv", b".mat", b".xlsx", b".xls", b".npy", b".npz", b".parquet", b".pkl",
)  # fmt: skip
_TABLES: Final = (b".csv", b".tsv", b".jsonl")
_FEW_BYTES: Final = 32
"""Documents of fewer bytes are settings; a table of two rows has as few."""


def refuse_one_folder(folders: Sequence[bytes], own: Sequence[str], *, splits: bool) -> None:
    """Raise `UsageError`: a folder is the only one, and files beside it may say the classes; `own` are its commands."""
    alone = f"to read pictures without classes: {own[0]}\nor " if len(own) == 1 else ""
    raise UsageError(
        f'it is unclear what the folders mean: "{_shown(folders[0].rpartition(b"/")[2])}" would be the only class, '
        f"and a file beside it may say the classes; {alone}{_choices(splits=splits)}"
    )


def without_images(folders: Sequence[bytes]) -> list[bytes]:
    """Return folders without the last, which is `images` in all of them, where it is in folders of classes.

    >>> without_images([b"train/cat/images", b"train/dog/images"]), without_images([b"train/images", b"test/images"])
    ([b'train/cat', b'train/dog'], [b'train/images', b'test/images'])
    """
    split = [one.rpartition(b"/") for one in folders]
    pictures = all(_OF_PICTURES.fullmatch(last) for _, _, last in split)
    classes = {one for one, _, _ in split if one and not is_split_folder(one.rpartition(b"/")[2])}
    return [one for one, _, _ in split] if pictures and len(classes) > 1 else list(folders)


def parts_of(folders: Iterable[bytes]) -> list[tuple[str, ...]]:
    """Return the names of folders, from the top."""
    return [tuple(folder.decode("utf-8", "replace").split("/")) if folder else () for folder in folders]


def above_splits(folders: Sequence[bytes]) -> bytes:
    """Return the folder that holds all folders that are splits, with its slash.

    >>> above_splits([b"pets/train/cat", b"pets/test/cat"]), above_splits([b"cat/train", b"dog/test"])
    (b'pets/', b'')
    """
    found = level_of(parts_of(folders))
    tops = {tuple(folder.split(b"/")[: found[0]]) for folder in folders} if found is not None and found[1] else set()
    top = tops.pop() if len(tops) == 1 else ()
    return b"/".join(top) + b"/" if top else b""


def without_words(folder: bytes, split: str | None, globs: Sequence[str]) -> bytes:
    """Return a folder without the names that say of which split it is: its words, or the folders of a glob.

    >>> without_words(b"seg_train/seg_train/cat", "train", []), without_words(b"one/cat", "train", ["one/*"])
    (b'cat', b'cat')
    """
    for glob in globs:
        above = os.fsencode(re.split(r"[*?\[]", glob)[0].rpartition("/")[0])
        if above and f"{os.fsdecode(folder)}/".startswith(f"{os.fsdecode(above)}/"):
            return folder[len(above) + 1 :]
    if globs:
        return folder
    return b"/".join(part for part in folder.split(b"/") if split_in_words(part.decode("utf-8", "replace")) != split)


def above_words(folders: Sequence[bytes], splits: Sequence[str | None]) -> bytes:
    """Return the folder that holds all folders whose words are splits, with its slash.

    >>> above_words([b"pets/train_data/cat", b"pets/test_data/cat"], ["train", "test"])
    b'pets/'
    >>> above_words([b"cat/train_data", b"dog/test_data"], ["train", "test"])
    b''
    """
    tops = set[bytes]()
    for folder, split in zip(folders, splits, strict=True):
        parts = folder.split(b"/")
        words = (split_in_words(part.decode("utf-8", "replace")) for part in parts)
        at = next((at for at, word in enumerate(words) if word == split), 0)
        tops.add(b"".join(part + b"/" for part in parts[:at]))
    return tops.pop() if len(tops) == 1 else b""


def _why_unclear(by_depth: Mapping[int, bytes], tops: Mapping[bytes, bytes], strange: bytes | None) -> str:
    (depth, folder), *others = sorted(by_depth.items())
    if others:
        places = [f'in "{_shown(path)}"' if path else "in the root" for path in (folder, others[0][1])]
        return f"there are files {' and '.join(places)}"
    if depth > 2 or strange is None:
        return f'there are files {depth} levels down (in "{_shown(folder)}")'
    return f'"{_shown(strange)}" is not the name of a split (in "{_shown(tops[strange])}")'


def _parts_text(names: Collection[bytes]) -> str:
    listed = ", ".join(f'"{_shown(name)}"' for name in sorted(names))
    if len(names) == 1 and _hold_pictures(names):
        return f"{listed} is the name of a folder for all pictures, not of a class; read that folder by its own path"
    if "," not in listed:
        return f"{listed} looks like a part of each example, not a class; read that folder by its own path"
    return f"{listed} look like parts of each example, not classes; read one of these folders by its own path"


def _parts_in(names: Iterable[bytes]) -> list[bytes]:
    return [name for name in names if _is_part(name)]


def _is_part(name: bytes) -> bool:
    """Tell `masks`, and `panoptic_train2017` beside `train2017`."""
    known = _shown(re.sub(_OF_KIND + b"$", b"", name.lower())) in _PARTS or _OF_PICTURES.fullmatch(name) is not None
    return known or name.lower().startswith(b"panoptic_")


def _shown(name: bytes) -> str:
    return printable(name.decode("utf-8", "backslashreplace"))


def role_of(folder: bytes, layout: Layout) -> FolderRole:
    """Raise `UsageError` where the split cannot be named, or the class holds a line break."""
    try:
        parts = folder.decode().split("/") if folder else []
    except UnicodeDecodeError:
        return FolderRole()  # all its images are rejects: their names cannot be features
    split = None
    if layout == "flat":
        return FolderRole()
    if layout == "inner_label":
        parts = parts[-1:]
    if layout == "label_split" and parts:
        return FolderRole(split_of_folder(parts.pop()), "/".join(parts) or None)
    if layout in ("split", "split_label") and parts:
        top = parts.pop(0)
        split = split_of_folder(top) or top.lower()
        if not _SPLIT_NAME.fullmatch(split):
            raise UsageError(
                f'the folder "{printable(folder)}" names the split "{printable(split)}"; a split begins with a letter '
                f"and has letters, digits and _ only: rename it, or set another input.layout"
            )
    name = "/".join(parts) or None if layout != "split" else None
    if name is not None and len(name.splitlines()) > 1:
        raise UsageError(f'the class folder "{printable(name)}" has a line break in its name; rename it')
    return FolderRole(split, name)


def empty_classes(folders: Iterable[bytes], layout: Layout, classes: Sequence[str]) -> tuple[str, ...]:
    """Return the note that folders without images would be classes.

    >>> empty_classes([b"train/cat", b"train/yak", b"train/zebra", b"val"], "split_label", ["cat"])
    ('yak, zebra: no pictures, so they are no classes',)
    """
    names = set()
    for folder in folders:
        try:
            names.add(role_of(folder, layout).class_name)
        except UsageError:
            continue  # without images it may have any name
    missing = sorted(name for name in names.difference(classes) if name is not None)
    are = "it is no class" if len(missing) == 1 else "they are no classes"
    return (f"{first_names(missing, _FEW)}: no pictures, so {are}",) if missing else ()


def shards_as_classes(folders: Sequence[str], layout: Layout) -> tuple[str, ...]:
    """Return the note that folders are shards of a download, as img2dataset writes them: a table beside tells each.

    `folders` are absolute paths.
    """
    told = [f"{folder}{end}" for folder in folders[:_FEW] for end in _OF_SHARDS if os.path.isfile(f"{folder}{end}")]
    if layout not in _NO_CLASSES or not all(os.path.basename(folder).isdecimal() for folder in folders):
        return ()
    if len({one.rpartition(".")[0].removesuffix("_stats") for one in told}) < len(folders[:_FEW]):
        return ()
    return (
        f"folders named by numbers are classes, and look like shards: {printable_path(told[0])} is beside its folder; "
        f"to read no classes: {Set('input.layout', _NO_CLASSES[layout])}",
    )


def folds_as_classes(folders: Sequence[str], layout: Layout) -> tuple[str, ...]:
    """Return the note that the classes are folds by the names of their folders, of which each may be a split.

    >>> folds_as_classes(["/d/fold_1", "/d/fold_2"], "label")
    ('folders named as folds are classes; to read each as a split: --set input.layout=split',)
    """
    if layout != "label" or not all(_FOLD.fullmatch(os.path.basename(folder)) for folder in folders):
        return ()
    return (f"folders named as folds are classes; to read each as a split: {Set('input.layout', 'split')}",)


def batches_as_no_classes(folders: Sequence[str], layout: Layout) -> tuple[str, ...]:
    """Return the note that folders are batches by their names, whose pictures have no classes.

    >>> batches_as_no_classes(["Batch 1", "Batch 2"], "flat")
    ('folders named as batches are no classes (Batch 1, Batch 2); where they are: --set input.layout=label',)
    """
    names = sorted({os.path.basename(one) for one in folders})
    with_classes = {"flat": "label", "split": "split_label"}.get(layout)
    if with_classes is None or not are_batches(map(os.fsencode, names)):
        return ()
    what = f"folders named as batches are no classes ({first_names(names, _FEW_NAMES)})"
    return (f"{what}; where they are: {Set('input.layout', with_classes)}",)


_FOLD: Final = re.compile(r"k?folds?_?[0-9]{1,2}")
_OF_SHARDS: Final = (".parquet", "_stats.json", ".json", ".csv")
_NO_CLASSES: Final[dict[Layout, Layout]] = {"label": "flat", "split_label": "split"}


def unknown_class(name: str, classes: Sequence[str], ignored: Sequence[str]) -> ImageProblem:
    """Return the problem of an image in a folder whose class is not among those that are given.

    `ignored` is what the config leaves out already.
    """
    message = _unknown(name, classes, ignored)
    return ImageProblem("UNKNOWN_CLASS", message, value=name, expected=f"one of {first_names(classes, _FEW)}")


def unknown_warning(names: Sequence[str], classes: Sequence[str], ignored: Sequence[str]) -> tuple[str, ...]:
    known = set(classes)
    unknown = [name for name in names if name not in known]
    if len(unknown) < 2:
        return tuple(f"{_unknown(name, classes, ignored)}; its images are rejects" for name in unknown)
    leave = Set("input.ignore", [*ignored, *map(escape, unknown)]) if len(unknown) <= _FEW else "input.ignore"
    return (
        f"{len(unknown):,} folders are no classes of input.labels: {first_names(unknown, _FEW)}; their images are "
        f"rejects; add them to the list, or leave them out: {leave}",
    )


def _unknown(name: str, classes: Sequence[str], ignored: Sequence[str]) -> str:
    leave = Set("input.ignore", [*ignored, escape(name)])
    add = f"add it: {Set('input.labels', [*classes, name])}" if len(classes) < _FEW else "add it to input.labels"
    return f'"{printable(name)}" is no class: {first_names(classes, _FEW)}; {add}, or leave its folder out: {leave}'


def class_warnings(names: Sequence[str], layout: Layout) -> tuple[str, ...]:
    """Return what a user should know of the class names: those that differ in case, blanks or Unicode form only."""
    seen: dict[str, str] = {}
    warnings = []
    for name in names:
        key = " ".join(unicodedata.normalize("NFC", name).casefold().split())
        if key in seen:
            warnings.append(
                f'the classes "{printable(ascii(seen[key])[1:-1])}" and "{printable(ascii(name)[1:-1])}" differ only '
                f"in case, blanks or Unicode form; they stay two classes"
            )
        seen.setdefault(key, name)
    if layout == "label":
        splits = [name for name in names if is_split_folder(name.partition("/")[0].encode())]
        if splits:
            listed = first_names(splits, _FEW)
            right = "split_label" if any("/" in name for name in splits) else "split"
            all_are = len(splits) == len(names)
            fix = f"{Set('input.layout', right)}" if all_are else "keep them in a folder of their own"
            warnings.append(f"classes are named like splits: {listed}; if they are splits: {fix}")
        elif len({_SPLIT_AT_END.sub("", name.lower()) for name in names}) == 1 < len(names):
            listed = first_names(names, _FEW)
            warnings.append(
                f"classes are named like splits: {listed}; if they are splits: name them as such (train, test)"
            )
    return tuple(warnings)


# Names of folders and files that may be classes, sites or languages, which no record has:
#
# sports.csv, politics.csv       those of tables become a column by folders of another name
# neg/x.csv, pos/x.csv           those of folders too
# cat.0.jpg, dog.0.jpg           those of pictures by a table beside them


def names_of_tables(around: Around) -> Iterator[str]:
    """Each file may be of what its name says, which no record has: AAPL.csv and MSFT.csv, or train.en and train.de."""
    folders = defaultdict[str, list[str]](list)
    for folder, name in map(os.path.split, around.files if around.form in _WITH_NAMES else ()):
        folders[folder].append(name)
    every = [name for names in folders.values() for name in names]
    own = _words_apart(every) or [one for names in folders.values() for one in _words_apart(names)]
    if not own:
        return
    shown = first_names(sorted({*own}), _FEW_NAMES)
    first = min(around.files)
    stem = os.path.splitext(os.path.basename(first))[0]
    if around.form not in _WITH_COLUMNS or split_in_words(stem) or "://" in around.root:
        yield f"the names of the files are not read: {shown}"
        return
    folder = os.path.join(typed_path(os.path.dirname(first)), f"name={stem}")
    move = f"{Foreign('mkdir', folder)} && {Foreign('mv', typed_path(first), folder)}"
    if not _format_in(first):  # a glob has found it
        inner = "*/" * (first.count("/") - around.root.count("/"))
        found = os.path.join(typed_path(around.root), f"{inner}*{os.path.splitext(first)[1]}")
        move = f"{move}; then give their new paths: {shell_path(found)}"
    yield (
        f"file names do not become part of the records: {shown}; to get them as a column, put each file into a folder, "
        f"such as: {move}"
    )


def _words_apart(names: Sequence[str]) -> list[str]:
    """Return the words of each name that are not in all, or the number of its device; none of names without such."""
    one_end = len({os.path.splitext(one)[1] for one in names}) == 1
    stems = [os.path.splitext(one)[0] if one_end or _format_in(one) else one for one in names]
    words = [[word for word in _WORDS.findall(one) if split_in_words(word) is None] for one in stems]
    common = set(words[0]).intersection(*words) if words else set()
    own = [[word for word in each if word not in common] for each in words]
    if all(own):
        silent = sum(any(len(word) == 1 or word.lower() in _SAYS_NOTHING for word in each) for each in own)
        says = 2 * silent < len(own)  # a.csv beside aapl.csv and msft.csv
        found = [" ".join(each) for each in own] if says and not any(map(_HASH.search, stems)) else []
    else:
        devices = [_DEVICE.search(one) for one in stems]
        found = [one[0] for one in devices if one] if all(devices) else _numbers_apart([*dict.fromkeys(stems)])
    return found if len({*found}) > 1 else []


def _numbers_apart(stems: Sequence[str]) -> list[str]:
    """Return the numbers amid the same words, with what is around them, if they do not count parts of one table.

    >>> _numbers_apart(["x_3_sec", "x_30_sec"]), _numbers_apart(["132539", "132546"])
    (['3_sec', '30_sec'], ['132539', '132546'])
    >>> _numbers_apart(["p1", "p2", "p3"]), _numbers_apart(["part1", "part2", "part3"])
    (['p1', 'p2', 'p3'], [])
    """
    parts, is_date = [re.split("([0-9]+)", one) for one in stems], all(map(_DATE.search, stems))
    words = {one.lower() for one in _WORDS.findall(stems[0]) if len(one) > 1}
    says = not words or not words.issubset(_SAYS_NOTHING)
    if len({tuple(one[::2]) for one in parts}) > 1 or not says or any(map(_HASH_OF_LETTERS.search, stems)):
        return []
    at = [at for at in range(1, len(parts[0]), 2) if len({one[at] for one in parts}) > 1]
    if not at or split_in_words(stems[0]) or (len(stems) < _MANY and is_date):
        return []
    numbers, before = sorted({int(one[at[0]]) for one in parts}), parts[0][at[0] - 1]
    step = min(two - one for one, two in pairwise(numbers)) if len(stems) > _MANY_NAMES else 1
    counted = len(at) == 1 and numbers[-1] - numbers[0] < step * len(stems) and numbers[0] < _FIRST_ID
    of_persons = before[-1:].isalpha() or (stems[0].isdecimal() and {"1", "01"}.intersection(stems))
    if counted and not is_date and (len(stems) < _MANY or not of_persons):
        return []
    begin = before[len(before.rstrip(ascii_letters)) :]
    return [f"{begin}{''.join(one[at[0] :])}" for one in parts]


def _format_in(name: str) -> bool:
    return format_of_name(name) is not None


def classes_in_names(around: Around) -> Iterator[str]:
    """The names of pictures may begin with their classes, or end so, where no folder is one: cat.0.jpg, 0_cat.png.

    Those of other splits may be numbers: train/cat.0.jpg beside test/1.jpg.
    """
    stems = [os.path.splitext(one)[0] for one in around.files if around.form == "images"]
    numbers = [one for one in stems if one.isdecimal()] if len({*around.splits}) > 1 else []
    forms = _NUMBERED if len({*around.splits}) > 1 else _NUMBERED[:-1]  # two numbers are the place of a tile elsewhere
    for form, words, where in forms if around.unlabelled and "://" not in around.root else ():
        found = [match[1] for one in stems if (match := form.fullmatch(one))]
        classes = Counter(found)
        if len(found) + len(numbers) < len(stems) or not 1 < len(classes) <= len(found) // 2:
            continue
        ends, folders = sorted({os.path.splitext(one)[1] for one in around.files}), [*map(typed_path, around.folders)]
        write = runnable(
            r"[(folder / 'metadata.csv').write_text('file_name,class\n' + ''.join(one.name + ',' + "
            rf"''.join(re.findall({words!r}, one.stem)) + '\n' for one in sorted(folder.iterdir()) "
            f"if one.suffix in {ends})) for folder in map(pathlib.Path, {folders})]"
        )
        read = around.call.plain([typed_path(around.root)], set_column("class", "label", True))
        yield (
            f"file names may {where} with classes, which are not read: {first_names(sorted(classes), _FEW_NAMES)}; if "
            f"they do, write a table in Python: {write}; then: {read}"
        )
        return


_FEW_NAMES: Final = 4
_MANY: Final = 3
_MANY_NAMES: Final = 400
"""Of more names only some are looked at, in equal steps."""

_FIRST_ID: Final = 1000
_DATE: Final = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?:\D?[01][0-9](?:\D?[0-3][0-9])?)?(?![0-9])")
_MOST_TEXTS: Final = 64
_WORDS: Final = re.compile(r"[^\W\d_]+")
_HASH: Final = re.compile(r"(?<![^\W_])(?=[a-f]*[0-9])[0-9a-f]{7,}(?![^\W_])")
_HASH_OF_LETTERS: Final = re.compile(rf"(?=[^\W_]*[a-f]){_HASH.pattern}")
_DEVICE: Final = re.compile(
    r"(?:sensor|device|station|sub|subject|patient|participant|speaker|user|machine|engine|node|camera|room|site)"
    r"[ _-]?[0-9]+",
    re.IGNORECASE,
)
_NUMBERED: Final = (
    (re.compile(r"([A-Za-z]{2,})[._-]?[0-9]+"), "^[A-Za-z]+", "begin"),
    (re.compile(r"[0-9]+[._-]([A-Za-z]{2,}(?:_[A-Za-z]+)*)"), "[A-Za-z][A-Za-z_]*$", "end"),
    (re.compile(r"([0-9]{1,2})_[0-9]+"), "^[0-9]+", "begin"),
)
"""Forms of names with classes, what finds the class in one, and where it is."""

_SAYS_NOTHING: Final = (
    "part", "data", "file", "chunk", "shard", "table", "old", "new", "copy", "more", "extra", "images", "labels",
    "features", "targets", "final", "full", "first", "second", "last", "sample", "backup", "readme", "license",
)  # fmt: skip


def classes_of_folders(around: Around) -> Iterator[str]:
    """The names of the folders of files may be classes, which no record has, above or below those of splits.

    Texts of a class are read by a line of Python, tables with the class as a column by folders of another name.
    """
    root, form, call = around.root, around.form, around.call
    folders = [one[len(root.rstrip("/")) + 1 :].split("/") for one in around.folders] if form != "images" else []
    deepest = max(map(len, folders), default=0)
    chosen = [one for one in folders if len(one) == deepest] if form == "txt" else folders
    above = [one for one, parts in zip(around.folders, folders, strict=False) if len(parts) < deepest]
    splits = {name for name in chain(*folders) if split_in_words(name)}
    kinds = {kind_of(split_in_words(name) or "") for name in splits}
    if not any(around.splits) and (len(kinds) < 2 or not all(splits.intersection(parts) for parts in folders)):
        splits = set()  # airplane, bus, train; training_setA, training_setB
    own = _apart(
        [[(at, one) for at, one in enumerate(parts) if one not in splits and _may_be_class(one)] for parts in chosen]
    )
    names = sorted({one[-1][1] for one in own if one})
    if len(names) < 2:
        return
    shown = first_names(names, MOST)
    of_split = next(
        (at for at in range(deepest) if form == "txt" and all(split_in_words(one[at]) for one in chosen)), -1
    )
    if form == "txt" and "://" not in root and (of_split >= 0 or not any(around.splits)):
        at = next(one[-1][0] for one in own if one)
        split = _split_in_python(sorted({one[of_split] for one in chosen}), of_split - deepest - 1)
        split = split if any(around.splits) else ""
        folder = "path.parent.name" if at == deepest - 1 else f"path.parts[{at - deepest - 1}]"
        end = "*.txt" if all(one.endswith(".txt") for one in around.files) else "[!._]*"
        texts = f"sorted(pathlib.Path({typed_path(root)!r}).glob('{'*/' * deepest}{end}'))"
        encoding, odd = _encoding_of(around.files)
        text = f"path.read_bytes().decode({encoding!r})"  # which keeps line ends
        data = f"[{{{split}'class': {folder}, 'text': {text}}} for path in {texts}]"
        read = call.of_data(data, **({"split__column": "split"} if split else {}))
        others = " (without the files in folders above these)" if len(chosen) < len(folders) else ""
        too = f"; so are those of files above, as in {shown_path(min(above, key=len))}" if above else ""
        others += f" (write {shown_path(odd)} as UTF-8 first)" if odd else ""
        yield (
            f"each line is a record, without the folder of its file ({shown}){too}; if a file is a record, and its "
            f"folder the class, in Python{others}: {read}"
        )
        return
    first, at = next(
        (parts, one[-1][0]) for parts, one in zip(chosen, own, strict=True) if one and one[-1][1] == names[0]
    )
    path = os.path.join(root, *first[:at])
    rename = Foreign(
        "mv", typed_path(os.path.join(path, names[0])), typed_path(os.path.join(path, f"class={names[0]}"))
    )
    also = f"; to get them as a column, rename each folder, such as: {rename}" if form in _WITH_COLUMNS else ""
    yield f"folder names do not become part of the records: {shown}{'' if '://' in root else also}"


def _split_in_python(folders: Sequence[str], at: int) -> str:
    """Return the item of a dict with the split of a `path`, which the names of folders say."""
    words = {one: split_in_words(one) for one in folders}
    named = f"path.parts[{at}]"
    return f"'split': {named if all(map(split_of_folder, folders)) else f'{words!r}[{named}]'}, "


def _encoding_of(files: Sequence[str]) -> tuple[str, str]:
    """Return the encoding that reads the beginnings of some texts, and the first one that has another than others."""
    odd, is_known = "", False
    for one in files[:_MOST_TEXTS]:
        head = beginning_of(one, HEAD_BYTES)
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head)
            is_known = is_known or not head.isascii()
        except UnicodeDecodeError:
            odd = odd or one
    return ("utf-8", odd) if is_known or not odd else ("latin-1", "")


def _may_be_class(folder: str) -> bool:
    """Return whether a folder has another name than those of columns, files and versions."""
    says = "=" in folder or format_of_name(folder) or re.fullmatch(r"[0-9]+(?:\.[0-9]+)+", folder)
    return bool(folder) and not says


def _apart(paths: list[list[tuple[int, str]]]) -> list[list[tuple[int, str]]]:
    """Return paths without the names that all begin with, or end with."""
    while paths and all(paths) and len({one[0] for one in paths}) == 1:
        paths = [one[1:] for one in paths]
    while paths and all(paths) and len({one[-1][1] for one in paths}) == 1:
        paths = [one[:-1] for one in paths]
    return paths


_WITH_NAMES: Final = ("csv", "jsonl", "parquet", "arrow", "txt", "numpy")
_WITH_COLUMNS: Final = ("csv", "jsonl", "parquet", "arrow")
"""Formats whose folders may be columns (`input.partitions`)."""
