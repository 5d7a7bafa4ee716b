"""List the images below root folders, once: folders as the entries, files with their sizes.

Nothing is opened. A file that is no regular one (a named pipe, a dangling link, a link out of the root) keeps its place
in the listing with a size of -1, and reading it gives the reject. Links to folders are never followed, so that neither
a circle nor a way out of the root is possible: each is one such file.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from ..errors import InputError
from ..format.printable import printable_path
from .listing import entry_name, holds_dataset
from .source import Listing, SourceEntry

NOT_READABLE: Final = -1
"""The size of a file that could not be read as it stood when it was listed."""

_JUNK: Final = frozenset({b"thumbs.db", b"desktop.ini", b"__macosx"})


class ImageFile(NamedTuple):
    """One file of the listing; a tuple, since there may be millions: `folder` is the index of its entry."""

    folder: int
    name: bytes
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """A folder that holds files: its absolute path, and that of the root that it was found below."""

    path: bytes
    root: bytes

    @property
    def below_root(self) -> bytes:
        """The path below the root, empty for the root itself."""
        return self.path[len(self.root.rstrip(b"/")) + 1 :]


@dataclass(frozen=True, slots=True)
class ImageListing(Listing):
    """A listing whose entries are folders (`folders[i]` is entry i); `images` are sorted by their paths' bytes."""

    folders: tuple[ImageFolder, ...] = ()
    images: tuple[ImageFile, ...] = ()

    def keep(self, wanted: Sequence[int]) -> ImageListing:
        """Return the listing of some folders only, given by their indices, in order."""
        moved = {index: i for i, index in enumerate(wanted)}
        images = tuple(image._replace(folder=moved[image.folder]) for image in self.images if image.folder in moved)
        return replace(
            self,
            entries=tuple(self.entries[index] for index in wanted),
            files=len(images),
            bytes=sum(self.entries[index].bytes for index in wanted),
            folders=tuple(self.folders[index] for index in wanted),
            images=images,
        )

    def without(self, images: Collection[ImageFile]) -> ImageListing:
        """Return the listing without some images; a folder keeps its fingerprint, which is of all that it holds."""
        gone = frozenset(images)
        kept = tuple(image for image in self.images if image not in gone)
        files, sizes = Counter(image.folder for image in kept), Counter[int]()
        for image in kept:
            sizes[image.folder] += max(image.size, 0)
        entries = tuple(
            replace(entry, bytes=sizes[index], files=files[index]) for index, entry in enumerate(self.entries)
        )
        return replace(self, entries=entries, files=len(kept), bytes=sum(sizes.values()), images=kept)


@dataclass(slots=True)
class _Found:
    """What the walk has found: (path of the folder, name, size, mtime) by folder, and what was skipped."""

    files: dict[ImageFolder, list[tuple[bytes, int, int]]] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=lambda: {"hidden": 0, "junk": 0})


def list_images(paths: Sequence[str], base: str) -> ImageListing:
    """Return the listing of all files below the folders that `paths` name, and of the files that they name.

    A path that exists is taken literally, else it is a glob; relative ones are relative to the folder `base`. The root
    of a file that is named is its folder.

    Raises:
        InputError: a path matches nothing, lies in another one, holds no file, or a folder cannot be read.
    """
    root = os.path.abspath(os.fsencode(base))
    folders, files = _expand(paths, root)
    found = _Found()
    for folder in folders:
        before = len(found.files)
        for path in _walk(ImageFolder(folder, folder), found):
            found.files.setdefault(ImageFolder(os.path.dirname(path), folder), []).append(_measure(path, folder))
        if len(found.files) == before:
            raise InputError(f"{entry_name(folder, root)}: the folder holds no file")
    for path in files:
        parent = os.path.dirname(path)
        found.files.setdefault(ImageFolder(parent, parent), []).append(_measure(path, parent))
    return _listing(found, root)


def is_inside(path: bytes, root: bytes) -> bool:
    """Tell whether a path is a root folder or lies below it, the links of both resolved."""
    real, real_root = os.path.realpath(path), os.path.realpath(root)
    return real == real_root or real.startswith(real_root.rstrip(b"/") + b"/")


def _expand(paths: Sequence[str], root: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the root folders and the files that paths name, sorted, each once."""
    if not paths:
        raise InputError("input.paths is empty: name at least one folder of images")
    matches: set[bytes] = set()
    for path in paths:
        raw = os.fsencode(path)
        literal = os.path.abspath(os.path.join(root, raw))
        if os.path.lexists(literal):
            matches.add(literal)
            continue
        hits = glob.glob(raw, root_dir=root, recursive=True) if glob.has_magic(raw) else []
        if not hits:
            raise InputError(f"{printable_path(path)}: no such file or folder, and as a glob it matches nothing")
        matches.update(os.path.abspath(os.path.join(root, hit)) for hit in hits)
    folders = sorted(path for path in matches if os.path.isdir(path))
    for inner in sorted(matches):
        outer = next((f for f in folders if inner.startswith(f.rstrip(b"/") + b"/")), None)
        if outer is not None:
            names = entry_name(inner, root), entry_name(outer, root)
            raise InputError(f"{names[0]} lies in {names[1]}, which is read too; name one of them")
    return folders, sorted(matches - set(folders))


def _walk(folder: ImageFolder, found: _Found) -> Iterator[bytes]:
    """Yield the path of all that is not a folder; hidden names, junk and datasets of ours are skipped and counted."""
    try:
        with os.scandir(folder.path) as scan:
            entries = list(scan)
    except OSError as error:
        raise InputError(f"{printable_path(folder.path)}: the folder cannot be read: {error.strerror}") from error
    for entry in entries:
        if entry.name.lower() in _JUNK:
            found.skipped["junk"] += 1
        elif entry.name.startswith((b".", b"_")):
            found.skipped["hidden"] += 1
        elif entry.is_dir(follow_symlinks=False) and holds_dataset(entry.path):
            found.skipped["dataset"] = found.skipped.get("dataset", 0) + 1
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk(ImageFolder(entry.path, folder.root), found)
        else:
            yield entry.path


def _measure(path: bytes, root: bytes) -> tuple[bytes, int, int]:
    """Return the name of a file with its size and mtime, or with -1 and 0 where it is not to be opened."""
    name = os.path.basename(path)
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode) and is_inside(path, root):
            status = os.stat(path)
    except OSError:
        return name, NOT_READABLE, 0
    return (name, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else (name, NOT_READABLE, 0)


def _listing(found: _Found, base: bytes) -> ImageListing:
    folders = sorted(found.files, key=lambda folder: folder.path)
    entries = []
    images = []
    for index, folder in enumerate(folders):
        files = sorted(found.files[folder])
        digest = hashlib.sha256()
        for name, size, _ in files:
            digest.update(b"%d %s\0" % (size, name))
        size = sum(max(size, 0) for _, size, _ in files)
        mtime_ns = max(mtime for _, _, mtime in files)
        shown_name = "." if folder.path == base else entry_name(folder.path, base)
        print_ = "sha256:" + digest.hexdigest()
        entries.append(SourceEntry(folder.path, shown_name, size, mtime_ns, print_, len(files)))
        images += [ImageFile(index, *file) for file in files]
    # by whole paths: `a-b/1` comes before `a/1`, though the folder `a` comes before `a-b`
    images.sort(key=lambda image: folders[image.folder].path + b"/" + image.name)
    total = sum(entry.bytes for entry in entries)
    return ImageListing(
        "images", tuple(entries), len(images), total, found.skipped, folders=tuple(folders), images=tuple(images)
    )
