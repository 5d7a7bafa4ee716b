"""The shuffled order of images: by a digest of the seed and each path below its root, the same on every machine.

Ten million digests are 320 MB, and the rows that sort them as much again. So each is a number with its row, which are
sorted where they are:

    first 40 bits of the digest │ row, 24 bits          as many as the rows need; 80 MB

Two rows whose bits are equal (45 pairs in ten million) follow the listing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from .listing import ImageListing

_KEY_BITS: Final = 64
"""The bits of a digest and its row: as much as one number holds."""


def shuffled(listing: ImageListing, seed: int, *, key_bits: int = _KEY_BITS) -> npt.NDArray[np.int32]:
    """Return the rows of the images in the order of their digests."""
    count = len(listing.images)
    row_bits = max(count - 1, 0).bit_length()
    shift = 64 - max(key_bits - row_bits, 0)
    numbers = (
        int.from_bytes(digest[:8]) >> shift << row_bits | row for row, digest in enumerate(_digests(listing, seed))
    )
    keys = np.fromiter(numbers, np.uint64, count)
    keys.sort()
    keys &= np.uint64((1 << row_bits) - 1)
    return keys.astype(np.int32)


def _digests(listing: ImageListing, seed: int) -> Iterator[bytes]:
    start = hashlib.sha256(b"%d\n" % seed)
    prefixes = [folder.below_apex + b"/" if folder.below_apex else b"" for folder in listing.folders]
    for image in listing.images:
        digest = start.copy()
        digest.update(prefixes[image.folder] + image.name)
        yield digest.digest()
