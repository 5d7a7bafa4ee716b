"""Facts from the names in a folder of images, without reading the files: hidden, junk, no image, ignored.

Only listed names are skipped: a file of an unknown suffix, or of none, may be a picture, and its content decides.
Pictures of formats that are not read, and archives, which may hold pictures, are not listed: each of them is a reject.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_JUNK: Final = frozenset({b"thumbs.db", b"desktop.ini", b"__macosx"})

_OTHER_SUFFIXES: Final = frozenset(
    b"." + suffix
    for suffix in (
        b"txt md rst pdf doc docx odt rtf tex html htm log ppt pptx "  # texts
        b"json jsonl ndjson xml csv tsv yaml yml toml ini cfg xls xlsx lst names "  # annotations
        b"npy npz mat pkl pickle h5 hdf5 parquet feather arrow tfrecord tfrecords pt pth ckpt db sqlite "  # data
        b"py pyc ipynb sh bat m r md5 sha1 sha256 sha512 asc url lnk torrent "  # programs, checksums, links
        b"mp4 avi mov mkv webm wav mp3 flac ogg m4a"  # video and sound
    ).split()
)
_OTHER_NAMES: Final = frozenset(
    b"readme license licence copying notice authors changelog makefile md5sums sha1sums sha256sums".split()
)


def why_skipped(name: bytes) -> str | None:
    """Return why a file or folder of this name is skipped wherever it is, or None.

    >>> why_skipped(b".DS_Store"), why_skipped(b"Thumbs.db"), why_skipped(b"README.txt")
    ('hidden', 'junk', None)
    """
    if name.lower() in _JUNK:
        return "junk"
    return "hidden" if name.startswith((b".", b"_")) else None


def is_other_file(name: bytes) -> bool:
    """Return whether a file has a name that images do not have.

    >>> is_other_file(b"README.txt"), is_other_file(b"LICENSE"), is_other_file(b"1.jpg"), is_other_file(b"00017")
    (True, True, False, False)
    """
    lower = name.lower()
    return lower[lower.rfind(b".") :] in _OTHER_SUFFIXES or lower in _OTHER_NAMES


def pictures_below(root: bytes) -> Iterator[bytes]:
    """Yield the paths of all files below a folder that may be pictures by their names; nothing is opened."""
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if why_skipped(name) is None]
        yield from (os.path.join(folder, name) for name in names if not (why_skipped(name) or is_other_file(name)))


@dataclass(frozen=True, slots=True)
class Ignored:
    """The files and folders that a config ignores: globs of names or, with a `/`, of paths below the root."""

    names: re.Pattern[str] | None = None
    paths: re.Pattern[str] | None = None

    @classmethod
    def of(cls, globs: Sequence[str]) -> Ignored:
        globs = [pattern.rstrip("/") for pattern in globs]
        return cls(
            _any_of([pattern for pattern in globs if "/" not in pattern]),
            _any_of([pattern.lstrip("/") for pattern in globs if "/" in pattern]),
        )

    def __call__(self, folder: bytes, name: bytes) -> bool:
        if self.names is not None and self.names.match(os.fsdecode(name)):
            return True
        return self.paths is not None and bool(self.paths.match(os.fsdecode(os.path.join(folder, name))))


def _any_of(globs: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(fnmatch.translate, globs))) if globs else None
