"""Which images an earlier generation read and rejected: unchanged ones are left out, and not rejected again.

A line of the reject file names a picture, and holds no digest of it. So a picture counts as the same only if

    its path      is the one that was rejected, or ends with it
    its times     are not after the generation (in a store its version is in the folder's fingerprint)
    its folder    has a fingerprint that the dataset knows, over names and sizes: that of what is held of it, and
                  of what was rejected

A picture that differs in any of these is read again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...transforms.dataset.shards.source_list import HeldSource, is_path_of, read_rejects
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.sources.contract.source import Listing
from ...transforms.sources.files.open_file import is_object
from ...transforms.sources.images.listing import ImageListing
from ...transforms.sources.images.rows import image_place
from ...transforms.sources.images.table import ImageFile, ImageTable
from ...transforms.sources.images.walk import facts_of
from ...transforms.sources.registry.settings import Limits
from ..report.unchanged import Unchanged
from .known_inputs import written_since

_MAY_PASS: Final = frozenset({"MISSING_FILE", "UNREADABLE"})
"""Codes of what was wrong at that time, and not with the picture."""


@dataclass(frozen=True, slots=True)
class RejectedBefore:
    """The images that generations have rejected: by the last part of a path, the whole paths with their generations.

    `made` is when each generation was; `held` are the lines of the lists of sources.
    """

    found: Mapping[bytes, Sequence[tuple[str, int]]]
    made: Mapping[int, str]
    held: Sequence[HeldSource]

    @classmethod
    def read(
        cls, path: str, generations: Sequence[Manifest], held: Sequence[HeldSource], limits: Limits
    ) -> RejectedBefore:
        """Read the reject files of generations; what is over a limit counts only as long as the limit is the same."""
        found: dict[bytes, list[tuple[str, int]]] = {}
        bounds = {
            "TOO_MANY_PIXELS": f"at most {limits.pixels} pixels",
            "FIELD_TOO_LARGE": f"at most {limits.image_bytes} bytes",
        }
        known = {source.generation for source in held}
        for manifest in generations:
            for reject in read_rejects(path, manifest) if manifest.generation in known else ():
                if _is_lasting(reject, bounds):
                    name = str(reject["source"])
                    last = os.fsencode(os.path.basename(name))
                    found.setdefault(last, []).append((name, manifest.generation))
        made = {manifest.generation: manifest.run.created for manifest in generations}
        return cls(found, made, held)

    def images(self, listing: Listing) -> dict[ImageFile, int]:
        """Return the images of a listing that were rejected before and not written to since, with the generation."""
        if not self.found or not isinstance(listing, ImageListing):
            return {}
        names = pa.array(list(self.found), pa.large_binary())
        rows = np.flatnonzero(pc.is_in(listing.images.names, value_set=names).to_numpy(zero_copy_only=False))
        pairs = ((image, self._generation(listing, image)) for image in listing.images.take(rows))
        return {image: generation for image, generation in pairs if generation is not None}

    def _generation(self, listing: ImageListing, image: ImageFile) -> int | None:
        folder = listing.folders[image.folder].path
        path = os.path.join(folder, image.name)
        place = image_place(listing.entries[image.folder].name, image.name).source
        generations = [number for name, number in self.found[image.name] if is_path_of(name, place, path)]
        if not generations or is_object(path):
            return max(generations, default=None)
        latest = max(generations)
        try:
            times = [
                time for status in (os.lstat(path), os.stat(path)) for time in (status.st_mtime_ns, status.st_ctime_ns)
            ]
        except OSError:
            return None  # reading it says why
        return None if written_since(max(times), self.made[latest]) else latest

    def proven(self, listing: ImageListing, *held: Sequence[ImageFile]) -> dict[ImageFile, int]:
        """Return those images whose folders are known: one of `held` and what was rejected is all that they had."""
        rejected = self.images(listing)
        folders = {image.folder for image in rejected}
        complete = set[int]().union(*(self.complete_folders(listing, [*some, *rejected], folders) for some in held))
        return {image: number for image, number in rejected.items() if image.folder in complete}

    def complete_folders(
        self, listing: ImageListing, images: Iterable[ImageFile], folders: Collection[int]
    ) -> frozenset[int]:
        """Return those of `folders` of which some images are all that the dataset knew of them at one time."""
        by_folder: dict[int, set[ImageFile]] = {}
        for image in images:
            if image.folder in folders:
                by_folder.setdefault(image.folder, set()).add(image)
        return frozenset(folder for folder, files in by_folder.items() if self._is_complete(listing, folder, files))

    def _is_complete(self, listing: ImageListing, folder: int, files: Iterable[ImageFile]) -> bool:
        entry = listing.entries[folder]
        table = ImageTable.of(sorted(files, key=lambda image: image.name))
        prints = {s.fingerprint for s in self.held if is_path_of(s.name, entry.name, entry.path)}
        return facts_of(listing.folders[folder], table).fingerprint in prints


def counted_by_folder(listing: Listing, images: Mapping[ImageFile, int]) -> tuple[Unchanged, ...]:
    counts = Counter((listing.entries[image.folder].name, number) for image, number in images.items())
    return tuple(Unchanged(name, number, files) for (name, number), files in sorted(counts.items()))


def split_unchanged(
    unchanged: Sequence[Unchanged], listing: Listing, before: RejectedBefore
) -> tuple[tuple[Unchanged, ...], tuple[Unchanged, ...]]:
    """Return what the dataset holds of files that are unchanged, and what it rejected of them."""
    if not isinstance(listing, ImageListing):
        return tuple(file for file in unchanged if not file.rejected), tuple(
            file for file in unchanged if file.rejected
        )
    names = {file.name for file in unchanged}
    of_them = {i: n for i, n in before.images(listing).items() if listing.entries[i.folder].name in names}
    rejected = counted_by_folder(listing, of_them)
    counts = Counter({file.name: 0 for file in unchanged})
    for file in rejected:
        counts[file.name] += file.files
    kept = (replace(file, files=file.files - counts[file.name]) for file in unchanged)
    return tuple(file for file in kept if file.files), rejected


def _is_lasting(reject: Mapping[str, Any], bounds: Mapping[str, str]) -> bool:
    """Return whether a picture will be rejected again as long as it and the limits are what they were."""
    errors = reject["errors"]
    return not any(
        e["code"] in _MAY_PASS or e.get("expected") != bounds.get(e["code"], e.get("expected")) for e in errors
    )
