"""Find the images of a changed folder that a dataset holds already, by their paths and bytes.

    path and bytes are held                left out, and said so
    the path is, with other bytes          replaced: refused, as the record of before stays; or appended too, or skipped
    the bytes are, of the same folder      a copy, or renamed: left out, and said so
    neither is held                        new

The list of sources has one line a folder. So where a folder has changed since, or where it has the names and sizes of a
folder under another path, the records themselves tell which images are old: `image/filename` and `image/encoded` are
the file. Only then is the dataset read. Under another path an image with other bytes is new.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...transforms.dataset.commit.accounting import HeldSource, is_path_of, read_rejects
from ...transforms.dataset.reading.open_dataset import Dataset
from ...transforms.errors import SourceError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.inputs.contract.source import Listing
from ...transforms.inputs.files.open_file import is_object
from ...transforms.pictures.facts import ImageProblem
from ...transforms.sources.images.bytes import read_image_object
from ...transforms.sources.images.listing import ImageListing
from ...transforms.sources.images.pieces import ENCODED, SHA256, image_place
from ...transforms.sources.images.walk import ImageFile, ImageTable, facts_of
from ...transforms.sources.registry.settings import Limits
from ..outcomes.summary import Unchanged
from .known_inputs import settle_names, written_since

# Which images an earlier generation read and rejected: unchanged ones are left out, and not rejected again.
#
# A line of the reject file names a picture, and holds no digest of it. So a picture counts as the same only if
#
#     its path      is the one that was rejected, or ends with it
#     its times     are not after the generation (in a store its version is in the folder's fingerprint)
#     its folder    has a fingerprint that the dataset knows, over names and sizes: that of what is held of it, and
#                   of what was rejected
#
# A picture that differs in any of these is read again.


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


_FILENAME = "image/filename"


@dataclass(frozen=True, slots=True)
class HeldImages:
    """The images left out of folders: what the dataset holds, and what it rejected before."""

    unchanged: tuple[Unchanged, ...] = ()
    rejected: tuple[Unchanged, ...] = ()
    warnings: tuple[str, ...] = ()


def are_images_known(latest: Manifest, listing: Listing) -> bool:
    names = {feature.name for feature in latest.schema or ()}
    return isinstance(listing, ImageListing) and {_FILENAME, _told_by(latest)} <= names


def _told_by(latest: Manifest) -> str:
    """Return the feature that tells which file an image is: its bytes, or where these were changed its digest."""
    return SHA256 if latest.details.image else ENCODED


def without_held_images(
    path: str,
    latest: Manifest,
    listing: Listing,
    changed: Mapping[str, int],
    moved: Mapping[str, HeldSource],
    before: RejectedBefore,
    how: str | None,
) -> tuple[Listing, HeldImages]:
    """Return the listing without the images that the dataset holds or rejected `before`, and replaced ones settled.

    `changed` are folders, with their generations, `moved` those that are held as another folder; `how` is what a user
    wants of replaced images: `append`, `skip`, or None.
    """
    known = {**{name: source.generation for name, source in moved.items()}, **changed}
    if not known or not isinstance(listing, ImageListing) or not are_images_known(latest, listing):
        return listing, HeldImages()
    candidates = [image for image in listing.images if listing.entries[image.folder].name in known]
    held = _ImageDigests.of(Dataset(path, latest), _told_by(latest), candidates)
    gone: list[ImageFile] = []
    copied: dict[ImageFile, str] = {}
    suspects: dict[ImageFile, ImageFile] = {}
    for image in candidates:
        name = listing.entries[image.folder].name
        before_it = _as_held(listing, image, held.digests)
        if before_it is image:
            gone.append(image)
        elif before_it is not None and name in changed:
            suspects[image] = before_it
        elif name in changed and (under := held.copied(listing, image)) is not None:
            copied[image] = under
    counts = Counter(listing.entries[image.folder].name for image in gone)
    unchanged = [
        Unchanged(name, known[name], count, under=moved[name].name if name in moved else None)
        for name, count in sorted(counts.items())
    ]
    for image, under in copied.items():
        name = listing.entries[image.folder].name
        unchanged.append(Unchanged(image_place(name, image.name).source, known[name], under=under))
    gone += copied
    rejected = before.proven(listing, gone, [*gone, *suspects.values()])
    complete = before.complete_folders(listing, [*gone, *rejected], {image.folder for image in suspects})
    replaced = {image: old for image, old in suspects.items() if image.folder not in complete}
    warnings = _settle_replaced(listing, replaced, how)
    found = HeldImages(tuple(unchanged), counted_by_folder(listing, rejected), warnings)
    if how == "skip" and replaced:
        listing = listing.with_earlier(replaced)
    return listing.without([*gone, *rejected]), found


def _settle_replaced(listing: ImageListing, replaced: Collection[ImageFile], how: str | None) -> tuple[str, ...]:
    if not replaced:
        return ()
    names = [image_place(listing.entries[image.folder].name, image.name).source for image in replaced]
    picture, record = ("picture", "record") if len(names) == 1 else ("pictures", "records")
    stay = f"the new {picture} too; the {record} of before {'stays' if len(names) == 1 else 'stay'}"
    return (settle_names(names, how, f"append {stay}", f"appends {stay}"),)


@dataclass(frozen=True, slots=True)
class _ImageDigests:
    """The digests and sizes, by path, of images that a dataset holds; a size is 0 where it is not known any more."""

    digests: dict[str, dict[bytes, int]]
    sizes: frozenset[tuple[bytes, int]]
    paths: dict[bytes, list[str]]

    @classmethod
    def of(cls, dataset: Dataset, told_by: str, candidates: Sequence[ImageFile]) -> _ImageDigests:
        """Read those whose files have the name of a candidate, or its size."""
        names = frozenset(_shown(image.name) for image in candidates)
        sizes = frozenset(image.size for image in candidates)
        held: dict[str, dict[bytes, int]] = {}
        for split in dataset.splits:
            for batch in dataset.batches(split, [_FILENAME, told_by]):
                for name, data in zip(batch.column(_FILENAME).to_pylist(), batch.column(told_by), strict=True):
                    if not data.is_valid:
                        continue
                    if name.rpartition("/")[2] in names or told_by == SHA256 or data.as_buffer().size in sizes:
                        digest, size = _digest_of(data, told_by)
                        held.setdefault(name, {})[digest] = size
        paths = defaultdict[bytes, list[str]](list)
        for name, digests in held.items():
            for digest in digests:
                paths[digest].append(name)
        in_folders = ((_folder_of(name), size) for name, digests in held.items() for size in digests.values())
        return cls(held, frozenset(in_folders), dict(paths))

    def copied(self, listing: ImageListing, image: ImageFile) -> str | None:
        """Return the path of an image of the same folder and content, None if there is none.

        An image is read only where one of its folder has its size, or where sizes are not known, on a disk.
        """
        folder = listing.folders[image.folder]
        last = os.path.basename(folder.path) if folder.below_apex else b""
        unknown = (last, 0) in self.sizes and not is_object(folder.path)
        if not unknown and (last, image.size) not in self.sizes:
            return None
        digest = _digest(listing, image)
        for path in self.paths.get(digest, ()) if digest is not None else ():
            place = os.path.dirname(path)
            if _shown(folder.below_apex) == place or (place and _shown(folder.path).endswith(f"/{place}")):
                return path
        return None


def _folder_of(name: str) -> bytes:
    return os.path.basename(os.path.dirname(os.fsencode(name)))


def _digest_of(value: pa.Scalar, told_by: str) -> tuple[bytes, int]:
    """Return the digest of the file that an image was, and its size, 0 where that is not known any more."""
    if told_by == SHA256:
        text = value.as_py()
        return bytes.fromhex(text if isinstance(text, str) else text.decode()), 0
    buffer = value.as_buffer()
    return hashlib.sha256(buffer).digest(), buffer.size


def _as_held(listing: ImageListing, image: ImageFile, held: Mapping[str, Mapping[bytes, int]]) -> ImageFile | None:
    """Return an image as the dataset holds it: itself, or of another size where its path has other bytes, or None.

    The dataset may know it under the end of its path, as roots may have been others. But an end that is shorter than
    the path below the root now is as well the path of an image in another folder, so that other bytes show nothing.
    """
    folder = listing.folders[image.folder]
    parts = _shown(os.path.join(folder.path, image.name)).split("/")
    paths = [path for i in range(len(parts)) if (path := "/".join(parts[i:])) in held]
    digest = _digest(listing, image) if paths else None
    if digest is None:
        return None
    if any(digest in held[path] for path in paths):
        return image
    if len(paths[0]) < len(_shown(os.path.join(folder.below_apex, image.name))):
        return None
    return image._replace(size=list(held[paths[0]].values())[-1], mtime_ns=0)


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
    return path.decode("utf-8", "surrogateescape")
