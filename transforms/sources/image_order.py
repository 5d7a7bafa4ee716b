"""The shuffled order of images: by a digest of the seed and each path below its root, the same on every machine.

Of each digest the first eight bytes are kept: of a million listings of ten million paths, in three two of them are
equal, and then the digests are compared as a whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from .image_listing import ImageListing
from .image_table import ImageFile

KEPT_BYTES: Final = 8
"""Of each digest: as much as one number holds."""


def shuffled(listing: ImageListing, seed: int) -> npt.NDArray[np.int32]:
    """Return the rows of the images in the order of their digests."""
    digest_of = _digests(listing, seed)
    keys = np.fromiter(
        (int.from_bytes(digest_of(image)[:KEPT_BYTES]) for image in listing.images), np.uint64, len(listing.images)
    )
    order = np.argsort(keys, kind="stable")
    _settle_ties(keys, order, lambda row: digest_of(listing.images[row]))
    return order.astype(np.int32)


def _digests(listing: ImageListing, seed: int) -> Callable[[ImageFile], bytes]:
    start = hashlib.sha256(b"%d\n" % seed)
    prefixes = [folder.below_root + b"/" if folder.below_root else b"" for folder in listing.folders]

    def digest_of(image: ImageFile) -> bytes:
        digest = start.copy()
        digest.update(prefixes[image.folder] + image.name)
        return digest.digest()

    return digest_of


def _settle_ties(keys: npt.NDArray[np.uint64], order: npt.NDArray[np.int64], key_of: Callable[[int], bytes]) -> None:
    """Sort rows whose keys are equal by what `key_of` says of them, in place."""
    ordered = keys[order]
    bounds = np.append(np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])), len(order))  # of equal keys
    for group in np.flatnonzero(np.diff(bounds) > 1):
        rows = slice(int(bounds[group]), int(bounds[group + 1]))
        order[rows] = sorted(order[rows].tolist(), key=key_of)
