"""What archives of all kinds are made of: members, how they are read, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol


class Kind(IntEnum):
    """What a member is: a file, or something that is not read."""

    FILE = 0
    FOLDER = 1
    LINK = 2
    OTHER = 3
    SPARSE = 4
    ENCRYPTED = 5


NOT_READ: Final = {
    Kind.LINK: "is a link, which is not followed; make the archive with the files themselves: tar --dereference "
    "--hard-dereference, or zip without -y",
    Kind.OTHER: "is no regular file, but a device, a pipe or of another kind; leave it out of the archive",
    Kind.SPARSE: "is stored as a sparse file; make the archive without tar --sparse",
    Kind.ENCRYPTED: "is encrypted; make the archive without a password",
}
"""What is to be said of a member that is not read."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an archive: its name as it is written there, and where its bytes are.

    It begins at `at`, an offset in tar, in zip that of its entry in the central directory. `header` is the offset that
    messages show. `packed` is its size as it is in the archive, `method` how it is packed there.
    """

    at: int
    header: int
    name: bytes
    data: int
    size: int
    kind: Kind = Kind.FILE
    packed: int = 0
    method: int = 0
    crc: int = 0


class Damage(Exception):
    """Nothing more can be read of an archive, from an offset on; no error of the tree, since it becomes a reject.

    With `cuts_sample` what is before the offset may be a part of a sample alone; `member` is the name of the member
    that is cut, where it is known. `of_all` says that nothing of the archive can be trusted.
    """

    def __init__(
        self,
        offset: int,
        code: str,
        text: str,
        *,
        cuts_sample: bool = True,
        member: bytes | None = None,
        of_all: bool = False,
    ) -> None:
        super().__init__(text)
        self.offset = offset
        self.code = code
        self.text = text
        self.cuts_sample = cuts_sample
        self.member = member
        self.of_all = of_all


class MemberError(Exception):
    """Why the bytes of one member are not given: the code of the reject, and the text."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Archive(Protocol):
    """An archive that is open to read, from front to back."""

    def members(self, start: int, stop: int | None) -> Iterator[Member]:
        """Yield the members that begin from `start` on and before `stop`, in order.

        Raises:
            Damage: nothing more can be read.
        """

    def read(self, member: Member) -> bytes | memoryview:
        """Return the bytes of the member that was yielded last.

        Raises:
            MemberError: they are damaged, or packed in a way that is not read.
        """

    @property
    def end(self) -> int:
        """Where the last member that was yielded ends, as `stop` of `members` counts."""
