"""Name files beside a source that may belong to it, with the command that uses them if there is one.

    1.txt beside 1.jpg            captions, or boxes of YOLO: the tar of both, or input.annotations.yolo
    images.zip beside a table     the pictures that its rows name
    images.txt of CUB             the lists of a published set

Of at most a few files the first bytes are looked at. Lists of pictures are in `lists`, tables that name pictures in
`tables`, annotations in `pictures.box_layouts`.
"""

from __future__ import annotations

import csv
import json
import os
import re
import tarfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from glob import escape
from typing import Final

from ...format.wording.hints import Add, Foreign, Set, read_csv, runnable, set_column
from ...format.wording.printable import first_names, printable
from ...inputs.contract.selection import Call, shown_path, typed_path
from ...inputs.files.file_names import ARCHIVE, is_of_roboflow, is_other_file, notes_among, why_skipped
from ...inputs.files.listing import beginning_of
from ...inputs.files.open_file import is_object
from ..evidence.label_names import HEAD_BYTES, YOLO_LINES
from ..evidence.names import split_in_words
from ..evidence.picture_tables import names_of_cells

MOST: Final = 8
MOST_FOLDERS: Final = 1000
_ARCHIVES: Final = re.compile(ARCHIVE + rb"$", re.IGNORECASE)
_UNPACK: Final = {
    ".zip": ("unzip", "{file}", "-d", "{folder}"),
    ".7z": ("7z", "x", "{file}", "-o{folder}"),
    ".rar": ("unrar", "x", "{file}", "{folder}/"),
}

MOST_NAMES: Final = 1000
"""So many names of files are looked at for classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Files that are read, with their `form`, and those around them; `folders` are theirs below the `root`, absolute.

    `notable` are files that were left out, `texts` others whose lines may name pictures, `pairs` those with the name of
    a picture beside them, one of each suffix, each with that picture; `more` files that may name pictures are only
    counted. `splits` are those of the files. Pictures of a
    `flat` folder have no classes and no splits, which an archive of samples would lose. `files` are some of those that
    are read; pictures without classes are `unlabelled`. With `others` tables that name no picture are named too.
    """

    form: str
    call: Call
    notable: Sequence[bytes]
    texts: Sequence[bytes] = ()
    folders: Sequence[str] = ()
    root: str = ""
    splits: Collection[str | None] = ()
    files: Sequence[str] = ()
    unlabelled: bool = False
    pairs: Sequence[tuple[bytes, bytes]] = ()
    flat: bool = False
    others: bool = True
    more: int = 0

    @property
    def below(self) -> Sequence[str]:
        """The folders that are looked at for files."""
        return self.folders[:MOST_FOLDERS]

    @property
    def above(self) -> list[str]:
        """The folders that hold these, below the root."""
        return [one for one in dict.fromkeys(map(os.path.dirname, self.below)) if one.startswith(f"{self.root}/")]

    def apart(self, file: str) -> Call:
        """Return the call with a dataset of its own for a file beside pictures, unless rows are appended."""
        below = os.path.relpath(file, self.root or None).removeprefix("../")
        name = re.sub("[./]+", "-", os.path.splitext(below)[0]).strip("-")
        return self.call if self.call.command == "append" else self.call.apart(name)


def sidecars(around: Around) -> Iterator[str]:
    """A file has the name of a picture beside it: a caption, boxes, or another."""
    call, several = around.call, len(around.folders) > 1
    for path, picture in around.pairs:
        folder, name = os.path.split(os.fsdecode(path))
        shown = typed_path(folder)
        suffix = os.path.splitext(name)[1].lower()
        what = f"{shown_path(path)} has the name of the picture beside it ({printable(picture)}), and is not read"
        if suffix == ".txt" and YOLO_LINES.match(beginning_of(path, HEAD_BYTES)):
            place = typed_path(around.root) if several else shown
            read = call.plain([place], Set("input.annotations.yolo", place))
            yield f"{what}: it looks like boxes of YOLO; to read them: {read}"
        elif suffix == ".json" and _LABELME.search(beginning_of(path, HEAD_BYTES)):
            how = "" if several else f"; {_boxes_of_labelme(shown, call)}"
            yield f"{what}: it looks like shapes of labelme{how}"
        elif around.flat and not is_object(path):
            tar = f"{shown.rstrip('/')}.tar"
            pack = Foreign("tar", "--sort=name", "-cf", tar, "-C", shown, ".")
            read = call.plain([tar])
            yield f"{what}; to read both as one record: {pack} && {read}"
        else:
            yield f"{what}: files beside pictures are read from archives of samples alone, without classes of folders"


_LABELME: Final = re.compile(rb'"shapes"\s*:\s*\[')


def _boxes_of_labelme(folder: str, call: Call) -> str:
    """Return what writes the boxes of the shapes of labelme to a table, and reads it."""
    table = os.path.join(folder, "boxes.csv")
    write = runnable(
        "pandas.DataFrame([{'filename': pathlib.PureWindowsPath(one['imagePath']).name, 'class': shape['label'], "
        "'xmin': min(x), 'ymin': min(y), 'xmax': max(x), 'ymax': max(y)} for one in [json.loads(path.read_bytes()) "
        f"for path in sorted(pathlib.Path({folder!r}).glob('*.json'))] for shape in one['shapes'] "
        "if shape['shape_type'] in ('rectangle', 'polygon') for x, y in [zip(*shape['points'])]])"
        f".to_csv({table!r}, index=False)"
    )
    read = call.plain([folder], Set("input.annotations.boxes", table))
    return f"to read the boxes of its rectangles and polygons, write them to a table in Python: {write}; then: {read}"


def lines_of_roboflow(around: Around) -> Iterator[str]:
    """Lines of JSON that Roboflow writes beside pictures, a file for each split: a picture, a question, an answer."""
    lines = [one for one in around.notable if is_of_roboflow(one) and one.endswith(b".jsonl")]
    if around.form != "images" or not lines:
        return
    files = [typed_path(os.fsdecode(one)) for one in lines]
    columns = set(map(_picture_key, lines))
    column = columns.pop()
    its, are = ("its", "is") if len(files) == 1 else ("their", "are")
    if columns or column is None:
        yield f"{first_names(files, MOST)} {are} beside pictures, and {are} not read"
        return
    options = [set_column(column, "image", "path")]
    if len({os.path.dirname(one) for one in files}) < len(files):
        options += [Set("input.splits", "names")]
    read = around.call.plain(files, *options)
    what = f'{first_names(files, MOST)} name{"s" * (len(files) == 1)} pictures in {its} column "{printable(column)}"'
    yield f"{what}, and {are} not read; to read {its} rows: {read}"


def _picture_key(path: bytes) -> str | None:
    """Return the key whose value in the first line is a file in the folder of the file."""
    try:
        row = json.loads(beginning_of(path, HEAD_BYTES).partition(b"\n")[0])
    except ValueError:
        return None  # it is not read, whatever it holds
    folder, pairs = os.path.dirname(os.fsdecode(path)), row.items() if isinstance(row, dict) else ()
    values = ((key, value) for key, value in pairs if isinstance(value, str) and value and "\0" not in value)
    return next((key for key, value in values if os.path.isfile(os.path.join(folder, value))), None)


def labels_of_lines(around: Around) -> Iterator[str]:
    """A list beside lines has a label for each of them: `train-labels.lst` of PIQA, beside `train.jsonl`."""
    files = around.files if around.form in ("jsonl", "txt") and "://" not in around.root else ()
    stems = {file: os.path.splitext(file)[0] for file in files if file.endswith((".jsonl", ".ndjson", ".txt"))}
    pairs = [(file, stem + end) for file, stem in stems.items() for end in _OF_LINES if os.path.isfile(stem + end)]
    lists = {
        file: labels for file, labels in pairs if labels not in files and _lines_in(file) in (0, _lines_in(labels))
    }
    if not lists:
        return
    splits = {file: split_in_words(os.path.basename(file)) for file in lists}
    of_splits = any(around.splits) and all(splits.values())
    row = "**json.loads(line)" if around.form == "jsonl" else "'text': line.decode()"
    numbers = all(line.strip().isdecimal() for one in lists.values() for line in lines_of(os.fsencode(one)))
    more, split = ("'split': split, ", {"split__column": "split"}) if of_splits else ("", {})
    data = (
        f"[{{{more}{row}, 'label': {'int(label)' if numbers else 'label.decode()'}}} for file, labels, split in "
        f"{[(typed_path(file), typed_path(labels), splits[file]) for file, labels in lists.items()]} "
        "for line, label in zip(*(pathlib.Path(one).read_bytes().splitlines() for one in (file, labels)), strict=True)]"
    )
    names, lines = (first_names([*map(shown_path, some)], MOST) for some in (lists.values(), lists))
    holds, are = ("holds", "is") if len(lists) == 1 else ("hold", "are")
    what = f"{names} {holds} a label for each line of {lines}, and {are} not read"
    yield f"{what}; to join them, in Python: {around.call.of_data(data, **split)}"


_OF_LINES: Final = ("-labels.lst", "_labels.lst", "-labels.txt", "_labels.txt", ".labels", ".label", ".lab")


def _lines_in(path: str) -> int:
    """Return how many lines a file has; 0 of a large one, whose name says enough."""
    if os.path.getsize(path) > _MOST_BYTES:
        return 0
    with open(path, "rb") as file:
        return file.read().rstrip().count(b"\n") + 1


def as_metadata(call: Call, folder: str, frame: str, options: Sequence[Add], what: str = "its rows") -> str:
    """Return what writes an expression of pandas as the table of the pictures below a folder, and reads these."""
    place = typed_path(folder)
    write = runnable(f"{frame}.to_csv({os.path.join(place, 'metadata.csv')!r}, index=False)")
    read = call.plain([place], Set("input.format", "images"), *options)
    return f"to read {what}, write them to metadata.csv in Python: {write}; then: {read}"


_MOST_BYTES: Final = 64 << 20
_STRANGE: Final = (".tif", ".tiff", ".heic", ".avif", ".jp2")
"""Suffixes of pictures that are read to be written in another format, since TensorFlow cannot decode theirs."""


def written_as(picture: str) -> list[Set]:
    return [Set("image.encode.format", "png")] if picture.lower().endswith(_STRANGE) else []


def unread_annotations(around: Around, lines: Sequence[str]) -> Iterator[str]:
    """Texts in folders of annotations, or with names of pictures elsewhere, which none of some lines names."""
    notes = notes_among(around.texts, folders=True)
    texts = [os.fsdecode(one) for one in around.texts if around.form == "images" and one not in notes]
    pictures = {_stem(one) for one in around.files}
    alike = {os.path.dirname(one) for one in texts if _stem(one) in pictures}
    called = {one for one in map(os.path.dirname, texts) if _OF_ANNOTATIONS.fullmatch(os.path.basename(one))}
    folders = {folder: one for one in sorted(texts, reverse=True) if (folder := os.path.dirname(one)) in alike | called}
    left = {folder: one for folder, one in folders.items() if not any(folder in line for line in lines)}
    if left:
        has, its = ("has", "its") if len(left) == 1 else ("have", "their")
        what = "the name of folders of annotations" if called.issuperset(left) else "files with names of pictures"
        shown = first_names(sorted(map(shown_path, left)), MOST)
        first = shown_path(min(left.values()))
        yield f"{shown} {has} {what}, and {its} files are not read, such as {first}"


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


_OF_ANNOTATIONS: Final = re.compile(
    r"(?:.*[_ -])?(?:annotations?|annots?|anns?|labels?|b?box(?:es)?|gt|ground[_ -]?truths?|xmls?|polygons?)",
    re.IGNORECASE,
)


def kept_in_a_store(around: Around) -> Iterator[str]:
    """Files beside pictures in a store, such as tables, lists and annotations, are read from a disk alone."""
    files = [*(one for one in around.notable if not is_archive(one)), *(path for path, _ in around.pairs)]
    named = [shown_path(one) for one in dict.fromkeys(files) if os.path.basename(one).lower() != b"readme.md"]
    if around.form == "images" and named:
        url = around.root.rstrip("/")
        folder = url.rpartition("/")[2]
        sync = ("aws", "s3", "sync") if url.startswith("s3") else ("gcloud", "storage", "rsync", "--recursive")
        read = around.call.reading([folder])
        them, are = ("it", "is") if len(named) == 1 else ("them", "are")
        what = f"{first_names(named, MOST)} {are} beside pictures in a store, and {are} not read"
        yield f"{what}; to read {them}, copy all to a disk first: {Foreign(*sync, url, folder)} && {read}"


def archives_beside(around: Around) -> Iterator[str]:
    """Archives beside the files that are read are to be unpacked, since rows may name what is in them."""
    archives = [os.fsdecode(one) for one in around.notable if is_archive(one) and not is_object(one)]
    members = {path: member for path in archives[:MOST] if (member := unpacked_beside(path))}
    for path, member in [*members.items()][:1]:
        more = f" and {len(members) - 1:,} more" if len(members) > 1 else ""
        yield f"{shown_path(path)}{more}: not read, since what is in it is beside it, such as {shown_path(member)}"
    packed = [one for one in archives if one not in members]
    for path in packed[:1]:
        folder, name = os.path.split(path)
        ending = next((one for one in _UNPACK if name.lower().endswith(one)), "")
        words = _UNPACK.get(ending, ("tar", "-xf", "{file}", "-C", "{folder}"))
        how = Foreign(*(word.format(file=typed_path(path), folder=typed_path(folder)) for word in words))
        more = f" and {len(packed) - 1:,} more" if len(packed) > 1 else ""
        yield f"{shown_path(os.fsencode(path))}{more}: not read; if rows name files in it, unpack it first: {how}"


def unpacked_beside(path: str) -> str:
    """Return the file or folder beside an archive that is the first of its members; empty where there is none."""
    name = _first_member(path)
    stem = re.sub(_ARCHIVES.pattern, b"", os.fsencode(path), flags=re.IGNORECASE)
    places = [os.path.normpath(os.path.join(one, name)) for one in (os.path.dirname(os.fsencode(path)), stem)]
    return os.fsdecode(next(filter(os.path.exists, places), b"")) if name else ""


def _first_member(path: str) -> bytes:
    head = beginning_of(path, HEAD_BYTES)
    if head.startswith(b"PK\3\4"):
        return head[30:][: int.from_bytes(head[26:28], "little")]
    try:
        with tarfile.open(path, "r|*") as archive:
            return os.fsencode(next((one.name for one in archive if one.name != "."), ""))
    except (tarfile.TarError, OSError, EOFError, zlib.error):
        return b""  # unpacking it says what is wrong


def to_leave_archives_out(folder: str, call: Call) -> Iterator[str]:
    """Yield what leaves archives out of a folder that has no other file which may be a picture."""
    if is_object(os.fsencode(folder)) or any(one.key == "input.ignore" for one in call.given):
        return
    with os.scandir(os.fsencode(folder)) as entries:
        files = [one.path for one in entries if one.is_file() and why_skipped(one.name) is None]
    files = sorted(one for one in files if not is_other_file(os.path.basename(one)))
    if files and all(map(is_archive, files)):
        leave = Set("input.ignore", [escape(os.path.basename(os.fsdecode(one))) for one in files])
        unpacked = ", since what is in it is beside it" if all(map(unpacked_beside, map(os.fsdecode, files))) else ""
        yield f"to leave {first_names([*map(shown_path, files)], MOST)} out{unpacked}: {leave}"


def is_archive(path: bytes) -> bool:
    return _ARCHIVES.search(path) is not None


def lines_of(path: bytes) -> list[str]:
    """Return the whole lines at the beginning of a file."""
    head = beginning_of(path, HEAD_BYTES)
    return head.decode("utf-8-sig", "replace").splitlines()[: None if len(head) < HEAD_BYTES else -1]


def rows_in(path: bytes, *, whole: bool = False) -> list[list[str]]:
    """Return the rows of a table, those at its beginning if it is large or not wanted `whole`.

    Of one without a header the first are names of its columns.
    """
    lines = lines_of(path)
    sign = max("\t,;|", key=lines[0].count) if lines else ","
    if whole and os.path.getsize(path) <= _MOST_BYTES:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = [*csv.reader(file, delimiter=sign)] or [[]]
    else:
        rows = [*csv.reader(lines, delimiter=sign)] or [[]]
    names = names_of_cells(rows[0])
    return [list(names), *rows] if names else rows


# Sets of pictures as they were published, whose splits or classes are in lists: a table for all is written from these.
#
# Food-101          meta/train.txt            apple_pie/1000                    images/apple_pie/1000.jpg
# CUB-200           images.txt                1 001.Albatross/a.jpg             images/001.Albatross/a.jpg
#                   train_test_split.txt      1 0                               0 is the test split
# Tiny ImageNet     val/val_annotations.txt   val_0.JPEG n01443537 0 10 20 40   val/images/val_0.JPEG


TAB: Final = "\t"
AS_LABELS: Final = set_column("class", "label", True)
BY_SPLIT: Final = Set("split.column", "split")


def published_sets(around: Around) -> Iterator[str]:
    """Lists beside pictures say their splits, or the classes of one split."""
    if around.form != "images" or "://" in around.root:
        return
    for place in dict.fromkeys([around.root, *around.above, *map(os.path.dirname, around.above)]):
        yield from _cub(place, around)
        yield from _tiny_imagenet(place, around)


def _cub(place: str, around: Around) -> Iterator[str]:
    files = [os.path.join(place, name) for name in ("images.txt", "train_test_split.txt")]
    pictures = os.path.join(place, "images")
    if not all(map(os.path.isfile, files)) or not os.path.isdir(pictures):
        return
    names, splits = map(typed_path, files)
    frame = (
        f"{read_csv(repr(names), ' ', names=['id', 'file_name'])}"
        f".merge({read_csv(repr(splits), ' ', names=['id', 'split'])})"
        ".assign(split=lambda rows: rows['split'].map({'1': 'train', '0': 'test'}), "
        "**{'class': lambda rows: rows['file_name'].str.rpartition('/')[0]})"
    )
    yield said_by_lists([names, splits], around, pictures, frame, [AS_LABELS, BY_SPLIT])


def _tiny_imagenet(place: str, around: Around) -> Iterator[str]:
    file = os.path.join(place, "val", "val_annotations.txt")
    if not os.path.isfile(file) or not os.path.isdir(os.path.join(place, "train")):
        return
    root = typed_path(place)
    frame = (
        "pandas.concat([pandas.DataFrame({'file_name': str(path.relative_to("
        f"{root!r})), 'class': path.parts[-3]}} for path in sorted(pathlib.Path({root!r}).glob('train/*/images/*'))), "
        f"{read_csv(repr(typed_path(file)), TAB, header=None, usecols=[0, 1], names=['file_name', 'class'])}"
        ".assign(file_name=lambda rows: 'val/images/' + rows['file_name'])])"
    )
    yield said_by_lists([typed_path(file)], around, place, frame, [AS_LABELS])


def said_by_lists(files: list[str], around: Around, folder: str, frame: str, options: Sequence[Add]) -> str:
    how = as_metadata(around.call, folder, frame, options, "the pictures with what they say")
    say = "say the splits" if BY_SPLIT in options else "says the classes"
    return (
        f"{first_names([*map(shown_path, files)], MOST)} {say}, and {'are' if len(files) > 1 else 'is'} not read; {how}"
    )
