"""Distinguish a disk that is full, broken or closed to us, which its owner can fix, from a bug in the program."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import Final

_FIXES: Final = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there",
    errno.EFBIG: "make room there",
    errno.EIO: "look after the disk: the kernel's log (dmesg) may say more",
    errno.EROFS: "make it writable",
    errno.ENAMETOOLONG: "choose a shorter one (255 bytes for each name)",
    errno.EACCES: "let this user read and write there",
    errno.EPERM: "let this user read and write there",
    errno.ESTALE: "see that it is mounted",
    errno.ENODEV: "see that it is mounted",
    errno.ENXIO: "see that it is mounted",
    errno.ETIMEDOUT: "see that it is mounted",
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.ENFILE: "allow more open files (ulimit -n)",
}
"""Errors that are not bugs in the program, and what the owner of the machine can do about them."""

_LASTING: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.ENAMETOOLONG, errno.EACCES, errno.EPERM}
)
"""Errors that stay until somebody acts, so that a retry only takes time."""

_IN_TEXT: Final = re.compile(
    r"^(?:\w+\.)*\w*Error: \[Errno (\d+)\] [^\n:]*(?:: '([^'\n]*)'(?: -> '([^'\n]*)')?)?", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class DiskError:
    """The system's words for what it refused, the file where that is known, and the fix.

    `lasts` where no retry can help.
    """

    words: str
    path: str | None
    fix: str
    lasts: bool = False


def disk_error(error: BaseException) -> DiskError | None:
    """Return what an error says of a disk, or None if it comes from something else.

    An engine may hand over a worker's error as it is, as the cause of its own, or as the text of a traceback.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _FIXES:
            path = seen.filename if seen.filename2 is None else seen.filename2  # a link's source is rarely the trouble
            return _disk_error(seen.errno, None if path is None or isinstance(path, int) else os.fsdecode(path))
        if isinstance(seen, RuntimeError):
            matches = [found for found in _IN_TEXT.finditer(str(seen)) if int(found[1]) in _FIXES]
            if matches:  # the last one was raised from those before, and knows the name
                return _disk_error(int(matches[-1][1]), matches[-1][3] or matches[-1][2])
        seen = seen.__cause__ or seen.__context__
    return None


def _disk_error(number: int, path: str | None) -> DiskError:
    return DiskError(os.strerror(number), path, _FIXES[number], number in _LASTING)
