"""Walk folders of images in the order of whole paths; each folder is sorted by itself, and never all of them.

    root/           a-b/1.jpg    a folder is compared with its `/`, which comes after `-` and `.`
      a-b/          a.jpg
      a.jpg         a/1.jpg
      a/            a/B.jpg

Files go into columns in this order: a flat folder of ten million files takes no more memory than its table.
"""

from __future__ import annotations

import hashlib
import os
import stat
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InputError
from ...format.wording.printable import printable_path
from ...inputs.files.below_root import is_inside
from ...inputs.files.file_names import TEXTS, Ignored, LeftOut, is_other_file, why_skipped
from ...inputs.files.listing import holds_dataset
from ...inputs.files.open_file import is_object
from ...recognise.pictures.box_layouts import AnnotationFile, annotation_kind, annotations_of

# The files of a listing of images, by column: ten million of them take half a gigabyte, and as tuples three.
#
# folders  int32  │ 0 │ 0 │ 1 │          sizes, mtimes_ns  int64         names  one buffer, and where each ends
# names           │ 1.jpg │ 2.jpg │ 1.png │


_ROWS_AT_ONCE: Final = 1 << 14
"""Rows that are made Python's own values at once, where all are gone through."""


class ImageFile(NamedTuple):
    """One file of the listing: `folder` is the index of its entry; of an object `mtime_ns` is the version's number."""

    folder: int
    name: bytes
    size: int
    mtime_ns: int


@dataclass(slots=True, eq=False)
class ImageTable(Sequence[ImageFile]):
    """Files in their order; a range of them is a view, and no copy."""

    folders: npt.NDArray[np.int32]
    names: pa.LargeBinaryArray
    sizes: npt.NDArray[np.int64]
    mtimes_ns: npt.NDArray[np.int64]

    @classmethod
    def of(cls, images: Sequence[ImageFile]) -> ImageTable:
        columns = ImageColumns()
        for folder, name, size, mtime_ns in images:
            columns.add_all(folder, [(name, size, mtime_ns)])
        return columns.table()

    def __len__(self) -> int:
        return len(self.folders)

    @overload
    def __getitem__(self, index: int) -> ImageFile: ...
    @overload
    def __getitem__(self, index: slice) -> ImageTable: ...
    def __getitem__(self, index: int | slice) -> ImageFile | ImageTable:
        """Return one file, or the table of a range without a step."""
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            names = self.names.slice(start, max(stop - start, 0))
            return ImageTable(self.folders[start:stop], names, self.sizes[start:stop], self.mtimes_ns[start:stop])
        return ImageFile(
            int(self.folders[index]),
            self.names[index % len(self)].as_py(),
            int(self.sizes[index]),
            int(self.mtimes_ns[index]),
        )

    def __iter__(self) -> Iterator[ImageFile]:
        for start in range(0, len(self), _ROWS_AT_ONCE):
            some = self[start : start + _ROWS_AT_ONCE]
            columns = some.folders.tolist(), some.names.to_pylist(), some.sizes.tolist(), some.mtimes_ns.tolist()
            yield from map(ImageFile, *columns)

    def take(self, rows: npt.NDArray[Any]) -> ImageTable:
        places = np.ascontiguousarray(rows, np.int64)
        chosen = pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)], null_count=0)
        return ImageTable(self.folders[places], pc.take(self.names, chosen), self.sizes[places], self.mtimes_ns[places])

    def some_names(self, count: int) -> list[bytes]:
        """Return at most `count` names, from all parts of the table."""
        return [one.as_py() for one in self.take(np.arange(0, len(self), len(self) // count + 1)).names]

    def in_order_of_names(self) -> ImageTable:
        order = pc.array_sort_indices(self.names)
        return self.take(np.frombuffer(order.buffers()[1], np.uint64)[: len(self)])

    def with_folders(self, folders: npt.NDArray[np.int32]) -> ImageTable:
        return ImageTable(folders, self.names, self.sizes, self.mtimes_ns)

    def bytes_by_folder(self, count: int) -> list[int]:
        """Return the bytes of the files of each of `count` folders; those that cannot be read count nothing."""
        sums = np.zeros(count, np.int64)
        np.add.at(sums, self.folders, np.maximum(self.sizes, 0))
        return [*map(int, sums)]

    def to_buffers(self) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        """Return the columns as bytes of their own: folders, lengths of names, names, sizes, mtimes."""
        offsets = np.frombuffer(self.names.buffers()[1], np.int64)[self.names.offset :][: len(self) + 1]
        data = self.names.buffers()[2]
        names = bytes(memoryview(data)[int(offsets[0]) : int(offsets[-1])]) if len(self) and data is not None else b""
        lengths = np.diff(offsets).astype("<i4") if len(self) else np.zeros(0, "<i4")
        columns = self.folders.astype("<i4"), self.sizes.astype("<i8"), self.mtimes_ns.astype("<i8")
        folders, sizes, mtimes = (column.tobytes() for column in columns)
        return folders, lengths.tobytes(), names, sizes, mtimes

    @classmethod
    def from_buffers(cls, folders: bytes, lengths: bytes, names: bytes, sizes: bytes, mtimes: bytes) -> ImageTable:
        ends = np.cumsum(np.frombuffer(lengths, "<i4"), dtype=np.int64)
        return cls(
            np.frombuffer(folders, "<i4"),
            _binary(np.concatenate((np.zeros(1, np.int64), ends)), names),
            np.frombuffer(sizes, "<i8"),
            np.frombuffer(mtimes, "<i8"),
        )

    def forget(self) -> None:
        """Release all files: every holder of the table then holds an empty one."""
        self.folders, self.sizes, self.mtimes_ns = self.folders[:0].copy(), self.sizes[:0].copy(), self.sizes[:0].copy()
        self.names = _binary(np.zeros(1, np.int64), b"")

    def __reduce__(self) -> tuple[object, tuple[bytes, ...]]:
        return ImageTable.from_buffers, self.to_buffers()  # of a view no more than it shows


class ImageColumns:
    """A table that is being made, a file at a time; it takes no more memory than the table."""

    def __init__(self) -> None:
        self._folders = array("i")
        self._names = bytearray()
        self._ends = array("q", [0])
        self._sizes = array("q")
        self._mtimes = array("q")

    def __len__(self) -> int:
        return len(self._folders)

    def add_all(self, folder: int, files: Sequence[tuple[bytes, int, int]]) -> None:
        """Append files of one folder: their names, sizes and mtimes."""
        names, sizes, mtimes = zip(*files, strict=True) if files else ((), (), ())
        ends = np.cumsum(np.fromiter(map(len, names), np.int64, len(names))) + len(self._names)
        self._folders.frombytes(np.full(len(names), folder, np.int32).tobytes())
        self._names += b"".join(names)
        self._ends.frombytes(ends.tobytes())
        self._sizes.extend(sizes)
        self._mtimes.extend(mtimes)

    def extend(self, images: ImageTable) -> None:
        folders, lengths, names, sizes, mtimes = images.to_buffers()
        ends = np.cumsum(np.frombuffer(lengths, "<i4"), dtype=np.int64) + len(self._names)
        self._ends.frombytes(ends.tobytes())
        self._names += names
        for column, data in ((self._folders, folders), (self._sizes, sizes), (self._mtimes, mtimes)):
            column.frombytes(data)

    def table(self) -> ImageTable:
        """Return what was added; nothing may be added after that."""
        return ImageTable(
            np.frombuffer(self._folders, np.int32),
            _binary(np.frombuffer(self._ends, np.int64), self._names),
            np.frombuffer(self._sizes, np.int64),
            np.frombuffer(self._mtimes, np.int64),
        )


def _binary(offsets: npt.NDArray[np.int64], data: bytes | bytearray) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers, null_count=0)


NOT_READABLE: Final = -1
"""The size of a file that could not be read as it was when it was listed."""

_AT_ONCE: Final = 1 << 12
"""Files that are Python's own values at a time."""


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """A folder that holds files: its absolute path, and that of the root that it was found below.

    `apex` is the folder that names are relative to: the root, or the nearest folder above all roots.
    """

    path: bytes
    root: bytes
    apex: bytes

    @property
    def below_root(self) -> bytes:
        return self.path[len(self.root.rstrip(b"/")) + 1 :]

    @property
    def below_apex(self) -> bytes:
        return self.path[len(self.apex.rstrip(b"/")) + 1 :]


class FolderEntry(Protocol):
    """One thing that a folder holds, as `os.scandir` returns it."""

    @property
    def name(self) -> bytes:
        """Its name in the folder."""

    @property
    def path(self) -> bytes:
        """The folder's path and its name."""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is a folder."""

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return what it is."""


Scan = Callable[[bytes], AbstractContextManager[Iterable[FolderEntry]]]
"""Lists a folder, in any order: `os.scandir`, or the same for another kind of tree."""


class FolderFacts(NamedTuple):
    """What a listing states of a folder: how many files it holds itself, their bytes, the latest change, a digest."""

    folder: ImageFolder
    files: int
    bytes: int
    mtime_ns: int
    fingerprint: str


class ImageWalk:
    """A walk through root folders and files that were named, which come in the order of their paths.

    `apex` is the folder that all names are relative to, None if each root's are its own. `ignored` are names and paths
    below the apex. `left` is what was left out; `annotations` are the first files with names of annotations, by kind,
    `sidecars` the first ones that have the name of a picture beside them, by suffix, each with that picture. `empty`
    are the folders without files and folders. The folders of the table are those of `folders()`, by number.
    """

    def __init__(
        self,
        scan: Scan,
        is_dataset: Callable[[bytes], bool] = holds_dataset,
        ignored: Ignored | None = None,
        apex: bytes | None = None,
    ) -> None:
        self.left = LeftOut()
        self.annotations: dict[str, AnnotationFile] = {}
        self.sidecars: dict[bytes, tuple[bytes, bytes]] = {}
        self.empty: list[ImageFolder] = []
        self._apex = apex
        self._ignored = ignored
        self._scan = scan
        self._is_dataset = is_dataset
        self._images = ImageColumns()
        self._found: list[FolderFacts] = []
        self._named: dict[ImageFolder, tuple[int, ImageColumns]] = {}

    def add_tree(self, path: bytes) -> bool:
        """Add all files below a root folder; return whether there are any."""
        before = len(self._images)
        open_folders = [self._visit(self._folder(path, path))]  # no recursion: paths are deeper than Python's stack
        while open_folders:
            inner = next(open_folders[-1], None)
            if inner is None:
                open_folders.pop()
            else:
                open_folders.append(self._visit(inner))
        return len(self._images) > before

    def add_file(self, path: bytes, measured: tuple[int, int] | None = None) -> None:
        """Add a file that was named; its root is its folder. `measured` are size and mtime, where they are known."""
        parent = os.path.dirname(path)
        folder = self._folder(parent, parent)
        if folder not in self._named:
            self._named[folder] = len(self._found), ImageColumns()
            self._found.append(FolderFacts(folder, 0, 0, 0, ""))
        number, files = self._named[folder]
        file = os.path.basename(path), *(measured or _measure_path(path, parent))
        files.add_all(number, [file])
        self._images.add_all(number, [file])

    def end(self) -> tuple[list[FolderFacts], ImageTable]:
        """Return the folders that hold files, in no order, and all files in the order of their paths."""
        for folder, (number, files) in self._named.items():
            self._found[number] = facts_of(folder, files.table())
        return self._found, self._images.table()

    def _visit(self, folder: ImageFolder) -> Iterator[ImageFolder]:
        files, inner, notes, others = self._read(folder)
        images = files.table().in_order_of_names()

        def near(name: bytes) -> bytes | None:
            place = bisect_left(range(len(images)), os.path.splitext(name)[0] + b".", key=lambda i: images[i].name)
            return images[min(place, len(images) - 1)].name if len(images) else None

        for kind, other in notes.items():
            found = annotations_of(kind, folder.path, other, near(other))
            if found is not None:
                self.annotations.setdefault(kind, found)
        for suffix, other in others.items():
            picture = near(other)
            if picture is not None and picture.startswith(os.path.splitext(other)[0] + b"."):
                self.sidecars.setdefault(suffix, (os.path.join(folder.path, other), picture))
        if len(images):
            self._found.append(facts_of(folder, images))
        elif not inner:
            self.empty.append(folder)
        done = 0
        for name in sorted(name + b"/" for name in inner):
            before = bisect_left(range(len(images)), name, lo=done, key=lambda i: images[i].name)
            if before > done:
                self._images.extend(images[done:before])
            done = before
            yield self._folder(os.path.join(folder.path, name[:-1]), folder.root)
        if done < len(images):
            self._images.extend(images[done:])

    def _read(self, folder: ImageFolder) -> tuple[ImageColumns, list[bytes], dict[str, bytes], dict[bytes, bytes]]:
        """Return a folder's files, and the names of the folders in it; those that are skipped are not among them.

        The last are the first names of annotations, by kind, and of all files that are no pictures, by suffix.
        """
        files, inner, notes, others = ImageColumns(), list[bytes](), dict[str, bytes](), dict[bytes, bytes]()
        number, below_apex = len(self._found), folder.below_apex
        some: list[tuple[bytes, int, int]] = []
        try:
            with self._scan(folder.path) as entries:
                for entry in entries:
                    name = entry.name
                    reason = why_skipped(name)
                    if reason is not None:
                        is_folder = reason == "hidden" and entry.is_dir(follow_symlinks=False)
                        self.left.skip(*(("hidden folder",) if is_folder else (reason, entry.path)))
                        self._note(notes, folder, name)
                    elif self._ignored is not None and self._ignored(below_apex, name):
                        self.left.skip("ignored")
                    elif not entry.is_dir(follow_symlinks=False):
                        if is_other_file(name):
                            size = entry.stat(follow_symlinks=False).st_size if name.lower().endswith(TEXTS) else 0
                            self.left.skip_file(entry.path, size)
                            self._note(notes, folder, name)
                            suffix = name[name.rfind(b".") :].lower()
                            others[suffix] = min(name, others.get(suffix, name))
                            continue
                        some.append((name, *_measure(entry, folder.root)))
                        if len(some) == _AT_ONCE:
                            files.add_all(number, some)
                            some.clear()
                    elif self._is_dataset(entry.path):
                        self.left.skip("dataset")
                    else:
                        inner.append(name)
        except OSError as error:
            raise InputError(f"{printable_path(folder.path)}: the folder cannot be read: {error.strerror}") from error
        files.add_all(number, some)
        return files, inner, notes, others

    def _note(self, notes: dict[str, bytes], folder: ImageFolder, name: bytes) -> None:
        kind = annotation_kind(folder.below_root, name)
        if kind is None or kind in self.annotations or (kind in notes and notes[kind] < name):
            return
        if self._ignored is None or not self._ignored(folder.below_apex, name):
            notes[kind] = name

    def _folder(self, path: bytes, root: bytes) -> ImageFolder:
        return ImageFolder(path, root, root if self._apex is None else self._apex)


def _measure(entry: FolderEntry, root: bytes) -> tuple[int, int]:
    """Return the size and mtime of a file, -1 and 0 where it is not to be opened."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return NOT_READABLE, 0
    if stat.S_ISREG(status.st_mode):
        return status.st_size, status.st_mtime_ns
    return _measure_path(entry.path, root)


def _measure_path(path: bytes, root: bytes) -> tuple[int, int]:
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode) and is_inside(path, root):
            status = os.stat(path)
    except OSError:
        return NOT_READABLE, 0
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else (NOT_READABLE, 0)


def facts_of(folder: ImageFolder, images: ImageTable) -> FolderFacts:
    """Return what is stated of a folder with some files, which are in the order of their names.

    The digest is over sizes and names; in a store also over versions, which change with the contents.
    """
    sizes, names = images.sizes.tolist(), images.names.to_pylist()
    size, latest = int(images.sizes.clip(min=0).sum()), int(images.mtimes_ns.max())
    if is_object(folder.path):
        triples = zip(sizes, images.mtimes_ns.tolist(), names, strict=True)
        data, latest = b"".join([b"%d %d %s\0" % triple for triple in triples]), 0
    else:
        data = b"".join([b"%d %s\0" % pair for pair in zip(sizes, names, strict=True)])
    return FolderFacts(folder, len(images), size, latest, "sha256:" + hashlib.sha256(data).hexdigest())
