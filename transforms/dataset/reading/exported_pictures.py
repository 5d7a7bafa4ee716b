"""Write a dataset as a folder of pictures, as `shardmill convert` and Hugging Face's imagefolder read it."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
from PIL import Image

from ...errors import DamageError, UsageError
from ...format.schema.schema import Feature, Schema
from ...format.wording.hints import Add
from ...format.wording.printable import printable, printable_path
from ..storage.direct_file import errors_named, new_file_named
from .exported_tables import ExportedRows, plain_list

# Write a dataset as a folder of pictures, as `shardmill convert` and Hugging Face's imagefolder read it.
#
#     train/cat/1.jpg                splits and classes are folders
#     train/metadata.jsonl           {"file_name": "cat/1.jpg", "caption": "...", "objects": {"bbox": [...]}}
#
# Where nothing is known of the pictures but their classes there is no metadata.jsonl: once there is one, folders are no
# classes to readers.


@dataclass(slots=True)
class PictureFolder:
    """Writes rows below `root`, one after the other; `pictures` counts the files."""

    root: str
    rows: ExportedRows
    plan: PicturePlan
    pictures: int = 0
    _lines: dict[str, BinaryIO] = field(default_factory=dict)

    def write(self) -> None:
        number = 0
        with ExitStack() as opened:
            for split, batch in self.rows.batches():
                root = os.path.join(self.root, split)
                if split not in self._lines:
                    os.makedirs(root, exist_ok=True)
                    if self.plan.with_lines:
                        path = os.path.join(root, "metadata.jsonl")
                        self._lines[split] = opened.enter_context(new_file_named(path))
                for line in self._batch(root, batch, number):
                    if self.plan.with_lines:
                        self._lines[split].write((json.dumps(line, ensure_ascii=False) + "\n").encode())
                number += batch.num_rows

    def _batch(self, root: str, batch: pa.RecordBatch, first: int) -> Iterator[dict[str, Any]]:
        named = dict(zip(batch.schema.names, batch.columns, strict=True))
        shown = {name: plain_list(name, named[name]) for name in self.plan.columns}
        known = self._known(named)
        place = printable_path(self.rows.dataset.path)
        for row in range(batch.num_rows):
            facts = {name: values[row] for name, values in known.items()}
            line: dict[str, Any] = {}
            for picture in self.plan.pictures:
                content = named[f"{picture.stem}/encoded"][row]
                line[picture.column] = self._paths(root, picture, content, facts, first + row)
            line |= {name: values[row] for name, values in shown.items()}
            if self.plan.objects is not None:
                line[OBJECTS] = self.plan.objects.value(facts, f"{place} row {first + row}")
            yield line

    def _known(self, named: Mapping[str, pa.Array]) -> dict[str, list[Any]]:
        wanted = [f"{one.stem}/{what}" for one in self.plan.pictures for what in ("filename", "format")]
        wanted += [] if self.plan.class_name is None else [self.plan.class_name]
        if self.plan.objects is not None:
            stem = self.plan.objects.stem
            wanted += [*self.plan.objects.features, f"{stem}/width", f"{stem}/height"]
        return {name: _python_values(name, named[name]) for name in wanted if name in named}

    def _paths(self, root: str, picture: Picture, content: pa.Scalar, facts: Mapping[str, Any], number: int) -> Any:
        if not content.is_valid:
            return None
        names, kinds = (facts.get(f"{picture.stem}/{what}") for what in ("filename", "format"))
        if not picture.many:
            return self._write(root, names, self._folder(picture, names, facts), number, content.as_buffer(), kinds)
        contents = [one.as_buffer() for one in content.values]
        some = zip(contents, _each(names, len(contents)), _each(kinds, len(contents)), strict=True)
        return [
            self._write(root, name, self._folder(picture, name, facts), number, one, kind) for one, name, kind in some
        ]

    def _folder(self, picture: Picture, name: str | None, facts: Mapping[str, Any]) -> str | None:
        if picture != self.plan.pictures[0]:
            return None if name is not None and "/" in name else safe_name(picture.stem)
        of_class = None if self.plan.class_name is None else facts[self.plan.class_name]
        return None if of_class is None else safe_name(str(of_class))

    def _write(
        self, root: str, name: str | None, folder: str | None, number: int, content: pa.Buffer, kind: str | None
    ) -> str:
        self.pictures += 1
        kind = kind or kind_of(content[:16].to_pybytes())
        return write_new(root, picture_path(name, folder, number, kind), number, content)


def _python_values(name: str, values: pa.Array) -> list[Any]:
    """Return a column as Python's values; names that no manifest says to be text are read as such, masks are not."""
    found: list[Any] = values.to_pylist()
    kind = values.type.value_type if pa.types.is_list(values.type) else values.type
    if name.endswith("/mask") or not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        return found
    return [[_text(one) for one in row] if isinstance(row, list) else _text(row) for row in found]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def _each(values: Any, count: int) -> list[Any]:
    return values if isinstance(values, list) and len(values) == count else [None] * count


_SUFFIXES: Final = {
    "jpeg": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "png": (".png",),
    "gif": (".gif",),
    "webp": (".webp",),
    "bmp": (".bmp", ".dib"),
    "tiff": (".tif", ".tiff"),
    "avif": (".avif",),
    "heic": (".heic", ".heif"),
    "heif": (".heif", ".heic"),
    "jpeg2000": (".jp2", ".j2k"),
    "jp2": (".jp2", ".j2k"),
}
_BEGINNINGS: Final = (
    (b"\xff\xd8", "jpeg"), (b"\x89PNG", "png"), (b"GIF8", "gif"), (b"BM", "bmp"), (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
)  # fmt: skip
_UNSAFE: Final = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
_MOST_BYTES: Final = 180


def safe_name(name: str) -> str:
    r"""Return a name for a file or folder, that no reader of folders skips and that leads nowhere else.

    >>> safe_name("cat"), safe_name("../a\n"), safe_name("_x"), safe_name("")
    ('cat', '-.-a-', '-x', '-')
    """
    name = _UNSAFE.sub("-", name).encode("utf-8", "replace")[:_MOST_BYTES].decode("utf-8", "ignore").strip(" ")
    return f"-{name[1:]}" if name[:1] in (".", "_", "") else name


def kind_of(content: bytes) -> str | None:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((kind for start, kind in _BEGINNINGS if content.startswith(start)), None)


def picture_path(name: str | None, folder: str | None, number: int, kind: str | None) -> str:
    """Return the path of a picture below its split: in the folder of its class, or where its own path leads.

    >>> picture_path("cat/1.jpg", "cat", 7, "jpeg"), picture_path("a/b.PNG", None, 7, "png")
    ('cat/1.jpg', 'a/b.PNG')
    >>> picture_path("x.png", None, 7, "jpeg"), picture_path(None, "cat", 7, "png")
    ('x.jpg', 'cat/00000007.png')
    """
    steps = [step for step in (name or f"{number:08d}").split("/") if step not in ("", ".", "..")] or [f"{number:08d}"]
    stem, suffix = os.path.splitext(steps[-1])
    known = _SUFFIXES.get(kind or "", (suffix,))
    last = safe_name(stem) + (suffix if suffix.lower() in known else known[0])
    before = [folder] if folder is not None else [safe_name(step) for step in steps[:-1]]
    return "/".join([*before, last])


def write_new(root: str, path: str, number: int, content: bytes) -> str:
    """Write a file below a folder, under another name if there is one of that name; return its path below it."""
    stem, suffix = os.path.splitext(path)
    for name in (path, f"{stem}-{number:08d}{suffix}"):
        full = os.path.join(root, name)
        try:
            with errors_named(full), open(full, "xb") as file:
                file.write(content)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with errors_named(full), open(full, "xb") as file:
                file.write(content)
        except FileExistsError:
            continue
        return name
    raise FileExistsError(17, "two pictures have this name", printable(os.path.join(root, path)))


# The boxes of objects as `objects` of a metadata.jsonl: x, y, width and height in pixels, as COCO has them.
#
#     image/object/bbox/xmin [0.1]  xmax [0.4]  ...       objects {"bbox": [[1.0, 2.0, 3.0, 4.0]],
#     image/object/class/label [7]  class/text ["car"]             "categories": [7], "category": ["car"],
#     image/object/is_crowd [0]     mask [PNG]                     "iscrowd": [0], "segmentation": [RUN LENGTHS]}
#
# Pixels are the shortest decimals that give the same float32 when they are divided by the size of the picture again.
# Source of the names: huggingface/datasets, as imagefolder has them; of run lengths: cocodataset/cocoapi.


OBJECTS: Final = "objects"
MASKS: Final = "segmentation"

_SIDES: Final = ("xmin", "xmax", "ymin", "ymax")
_FIELDS: Final = {
    "class/label": "categories",
    "class/text": "category",
    "is_crowd": "iscrowd",
    "area": "area",
    "mask": MASKS,
}
_MOST_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Objects:
    """The features of the objects in the pictures `stem`; `fields` are those beside the boxes, by their features."""

    stem: str
    fields: dict[str, str]

    @classmethod
    def of(cls, stem: str, names: Sequence[str]) -> Objects | None:
        """Return what there is of objects, None without boxes or without the size of pictures."""
        folder = f"{stem}/object"
        needed = [*(f"{folder}/bbox/{side}" for side in _SIDES), f"{stem}/width", f"{stem}/height"]
        if not set(names).issuperset(needed):
            return None
        known = {f"{folder}/{key}": field for key, field in _FIELDS.items()}
        return cls(stem, {name: field for name, field in known.items() if name in names})

    @property
    def features(self) -> list[str]:
        return [*(f"{self.stem}/object/bbox/{side}" for side in _SIDES), *self.fields]

    def value(self, row: Mapping[str, Any], place: str) -> dict[str, list[Any]]:
        """Return the objects of a row, whose values are Python's; `place` says where it is."""
        width, height = row[f"{self.stem}/width"], row[f"{self.stem}/height"]
        sides = [row[f"{self.stem}/object/bbox/{side}"] or [] for side in _SIDES]
        others = {field: row[name] or [] for name, field in self.fields.items()}
        if len({len(one) for one in sides}) > 1 or (sides[0] and not (width and height)):
            raise DamageError(f"{place}: the sides of its boxes do not belong together")
        if any(one and len(one) != len(sides[0]) for one in others.values()):
            raise DamageError(f"{place}: its objects have other numbers of values than boxes")
        if MASKS in others:
            others[MASKS] = [_run_lengths(png) for png in others[MASKS]]
        across = [_from_to(low, high, width) for low, high in zip(sides[0], sides[1], strict=True)]
        down = [_from_to(low, high, height) for low, high in zip(sides[2], sides[3], strict=True)]
        boxes = [[x, y, wide, high] for (x, wide), (y, high) in zip(across, down, strict=True)]
        return {"bbox": boxes} | others


def _from_to(low: float, high: float, size: int) -> tuple[float, float]:
    """Return where an extent begins, and how long it is, in pixels: what gives both parts of the size again."""
    for digits in range(_MOST_DIGITS):
        start, length = round(low * size, digits), round((high - low) * size, digits)
        if np.float32(start / size) == low and np.float32((start + length) / size) == high:
            return start, length
    return low * size, (high - low) * size


def _run_lengths(png: bytes) -> str:
    """Return a mask as COCO's run lengths in JSON: zeros, ones, zeros ... down each column, from the left."""
    with Image.open(io.BytesIO(png)) as image:
        mask = np.asarray(image) != 0
    mask = mask if mask.ndim == 2 else mask.any(axis=2)
    flat = mask.T.ravel()
    turns = np.flatnonzero(np.diff(flat)) + 1
    ends = np.concatenate(([0] if not (len(flat) and flat[0]) else [0, 0], turns, [len(flat)]))
    return json.dumps({"size": list(mask.shape), "counts": np.diff(ends).tolist()})


# What of a dataset becomes files, folders and lines of a folder of pictures.
#
#     image/encoded, image/format, ...        train/cat/1.jpg             the picture; what is known by it is left out
#     image/class/text                        the folder `cat`
#     photo/encoded, photo/filename           photo_file_name             a picture beside it
#     pages/encoded, a list                   pages_file_names
#     image/object/bbox/*, class/*, mask      objects {bbox, category}    see `Objects`
#     caption                                 caption                     any other column, as JSON lines have it
#
# The names are those that Hugging Face's imagefolder reads.


_ENCODED: Final = "/encoded"
_KNOWN_BY_PICTURE: Final = ("encoded", "format", "height", "width", "channels", "colorspace", "filename")
_FIRST: Final = "image"


@dataclass(frozen=True, slots=True)
class Picture:
    """Pictures of one feature: `stem` is its name without `/encoded`, `many` says that a row has a list of them."""

    stem: str
    many: bool
    nullable: bool

    @property
    def column(self) -> str:
        ending = "file_names" if self.many else "file_name"
        plain = "images" if self.many else _FIRST
        return ending if self.stem == plain else f"{self.stem}_{ending}"


@dataclass(frozen=True, slots=True)
class PicturePlan:
    """The pictures of a dataset, the first of which names the files, and the feature whose classes name their folders.

    `objects` are the boxes in them, None if there are none. `columns` are all others, that lines have. Where the
    folders alone say it all, `with_lines` is False, and there are none.
    """

    pictures: tuple[Picture, ...]
    class_name: str | None
    objects: Objects | None
    columns: tuple[str, ...]
    with_lines: bool

    @classmethod
    def of(cls, schema: Schema, labels: Mapping[str, Sequence[str]], names: Sequence[str], where: str) -> PicturePlan:
        features = {feature.name: feature for feature in schema}
        found = [_picture(features[name]) for name in names if name in features and _is_picture(name, features)]
        if not found:
            raise UsageError(f"{where}: no column has pictures; export a table: -o NAME.parquet, or .jsonl")
        pictures = sorted(found, key=lambda one: (one.stem != _FIRST, one.many, one.stem))
        stem = pictures[0].stem
        class_name = next((name for name in _class_names(stem, features, labels) if name in names), None)
        objects = Objects.of(stem, names)
        read = {f"{one.stem}/{known}" for one in pictures for known in _KNOWN_BY_PICTURE}
        read |= set() if objects is None else set(objects.features)
        columns = tuple(name for name in names if name not in read)
        made = [one.column for one in pictures] + ([] if objects is None else [OBJECTS])
        taken = next((name for name in made if name in columns), None)
        if taken is not None:
            raise UsageError(
                f'{where}: the column "{printable(taken)}" has the name that paths or boxes of pictures get; choose '
                f"others with {Add('--columns')}, or export a table"
            )
        alone = len(pictures) == 1 and not pictures[0].many and not pictures[0].nullable and objects is None
        by_folder = alone and _folders_say(stem, columns, features, labels)
        return cls(tuple(pictures), class_name, objects, columns, with_lines=not by_folder)


def _folders_say(
    stem: str, columns: Sequence[str], features: Mapping[str, Feature], labels: Mapping[str, Sequence[str]]
) -> bool:
    """Return whether folders named by classes say all that columns do: no name needs another sign, no class is null."""
    label = f"{stem}/class/label"
    if label not in columns or label not in labels or not {label, f"{stem}/class/text"}.issuperset(columns):
        return False
    return all(safe_name(name) == name for name in labels[label]) and not any(features[one].nullable for one in columns)


def _is_picture(name: str, features: Mapping[str, Feature]) -> bool:
    """Return whether a feature has pictures; lists of them, and those of other writers, are bytes with a format."""
    feature = features[name]
    if feature.kind != "bytes" or feature.shape not in ((), (-1,)) or not name.endswith(_ENCODED):
        return False
    return feature.type == "image" or f"{name.removesuffix(_ENCODED)}/format" in features


def _picture(feature: Feature) -> Picture:
    return Picture(feature.name.removesuffix(_ENCODED), feature.shape == (-1,), feature.nullable)


def _class_names(stem: str, features: Mapping[str, Feature], labels: Mapping[str, Sequence[str]]) -> list[str]:
    wanted = [name for name in (f"{stem}/class/text", f"{stem}/class/label") if name in features]
    known = [name for name in wanted if features[name].shape == () and (name in labels or name.endswith("text"))]
    others = [name for name in labels if name in features and features[name].shape == ()]
    return known or (others if len(others) == 1 else [])
