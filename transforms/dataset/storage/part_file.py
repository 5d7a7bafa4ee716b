"""The interface of a part being written. On a local disk it is a `direct_file`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class PartFile(Protocol):
    """A file that is being written."""

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
