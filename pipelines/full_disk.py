"""Tell a disk that is full from a fault of the program: its owner can mend it."""

from __future__ import annotations

import errno
import os
import re
from typing import Final

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""No room on the device, or above what its user may have, in all or in one file."""

_IN_TEXT: Final = re.compile(r"^OSError: \[Errno (\d+)\]", re.MULTILINE)


def full_disk(error: BaseException) -> str | None:
    """Return the system's words if an error comes from a full disk, else None.

    An engine may hand over a worker's error as it is, as the cause of its own, or as the text of a traceback.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _FULL:
            return os.strerror(seen.errno)
        if isinstance(seen, RuntimeError):
            for found in _IN_TEXT.finditer(str(seen)):
                if int(found[1]) in _FULL:
                    return os.strerror(int(found[1]))
        seen = seen.__cause__ or seen.__context__
    return None
