"""IDX files, as MNIST has them: a magic number, the sizes of each dimension, and the values, all big-endian.

    train-images-idx3-ubyte   00 00 08 03 | count | height | width | a byte for each pixel
    train-labels-idx1-ubyte   00 00 08 01 | count | a byte for each label

The source of the format: yann.lecun.com/exdb/mnist, "The IDX file format".
"""

from __future__ import annotations

import os
import re
import struct
from typing import Final

import numpy as np

from ...errors import SourceError
from ..contract.source import SourceEntry
from ..files.open_file import open_listed, open_unbuffered
from .raw_file import RawFile, bytes_of, check_size, file_beside, open_bytes, whole_size

_TYPES: Final = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_BYTES: Final = 0x08
_IMAGES: Final = re.compile(r"images([-.])idx3", re.IGNORECASE)
_LABELS: Final = re.compile(r"labels([-.])idx1", re.IGNORECASE)
_MOST_DIMENSIONS: Final = 8
PICTURE: Final = 3
LABELS: Final = 1


def read_header(entry: SourceEntry, head: bytes) -> tuple[int, ...]:
    """Return the sizes of the dimensions of an IDX file, which begins with these bytes.

    Raises:
        SourceError: it is no IDX file, or holds no bytes.
    """
    kind, rank = (head[2], head[3]) if len(head) >= 4 else (0, 0)
    if head[:2] != b"\0\0" or kind not in _TYPES or not 1 <= rank <= _MOST_DIMENSIONS:
        shown = head[:4].hex(" ") or "nothing"
        raise SourceError(entry.name, f"is no IDX file: it begins with {shown}, and not with 00 00, a type and a rank")
    if len(head) < 4 + 4 * rank:
        raise SourceError(entry.name, f"is cut at byte {len(head)}, in its header; copy it again")
    shape = struct.unpack_from(f">{rank}I", head, 4)
    if kind != _BYTES or rank not in (LABELS, PICTURE):
        where, start = repr(entry.name), 4 + 4 * rank
        raise SourceError(
            entry.name,
            f"holds numbers of type {np.dtype(_TYPES[kind]).name} and rank {rank}, and no pictures (bytes of rank 3); "
            f"save it for NumPy: numpy.save('a.npy', numpy.fromfile({where}, '{_TYPES[kind]}', offset={start})"
            f".reshape({shape}))",
        )
    return shape


def look_at_idx(entry: SourceEntry) -> RawFile | None:
    """Return what a file of pictures is, with the file of labels beside it; None for a file of labels.

    Raises:
        SourceError: it is damaged, holds no pictures, or its labels are not as many.
    """
    shape = _shape_of(entry)
    if len(shape) == LABELS:
        return None
    start = 4 + 4 * len(shape)
    labels = labels_beside(entry)
    count, height, width = shape
    if labels is not None:
        others = _shape_of(labels)
        if others != (count,):
            text = f"has {count:,} pictures, and {labels.name} {' x '.join(map(str, others))} labels; give those of it"
            raise SourceError(entry.name, text)
    return RawFile(start, count, (height, width, 1), labels=labels, labels_start=4 + 4 * LABELS)


def _shape_of(entry: SourceEntry) -> tuple[int, ...]:
    with open_listed(entry, open_unbuffered) as opened:
        source = open_bytes(entry, opened)
        shape = read_header(entry, bytes(source.take(0, 4 + 4 * _MOST_DIMENSIONS)))
        start = 4 + 4 * len(shape)
        count, *rest = shape
        height, width = rest or (1, 1)
        if not height * width:
            raise SourceError(entry.name, f"its pictures are of {height} x {width} pixels; leave it out")
        check_size(entry.name, RawFile(start, count, (height, width, 1)), whole_size(source))
    return shape


def labels_beside(entry: SourceEntry) -> SourceEntry | None:
    """Return the file of labels that is named after one of pictures, and beside it; None if there is none."""
    name = os.fsdecode(entry.path.rpartition(b"/")[2])
    if not _IMAGES.search(name):
        return None
    stem = _IMAGES.sub(lambda found: f"labels{found[1]}idx1", name)
    others = (stem, stem.removesuffix(".gz"), f"{stem}.gz")
    return next((found for other in others if (found := file_beside(entry, other)) is not None), None)


def is_labels(name: str) -> bool:
    """Return whether a file has the name of one of labels."""
    return _LABELS.search(name) is not None


def most_label(file: RawFile) -> int:
    """Return the largest label in the file of labels of one of pictures, -1 if there is none."""
    if file.labels is None:
        return -1
    with open_listed(file.labels, open_unbuffered) as opened:
        source = open_bytes(file.labels, opened)
        values = bytes_of(source, file.labels.name, file.labels_start, file.rows)
    return int(values.max(initial=0))
