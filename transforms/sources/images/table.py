"""The files of a listing of images, by column: ten million of them take half a gigabyte, and as tuples three.

folders  int32  │ 0 │ 0 │ 1 │          sizes, mtimes_ns  int64         names  one buffer, and where each ends
names           │ 1.jpg │ 2.jpg │ 1.png │
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_AT_ONCE: Final = 1 << 14
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
        for start in range(0, len(self), _AT_ONCE):
            some = self[start : start + _AT_ONCE]
            columns = some.folders.tolist(), some.names.to_pylist(), some.sizes.tolist(), some.mtimes_ns.tolist()
            yield from map(ImageFile, *columns)

    def take(self, rows: npt.NDArray[Any]) -> ImageTable:
        places = np.ascontiguousarray(rows, np.int64)
        chosen = pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)], null_count=0)
        return ImageTable(self.folders[places], pc.take(self.names, chosen), self.sizes[places], self.mtimes_ns[places])

    def some_names(self, count: int) -> list[bytes]:
        """Return at most so many names, from all parts of the table."""
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
