"""Find pictures and their boxes in the folder layouts of labelling and training tools, in all splits.

    Roboflow       train/_annotations.coco.json    train/7.jpg         COCO         each split has its own file
                   train/7.xml                     train/7.jpg         VOC
                   train/labels/7.txt              train/images/7.jpg  YOLO         names in data.yaml
    Ultralytics    labels/train/7.txt              images/train/7.jpg  YOLO         or where data.yaml says
    COCO           annotations/instances_val2017.json   val2017/7.jpg
                   annotations/train.json          images/7.jpg
    any            val.json, val/labels.json       val/7.jpg           COCO         by content
    CVAT           annotations/instances_default.json   images/7.jpg
                   obj_train_data/7.txt            obj_train_data/7.jpg   YOLO      names in obj.names
    Label Studio   result.json, Annotations/7.xml or labels/7.txt      images/7.jpg
    VOC            Annotations/7.xml               JPEGImages/7.jpg
    LabelImg       7.xml or 7.txt                  7.jpg               names in classes.txt

The folders that are looked at are the root, or the only one in it, those of splits in it, and the few whose names say
what they hold. Of other folders a file with the name of annotations is named, with the command that reads it.
"""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from typing import Any, Final

from ...errors import InputError, SourceError
from ...format.wording.hints import Set
from ...format.wording.printable import first_names
from ...inputs.contract.selection import Call, shown_path, typed_path
from ...inputs.files.file_names import is_other_file, pictures_below, why_skipped
from ...inputs.files.listing import beginning_of, list_file
from ...inputs.files.open_file import mapped, open_file, open_listed
from ..beside.files import Around, kept_in_a_store
from ..beside.tables import tables_of_pictures
from ..evidence.label_names import HEAD_BYTES, NAMES, OTHERS, YOLO_LINES, labels_of
from ..evidence.lists import PICTURES, folders_of_pictures
from ..evidence.names import is_split_folder, kind_of, split_in_words, split_of_folder, split_of_set
from ..evidence.picture_tables import Resolved, annotated_section, is_picture_table

_MOST_FOLDERS: Final = 64
"""A root with more folders is one of classes."""

_MOST_FILES: Final = 256
"""So many files of a folder are looked at for pictures, and for annotations beside them."""

_HEAD: Final = 1 << 20  # of COCO's JSON, which may begin with a list of licenses
_MOST_ENTRIES: Final = 1 << 16
"""A folder with more files and folders is one of pictures."""

_MOST_HEADS: Final = 16
_MOST_NAMES: Final = 256
_WRAPPERS: Final = 2
"""The root may be so many folders further down, each alone in the one above: `VOCdevkit/VOC2012`."""

_SUFFIXES: Final = {"voc": ".xml", "yolo": ".txt"}
_FILE_NAME: Final = re.compile(rb'"file_name"\s*:\s*"((?:[^"\\]|\\.)+)"')
_IMAGES: Final = re.compile(rb'"images"\s*:\s*\[')
_ANNOTATIONS: Final = re.compile(rb'"annotations"\s*:\s*\[')
_EMPTY: Final = re.compile(rb'"annotations"\s*:\s*\[\s*\]')
_BOXES: Final = re.compile(rb'"(?:bbox|caption)"\s*:')
_PANOPTIC: Final = re.compile(rb'"segments_info"\s*:')
_USUAL: Final = re.compile(
    r"annotations/[^/]+|(?:.+/)?(?:[^/]+\.coco\.json|instances[_-][^/]+|result\.json)", re.IGNORECASE
)
"""Files of COCO's that tools write, below the root."""

_INSTANCES: Final = re.compile(r"instances[_-](.+)\.json", re.IGNORECASE)
_NO_BOXES: Final = re.compile("panoptic|labels[_-]")
"""COCO's files of segments, and of classes of whole pictures, which may be boxes by their content."""

_OF_CVAT: Final = re.compile(r"obj_[A-Za-z]+_data")
_SAID: Final = ("annotations", "metadata", "detect", "layout", "labels", "formats", "sha256")
"""Options that say how the folders of pictures are read."""

_SAID_OF_TABLES: Final = ("annotations", "metadata", "detect")
"""Options that say it where a table names the pictures."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A file or folder of annotations of a kind, and the folder of its pictures; both are paths."""

    kind: str
    files: str
    pictures: str


def by_box_layout(given: Mapping[str, Any], paths: Sequence[str], base: str, call: Call) -> Resolved | None:
    """A folder has a layout in which tools write pictures with boxes: its annotations name the pictures."""
    top = root_of(given, paths, base)
    if not top:
        return None
    root, by_content = top, [*_coco_by_content(top)]
    pairs = _all_pairs(root, by_content)
    for _ in range(_WRAPPERS):
        if not pairs and (inner := _only_folder(root)) is not None:
            root, by_content = inner, [*_coco_by_content(inner)]
            found = _all_pairs(root, by_content)
            beside = [one for one in found if one.pictures in (one.files, os.path.dirname(one.files))]
            pairs = [one for one in found if one.kind == "coco" or one not in beside]
    unread = list(_unread(by_content, pairs))
    if len({pair.kind for pair in pairs}) != 1:
        _refuse_unread(unread, paths[0], call)
        return None
    kind = pairs[0].kind
    if kind == "coco":
        _refuse_unclear(pairs, root, paths[0], call)
    shown, pictures = (
        [os.path.normpath(os.path.join(paths[0], os.path.relpath(one, top))) for one in some]
        for some in ([pair.files for pair in pairs], [pair.pictures for pair in pairs])
    )
    section = annotated_section(given, kind, shown, pictures)
    return Resolved(
        section,
        {"file_name": {"name": "image", "image": "path"}},
        (root,),
        f"{ANNOTATIONS[kind]} annotations in {first_names(shown, 3)}: the pictures that they name become the records, "
        f"in their order (the pictures alone: {Set('input.detect', 'none')}){_beside_instances(pairs, call)}"
        f"{_not_read(unread)}{_classes_beside(pairs)}{_tables_beside(root, pairs, call)}",
        files_root=os.path.commonpath(pictures),
    )


def root_of(given: Mapping[str, Any], paths: Sequence[str], base: str) -> str:
    """Return the only folder of pictures that is given, if the user does not say how it is read; else nothing."""
    said = any(given.get(key) is not None for key in _SAID)
    root = os.path.join(base, paths[0]) if len(paths) == 1 and "://" not in paths[0] else ""
    return root if given["format"] == "images" and not said and os.path.isdir(root) else ""


def _beside_instances(pairs: Sequence[Pair], call: Call) -> str:
    """Say which files of COCO's say more of the pictures than instances do, with the commands that read both.

    An append needs the features of the dataset: what some splits lack is read by no command.
    """
    beside: list[dict[str, str]] = []
    segments = list[str]()
    for pair in pairs:
        folder, name = os.path.split(pair.files)
        match = _INSTANCES.fullmatch(name)
        names = {kind: f"{kind}_{match[1]}.json" for kind in ("captions", "person_keypoints")} if match else {}
        paths = {kind: os.path.join(folder, one) for kind, one in names.items()}
        beside.append({kind: shown_path(path) for kind, path in paths.items() if os.path.isfile(path)})
        panoptic = os.path.join(folder, f"panoptic_{match[1]}.json") if match else ""
        segments += [shown_path(panoptic)] if os.path.isfile(panoptic) else []
    others = [path for one in beside for path in one.values()]
    read = f"; {first_names(segments, 4)}: segments of masks, which are not read" if segments else ""
    if not others:
        return read
    is_, them = ("is", "it") if len(others) == 1 else ("are", "them")
    read = f"{read}; {first_names(others, 4)} {is_} not read"
    if any(one.keys() != beside[0].keys() for one in beside):
        return f"{read}, as not every split has such files"
    commands, apart = list[str](), replace(call.apart("all"), command="convert")
    for pair, more in zip(pairs, beside, strict=True):
        split = split_in_words(os.path.basename(pair.files)) or split_of_folder(os.path.basename(pair.pictures))
        both = Set("input.annotations.coco", [shown_path(pair.files), *more.values()])
        of_split = Set("output.split", split or "train")
        commands.append(str(_next(apart, commands).reading([typed_path(pair.pictures)], both, of_split)))
    return f"{read}; to read {them} too: {' && '.join(commands)}"


def _next(call: Call, commands: Sequence[str]) -> Call:
    """Return the call of the next of some commands: those after the first append to what it writes."""
    return replace(call, command="append", has_written=False) if commands else call


def _all_pairs(root: str, by_content: Sequence[Pair]) -> list[Pair]:
    pairs = list(dict.fromkeys(_pairs(root)))
    more = [one for one in _of_config(root) if not any(f"{one.files}/".startswith(f"{it.files}/") for it in pairs)]
    found = pairs + more
    own = [one for one in by_content if one.pictures and not any(_alike(one, pair, root) for pair in found)]
    return found + own if all(pair.kind == "coco" for pair in found) else found


def _alike(one: Pair, other: Pair, root: str) -> bool:
    splits = {_split_of(pair.files, root) for pair in (one, other)} - {""}
    return one.files == other.files or (one.pictures == other.pictures and len(splits) <= 1)


def _split_of(path: str, root: str) -> str:
    """Return the split that the name of a file or folder states, or else that of the next folder below the root."""
    *folders, name = os.path.relpath(path, root).split(os.sep)
    words = (split_in_words(name), *map(split_of_set, reversed(folders)))
    return kind_of(next(filter(None, words), ""))


def _unread(by_content: Sequence[Pair], pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Yield the files of COCO's that are in no pair, and for which no line is there; `pictures` may be empty."""
    read, paired = {pair.files for pair in pairs}, {pair.pictures for pair in pairs}
    for one in by_content:
        folder, name = os.path.split(one.files)
        instances = os.path.join(folder, re.sub(r"^(?:captions|person_keypoints)_", "instances_", name))
        bare = one.pictures in ("", *paired) and not _BOXES.search(_text_of(one.files))
        if not bare and not {one.files, instances} & read:
            yield one


def _not_read(unread: Sequence[Pair]) -> str:
    """Say of the files of COCO's that are not read why."""
    gone = [shown_path(one.files) for one in unread if not one.pictures]
    also = [shown_path(one.files) for one in unread if one.pictures]
    its, is_ = ("folder of its", "is") if len(gone) == 1 else ("folders of their", "are")
    text = f"; {first_names(gone, 4)}: not read, as the {its} pictures {is_} not found" if gone else ""
    its = "its" if len(also) == 1 else "their"
    return text + (f"; {first_names(also, 4)}: not read, as {its} pictures have other annotations" if also else "")


def _classes_beside(pairs: Sequence[Pair]) -> str:
    """Say which files beside COCO's boxes have classes of whole pictures."""
    places = dict.fromkeys(os.path.dirname(pair.files) for pair in pairs if pair.kind == "coco")
    paths = [os.path.join(one, name) for one in places for name in _texts_in(one) if name.startswith("labels")]
    found = [shown_path(one) for one in paths if not _is_coco(one)]
    are = "is" if len(found) == 1 else "are"
    return f"; {first_names(found, 4)} {are} not read: classes of whole pictures, without boxes" if found else ""


def _tables_beside(root: str, pairs: Sequence[Pair], call: Call) -> str:
    """Say which tables beside annotations name the pictures too, with the commands that read them."""
    places = [root, *(os.path.join(root, one) for one in folders_in(root)[:_MOST_FOLDERS])]
    files = [os.fsencode(os.path.join(one, name)) for one in places for name in files_in(one)[:_MOST_FILES]]
    folders = [*dict.fromkeys(pair.pictures for pair in pairs)]
    own = call if call.command == "append" else call.apart("tables")
    around = Around(form="images", call=own, notable=files, folders=folders, root=root, others=False)
    return "".join(f"; {line}" for line in tables_of_pictures(around))


def _refuse_unread(unread: Sequence[Pair], typed: str, call: Call) -> None:
    """Raise `InputError` where a file of COCO's would be left out without a word."""
    for one in unread:
        if annotation_kind(b"", os.fsencode(os.path.basename(one.files))) is None:
            pictures = typed_path(one.pictures) if one.pictures else "PICTURES"
            split = split_of_folder(os.path.basename(one.pictures)) or "train"
            given = Set("input.annotations.coco", shown_path(one.files)), Set("output.split", split)
            read = call.plain([pictures], *given)
            where = "" if one.pictures else " (PICTURES: the folder of its pictures)"
            raise InputError(
                f"{shown_path(one.files)}: COCO annotations, and it is unclear of which folder; to read them: "
                f"{read}{where}; {_alone(typed, call)}"
            )


def _alone(typed: str, call: Call) -> str:
    return f"the pictures alone: {call.reading([typed], Set('input.format', 'images'), Set('input.detect', 'none'))}"


def _refuse_unclear(pairs: Sequence[Pair], root: str, typed: str, call: Call) -> None:
    """Raise `InputError` where the splits of files of COCO's are unclear, or two are of the same pictures."""
    own = [pair for pair in pairs if not _USUAL.fullmatch(os.path.relpath(pair.files, root))]
    twice = next((two for two in combinations(own, 2) if _alike(*two, root)), ())
    lost = [one for one in own if _split_of(one.pictures, root) not in ("", _split_of(one.files, root))]
    if not twice and not lost:
        return
    commands = list[str]()
    for one in twice or pairs:
        split = _split_of(one.pictures, root) or _split_of(one.files, root)
        given = [Set("input.annotations.coco", shown_path(one.files)), Set("output.split", split or "train")]
        commands.append(str(_next(call, () if twice else commands).plain([typed_path(one.pictures)], *given)))
    if twice:
        what = f"{first_names([shown_path(one.files) for one in twice], 2)}: both are COCO annotations of the pictures "
        raise InputError(
            f"{what}in {shown_path(twice[0].pictures)}; choose: {' or '.join(commands)}; {_alone(typed, call)}"
        )
    raise InputError(
        f"{shown_path(lost[0].files)}: COCO annotations of the pictures in {shown_path(lost[0].pictures)}, and their "
        f"names do not state one split; to read them by their folders: {' && '.join(commands)}; {_alone(typed, call)}"
    )


def _only_folder(root: str) -> str | None:
    """Return the only folder in a root that holds pictures, where the root itself holds none."""
    if any(not (is_other_file(name) or why_skipped(name)) for name in map(os.fsencode, files_in(root))):
        return None
    folders = [os.path.join(root, name) for name in folders_in(root)[:_MOST_FOLDERS]]
    found = [one for one in folders if next(pictures_below(os.fsencode(one)), None) is not None]
    return found[0] if len(found) == 1 else None


def folders_of_splits(root: str) -> list[str]:
    """Return a folder and those of splits in it; nothing where it has many, which are classes."""
    folders = folders_in(root)
    if len(folders) > _MOST_FOLDERS:
        return []
    splits = list(filter(split_of_set, folders))
    of_cvat = [one for one in folders if _OF_CVAT.fullmatch(one)]
    return [root, *(os.path.join(root, one) for one in (*splits, *of_cvat))]


def _pairs(root: str) -> Iterator[Pair]:
    places = folders_of_splits(root)
    found = [(place, pair) for place in places for pair in (*_beside(place), *_in_folders(place))]
    yield from (pair for _, pair in found)
    yield from _as_in_splits(root, [(place, pair) for place, pair in found if place != root])
    files = files_in(os.path.join(root, "annotations")) if places else []
    texts = [one for one in files if one.lower().endswith(".json")]
    for name in list(filter(_INSTANCES.fullmatch, texts)) or [one for one in texts if not _NO_BOXES.match(one)]:
        match = _INSTANCES.fullmatch(name)
        last = match[1] if match else re.split("[_-]", name[: -len(".json")])[-1]
        pictures = (last, os.path.join("images", last), *PICTURES)
        yield from _coco(os.path.join(root, "annotations", name), [os.path.join(root, one) for one in pictures])


def _as_in_splits(root: str, found: Sequence[tuple[str, Pair]]) -> Iterator[Pair]:
    """Yield what is in other folders in the places in which folders of splits have their annotations."""
    shapes = dict.fromkeys(
        (one.kind, os.path.relpath(one.files, place), os.path.relpath(one.pictures, place)) for place, one in found
    )
    for name, (kind, *inner) in product(folders_in(root)[:_MOST_FOLDERS] if shapes else (), shapes):
        files, pictures = (os.path.normpath(os.path.join(root, name, one)) for one in inner)
        texts = [files] if kind == "coco" else (os.path.join(files, one) for one in files_in(files))
        there = any(os.path.isfile(one) and one.lower().endswith(_SUFFIXES.get(kind, ".json")) for one in texts)
        if there and next(pictures_below(os.fsencode(pictures)), None) is not None:
            yield Pair(kind, files, pictures)


def _beside(place: str) -> Iterator[Pair]:
    files = files_in(place)
    for name in files:
        if name.lower().endswith(".coco.json") or _INSTANCES.fullmatch(name) or name == "result.json":
            yield from _coco(os.path.join(place, name), [place, os.path.join(place, "images")])
    stems = {os.path.splitext(name)[0] for name in files if not is_other_file(os.fsencode(name))}
    of_pictures = [os.path.join(place, name) for name in files if os.path.splitext(name)[0] in stems]
    if _holds("voc", of_pictures):
        yield Pair("voc", place, place)
    above = (place, os.path.dirname(place)) if _OF_CVAT.fullmatch(os.path.basename(place)) else (place,)
    named = any(os.path.isfile(os.path.join(one, name)) for one in above for name in NAMES)
    if named and _holds("yolo", of_pictures):
        yield Pair("yolo", place, place)


def _in_folders(place: str) -> Iterator[Pair]:
    pictures = next((path for name in PICTURES if os.path.isdir(path := os.path.join(place, name))), None)
    for kind, folder in (("yolo", "labels"), ("voc", "Annotations"), ("voc", "annotations"), ("voc", "labels")):
        path = os.path.join(place, folder)
        if pictures is None or not os.path.isdir(path) or not _holds(kind, files_below(path)):
            continue
        if kind == "yolo" or files_in(pictures):  # VOC's names of pictures are without the folders of classes
            yield Pair(kind, path, pictures)


def _of_config(root: str) -> Iterator[Pair]:
    """Yield the folders that a `data.yaml` of Ultralytics', or an `obj.data`, names."""
    for pictures in folders_of_pictures(root):
        path = labels_of(pictures)
        if _holds("yolo", files_below(path)):
            yield Pair("yolo", path, pictures)


def _coco(file: str, places: Sequence[str]) -> Iterator[Pair]:
    """Yield a file of COCO's with the first of some folders that has a picture of its first ones."""
    names = _first_pictures(file)
    found = next((one for one in places if any(os.path.isfile(os.path.join(one, name)) for name in names)), None)
    if found is not None:
        yield Pair("coco", file, found)


def _coco_by_content(root: str) -> Iterator[Pair]:
    """Yield each file that is of COCO's by its content, whatever its name, with the folder of its pictures, or ""."""
    for place in folders_of_splits(root) or [root]:
        for folder in (place, os.path.join(place, "annotations"), os.path.join(place, "labels")):
            for name in _texts_in(folder):
                file = os.path.join(folder, name)
                if _is_coco(file):
                    yield Pair("coco", file, _pictures_of_coco(file, place, root))


def _texts_in(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    texts = [name for name in os.listdir(folder) if name.endswith(".json") or name.lower().endswith(".json")]
    return sorted(islice((name for name in texts if os.path.isfile(os.path.join(folder, name))), _MOST_FILES))


def _text_of(file: str) -> mmap.mmap | bytes:
    try:
        with open_listed(list_file(os.fsencode(file), b"/"), open_file) as opened:
            return mapped(opened)
    except (InputError, SourceError, OSError, ValueError):  # ValueError: of an empty file
        return b""


def _is_coco(file: str) -> bool:
    text = _text_of(file)
    found = _ANNOTATIONS.search(text) if _IMAGES.search(text) else None
    head = text[found.start() : found.start() + _HEAD] if found else b""
    return bool(_BOXES.search(head) or _EMPTY.match(head)) and not _PANOPTIC.search(head)


def _pictures_of_coco(file: str, place: str, root: str) -> str:
    """Return the folder that has most of the first pictures; nothing where two have as many."""
    names, split = _first_pictures(file), _split_of(file, root)
    usual = [place, *(os.path.join(place, name) for name in PICTURES)]
    inner = [os.path.join(one, name) for one in usual for name in folders_in(one)[:_MOST_FOLDERS]]
    places = [one for one in dict.fromkeys([*usual, *inner]) if not split or _split_of(one, root) in ("", split)]
    own = [one for one in places if split and _split_of(one, root)]
    for some in (own, usual, places):
        counts = {one: sum(os.path.isfile(os.path.join(one, name)) for name in names) for one in some}
        most = max(counts.values(), default=0)
        best = [one for one, count in counts.items() if count == most > 0]
        if best:
            return best[0] if len(best) == 1 or best[0] in usual else ""
    return ""


def _first_pictures(file: str) -> list[str]:
    """Return the names of the first pictures that a file of COCO's lists; the first one may be missing."""
    text = _text_of(file)
    start = match.start() if (match := _IMAGES.search(text)) else 0
    texts = (match[1].decode("utf-8", "replace") for match in _FILE_NAME.finditer(text[start : start + _HEAD]))
    return [name.replace("\\", "/") for name in map(_unescaped, islice(texts, _MOST_NAMES)) if name]


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return ""


def _holds(kind: str, paths: Sequence[str]) -> bool:
    """Return whether one of the first of some files is of a kind of annotations."""
    texts = [path for path in paths if path.lower().endswith(_SUFFIXES[kind])]
    heads = (beginning_of(path, HEAD_BYTES).strip() for path in texts[:_MOST_HEADS])
    return any(b"<annotation" in head if kind == "voc" else YOLO_LINES.match(head) for head in heads)


def files_below(folder: str) -> list[str]:
    """Return the paths of some files below a folder."""
    folders = [folder]
    for one in folders:
        if len(folders) <= _MOST_FOLDERS:
            folders += [os.path.join(one, inner) for inner in folders_in(one)[:_MOST_FOLDERS]]
    return [os.path.join(one, name) for one in folders for name in files_in(one)]


def folders_in(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    with os.scandir(folder) as entries:
        folders = [one.name for one in islice(entries, _MOST_ENTRIES) if _is_folder(one)]
    return sorted(name for name in folders if why_skipped(os.fsencode(name)) is None)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle
        return False


def files_in(folder: str) -> list[str]:
    """Return the names of some files in a folder; none where there is no such folder."""
    if not os.path.isdir(folder):
        return []
    with os.scandir(folder) as entries:
        return sorted(one.name for one in islice(entries, _MOST_FILES) if os.path.isfile(one.path))


ANNOTATIONS: Final = {"coco": "COCO", "voc": "Pascal VOC", "yolo": "YOLO"}
_LABELS: Final = b"labels"
_LOWER: Final = (b"images", b"jpegimages")


@dataclass(frozen=True, slots=True)
class AnnotationFile:
    """A file that has the name of annotations, by its absolute path; `beside` are pictures in its own folder."""

    kind: str
    path: bytes
    beside: bool

    def hint(self, folders: Sequence[bytes], call: Call) -> str:
        """Return the command that reads the file."""
        folder = os.path.dirname(self.path)
        files, pictures = folder, folder if self.beside else _pictures_of(folder, folders)
        if self.kind == "coco":
            files, stem = self.path, os.path.splitext(self.path)[0]
            pictures = next((one for one in folders if stem.endswith(b"_" + os.path.basename(one))), pictures)
        elif self.kind == "yolo":
            files, pictures = _labels_of(folder), _pictures_of(_labels_of(folder), folders)
        place = "PICTURES" if pictures is None else typed_path(os.fsdecode(pictures))
        split = "train" if pictures is None else _split_of_all(pictures, folders)
        given = [Set(f"input.annotations.{self.kind}", shown_path(files))]
        given += [Set("output.split", split)] if split != "train" else []
        read = call.plain([place], *given)
        where = " (PICTURES: the folder of its pictures)" if pictures is None else ""
        alone = self.beside and self.kind == "voc" and len(folders) > 1
        them = f"those of {shown_path(files)} alone" if alone else "them"
        return (
            f"{shown_path(self.path)} has the name of {ANNOTATIONS[self.kind]} annotations, which are not read; to "
            f"read {them}: {read}{where}"
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
        return "yolo" if _LABELS in folder.lower().split(b"/") and not OTHERS.fullmatch(os.fsdecode(name)) else None
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


def refuse_unread_in_a_store(around: Around, said: Collection[str]) -> None:
    """Refuse pictures in a store beside annotations, or a table of them, which would be read on a disk.

    Raises:
        InputError: the user does not say how the pictures are read.
    """
    start, by_said = len(around.root.rstrip("/")) + 1, {*said}
    for path in around.notable if "://" in around.root else ():
        folder, name = os.path.split(path)
        is_table = is_picture_table(os.fsdecode(name))
        if not by_said & {*(_SAID_OF_TABLES if is_table else _SAID)} and (
            is_table or annotation_kind(folder[start:], name)
        ):
            alone = around.call.reading([around.root], Set("input.detect", "none"))
            raise InputError(f"{next(kept_in_a_store(around))}; the pictures alone: {alone}")


def _split_of_all(pictures: bytes, folders: Sequence[bytes]) -> str:
    """Return the split whose name a folder of pictures has, or the one above `images`; folders in it have their own."""
    start = len(pictures) + 1
    inner = {part for one in folders if one.startswith(pictures + b"/") for part in one[start:].split(b"/")}
    above, name = os.path.split(pictures)
    own = (name, os.path.basename(above)) if name.lower() in _LOWER else (name,)
    splits = map(split_of_folder, map(os.fsdecode, own))
    return "train" if any(map(is_split_folder, inner)) else next(filter(None, splits), "train")


def _labels_of(folder: bytes) -> bytes:
    while os.path.basename(folder).lower() != _LABELS and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _pictures_of(folder: bytes, folders: Sequence[bytes]) -> bytes | None:
    """Return the folder of pictures beside one of annotations: `images`, or the only one that is read."""
    above = os.path.dirname(folder)
    for name in _LOWER:
        for path in folders:
            below = path[len(above) + 1 :].split(b"/")[0] if path.startswith(above + b"/") else b""
            if below.lower() == name:
                return os.path.join(above, below)
    return folders[0] if len(folders) == 1 else None
