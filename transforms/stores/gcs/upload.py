"""A stream to Google Cloud Storage: chunks that are objects of their own, and are composed into one by the store.

    chunks      .name.<mark>/0-000000  0-000001 ... 0-000031  │  0-000032 ...      put if absent, side by side
    composed    .name.<mark>/1-000000 ────────────────────────┘                    32 at a time
    object      name, by the last compose; then the others are removed

GCS has resumable uploads too. They send one chunk after the other, and where the reply to one is lost the client has to
ask how much arrived. A chunk of its own is put as often as need be, and is the same in the end. What a killed process
leaves is under a hidden name beside the object, never under its own.
"""

from __future__ import annotations

import uuid
from typing import Any, Final

from ..common.piece_sender import PieceSender, at_once
from .client import GcsClient, info_of

_COMPOSED_AT_ONCE: Final = 32
"""GCS takes no more sources of one compose."""

_CHUNK_BYTES: Final = 4 << 20
"""The client makes two copies of what it sends, so that a chunk takes three times its size meanwhile."""


class GcsUpload:
    """An object that is being written; see `Upload`."""

    def __init__(self, store: GcsClient, key: str) -> None:
        self._store = store
        self._key = key
        self._mark = uuid.uuid4().hex
        folder, slash, name = key.rpartition("/")
        self._chunks = f"{folder}{slash}.{name}.{self._mark}"
        self._left: list[str] = []
        self._sender: PieceSender[str] = PieceSender(self._send, lambda _: _CHUNK_BYTES)

    def write(self, data: memoryview) -> None:
        self._sender.write(data)

    def finish(self) -> None:
        if not self._sender.pieces:
            self._store.put(self._key, self._sender.rest())
            return
        try:
            chunks, level = self._sender.finish(), 1
            while len(chunks) > _COMPOSED_AT_ONCE:
                groups = [chunks[i : i + _COMPOSED_AT_ONCE] for i in range(0, len(chunks), _COMPOSED_AT_ONCE)]
                names = [f"{self._chunks}/{level}-{number:06d}" for number in range(len(groups))]
                self._left += names
                at_once(lambda pair: self._compose(*pair), zip(names, groups, strict=True))
                chunks, level = names, level + 1
            made = self._compose(self._key, chunks)
            self._store.check(self._key, self._sender.crc, info_of(made).crc32c)
        finally:
            self.abandon()

    def abandon(self) -> None:
        self._sender.abandon()
        left, self._left = self._left, []
        at_once(self._store.remove, left)

    def _send(self, number: int, piece: memoryview, _crc: int) -> str:
        key = f"{self._chunks}/0-{number:06d}"
        self._left.append(key)
        self._store.put(key, piece, if_absent=True)
        return key

    def _compose(self, key: str, sources: list[str]) -> Any:
        handle = self._store.handle
        blob: Any = handle.blob(key)
        blob.content_type = "application/octet-stream"
        blobs = [handle.blob(source) for source in sources]
        self._store.call("write it", key, lambda: blob.compose(blobs, retry=None))
        return blob
