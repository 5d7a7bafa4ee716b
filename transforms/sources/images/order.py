"""The shuffled order of images: by a digest of the seed and each path below its root, the same on every machine.

Ten million digests are 320 MB, and the rows that sort them as much again. So each is a number with its row, which are
sorted where they are:

    first 40 bits of the digest │ row, 24 bits          as many as the rows need; 80 MB

Where those bits of two rows are equal (45 times in ten million), their whole digests are compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from .listing import ImageListing
from .table import ImageFile

KEY_BITS: Final = 64
"""The bits of a digest and its row: as much as one number holds."""

_AT_ONCE: Final = 1 << 20


def shuffled(
    listing: ImageListing, seed: int, *, key_bits: int = KEY_BITS, at_once: int = _AT_ONCE
) -> npt.NDArray[np.int32]:
    """Return the rows of the images in the order of their digests; so many are looked at `at_once`."""
    digest_of = _digests(listing, seed)
    images = listing.images
    count = len(images)
    row_bits = max(count - 1, 0).bit_length()
    digest_bits = max(key_bits - row_bits, 0)
    keys = np.fromiter(
        (
            int.from_bytes(digest_of(image)[:8]) >> (64 - digest_bits) << row_bits | row
            for row, image in enumerate(images)
        ),
        np.uint64,
        count,
    )
    keys.sort()
    order = np.empty(count, np.int32)
    for start in range(0, count, at_once):
        order[start : start + at_once] = keys[start : start + at_once] & np.uint64((1 << row_bits) - 1)
    for tied in _ties(keys, row_bits, at_once):
        order[tied] = sorted(order[tied].tolist(), key=lambda row: digest_of(images[row]))
    return order


def _digests(listing: ImageListing, seed: int) -> Callable[[ImageFile], bytes]:
    start = hashlib.sha256(b"%d\n" % seed)
    prefixes = [folder.below_apex + b"/" if folder.below_apex else b"" for folder in listing.folders]

    def digest_of(image: ImageFile) -> bytes:
        digest = start.copy()
        digest.update(prefixes[image.folder] + image.name)
        return digest.digest()

    return digest_of


def _ties(keys: npt.NDArray[np.uint64], row_bits: int, at_once: int) -> Iterator[slice]:
    """Yield the places of keys that differ in their rows only."""
    first = last = -1
    for start in range(0, len(keys), at_once):
        digests = keys[start : start + at_once + 1] >> np.uint64(row_bits)
        for place in (np.flatnonzero(digests[1:] == digests[:-1]) + start).tolist():  # equal to the next one's
            if place != last:
                if last >= 0:
                    yield slice(first, last + 1)
                first = place
            last = place + 1
    if last >= 0:
        yield slice(first, last + 1)
