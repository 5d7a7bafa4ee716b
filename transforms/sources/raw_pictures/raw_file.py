"""What is known of a file of pixels: where its records are, how large they are, and where their labels are."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...errors import SourceError
from ...format.wording.printable import printable_path
from ..archive_files.tar import PlainBytes, StreamBytes, TarBytes
from ..contract.source import ListedFile, Piece, SourceEntry
from ..files.listing import list_file
from ..files.object_listing import look_at_object
from ..files.open_file import OpenFile, is_object, read_at, size_of
from ..text.open_text import file_blocks
from ..text.unpack import sniff_packing, unpacked

_HEAD_BYTES: Final = 16
_WINDOW: Final = 1 << 20
_SPLITS: Final = {
    "train": "train", "data_batch": "train", "t10k": "test", "test": "test", "val": "validation", "valid": "validation",
}  # fmt: skip
_SPLIT: Final = re.compile(rf"({'|'.join(_SPLITS)})(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file of `rows` records of one size from `start` on: labels of one byte each, and then pixels.

    `shape` is height, width and channels; pixels of several channels are one channel after another. `labels` is the
    file of labels and `labels_start` where they begin in it, where they are not before the pixels.
    """

    start: int
    rows: int
    shape: tuple[int, int, int]
    label_bytes: int = 0
    labels: SourceEntry | None = None
    labels_start: int = 0

    @property
    def record_bytes(self) -> int:
        """The size of a record."""
        height, width, channels = self.shape
        return self.label_bytes + height * width * channels

    def without_labels(self) -> RawFile:
        """Return the file whose labels are not read."""
        return replace(self, labels=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPiece(Piece):
    """Records of a file that follow each other, from `first_row` on; of a compressed one, all. `split` is a code."""

    holds: ClassVar = (RawFile, SourceEntry)

    file: RawFile
    split: int


def split_of(name: str) -> str | None:
    """Return the split that the name of a file says.

    >>> split_of("in/t10k-images-idx3-ubyte"), split_of("data_batch_1.bin"), split_of("training.idx")
    ('test', 'train', None)
    """
    found = _SPLIT.match(name.rpartition("/")[2])
    return None if found is None else _SPLITS[found[1].lower()]


def file_beside(entry: SourceEntry, other: str) -> SourceEntry | None:
    """Return a file of another name that is beside one, on a disk or in a store; None if there is none."""
    folder, slash, last = entry.path.rpartition(b"/")
    path = folder + slash + os.fsencode(other)
    found = look_at_object(path) if is_object(path) else None
    if found is None and not is_object(path) and os.path.isfile(path):
        found = list_file(path, folder)
    shown = entry.name[: len(entry.name) - len(printable_path(last))] + printable_path(other)
    return None if found is None else replace(found, name=shown)


def open_bytes(file: ListedFile, opened: OpenFile) -> TarBytes:
    """Return the bytes of a file that is open, unpacked where it is compressed."""
    read = read_at(opened)
    packing = sniff_packing(read(_HEAD_BYTES, 0))
    if packing is None:
        return PlainBytes(read, size_of(opened), _WINDOW)
    return StreamBytes(unpacked(file_blocks(file, 0, whole=True), packing, file.name))


def whole_size(source: TarBytes) -> int:
    """Return how many bytes a file has: those of a compressed one are gone through."""
    at = 0
    while source.size is None:
        at += len(source.take(at, _WINDOW))
    return source.size


def check_size(name: str, file: RawFile, size: int) -> None:
    """Compare the size of a file with that of its records.

    Raises:
        SourceError: they differ; the text names the byte.
    """
    wanted = file.start + file.rows * file.record_bytes
    if size == wanted:
        return
    whole = max(size - file.start, 0) // file.record_bytes
    counted = f"{file.rows:,} pictures of {file.record_bytes:,} bytes end at byte {wanted:,}"
    if size < wanted:
        text = f"is cut at byte {size:,}, in picture {whole + 1:,}: {counted}; copy it again"
    else:
        text = f"has bytes after its end, from byte {wanted:,} on: {counted}; copy it again"
    raise SourceError(name, text)


def bytes_of(source: TarBytes, name: str, at: int, size: int) -> npt.NDArray[np.uint8]:
    """Return some bytes of a file.

    Raises:
        SourceError: it ends before.
    """
    data = source.take(at, size)
    if len(data) < size:
        raise SourceError(name, f"became shorter while it was read: it ends at byte {at + len(data):,}; run again")
    return np.frombuffer(data, np.uint8)
