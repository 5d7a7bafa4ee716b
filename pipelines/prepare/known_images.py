"""Which images of a folder that has changed a dataset holds already: by path, or the end of it, and bytes.

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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...transforms.dataset.reading.open_dataset import Dataset
from ...transforms.dataset.shards.source_list import HeldSource
from ...transforms.errors import SourceError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.pictures.facts import ImageProblem
from ...transforms.sources.contract.source import Listing
from ...transforms.sources.files.open_file import is_object
from ...transforms.sources.images.bytes import read_image_object
from ...transforms.sources.images.listing import ImageListing
from ...transforms.sources.images.rows import ENCODED, SHA256, image_place
from ...transforms.sources.images.table import ImageFile
from ..report.unchanged import Unchanged
from .known_inputs import settle_names
from .rejected_images import RejectedBefore, counted_by_folder

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
