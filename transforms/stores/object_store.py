"""The contract of an object store, which S3 and Google Cloud Storage keep; one suite of tests runs on both.

    an object      appears whole or not at all, and never changes: it is replaced by another one of the same key
    if_absent      of any number of writers one wins, and learns that it did, also where the reply was lost
    failures       that are transient (503, 429, lost connections) are retried, and then reported in one line

A reply can be lost after the store has acted. So each conditional write bears a mark of its own in the object's
metadata: a writer that gets the answer "already exists" checks whether it wrote that object itself.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import random
import re
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

from ..errors import StoreAccessError, StoreError
from ..format.tfrecord.framing import crc32c, crc32c_combine
from ..format.wording.hints import install_line
from .store_url import STORES, StoreUrl

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIECE_BYTES: Final = 8 << 20
"""A piece, where a store says nothing else."""

FIRST_PAUSE: Final = 0.2


MARK: Final = "shardmill-write"


class ChangedObject(FileNotFoundError):
    """The object of a version is not there any more: another one has its key, or none."""


class PreconditionFailed(Exception):
    """The condition of a request does not hold."""


class PastEnd(Exception):
    """The range that was asked for begins after the object's end."""


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """The most keys that a store lists in one request, and the first pause after a transient failure, in seconds."""

    page_keys: int = 1000
    first_pause: float = FIRST_PAUSE


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """The metadata of an object in a store.

    `version` tells this content from any other that the key had or gets (S3's etag, GCS's generation). `crc32c` is the
    store's own checksum of the whole content; None where it reports none (as lists of S3 do). `modified` is in seconds
    since 1970. `mark` is that of the write that made it, if `head` was asked.
    """

    key: str
    size: int
    version: str
    modified: float
    crc32c: int | None = None
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a bucket's tree: objects directly below a prefix, and the longer prefixes, which end with `/`."""

    objects: tuple[ObjectInfo, ...]
    prefixes: tuple[str, ...]

    @classmethod
    def of(cls, pages: Iterable[Level]) -> Level:
        """Return a level that came in pages; a prefix may be on several of them."""
        objects: list[ObjectInfo] = []
        prefixes: dict[str, None] = {}
        for page in pages:
            objects += page.objects
            prefixes.update(dict.fromkeys(page.prefixes))
        return cls(tuple(objects), tuple(sorted(prefixes)))


def number_of(version: str) -> int:
    """Return a number of 63 bits that stands for a version, where there are too many of them to keep each as a text.

    A generation is one already; of an etag it is a digest.
    """
    if version.isdecimal():
        return int(version)
    return int.from_bytes(hashlib.sha256(version.encode()).digest()[:8], "big") >> 1


class Upload(Protocol):
    """An object that is being written piece by piece; nothing of it can be seen before `finish`."""

    def write(self, data: memoryview) -> None:
        """Append bytes; they are copied or sent before this returns."""

    def finish(self) -> None:
        """Complete the object, in place of any that has its key.

        Raises:
            StoreError: the store holds other bytes than were sent, by its own checksum.
        """

    def abandon(self) -> None:
        """Leave nothing of it; does nothing after `finish`."""


class ObjectStore(ABC):
    """One bucket; safe to use from several threads. Keys that do not exist are `FileNotFoundError`s where read.

    Raises, everywhere:
        StoreAccessError: no credentials, no such bucket, no permission.
        StoreError: the store could not be reached, or failed at each of several tries.
    """

    scheme: str
    removed_at_once: ClassVar[int]
    """The most objects that the store removes in one request."""

    conditions: ClassVar[dict[str, str]]
    """The names that the store has for the conditions `if_absent` and `if_version`, and for `copy_if_absent`."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.limits = StoreLimits()

    @abstractmethod
    def head(self, key: str) -> ObjectInfo | None:
        """Return what the store says of an object, or None if there is none."""

    @abstractmethod
    def walk(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose keys begin with a prefix, sorted by the bytes of their keys."""

    def level(self, prefix: str) -> Level:
        """Return what is directly below a prefix, which is empty or ends with `/`."""
        return Level.of(self.level_pages(prefix))

    @abstractmethod
    def level_pages(self, prefix: str) -> Iterator[Level]:
        """Yield the same page by page: a level may have ten million objects."""

    @abstractmethod
    def read(self, key: str, start: int = 0, end: int | None = None, *, version: str | None = None) -> bytes:
        """Return the bytes of an object from `start` up to `end`, or its end; with `version`, of no other content.

        Raises:
            FileNotFoundError: there is no such object; as a `ChangedObject`, none of this version.
        """

    @abstractmethod
    def read_numbered(self, key: str, start: int, end: int, number: int) -> bytes:
        """Return bytes of an object that has them, of the version with this `number_of`.

        Raises:
            FileNotFoundError: there is no such object; as a `ChangedObject`, none of this version.
        """

    @abstractmethod
    def put(
        self, key: str, data: bytes | memoryview, *, if_absent: bool = False, if_version: str | None = None
    ) -> bool:
        """Make an object of bytes, checked by their CRC32C on arrival; return whether this very call made it.

        `if_absent` makes it where there is none of its key, `if_version` where the one there is of that version.
        """

    @abstractmethod
    def upload(self, key: str) -> Upload:
        """Begin to write an object of any size."""

    @abstractmethod
    def copy(self, source: str, target: str, *, if_absent: bool = False) -> bool:
        """Have the store copy an object of any size, and compare both checksums; return whether it was copied.

        Raises:
            FileNotFoundError: there is no such source.
        """

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there are no matter."""
        self._remove([(key, None) for key in keys])

    def delete_seen(self, seen: Mapping[str, str]) -> set[str]:
        """Remove objects, by key, that are still of the versions that were seen; return the keys of those that stay.

        Stores that do not keep the condition (of S3's kind, other than Amazon's) remove them all.
        """
        return self._remove(list(seen.items()))

    @abstractmethod
    def remove_some(self, objects: Sequence[tuple[str, str | None]]) -> set[str]:
        """Remove some objects in one request, by key, each if it is of a version (None: of any); return what stays."""

    @abstractmethod
    def failure_of(self, error: Exception, key: str, action: str) -> Exception | None:
        """Return what an error of the client means, or None if it is none."""

    def _remove(self, objects: Sequence[tuple[str, str | None]]) -> set[str]:
        size = min(self.removed_at_once, self.limits.page_keys)
        batches = [objects[i : i + size] for i in range(0, len(objects), size)]
        return set[str]().union(*at_once(self.remove_some, batches))

    def found(self, key: str) -> ObjectInfo:
        """Return what the store says of an object; raise `FileNotFoundError` if there is none."""
        found = self.head(key)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", str(self.url(key)))
        return found

    def changed(self, key: str) -> ChangedObject:
        return ChangedObject(errno.ENOENT, "the object has changed", str(self.url(key)))

    def is_marked(self, key: str, mark: str) -> bool:
        found = self.head(key)
        return found is not None and found.mark == mark

    def check(self, key: str, sent: int | None, stored: int | None) -> None:
        """Compare the checksums of what was sent and what the store has, where both are known."""
        if sent is not None and stored is not None and sent != stored:
            raise corrupted(self.url(key), sent, stored)

    def url(self, key: str) -> StoreUrl:
        return StoreUrl(self.scheme, self.bucket, key)

    def call(self, action: str, key: str, request: Callable[..., T], /, **arguments: Any) -> T:
        """Return the answer to a request on this bucket, repeated after a transient failure.

        Raises:
            FileNotFoundError: there is no such object.
            PreconditionFailed: the request's condition does not hold.
            StoreAccessError: the store lets nobody in.
            StoreError: it failed at each try, or refuses for another reason.
        """

        def once() -> T:
            try:
                return request(**arguments)
            except Exception as error:
                failure = self.failure_of(error, key, action)
                if failure is None:
                    raise
                raise failure from error

        return self.retried(key, once)

    def retried(self, key: str, once: Callable[[], T]) -> T:
        def refused(cause: Exception) -> StoreError:
            return unreachable(self.url(key), _reason(cause))

        return retried(once, refused, self.limits.first_pause)


def _reason(cause: Exception) -> str:
    return str(cause) if isinstance(cause, StoreError) else type(cause).__name__


# The client of a bucket: one for each process, made when it is first asked for, with the environment's credentials.


_stores: dict[tuple[int, str, str], ObjectStore] = {}
_lock = threading.Lock()


def store_at(url: StoreUrl) -> ObjectStore:
    """Return the store in which a place is; no request is made."""
    with _lock:
        key = (os.getpid(), url.scheme, url.bucket)
        if key not in _stores:
            _stores[key] = import_module(STORES[url.scheme].module, __package__).connect(url.bucket)
        return _stores[key]


def check_environment(scheme: str) -> None:
    """Check that the environment has the client of a store, and credentials for it; no request is made."""
    import_module(STORES[scheme].module, __package__).connect("bucket")


# An object as an open file: read from anywhere, and ahead where it is read through.


# Ranges of one object, several of them on their way at once: a store answers late, and then fast.
#
# object   ├──── 0 ────┼──── 1 ────┼──── 2 ────┼──── 3 ────┤
# given    0                       while 1, 2 and 3 are on their way


AHEAD: Final = 3
"""Pieces that are fetched while one is worked on: with 8 MiB each enough for 1 GB/s at 25 ms a request."""


def read_ahead(
    store: ObjectStore,
    key: str,
    start: int,
    end: int,
    *,
    version: str | None = None,
    piece_bytes: int = PIECE_BYTES,
    ahead: int = AHEAD,
) -> Iterator[bytes]:
    """Yield the bytes of an object from `start` to `end` in pieces, in order, of one content (see `ObjectStore.read`).

    Raise `EOFError` if it ends before `end`.
    """
    starts = iter(range(start, end, piece_bytes))
    under_way: deque[tuple[int, Future[bytes]]] = deque()

    def begin() -> None:
        at = next(starts, None)
        if at is not None:
            stop = min(at + piece_bytes, end)
            under_way.append((stop - at, pool().submit(store.read, key, at, stop, version=version)))

    try:
        for _ in range(1 + ahead):
            begin()
        while under_way:
            wanted, future = under_way.popleft()
            data = future.result()
            if len(data) != wanted:
                raise EOFError(f"{store.scheme}://{store.bucket}/{key}: ends before byte {end}")
            begin()
            yield data
    finally:
        for _, future in under_way:
            future.cancel()


class SeekableObject(io.RawIOBase):
    """An object that is open to read at any place of its `size` bytes; `_at` is where the next byte is read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        place = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence] + offset
        if place < 0:
            raise OSError(errno.EINVAL, "Invalid argument")
        self._at = place
        return place


class ObjectReader(SeekableObject):
    """One content of an object; if another takes its place meanwhile, reading fails and mixes nothing.

    `size` is that of the content. What was read last is kept, so that a look at the first bytes costs no request more.
    """

    def __init__(self, store: ObjectStore, key: str, info: ObjectInfo | None = None) -> None:
        self.info = store.found(key) if info is None else info
        super().__init__(self.info.size)
        self._store = store
        self._piece, self._piece_start = memoryview(b""), 0
        self._coming: Iterator[bytes] | None = None

    def again(self) -> ObjectReader:
        """Open the same content once more, from its beginning; no request is made."""
        return ObjectReader(self._store, self.info.key, self.info)

    def read_range(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end`, wherever the position is; threads may share it."""
        return self._store.read(self.info.key, start, end, version=self.info.version)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        target = memoryview(buffer).cast("B")
        if self._at >= self.size or not target:
            return 0
        start = self._at - self._piece_start
        if not 0 <= start < len(self._piece):
            self._fetch()
            start = 0
        data = self._piece[start : start + len(target)]
        target[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        self._let_go()
        super().close()

    def _fetch(self) -> None:
        """Take as the piece the one that begins at the next byte to read."""
        if self._coming is None or self._at != self._piece_start + len(self._piece):
            self._let_go()
            self._coming = read_ahead(self._store, self.info.key, self._at, self.size, version=self.info.version)
        self._piece, self._piece_start = memoryview(next(self._coming)), self._at

    def _let_go(self) -> None:
        if self._coming is not None:
            generator: Any = self._coming
            with closing(generator):
                self._coming = None


# Bytes that come in any number become pieces of a fixed size, which are sent side by side.
#
#     write   ├──┼─┼────┼──┼─────┼┼──┤
#     pieces  │ 1       │ 2       │ 3          at most three at once: one that fills, two that are sent
#
# So an object of any size takes three pieces of memory, and few objects are completed at once. Pieces are used again,
# and sent by few threads: each thread's part of malloc's heap keeps some of what is freed.


T = TypeVar("T")
S = TypeVar("S")

_UNDER_WAY: Final = 2
_THREADS: Final = 8
"""Threads of a process that fetch, copy and remove: they wait for the network, and take hardly any processor time."""

_SENDING_THREADS: Final = 3
"""Threads that send pieces: what clients copy for it stays in each one's part of malloc's heap (`process_start`)."""

_FINISHING_THREADS: Final = 2

_KEPT_BUFFERS: Final = 12
"""The buffers of one size: two workers fill and send them, while another upload is completed."""

_free_buffers: dict[int, deque[bytearray]] = {}

_pools: dict[tuple[int, str], ThreadPoolExecutor] = {}
_free_finishers: dict[int, threading.Semaphore] = {}
_pools_lock = threading.Lock()


def pool() -> ThreadPoolExecutor:
    """Return the threads of this process that talk to stores; none of them may wait for another one."""
    return _pool("store", _THREADS)


def finished_later(finish: Callable[[], None]) -> Future[None]:
    """Complete an upload in another thread, which may wait for those that send, and those of `pool`.

    Waits where several are at it: each holds pieces, and a slow store would gather all that is written.
    """
    with _pools_lock:
        free = _free_finishers.setdefault(os.getpid(), threading.Semaphore(_FINISHING_THREADS))
    free.acquire()
    future = _pool("store-finish", _FINISHING_THREADS).submit(finish)
    future.add_done_callback(lambda _: free.release())
    return future


def _pool(name: str, threads: int) -> ThreadPoolExecutor:
    with _pools_lock:
        key = (os.getpid(), name)
        if key not in _pools:
            _pools[key] = ThreadPoolExecutor(threads, name)
        return _pools[key]


def at_once(work: Callable[[S], T], items: Iterable[S]) -> list[T]:
    """Return what a function makes of each item, in order; some are worked on at once."""
    return list(pool().map(work, items))


class PieceSender(Generic[T]):
    """Cuts a stream into pieces: `send(number, piece, crc)` sends one, from 0 on; `size_of(number)` is its size."""

    def __init__(
        self,
        send: Callable[[int, memoryview, int], T],
        size_of: Callable[[int], int] = lambda _: PIECE_BYTES,
    ) -> None:
        self.bytes = 0
        self.crc = 0
        self.sent: list[T] = []
        self._send = send
        self._size_of = size_of
        self._piece: bytearray | None = None
        self.filled = 0  # of the piece that is not sent yet
        self._number = 0
        self._under_way: deque[Future[T]] = deque()

    @property
    def pieces(self) -> int:
        return self._number

    def write(self, data: memoryview) -> None:
        """Take bytes, which are copied."""
        data = data.cast("B")
        while data:
            if self._piece is None:
                self._piece, self.filled = _buffer(self._size_of(self._number)), 0
            elif self.filled == len(self._piece):
                self._begin()
                continue
            count = min(len(data), len(self._piece) - self.filled)
            self._piece[self.filled : self.filled + count] = data[:count]
            self.filled += count
            data = data[count:]

    def rest(self) -> memoryview:
        """Return the piece that is not sent yet, and leave its sending to the caller."""
        piece = self._taken()
        self._count(piece)
        return piece

    def finish(self) -> list[T]:
        if self.filled:
            self._begin()
        while self._under_way:
            self.sent.append(self._under_way.popleft().result())
        return self.sent

    def abandon(self) -> None:
        """Send nothing more, and return when nothing is under way."""
        self._taken()
        for future in self._under_way:
            future.cancel()
        while self._under_way:
            future = self._under_way.popleft()
            if not future.cancelled():
                future.exception()

    def _begin(self) -> None:
        piece, number = self._taken(), self._number
        self._number += 1
        crc = self._count(piece)
        while len(self._under_way) >= _UNDER_WAY:
            self.sent.append(self._under_way.popleft().result())
        self._under_way.append(_pool("store-send", _SENDING_THREADS).submit(self._sent, number, piece, crc))

    def _sent(self, number: int, piece: memoryview, crc: int) -> T:
        try:
            return self._send(number, piece, crc)
        finally:
            _give_back(piece.obj)

    def _taken(self) -> memoryview:
        piece, self._piece = self._piece, None
        filled, self.filled = self.filled, 0
        return memoryview(piece or b"")[:filled]

    def _count(self, piece: memoryview) -> int:
        crc = crc32c(piece)
        self.crc = crc32c_combine(self.crc, crc, len(piece))
        self.bytes += len(piece)
        return crc


def _buffer(size: int) -> bytearray:
    try:
        return _free_buffers[size].pop()
    except (KeyError, IndexError):
        return bytearray(size)


def _give_back(buffer: object) -> None:
    if isinstance(buffer, bytearray):
        _free_buffers.setdefault(len(buffer), deque(maxlen=_KEPT_BUFFERS)).append(buffer)


def whole_or_copy(piece: memoryview) -> bytes | bytearray:
    """Return the bytes of a piece as clients take them: its buffer, where that is full."""
    return piece.obj if isinstance(piece.obj, bytearray) and len(piece.obj) == len(piece) else bytes(piece)


# Errors of a store that refuses or fails: one line, with the place, the reason and the fix.
#
# A client's own text is not passed on: it may hold a signed URL or the name of a key. Its code is, where it is a word.


_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")


def missing_client(scheme: str) -> StoreAccessError:
    extra = STORES[scheme].extra
    return StoreAccessError(f"{scheme}:// needs the extra {extra}; {install_line(extra)}")


def no_credentials(url: StoreUrl) -> StoreAccessError:
    return StoreAccessError(f"{_bucket(url)}: the environment has no credentials for it; {STORES[url.scheme].login}")


def bad_credentials(url: StoreUrl, code: str) -> StoreAccessError:
    return StoreAccessError(
        f"{_bucket(url)}: the store refuses the environment's credentials ({_word(code)}); {STORES[url.scheme].login}"
    )


def no_bucket(url: StoreUrl) -> StoreAccessError:
    return StoreAccessError(f"{_bucket(url)}: no such bucket; make it, or choose another")


def denied(url: StoreUrl, action: str) -> StoreAccessError:
    return StoreAccessError(f"{url}: access denied ({action}); the credentials of the environment need that permission")


def unreachable(url: StoreUrl, reason: str) -> StoreError:
    return StoreError(f"{url}: the store failed at each of several tries, last with {_word(reason)}; run again later")


def unexpected(url: StoreUrl, action: str, reason: str) -> StoreError:
    return StoreError(f"{url}: the store refused to {action}: {_word(reason)}")


def corrupted(url: StoreUrl, sent: int, stored: int) -> StoreError:
    return StoreError(f"{url}: the store holds other bytes than were sent: CRC32C {stored:08x} for {sent:08x}")


def _bucket(url: StoreUrl) -> str:
    return f"{url.scheme}://{url.bucket}"


def _word(code: str) -> str:
    return code if _WORD.fullmatch(code) else "an unknown answer"


# Which failures of a store are tried again, and when.
#
# Both clients can do this themselves, each by rules of its own, and neither tells whether an earlier try may have
# acted. Here one rule serves both: a transient failure is tried again after a random time, whose mean doubles.
#
#     try 1 ─ 503 ─▶ up to 0.2 s ─▶ try 2 ─ 503 ─▶ up to 0.4 s ─▶ try 3 ─ ... try 10 ─ 503 ─▶ an error of one line


TRIES: Final = 10
"""The tries of one request: with the pauses below, some 45 s on the average before a store that is down is given up."""

_LONGEST_PAUSE: Final = 20.0
"""Seconds. A random part of the pause is waited ("full jitter"), so that many clients do not come back at once."""


class PassingFailure(Exception):
    """A transient failure; `cause` is the client's error. The request may have been done, its reply lost."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def retried(request: Callable[[], T], refused: Callable[[Exception], Exception], first_pause: float = FIRST_PAUSE) -> T:
    """Return what a request returns, tried again after `PassingFailure`; `refused` makes an error of the last one."""
    for number in range(1, TRIES):
        try:
            return request()
        except PassingFailure:
            time.sleep(random.uniform(0, pause_after(number, first_pause)))  # noqa: S311  (it guards no secret)
    try:
        return request()
    except PassingFailure as failure:
        raise refused(failure.cause) from failure.cause


def pause_after(tries: int, first: float = FIRST_PAUSE) -> float:
    """Return the longest pause in seconds after a number of tries.

    >>> [pause_after(n) for n in (1, 2, 3, 9)]
    [0.2, 0.4, 0.8, 20.0]
    """
    return float(min(first * 2 ** (tries - 1), _LONGEST_PAUSE))
