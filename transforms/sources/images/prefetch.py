"""Images of a store, fetched ahead by two threads, while those before them are checked, encoded and written.

    batch k        checked and encoded          k + 1
    batch k + 1    on its way                   k + 2

Local files are not: the kernel reads ahead, and on warm ones a pool costs 35 % more CPU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeAlias

from ...errors import SourceError, StoreAccessError, StoreError
from ...stores.common.object_store import ChangedObject
from ...stores.common.store_url import StoreUrl, parse_store_url
from ...stores.connect import store_at
from ..files.object_listing import object_name
from ..files.open_file import is_object
from .formats.facts import ImageProblem
from .pieces import ReadFolder
from .table import ImageFile

THREADS: Final = 2
"""Threads that fetch the images of one task."""

Batch: TypeAlias = Sequence[tuple[ReadFolder, ImageFile]]
Fetched: TypeAlias = Future[bytes] | None
"""The bytes of an image that are on their way; None for one that is read when it is its turn."""


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


def read_image_object(path: bytes, image: ImageFile) -> bytes:
    """Return the bytes of an image in a store, which is what it was when it was listed.

    Raises:
        ImageProblem: MISSING_FILE or UNREADABLE.
        SourceError: it is not what it was, or the store cannot be reached.
    """
    url = parse_store_url(path.decode())
    try:
        return store_at(url).read_numbered(url.key, image.size, image.mtime_ns)
    except (StoreError, StoreAccessError, FileNotFoundError) as error:
        raise _problem_of(error, path, url) from error


def _problem_of(error: Exception, path: bytes, url: StoreUrl) -> Exception:
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
