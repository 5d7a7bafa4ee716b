"""Read the bytes of an image, or say why they cannot be read; images in a store are fetched ahead.

Two threads fetch images of a store while those before them are checked, encoded and written:

    batch k        checked and encoded          k + 1
    batch k + 1    on its way                   k + 2

Local files are not fetched ahead: the kernel does, and on warm ones a pool costs 35 % more CPU.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeAlias

from ...errors import SourceError, StoreAccessError, StoreError
from ...format.wording.printable import printable_path
from ...inputs.files.below_root import MACHINE_ERRORS, OPEN_FLAGS, is_inside, is_missing_or_empty
from ...inputs.files.object_listing import object_name
from ...inputs.files.open_file import is_object, not_here
from ...pictures.facts import ImageProblem
from ...stores.object_store import ChangedObject, store_at
from ...stores.store_url import StoreUrl, parse_store_url
from .pieces import ReadFolder
from .walk import NOT_READABLE, ImageFile

THREADS: Final = 2
"""Threads that fetch the images of one task."""

PIECE_BYTES: Final = 16 << 20

Batch: TypeAlias = Sequence[tuple[ReadFolder, ImageFile]]
Fetched: TypeAlias = Future[bytes] | None
"""The bytes of an image that are on their way; None for one that is read when it is its turn."""


def read_image_bytes(path: bytes, root: bytes, size: int, mtime_ns: int, memory: memoryview) -> memoryview:
    """Read a file whose size in bytes and mtime are those of the listing to the start of `memory`; return its bytes.

    `memory` has room for one byte more, so that a file that has grown shows. Raises `ImageProblem`, but `SourceError`
    where the file is not what was listed, the machine is out of something, or has not the root folder: that is one
    error, and no reject for each image.
    """
    if size == NOT_READABLE:
        raise _explain(path, root)
    try:
        descriptor = _open(path, root)
        try:
            count = os.readv(descriptor, [memory[: size + 1]])
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and is_missing_or_empty(root):
            raise SourceError(printable_path(root), not_here(error, root)) from None
        raise _problem_of(error, path) from None
    if count != size or status.st_mtime_ns != mtime_ns:
        if not stat.S_ISREG(status.st_mode):
            raise _not_a_file("it is no longer a regular file")
        raise _changed(path, f"{size} bytes then, {status.st_size} now")
    return memory[:size]


def _open(path: bytes, root: bytes) -> int:
    try:
        return os.open(path, OPEN_FLAGS)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    if not is_inside(path, root):
        raise _outside(path)
    return os.open(os.path.realpath(path), OPEN_FLAGS)


def _explain(path: bytes, root: bytes) -> Exception:
    """Return why a file is not to be opened: what it is now is looked at again, without opening it."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            if not is_inside(path, root):
                os.stat(path)  # a dangling link is missing, wherever it points
                return _outside(path)
            status = os.stat(path)
            if stat.S_ISDIR(status.st_mode):
                return _not_a_file("a link to a folder; links to folders are not followed: move the folder here")
    except OSError as error:
        return _problem_of(error, path)
    if stat.S_ISREG(status.st_mode):
        return _changed(path, "no file then, one now")
    kind = "a named pipe" if stat.S_ISFIFO(status.st_mode) else "no regular file"
    return _not_a_file(f"it is {kind}; only regular files are read")


def _problem_of(error: OSError, path: bytes) -> Exception:
    reason = error.strerror or type(error).__name__
    if error.errno in MACHINE_ERRORS:
        return SourceError(printable_path(path), f"cannot be read: {reason}; run again")
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        message = "the file is gone" if not os.path.islink(path) else "the link leads nowhere"
        return ImageProblem("MISSING_FILE", f"{message}: {reason}; restore it, or take it away", expected="a file")
    if error.errno == errno.EISDIR:
        return _not_a_file("it is a folder now")
    return ImageProblem("UNREADABLE", f"cannot be read: {reason}; look at its permissions", expected="a readable file")


def _not_a_file(message: str) -> ImageProblem:
    return ImageProblem("NOT_A_FILE", message, expected="a regular file")


def _outside(path: bytes) -> ImageProblem:
    target = os.path.realpath(path)
    message = "a link that leads out of the root folder is not followed; copy its target here"
    return ImageProblem("OUTSIDE_ROOT", message, value=target, expected="a file below the root folder")


def _changed(path: bytes, what: str) -> SourceError:
    return SourceError(
        printable_path(path), f"is not what it was when it was listed ({what}); run again when it is at rest"
    )


def fetch_ahead(
    batches: Iterable[Batch], wanted: Callable[[ImageFile], bool]
) -> Iterator[tuple[Batch, Sequence[Fetched]]]:
    """Yield batches with what is on its way of each; of two at a time, and only of images that are `wanted`."""
    pool: ThreadPoolExecutor | None = None
    under_way: deque[tuple[Batch, Sequence[Fetched]]] = deque()
    try:
        for batch in batches:
            if not any(is_object(folder.path) for folder, _ in batch):
                under_way.append((batch, [None] * len(batch)))
            else:
                pool = pool or ThreadPoolExecutor(THREADS, "images")
                under_way.append((batch, [_begin(pool, *one) if wanted(one[1]) else None for one in batch]))
            if len(under_way) > (pool is not None):
                yield under_way.popleft()
        while under_way:
            yield under_way.popleft()
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _begin(pool: ThreadPoolExecutor, folder: ReadFolder, image: ImageFile) -> Fetched:
    return pool.submit(read_image_object, folder.path + image.name, image) if is_object(folder.path) else None


def read_image_object(path: bytes, image: ImageFile, start: int = 0, end: int | None = None) -> bytes:
    """Raise `ImageProblem`, or `SourceError` where the image is not what it was or the store cannot be reached."""
    url = parse_store_url(path.decode())
    try:
        return store_at(url).read_numbered(url.key, start, image.size if end is None else end, image.mtime_ns)
    except (StoreError, StoreAccessError, FileNotFoundError) as error:
        raise _problem_of_object(error, path, url) from error


def read_object_into(memory: memoryview, path: bytes, image: ImageFile) -> None:
    """Read an image in pieces, so that a large one is not held twice."""
    for start in range(0, max(image.size, 1), PIECE_BYTES):
        end = min(start + PIECE_BYTES, image.size)
        memory[start:end] = read_image_object(path, image, start, end)


def _problem_of_object(error: Exception, path: bytes, url: StoreUrl) -> Exception:
    if isinstance(error, ChangedObject):
        return SourceError(
            object_name(path), "is not what it was when it was listed (it was replaced); run again when it is at rest"
        )
    if isinstance(error, FileNotFoundError):
        message = "the file is gone: no such object; restore it, or take it away"
        return ImageProblem("MISSING_FILE", message, expected="a file")
    place = f"{url}: "
    reason = str(error).removeprefix(place)
    if isinstance(error, StoreAccessError) and str(error).startswith(place):
        return ImageProblem("UNREADABLE", f"cannot be read: {reason}", expected="a readable file")
    return SourceError(object_name(path), f"cannot be read: {reason}")
