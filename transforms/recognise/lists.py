"""Lists of the pictures of each split, as Pascal VOC has them.

    Annotations/2007_000032.xml    ImageSets/Main/train.txt    2007_000032
    JPEGImages/2007_000032.jpg     ImageSets/Main/val.txt      2007_000027

`trainval.txt` is both, and read where `train.txt` is not there; `cat_train.txt` says which pictures have a cat. Source:
the development kit of VOC2012, section 8.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from ..errors import InputError
from ..format.wording.printable import printable, printable_path

_BOTH: Final = "trainval"
_SPLITS: Final = ("train", "val", "test", _BOTH)
_MOST_BYTES: Final = 64 << 20


def splits_by_lists(root: str, names: Sequence[str]) -> list[str] | None:
    """Return the split of each file of annotations below a folder, "" where no list has its name; None without lists.

    Raises:
        InputError: two lists have one name.
    """
    folder = os.path.join(os.path.dirname(root), "ImageSets", "Main")
    lists = {split: path for split in _SPLITS if os.path.isfile(path := os.path.join(folder, f"{split}.txt"))}
    if lists.keys() & {"train", "val"}:
        lists.pop(_BOTH, None)
    split_of = dict[str, str]()
    for split, path in lists.items():
        for name in _names_in(path):
            if split_of.setdefault(name, split) != split:
                raise InputError(
                    f'{printable_path(path)}: "{printable(name)}" is in {split_of[name]}.txt too, and a picture is of '
                    f"one split; take it out of one"
                )
    found = [split_of.get(os.path.splitext(name)[0], "") for name in names]
    return found if any(found) else None


def _names_in(path: str) -> list[str]:
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        return [words[0] for line in file.read(_MOST_BYTES).splitlines() if (words := line.split())]
