"""CIFAR's binary files: records of a label, or a coarse and a fine one, and 3 x 32 x 32 bytes, a plane for each color.

    data_batch_1.bin ... test_batch.bin   1 label     batches.meta.txt                             CIFAR-10
    train.bin  test.bin                   2 labels    coarse_label_names.txt fine_label_names.txt  CIFAR-100

The source of the format: www.cs.toronto.edu/~kriz/cifar.html, "Binary version".
"""

from __future__ import annotations

from typing import Final

from ...errors import SourceError
from ..contract.source import SourceEntry
from ..files.open_file import open_file, open_listed
from .raw_file import RawFile, check_size, file_beside

SHAPE: Final = (32, 32, 3)
_PIXELS: Final = 32 * 32 * 3
CLASSES: Final = {1: (10,), 2: (20, 100)}
"""How many classes each label has, by how many labels a record has."""

_NAMES_BYTES: Final = 1 << 16

_NAMES: Final = {1: ("batches.meta.txt",), 2: ("coarse_label_names.txt", "fine_label_names.txt")}


def look_at_cifar(entry: SourceEntry) -> RawFile:
    """Return what a file of CIFAR is, by its name and its size.

    Raises:
        SourceError: its size is not that of whole records.
    """
    name = entry.name.rpartition("/")[2].lower()
    if name.startswith(("data_batch", "test_batch")):
        labels = 1
    elif name in ("train.bin", "test.bin"):
        labels = 2
    else:
        labels = 1 if entry.bytes % (_PIXELS + 1) == 0 else 2
    file = RawFile(0, entry.bytes // (_PIXELS + labels), SHAPE, labels)
    if entry.bytes % file.record_bytes or not entry.bytes:
        kinds = f"{_PIXELS + 1:,} (CIFAR-10) or {_PIXELS + 2:,} (CIFAR-100)"
        if labels == 2 and name not in ("train.bin", "test.bin"):
            text = f"has {entry.bytes:,} bytes, and records of CIFAR have {kinds} each: is it another kind of file?"
            raise SourceError(entry.name, text)
        check_size(entry.name, RawFile(0, file.rows + 1, SHAPE, labels), entry.bytes)
    return file


def names_beside(entry: SourceEntry, labels: int) -> tuple[tuple[str, ...], ...]:
    """Return the names of classes, for each label of a record, from the files beside; numbers where there are none.

    Raises:
        SourceError: such a file has another number of names.
    """
    found = []
    for count, other in zip(CLASSES[labels], _NAMES[labels], strict=True):
        beside = file_beside(entry, other)
        if beside is None:
            found.append(tuple(map(str, range(count))))
            continue
        with open_listed(beside, open_file) as opened:
            lines = opened.read(_NAMES_BYTES).decode("utf-8", "replace").split("\n")
        names = tuple(line.strip() for line in lines if line.strip())
        if len(set(names)) != count:
            text = f"names {len(set(names))} classes, and {count} are wanted; fix it, or take it away"
            raise SourceError(beside.name, text)
        found.append(names)
    return tuple(found)
