"""List the images below root folders, once: folders as the entries, files with their sizes. Also shuffles them.

Nothing is opened. `walk` goes through folders in the order of paths, so that only a shuffle sorts all keys. A file
that is not a regular one (a named pipe, a dangling link, a link out of the root) keeps its place in the listing with a
size of -1, and reading it gives the reject. Links to folders are never followed, so that neither a circle nor a way out
of the root is possible: each is one such file.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from ...dataset.storage.local_storage import no_such_path
from ...errors import InputError
from ...format.batches.arrow_memory import array_of, true_mask
from ...format.wording.hints import Set
from ...format.wording.printable import printable_path
from ...inputs.contract.source import Listing, SourceEntry, Traits
from ...inputs.files.file_names import Ignored, is_other_file, left_out_text, why_skipped
from ...inputs.files.listing import entry_name, holds_dataset
from ...inputs.files.object_listing import match_url, object_name
from ...inputs.files.open_file import is_object
from ...recognise.evidence.names import is_split_folder, split_in_words
from ...recognise.pictures.box_layouts import AnnotationFile
from ...recognise.pictures.layout import Meaning
from ...recognise.rules import PictureFolders
from ...recognise.strangers.files import COPY
from ...stores.object_store import Level, ObjectInfo, number_of, store_at
from ...stores.store_url import parse_store_url
from .walk import FolderEntry, ImageFile, ImageFolder, ImageTable, ImageWalk, Scan, facts_of

_MARKED: Final = r"(?i)\([0-9]{1,3}\)|cop(?:y|ie)|kopie"
_SUFFIX: Final = r"\.[^.]*$"
OF_FOLDERS: Final = Traits(in_folders=True, has_order=False)


@dataclass(frozen=True, slots=True, eq=False)
class ImageListing(Listing):
    """A listing whose entries are folders (`folders[i]` is entry i); `images` are sorted by their paths' bytes.

    `as_one` says that several roots are read as parts of the folder above them (`pets/cat pets/dog` as `pets`).
    `annotations` have the names of these. `sidecars` are files with the name of a picture beside them, and that;
    `texts` may name pictures, and so may as many files as `more`. `empty` are the folders without images and folders.
    Folders are named from the folder `above` on, and have a `meaning`, where that was asked for; `beside` are lines on
    the files beside them.
    """

    folders: tuple[ImageFolder, ...] = ()
    images: ImageTable = field(default_factory=lambda: ImageTable.of(()))
    as_one: bool = False
    annotations: tuple[AnnotationFile, ...] = ()
    sidecars: tuple[tuple[bytes, bytes], ...] = ()
    texts: tuple[bytes, ...] = ()
    more: int = 0
    empty: tuple[ImageFolder, ...] = ()
    above: bytes = b""
    meaning: Meaning | None = None
    beside: tuple[str, ...] = ()

    def below(self, *, empty: bool = False) -> list[bytes]:
        """Return the paths of the folders by which classes and splits are detected, or of those without images."""
        folders = self.empty if empty else self.folders
        below = (folder.below_apex if self.as_one else folder.below_root for folder in folders)
        return [folder.removeprefix(self.above) for folder in below]

    def as_found(self) -> PictureFolders:
        return PictureFolders(
            below=self.below(),
            paths=[folder.path for folder in self.folders],
            roots=[folder.root for folder in self.folders],
            annotations=self.annotations,
            notable=self.notable,
            texts=self.texts,
            more=self.more,
            pairs=self.sidecars,
            names=self.images.some_names,
            names_in=self.names_in,
            smallest=self.smallest,
        )

    def names_in(self, folder: int, count: int) -> list[bytes]:
        rows = np.flatnonzero(self.images.folders == folder)[:count]
        return [one.as_py() for one in self.images.take(rows).names]

    def smallest(self, count: int) -> list[SourceEntry]:
        """Return the smallest pictures on a disk that are not empty, each as an entry."""
        order = np.argsort(self.images.sizes, kind="stable")
        found = map(self._entry, order[self.images.sizes[order] > 0][:count].tolist())
        return [one for one in found if not is_object(one.path)]

    def copies(self) -> list[tuple[SourceEntry, SourceEntry, str]]:
        """Return pairs of pictures of one size in one folder: a picture, its copy by name, and the copy's path."""
        names, sizes, folders = self.images.names, self.images.sizes, self.images.folders
        marked = np.flatnonzero(true_mask(pc.match_substring_regex(names, _MARKED)))
        if not len(marked):
            return []
        stems = pc.replace_substring_regex(names, _SUFFIX, "")
        plain = pc.replace_substring_regex(names.take(array_of(marked)), COPY, r"\1")
        plain = pc.replace_substring_regex(plain, _SUFFIX, "")
        some = true_mask(pc.is_in(plain, value_set=stems)) & (sizes[marked] > 0)
        wanted = [*zip(marked[some].tolist(), plain.filter(array_of(some)).to_pylist(), strict=True)]
        near = np.flatnonzero(true_mask(pc.is_in(stems, value_set=plain)))
        rows = {(folders[row], sizes[row], stems[row].as_py()): row for row in near.tolist()}
        pairs = ((rows.get((folders[row], sizes[row], stem), row), row) for row, stem in wanted)
        below = [folder.below_apex for folder in self.folders]
        return [
            (self._entry(one), self._entry(row), os.fsdecode(os.path.join(below[folders[row]], names[row].as_py())))
            for one, row in pairs
            if one != row
        ]

    def _entry(self, row: int) -> SourceEntry:
        image = self.images[row]
        folder = self.entries[image.folder]
        shown = printable_path(image.name)
        name = shown if folder.name == "." else f"{folder.name}/{shown}"
        return SourceEntry(folder.path.rstrip(b"/") + b"/" + image.name, name, image.size, image.mtime_ns, "")

    def keep(self, wanted: Sequence[int]) -> ImageListing:
        moved = np.full(len(self.folders), -1, np.int32)
        moved[list(wanted)] = np.arange(len(wanted), dtype=np.int32)
        images, meaning = self.images.take(np.flatnonzero(moved[self.images.folders] >= 0)), self.meaning
        return replace(
            self,
            meaning=meaning and replace(meaning, roles=tuple(meaning.roles[index] for index in wanted)),
            entries=tuple(self.entries[index] for index in wanted),
            files=len(images),
            bytes=sum(self.entries[index].bytes for index in wanted),
            folders=tuple(self.folders[index] for index in wanted),
            images=images.with_folders(moved[images.folders]),
        )

    def without(self, images: Collection[ImageFile]) -> ImageListing:
        """Return the listing without some images; a folder keeps its fingerprint, which is of all that it holds."""
        gone = frozenset(images)
        kept = self.images.take(np.array([i for i, image in enumerate(self.images) if image not in gone], np.int64))
        files = np.bincount(kept.folders, minlength=len(self.folders)).tolist()
        sizes = kept.bytes_by_folder(len(self.folders))
        entries = tuple(
            replace(entry, bytes=sizes[index], files=files[index]) for index, entry in enumerate(self.entries)
        )
        return replace(self, entries=entries, files=len(kept), bytes=sum(sizes), images=kept)

    def with_earlier(self, images: Mapping[ImageFile, ImageFile]) -> ImageListing:
        """Return the listing without some images; the fingerprint of their folders is of what they were before."""
        left = self.without(images)
        entries = list(left.entries)
        for index in {image.folder for image in images}:
            files = self.images.take(np.flatnonzero(self.images.folders == index)).in_order_of_names()
            earlier = ImageTable.of([images.get(image, image) for image in files])
            entries[index] = replace(entries[index], fingerprint=facts_of(self.folders[index], earlier).fingerprint)
        return replace(left, entries=tuple(entries))


def list_images(paths: Sequence[str], base: str, scan: Scan | None = None, ignore: Sequence[str] = ()) -> ImageListing:
    """Return the listing of all files below the folders that `paths` name, and of the files that they name.

    A path that exists is taken literally, else it is a glob; relative ones are relative to the folder `base`. The root
    of a file that is named is its folder. Names are relative to the nearest folder above all roots, so that they are
    unique. `scan` lists folders that are in no file system. `ignore` are globs of names, or of paths below the root,
    that are left out. Raises `InputError`: a path matches nothing, is in another one, holds no file, or a folder cannot
    be read.
    """
    root = os.path.abspath(os.fsencode(base))
    folders, files = _expand(paths, root)
    named, others = _without_others(sorted([*map(_in_tree, folders), *files]))
    apex = _common_folder({_folder_of(path) for path in named})
    ignored = Ignored.of(ignore) if ignore else None
    tree = ObjectTree()
    walk = ImageWalk(scan or tree.scan, tree.holds_dataset, ignored, apex)
    for path in others:
        reason = why_skipped(os.path.basename(path.rstrip(b"/")))
        if reason is None:
            walk.left.skip_file(path)
        else:
            walk.left.skip(reason)
    found = False
    for path in named:
        if apex is not None and ignored is not None and ignored(*os.path.split(_below(path.rstrip(b"/"), apex))):
            walk.left.skip("ignored")
        elif not path.endswith(b"/"):
            walk.add_file(path, files[path])
            found = True
        elif apex is not None and tree.holds_dataset(_folder_of(path)):
            walk.left.skip("dataset")
        elif walk.add_tree(_folder_of(path)):
            found = True
        else:
            walk.left.skip("empty")
    if not found:
        raise InputError(_nothing_text([entry_name(_folder_of(path), root) for path in named], walk.left.by_kind()))
    return _listing(walk, root, apex)


def mask_warning(images: ImageTable, ignored: Sequence[str]) -> tuple[str, ...]:
    """Return what to say of masks among the pictures: names such as `1_mask.png`, with `1.jpg` in the same folder."""
    found = {word: masks for word in _OF_MASKS if len(masks := _masks_by(word, images))}
    if not found:
        return ()
    total = sum(map(len, found.values()))
    count = "1 picture looks like a mask" if total == 1 else f"{total:,} pictures look like masks"
    leave = Set("input.ignore", [*ignored, *(f"*{word.decode()}*" for word in found)])
    shown = printable_path(next(iter(found.values()))[0].name)
    return (f"{count} of the picture beside, such as {shown}; to leave masks out: {leave}",)


def _masks_by(word: bytes, images: ImageTable) -> ImageTable:
    """Return the pictures with a word in their names, none where one of the first has no picture beside."""
    masks = images.take(np.flatnonzero(true_mask(pc.match_substring(images.names, word))))
    for mask in masks[:_LOOKED_AT]:
        beside = images.names.filter(array_of(images.folders == mask.folder))
        if not pc.any(pc.starts_with(beside, mask.name.rpartition(word)[0] + b".")).as_py():
            return masks[:0]
    return masks


_OF_MASKS: Final = (b"_mask", b"_segmentation", b"_superpixels", b"_groundtruth")
_LOOKED_AT: Final = 8


def _nothing_text(named: Sequence[str], skipped: Mapping[str, int]) -> str:
    left = left_out_text({kind: count for kind, count in skipped.items() if kind != "empty"})
    holds = "the folder holds" if len(named) == 1 else "the folders hold"
    return f"{named[0]}: {holds} no {f'image; left out: {left}' if left else 'file'}"


def _without_others(named: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return what is named without that which a glob merely found beside it: junk, and names that no image has."""
    others = []
    for path in named:
        name = os.path.basename(path.rstrip(b"/"))
        if why_skipped(name) not in (None, "hidden") or (not path.endswith(b"/") and is_other_file(name)):
            others.append(path)
    if len(others) == len(named):
        return named, []
    gone = frozenset(others)
    return [path for path in named if path not in gone], others


def _folder_of(path: bytes) -> bytes:
    return (path.rstrip(b"/") or b"/") if path.endswith(b"/") else os.path.dirname(path)


def _common_folder(folders: Collection[bytes]) -> bytes | None:
    """Return the nearest folder that is or holds all of several folders, None if there is none, or one folder only.

    >>> _common_folder([b"/data/pets/cat", b"/data/pets/dog"]), _common_folder([b"s3://a/x", b"s3://b/x"])
    (b'/data/pets', None)
    """
    if len(folders) < 2:
        return None
    levels = zip(*[folder.rstrip(b"/").split(b"/") for folder in folders], strict=False)
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels)]
    if any(map(is_object, folders)) and len(common) < len([b"s3:", b"", b"bucket"]):
        return None
    return b"/".join(common) or b"/"


def _below(path: bytes, folder: bytes) -> bytes:
    return path[len(folder.rstrip(b"/")) + 1 :]


def _expand(paths: Sequence[str], root: bytes) -> tuple[list[bytes], dict[bytes, tuple[int, int] | None]]:
    """Return the root folders that paths name, sorted, and the files; of objects, their sizes and numbers."""
    if not paths:
        raise InputError("input.paths is empty: name at least one folder of images")
    matches: set[bytes] = set()
    folders: list[bytes] = []
    objects: dict[bytes, tuple[int, int]] = {}
    for path in paths:
        if is_object(os.fsencode(path)):
            for place, info in match_url(path):
                if info is None:
                    folders.append(place)
                else:
                    objects[place] = measure_object(info)
                matches.add(place)
            continue
        raw = os.fsencode(path)
        literal = os.path.abspath(os.path.join(root, raw))
        if os.path.lexists(literal):
            matches.add(literal)
            continue
        hits = glob.glob(raw, root_dir=root, recursive=True) if glob.has_magic(raw) else []
        if not hits:
            raise no_such_path(path, root)
        matches.update(os.path.abspath(os.path.join(root, hit)) for hit in hits)
    folders = sorted({*folders, *(path for path in matches if not is_object(path) and os.path.isdir(path))})
    known = set(folders)
    outer = None
    for inner in sorted(matches, key=_in_tree):  # what is in a folder comes right after it
        if outer is not None and inner.startswith(outer.rstrip(b"/") + b"/"):
            names = entry_name(inner, root), entry_name(outer, root)
            raise InputError(f"{names[0]} is in {names[1]}, which is read too; name one of them")
        outer = inner if inner in known else outer
    return folders, {path: objects.get(path) for path in matches - known}


def _in_tree(path: bytes) -> bytes:
    """Return what sorts a folder right before all that is in it, and files as their own paths do among these."""
    return path.rstrip(b"/") + b"/"


def _listing(walk: ImageWalk, base: bytes, apex: bytes | None) -> ImageListing:
    found, images = walk.end()
    order = sorted(range(len(found)), key=lambda number: found[number].folder.path)
    moved = np.empty(len(order), np.int32)
    moved[order] = np.arange(len(order), dtype=np.int32)
    entries = []
    for folder, files, size, mtime_ns, print_ in (found[number] for number in order):
        shown_name = "." if folder.path == base else entry_name(folder.path, base)
        version = print_ if is_object(folder.path) else ""
        entries.append(SourceEntry(folder.path, shown_name, size, mtime_ns, print_, files, version))
    return ImageListing(
        "images",
        tuple(entries),
        len(images),
        sum(entry.bytes for entry in entries),
        walk.left.by_kind(),
        OF_FOLDERS,
        folders=tuple(found[number].folder for number in order),
        images=images.with_folders(moved[images.folders]),
        as_one=apex is not None and _are_parts([facts.folder for facts in found]),
        annotations=tuple(one for _, one in sorted(walk.annotations.items()) if not is_object(one.path)),
        notable=tuple(
            sorted({*walk.left.notable, *(one.path for one in walk.annotations.values() if is_object(one.path))})
        ),
        sidecars=tuple(
            pair
            for pair in sorted(walk.sidecars.values())
            if not any(one.path.rpartition(b".")[2] == pair[0].rpartition(b".")[2] for one in walk.annotations.values())
        ),
        texts=tuple(walk.left.texts),
        more=walk.left.more,
        empty=tuple(walk.empty),
    )


def _are_parts(folders: Sequence[ImageFolder]) -> bool:
    """Return whether folders show that a root is a class or a split, and not a folder of classes, or all roots do."""
    names = [*map(os.path.basename, {folder.root for folder in folders})]
    own = any(folder.path == folder.root for folder in folders) or any(map(is_split_folder, names))
    return own or all(split_in_words(os.fsdecode(name)) for name in names)


_MANIFEST, _GENERATIONS = "manifest.json", "manifests/"


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """An object or a folder, below a folder: `info` is None for a folder."""

    name: bytes
    path: bytes
    info: ObjectInfo | None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - there are no links
        return self.info is None

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002
        assert self.info is not None
        size, number = measure_object(self.info)
        return os.stat_result((stat.S_IFREG, 0, 0, 0, 0, 0, size, 0, 0, 0), {"st_mtime_ns": number})


def measure_object(info: ObjectInfo) -> tuple[int, int]:
    return info.size, number_of(info.version)


class ObjectTree:
    """Scans folders, wherever they are; those of stores by a level of keys for each, which comes in pages."""

    def __init__(self) -> None:
        self._begun: dict[bytes, Iterator[Level]] = {}

    def scan(self, folder: bytes) -> AbstractContextManager[Iterable[FolderEntry]]:
        """Raise `StoreAccessError` or `StoreError`, and `InputError` for a folder without a name."""
        if not is_object(folder):
            return os.scandir(folder)
        return nullcontext(self._entries(folder))

    def holds_dataset(self, folder: bytes) -> bool:
        if not is_object(folder):
            return holds_dataset(folder)
        url = parse_store_url(folder.decode() + "/")
        pages = store_at(url).level_pages(url.key)
        first = next(pages, Level((), ()))
        second = next(pages, None)
        self._begun[folder] = chain([first], [] if second is None else [second], pages)  # it will be scanned
        if second is None:
            keys = {info.key for info in first.objects} | set(first.prefixes)
            return {url.key + _MANIFEST, url.key + _GENERATIONS} <= keys
        store = store_at(url)
        return store.head(url.key + _MANIFEST) is not None and any(store.walk(url.key + _GENERATIONS))

    def _entries(self, folder: bytes) -> Iterator[ObjectEntry]:
        url = parse_store_url(folder.decode() + "/")
        pages = self._begun.pop(folder, None) or store_at(url).level_pages(url.key)
        at = len(url.key)
        seen: set[str] = set()
        for page in pages:
            for info in page.objects:
                name = info.key[at:].encode()
                yield ObjectEntry(name, folder + b"/" + name, info)
            for prefix in page.prefixes:
                if prefix in seen:
                    continue
                seen.add(prefix)
                name = prefix[at:-1].encode()
                if not name:
                    raise InputError(f"{object_name(folder)}//: a folder without a name is not read; rename its keys")
                yield ObjectEntry(name, folder + b"/" + name, None)


# The shuffled order of images: by a digest of the seed and each path below its root, the same on every machine.
#
# Ten million digests are 320 MB, and the rows that sort them as much again. So each is a number with its row, which
# are sorted where they are:
#
#     first 40 bits of the digest │ row, 24 bits          as many as the rows need; 80 MB
#
# Two rows whose bits are equal (45 pairs in ten million) follow the listing.


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
