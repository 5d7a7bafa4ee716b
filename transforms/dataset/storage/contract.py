"""The contract of a dataset's folder, on a disk or in a store: all operations that reading and writing use.

Paths are relative to the dataset's folder, with `/`. What makes a commit safe is `put_if_absent`: of any number of
writers one wins, and a file is there whole or not at all, also after `kill -9` or a power cut.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from typing import Protocol

from ...errors import UnseenError
from ...format.splits.shard_plan import PartRange
from ...format.wording.printable import printable_path
from ...stores.store_url import places


class PartFile(Protocol):
    """A part that is being written; on a local disk it is a `direct_file`."""

    def write(self, buffers: Sequence[memoryview]) -> None:
        """Append the bytes of all buffers, which must stay as they are until `wait` returns."""

    def close(self) -> None:
        """Take no more bytes, and begin to make the file durable."""

    def wait(self) -> None:
        """Return when the closed file is durable.

        Raises:
            OSError: it could not be made so.
        """

    def abandon(self) -> None:
        """Release the file, whatever is in it: its attempt has failed."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What is known of a file that is not opened: `identity` distinguishes it from another one of its name.

    `changed` is when it, or its name, last changed, in seconds since 1970. `freed` is how many bytes its removal frees.
    `crc32c` is the checksum of its bytes, where the storage itself says it: GCS always, S3 if asked for this one file.
    """

    size: int
    changed: float
    identity: tuple[object, ...]
    freed: int
    is_file: bool = True
    is_folder: bool = False
    crc32c: int | None = field(default=None, compare=False)


class Storage(Protocol):
    """A folder that a dataset is in; picklable, and safe to use from several threads.

    `root` is its path, or its URL. `has_locks` says whether processes can see which others are at work in it.
    """

    @property
    def root(self) -> str:
        """The folder: an absolute path, or a URL."""

    @property
    def has_locks(self) -> bool:
        """Whether processes can tell which others are at work in the folder."""

    def path(self, path: str) -> str:
        """Return the path or URL of a file of the dataset."""

    def open(self, path: str) -> BufferedReader:
        """Open a file to read.

        Raises:
            OSError: it is not there, or cannot be read.
        """

    def lies_at(self, path: str) -> bool:
        """Return whether anything has this name: a file, a folder, a link."""

    def status(self, path: str) -> FileStatus | None:
        """Return what is known of a file or folder, None if there is nothing of that name."""

    def entries(self, folder: str) -> Iterator[tuple[str, FileStatus]]:
        """Yield the names in a folder, each with what is known of it; none if there is no such folder.

        A store is asked for a thousand at once.
        """

    def tree(self, path: str) -> Iterator[FileStatus]:
        """Yield what is known of a file, or of a folder and all that is in it; links are not followed."""

    def files_below(self, folder: str) -> Iterator[tuple[str, int]]:
        """Yield every file below a folder, its path relative to that, and its size; staging is left out of the root's.

        Raises:
            InputError: a folder cannot be read.
        """

    def create_part(self, path: str) -> PartFile:
        """Return a new file to write, its folders made."""

    def assemble(self, path: str, ranges: Sequence[PartRange], base: str) -> None:
        """Make a durable file of ranges of files; their paths are relative to `base`."""

    def concatenate(self, path: str, sources: Sequence[str]) -> None:
        """Make a durable file of other files, one after the other."""

    def place(self, source: str, target: str) -> None:
        """Make `target` a second name of the file `source`, whatever it was before."""

    def publish(self, source: str, target: str) -> bool:
        """Make `target` a second name of the file `source` if no file has that name; return whether it is now."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Make a durable file, whole or not at all; return whether it is ours (False: another one was there)."""

    def replace(self, path: str, data: bytes) -> None:
        """Make or replace a file, durably; readers see the old one or the new one."""

    def read(self, path: str) -> bytes:
        """Return a whole (small) file."""

    def size(self, path: str) -> int | None:
        """Return the size of a regular file in bytes, or None if there is none of that name."""

    def list(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; none if there is no such folder."""

    def sync(self, folder: str) -> None:
        """Wait until the names in a folder are durable."""

    def stated_crc32c(self, path: str) -> int | None:
        """Return the CRC32C that the storage itself knows of a file, None where it knows none."""

    def stated_crcs(self, seen: Mapping[str, FileStatus]) -> dict[str, int | None]:
        """Return the same for many files that were seen; no request is made for what a list has already reported."""

    def crc32c(self, path: str) -> int:
        """Return the CRC32C of a file."""

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""

    def remove_seen(self, seen: Mapping[str, FileStatus]) -> set[str]:
        """Remove files that are still those that were seen, by path; return the paths where nothing is any more.

        A store that does not keep conditions on removals removes what was put in their place this moment.
        """

    def remove_tree(self, folder: str) -> None:
        """Remove a folder and what is in it, if it is there."""

    def remove_if_empty(self, folder: str) -> None:
        """Remove a folder that holds nothing."""

    def remove_any(self, path: str) -> None:
        """Remove a file, a link, or a folder and what is in it, if it is there."""


def check_shared(storage: Storage, proof: str | None) -> None:
    """Look for a file that the launcher has written; None where it wrote none."""
    if proof is not None and not storage.lies_at(proof):
        raise unseen(storage, proof)


def unseen(storage: Storage, path: str) -> UnseenError:
    return UnseenError(
        f"{printable_path(storage.root)}: the worker on {socket.gethostname()} does not see this folder as the "
        f"launching machine does: {path} is not there. Write to a folder that all workers have under this path, on a "
        f"file system that they share, or to {places(path='')}"
    )
