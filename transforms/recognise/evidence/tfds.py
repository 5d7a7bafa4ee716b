"""Read what TFDS, Roboflow and Kaggle state beside or in the names of TFRecord files, and compare records with it.

mnist/3.0.1/dataset_info.json     TFDS: the shards of each split, with the records of each
mnist/3.0.1/features.json         TFDS: the types of features; label.labels.txt the names of classes
train/cells.tfrecord, cells_label_map.pbtxt    Roboflow: the names of the classes of boxes
flowers/train/00-224x224-798.tfrec, train00-1338.tfrec    Kaggle: the number of records, last in the name
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ...errors import DamageError, InputError
from ...format.schema.column_types import TYPES
from ...format.schema.schema import Pixels
from ...format.sidecars.tfds import labels_file_name
from ...format.wording.hints import Foreign
from ...format.wording.printable import counted, first_names, printable
from ...inputs.contract.selection import Call, shown_path, typed_path
from ...inputs.files.listing import beginning_of

INFO: Final = "dataset_info.json"
FEATURES: Final = "features.json"
_TEMPLATE: Final = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
_MOST_BYTES: Final = 64 << 20
_MOST_FOLDERS: Final = 64
_SHOWN: Final = 6
_TYPE_OF: Final = {one.tfds: one.name for one in TYPES.values() if one.tfds} | {"float32": "float32"}
"""Our types by the dtypes of TFDS; others are what records hold: it keeps float64 as float32, for one."""

_FLOAT_PICTURE: Final = "pictures of floats, each packed into a pixel of four bytes, and read so"
_COUNTED: Final = re.compile(r"([A-Za-z_]*)([0-9]{2,5})-(?:[0-9]+x[0-9]+-)?([1-9][0-9]*)\.tfrec")
_BOX_CLASS: Final = "image/object/class/label"
_MOST_CLASSES: Final = 100_000
_ID: Final = re.compile(r"\bid\s*:\s*([0-9]{1,9})")
_NAME: Final = re.compile(r"""\bname\s*:\s*["']([^"'\n]+)["']""")
_ONE_OF: Final = re.compile(r"-([0-9]{1,9})-of-([0-9]{1,9})(?![0-9])")


class StatedFeature(NamedTuple):
    """The type and the shape of a feature, the names of its classes, and who says so; (-1,) is any length.

    Without a type, it is that of the values in records. A `note` says what is stated and not kept. `pixels` are what
    TFDS decodes a picture to.
    """

    type: str
    shape: tuple[int, ...]
    names: tuple[str, ...] = ()
    by: str = FEATURES
    note: str = ""
    pixels: Pixels | None = None

    def joined(self, other: StatedFeature) -> StatedFeature | None:
        """Return what holds for both, None where they differ in more than the sizes of pictures."""
        pixels = self.pixels and self.pixels.joined(other.pixels)
        return self._replace(pixels=pixels) if self._replace(pixels=None) == other._replace(pixels=None) else None


@dataclass(frozen=True, slots=True)
class TfdsFolder:
    """A folder that TFDS wrote: `shards` are the files that it states, each with its split and its records."""

    path: str
    shards: Mapping[str, tuple[str, int]]

    def features(self) -> dict[str, StatedFeature]:
        """Return what features.json states, by the keys of records."""
        try:
            tree = json.loads(beginning_of(os.path.join(self.path, FEATURES), _MOST_BYTES) or b"{}")
            stated = dict(_features_of(tree, "", ()))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}  # of another version of TFDS: the types are those that the records show
        return {key: self._with_names(key, one) if one.type == "label" else one for key, one in stated.items()}

    def _with_names(self, key: str, one: StatedFeature) -> StatedFeature:
        text = beginning_of(os.path.join(self.path, labels_file_name(key)), _MOST_BYTES).decode("utf-8", "replace")
        names = tuple(name for line in text.split("\n") if (name := line.strip()))
        if names:
            return one._replace(names=names)
        return one._replace(type="", note=f"classes without names, as there is no {labels_file_name(key)}")


class StatedCount(NamedTuple):
    """How many records a file should have, and who says so."""

    records: int
    by: str


@dataclass(frozen=True, slots=True)
class StatedFiles:
    """What is stated of files: the records of each by its path, features, and the classes of each folder by its name.

    Features of which two folders state different things have no place in it.
    """

    counts: Mapping[str, StatedCount] = field(default_factory=dict)
    features: Mapping[str, StatedFeature] = field(default_factory=dict)
    folders: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    @property
    def types(self) -> dict[str, str]:
        return {key: one.type for key, one in self.features.items() if one.type}

    def notes(self, kept: Collection[str]) -> Iterator[str]:
        """Yield what to say of features that are stated otherwise than they are `kept`."""
        alike = defaultdict[tuple[str, str], list[str]](list)
        for key, one in self.features.items():
            if one.note and key in kept:
                alike[one.by, one.note].append(printable(key))
        for (by, note), keys in alike.items():
            yield f"{first_names(keys, _SHOWN)}: {note} ({by})"

    def compare(self, found: Iterable[tuple[str, str, int]]) -> list[str]:
        """Return what to say of files with more records than is stated: each is a path, a name to show, its records.

        Raises:
            DamageError: files have fewer.
        """
        wrong = [(name, n, one) for path, name, n in found if (one := self.counts.get(path)) and one.records != n]
        said = [f"{name} holds {counted(n, 'record')}, and {one.by} states {one.records:,}" for name, n, one in wrong]
        if any(n < one.records for _, n, one in wrong):
            raise DamageError(
                f"{'; '.join(said[:_SHOWN])}; records are missing: copy or download the "
                f"{'file' if len(said) == 1 else 'files'} again, or leave them out"
            )
        return said


def stated_of(files: Sequence[str]) -> StatedFiles:
    counts = dict(_counts_in_names(files))
    alike, folders = dict[str, StatedFeature | None](), dict[str, dict[str, tuple[str, ...]]]()
    tfds = tfds_folders(files)
    stated = [(one.path, one.features()) for one in tfds]
    for one in tfds:
        counts |= {os.path.join(one.path, name): StatedCount(n, INFO) for name, (_, n) in one.shards.items()}
    for path, features in [*stated, *_label_maps(files)]:
        for key, found in features.items():
            known = alike.setdefault(key, found)
            alike[key] = known and known.joined(found)
        folders[shown_path(path)] = {key: found.names for key, found in features.items() if found.names}
    return StatedFiles(counts, {key: found for key, found in alike.items() if found is not None}, folders)


def _label_maps(files: Iterable[str]) -> Iterator[tuple[str, dict[str, StatedFeature]]]:
    """Yield folders with the classes of boxes, by the map beside a file: `cells_label_map.pbtxt`."""
    first = {os.path.dirname(one): one for one in reversed(list(files))}
    for folder, file in list(first.items())[:_MOST_FOLDERS]:
        stem = os.path.basename(file).partition(".")[0]
        name = f"{stem}_label_map.pbtxt"
        text = beginning_of(os.path.join(folder, name), _MOST_BYTES).decode("utf-8", "replace")
        items = re.findall(r"item\s*\{(.*?)\}", text, re.S)
        found = {int(n[1]): t[1] for one in items if (n := _ID.search(one)) and (t := _NAME.search(one))}
        if found and max(found) < _MOST_CLASSES:
            names = tuple(found.get(number, f"_unused_{number}") for number in range(max(found) + 1))
            yield folder, {_BOX_CLASS: StatedFeature("label", (-1,), names, name)}


def tfds_folders(files: Iterable[str]) -> list[TfdsFolder]:
    """Return the folders of files that TFDS wrote."""
    paths = list(dict.fromkeys(map(os.path.dirname, files)))[:_MOST_FOLDERS]
    return [TfdsFolder(path, shards) for path in paths if (shards := _shards_in(path))]


OTHER_SUFFIXES: Final = (".array_record", ".riegeli")
OTHER_SHARDS: Final = re.compile(r"\.(?:parquet|array_record|riegeli)-[0-9]{5,}-of-[0-9]{5,}$")
_READ: Final = {
    "array_record": ("array_record.python.array_record_module", "{}.ArrayRecordReader(str(path)).read_all()"),
    "parquet": ("pyarrow.parquet", '{}.read_table(path)["data"].to_pylist()'),
}
"""The modules and the calls that read the records of a shard; `tfds convert_format` of 4.9 writes none and exits 0."""


def refuse_other_records(folder: str, call: Call) -> None:
    """Refuse a folder in which TFDS wrote its records to files of another format than TFRecord.

    Raises:
        InputError: it has the command that writes the same records to TFRecord files, and reads these.
    """
    try:
        kind = json.loads(beginning_of(os.path.join(folder, INFO), _MOST_BYTES) or b"{}").get("fileFormat", "tfrecord")
    except (ValueError, AttributeError, RecursionError):
        return  # another program has written a file of this name
    if kind == "tfrecord":
        return
    typed, made = typed_path(folder), f"{typed_path(folder)}-tfrecord"
    how = 'prepare the dataset again with file_format="tfrecord"'
    if kind in _READ and "://" in folder:
        how = "copy the folder to a disk and convert it there, which proposes the command"
    elif kind in _READ:
        module, read = _READ[kind]
        old, new = (json.dumps(one, ensure_ascii=False) for one in (typed, made))
        line = (
            f"import json, pathlib, shutil, tensorflow, {module}; new = pathlib.Path({new}); "
            f'shutil.copytree({old}, new, ignore=shutil.ignore_patterns("*.{kind}-*")); info = new / "{INFO}"; '
            'info.write_text(json.dumps(json.loads(info.read_text()) | {"fileFormat": "tfrecord"})); '
            f"[([file.write(one) for one in {read.format(module)}], file.close()) "
            f'for path in pathlib.Path({old}).glob("*.{kind}-*") for file in '
            f'[tensorflow.io.TFRecordWriter(str(new / path.name.replace(".{kind}-", ".tfrecord-")))]]'
        )
        how = f"write them to TFRecord files: {Foreign('python', '-c', line)} && {call.reading([made])}"
    raise InputError(
        f"{shown_path(folder)}: {INFO} says that the records of TFDS are in files of {printable(str(kind))}, which "
        f"are not read; {how}"
    )


def _shards_in(folder: str) -> dict[str, tuple[str, int]]:
    shards: dict[str, tuple[str, int]] = {}
    try:
        info = json.loads(beginning_of(os.path.join(folder, INFO), _MOST_BYTES) or b"{}")
        for split in info.get("splits", ()) if info.get("fileFormat", "tfrecord") == "tfrecord" else ():
            lengths = list(map(int, split.get("shardLengths", ())))
            words = {"DATASET": info["name"], "SPLIT": split["name"], "FILEFORMAT": "tfrecord"}
            for index, records in enumerate(lengths):
                shard = {"SHARD_INDEX": f"{index:05d}", "NUM_SHARDS": f"{len(lengths):05d}"}
                shard["SHARD_X_OF_Y"] = "{SHARD_INDEX}-of-{NUM_SHARDS}".format_map(shard)
                name = (split.get("filepathTemplate") or _TEMPLATE).format_map(words | shard)
                if records:
                    shards[name] = split["name"], records
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return {}  # another program has written a file of this name
    return shards


def _features_of(node: Mapping[str, Any], key: str, outer: tuple[int, ...]) -> Iterator[tuple[str, StatedFeature]]:
    """Yield the features below a node of features.json; `outer` are the lengths of the sequences around it."""
    if "featuresDict" in node:
        for name, child in node["featuresDict"]["features"].items():
            yield from _features_of(child, f"{key}/{name}" if key else name, outer)
    elif "sequence" in node:
        length = int(node["sequence"].get("length", -1))
        yield from _features_of(node["sequence"]["feature"], key, (*outer, length))
    elif "translation" in node:
        varies = node["translation"].get("variableLanguagesPerExample")
        for name in ("language", "translation") if varies else node["translation"]["languages"]:
            yield from _features_of({"text": {}}, f"{key}/{name}", (*outer, -1) if varies else outer)
    elif "video" in node:  # a picture a frame
        length, *sizes = _sizes(node["video"]) or (-1,)
        frame = node["video"] | {"shape": {"dimensions": sizes}}
        yield from _features_of({"image": frame}, key, (*outer, length))
    else:
        yield from _leaf(node, key, outer)


def _leaf(node: Mapping[str, Any], key: str, outer: tuple[int, ...]) -> Iterator[tuple[str, StatedFeature]]:
    form, own = next(((name, one) for name, one in node.items() if isinstance(one, dict)), ("", {}))
    kind = {"classLabel": "label", "text": "string", "image": "image"}.get(form, "")
    dtype, sizes, encoding = str(own.get("dtype", "")), _sizes(own), str(own.get("encoding", "none")).lower()
    shape, name, note = (*outer, *sizes), str(node.get("pythonClassName", "")).rpartition(".")[2], ""
    pixels = None
    if kind:
        shape, note = outer, _FLOAT_PICTURE if form == "image" and dtype.startswith("float") else ""
        if form == "image":
            pixels = Pixels(dtype or "uint8", sizes or (-1, -1, 3), str(own.get("encodingFormat", "")))
        if name == "LabeledImage":
            note = f"masks of numbers of classes, whose names in {labels_file_name(key)} are not kept"
    elif own.get("lazyDecode"):
        shape, note = outer, f"{name}, whose bytes are kept as they are, and not looked at"
    elif encoding != "none":
        key, shape = f"{key}/value" if sizes.count(-1) > 1 else key, outer
        note = f"{dtype} of {_shown_shape(sizes)}, packed as {encoding}, whose bytes are kept as they are"
    elif form in ("tensor", "boundingBox", "audio") and dtype:
        kind = _TYPE_OF.get(dtype, "")
        note = "" if kind or dtype == "string" else f"{dtype}, which TFDS keeps as float32: read as float32"
        rate = own.get("sampleRate")
        note = f"Audio of {int(rate):,} samples a second, read as {dtype}" if rate else note
    else:
        note = f"{name or 'no type that is known'}, read as what its records hold"
    if not note and -1 in shape and len(shape) > 1 and shape.count(-1) == 1:
        note = f"lists of {_shown_shape(shape)}, read as flat lists"
    yield (
        f"{key}/ragged_flat_values" if shape.count(-1) > 1 else key,
        StatedFeature(kind, (-1,) if -1 in shape else shape, note=note, pixels=pixels),
    )


def _sizes(node: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(map(int, node.get("shape", {}).get("dimensions", ())))


def _shown_shape(sizes: Iterable[int]) -> str:
    return f"[{', '.join('?' if one < 0 else str(one) for one in sizes)}]"


def _counts_in_names(files: Sequence[str]) -> Iterator[tuple[str, StatedCount]]:
    """Yield the counts in the names of files of a folder that are numbered from 0 on."""
    groups = defaultdict[tuple[str, str], list[tuple[int, str, int]]](list)
    for file in files:
        folder, name = os.path.split(file)
        if found := _COUNTED.fullmatch(name):
            groups[folder, found[1]].append((int(found[2]), file, int(found[3])))
    for group in groups.values():
        if min(group)[0] == 0:
            yield from ((file, StatedCount(records, "its name")) for _, file, records in group)


def missing_files(names: Iterable[str]) -> list[str]:
    """Return what to say of files of which the names say that there are more.

    >>> missing_files(["a-00000-of-00003", "a-00002-of-00003", "b.tfrecord-1-of-1"])
    ['a-00001-of-00003 is not here: 2 of 3 files of this name are; if others hold records, the dataset lacks them']
    """
    found: dict[tuple[str, str, str], dict[int, int]] = defaultdict(dict)
    for name in names:
        for match in _ONE_OF.finditer(name):
            found[name[: match.start()], name[match.end() :], match[2]][int(match[1])] = len(match[1])
    notes = []
    for (before, after, total), numbers in found.items():
        first = int(int(total) in numbers)  # numbered from 1
        left = next((at for at in range(first, int(total) + first) if at not in numbers), None)
        if left is not None:
            name = f"{before}-{left:0{max(numbers.values())}d}-of-{total}{after}"
            notes.append(
                f"{name} is not here: {len(numbers):,} of {int(total):,} files of this name are; if others "
                f"hold records, the dataset lacks them"
            )
    return notes
