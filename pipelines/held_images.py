"""Which images of a folder that has changed a dataset holds already: those with the same path and the same bytes.

The list of sources has one line a folder. So where a folder has got new images since, the records themselves tell which
ones are old: `image/filename` and `image/encoded` are the file. Only then is the dataset read.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ..transforms.dataset.open import Dataset
from ..transforms.errors import SourceError
from ..transforms.format.manifest import Manifest
from ..transforms.sources.image_ahead import read_image_object
from ..transforms.sources.image_facts import ImageProblem
from ..transforms.sources.image_listing import ImageListing
from ..transforms.sources.image_rows import ENCODED
from ..transforms.sources.image_table import ImageFile
from ..transforms.sources.source import Listing
from ..transforms.sources.source_files import is_object
from .held_files import Unchanged

_FILENAME = "image/filename"


@dataclass(frozen=True, slots=True)
class HeldImages:
    """What was left out of the folders named in `searched`."""

    searched: frozenset[str] = frozenset()
    unchanged: tuple[Unchanged, ...] = ()


def without_held_images(
    path: str, latest: Manifest, listing: Listing, changed: Mapping[str, int]
) -> tuple[Listing, HeldImages]:
    """Return the listing without the images that the dataset holds; `changed` are folders, with their generations.

    Raises:
        DamageError: the dataset is damaged.
    """
    names = {feature.name for feature in latest.schema or ()}
    if not changed or not isinstance(listing, ImageListing) or not {_FILENAME, ENCODED} <= names:
        return listing, HeldImages()
    candidates = {
        _shown(listing, image): image for image in listing.images if listing.entries[image.folder].name in changed
    }
    held = _held_digests(Dataset(path, latest), frozenset(candidates))
    gone = [image for name, image in candidates.items() if _digest(listing, image) in held.get(name, ())]
    counts = Counter(listing.entries[image.folder].name for image in gone)
    unchanged = tuple(Unchanged(name, changed[name], count) for name, count in sorted(counts.items()))
    return listing.without(gone), HeldImages(frozenset(changed), unchanged)


def _held_digests(dataset: Dataset, wanted: frozenset[str]) -> dict[str, set[bytes]]:
    """Return the digests of the images of some names."""
    held: dict[str, set[bytes]] = {}
    for split in dataset.splits:
        for batch in dataset.batches(split, [_FILENAME, ENCODED]):
            for name, data in zip(batch.column(_FILENAME).to_pylist(), batch.column(ENCODED), strict=True):
                if name in wanted and data.is_valid:
                    held.setdefault(name, set()).add(hashlib.sha256(data.as_buffer()).digest())
    return held


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


def _shown(listing: ImageListing, image: ImageFile) -> str:
    """Return the path below the root, as the records have it."""
    below = listing.folders[image.folder].below_root
    return os.path.join(below, image.name).decode("utf-8", "surrogateescape")
