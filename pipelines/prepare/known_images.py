"""Which images of a folder that has changed a dataset holds already: those of the same bytes, path or end of the path.

The list of sources has one line a folder. So where a folder has got new images since, the records themselves tell which
ones are old: `image/filename` and `image/encoded` are the file. Only then is the dataset read.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ...transforms.dataset.reading.open_dataset import Dataset
from ...transforms.errors import SourceError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.sources.contract.source import Listing
from ...transforms.sources.files.open_file import is_object
from ...transforms.sources.images.formats.facts import ImageProblem
from ...transforms.sources.images.listing import ImageListing
from ...transforms.sources.images.prefetch import read_image_object
from ...transforms.sources.images.rows import ENCODED
from ...transforms.sources.images.table import ImageFile
from ..report.unchanged import Unchanged
from .rejected_images import RejectedBefore, counted_by_folder

_FILENAME = "image/filename"


@dataclass(frozen=True, slots=True)
class HeldImages:
    """The images left out of the folders named in `searched`: what the dataset holds, and what it rejected before."""

    searched: frozenset[str] = frozenset()
    unchanged: tuple[Unchanged, ...] = ()
    rejected: tuple[Unchanged, ...] = ()


def without_held_images(
    path: str, latest: Manifest, listing: Listing, changed: Mapping[str, int], before: RejectedBefore
) -> tuple[Listing, HeldImages]:
    """Return the listing without the images that the dataset holds or rejected `before`.

    `changed` are folders, with their generations.

    Raises:
        DamageError: the dataset is damaged.
    """
    names = {feature.name for feature in latest.schema or ()}
    if not changed or not isinstance(listing, ImageListing) or not {_FILENAME, ENCODED} <= names:
        return listing, HeldImages()
    candidates = [image for image in listing.images if listing.entries[image.folder].name in changed]
    held = _held_digests(Dataset(path, latest), frozenset(_shown(image.name) for image in candidates))
    gone = [image for image in candidates if _is_held(listing, image, held)]
    counts = Counter(listing.entries[image.folder].name for image in gone)
    unchanged = tuple(Unchanged(name, changed[name], count) for name, count in sorted(counts.items()))
    rejected = before.proven(listing, gone)
    found = HeldImages(frozenset(changed), unchanged, counted_by_folder(listing, rejected))
    return listing.without([*gone, *rejected]), found


def _held_digests(dataset: Dataset, wanted: frozenset[str]) -> dict[str, set[bytes]]:
    """Return the digests, by path, of the images whose files have some names."""
    held: dict[str, set[bytes]] = {}
    for split in dataset.splits:
        for batch in dataset.batches(split, [_FILENAME, ENCODED]):
            for name, data in zip(batch.column(_FILENAME).to_pylist(), batch.column(ENCODED), strict=True):
                if name.rpartition("/")[2] in wanted and data.is_valid:
                    held.setdefault(name, set()).add(hashlib.sha256(data.as_buffer()).digest())
    return held


def _is_held(listing: ImageListing, image: ImageFile, held: Mapping[str, set[bytes]]) -> bool:
    """Return whether the dataset holds an image, under its path or the end of it: roots may have been others."""
    parts = _shown(os.path.join(listing.folders[image.folder].path, image.name)).split("/")
    paths = [path for i in range(len(parts)) if (path := "/".join(parts[i:])) in held]
    digest = _digest(listing, image) if paths else None
    return any(digest in held[path] for path in paths)


def _digest(listing: ImageListing, image: ImageFile) -> bytes | None:
    """Return the digest of an image, None if it cannot be read: then reading it gives the reject."""
    if image.size < 0:
        return None
    path = os.path.join(listing.folders[image.folder].path, image.name)
    if is_object(path):
        try:
            return hashlib.sha256(read_image_object(path, image)).digest()
        except (ImageProblem, SourceError):
            return None
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return None


def _shown(path: bytes) -> str:
    """Return a path as the records have it."""
    return path.decode("utf-8", "surrogateescape")
