"""Distinguish a disk that is full, broken or closed to us, which its owner can fix, from a bug in the program.

Engines report what was raised in a worker as the traceback of Python: here it is found in the text of a failed job.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import Final

from ...transforms.errors import RunError, UnseenError
from ...transforms.format.wording.printable import escaped, redacted

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


_RAISED: Final = re.compile(r"^((?:\w+\.)*)(\w+): (.*)$", re.MULTILINE)

NO_WORKER: Final = "no Python worker could be started: "
"""How a worker pool's answer begins that fails a job."""

_NO_WORKER: Final = re.compile(f"{NO_WORKER}.*$", re.MULTILINE)

_FIRST_CHARACTERS: Final = 200
_LAST_CHARACTERS: Final = 400


def raised_in_worker(text: str) -> str | None:
    r"""Return what the last traceback of a text ends with, in one line; None where there is none.

    >>> trace = "Traceback (most recent call last):\n  File 'a.py', line 1\nValueError: no [while running 'Read']\n"
    >>> raised_in_worker(f"The job failed: {trace}")
    'ValueError: no'
    """
    raised = _last_raised(text)
    if raised is None:
        return None
    module, kind, said = raised
    return in_one_line(said if module.startswith("shardmill.") else f"{kind}: {said}")


def lasting_error(text: str) -> Exception | None:
    """Return the error that a worker raised where no retry can help; None where one may.

    That is a folder that the worker does not see (`UnseenError`), what a disk refuses for good (it has the text), or a
    worker that does not start.
    """
    no_worker = _NO_WORKER.search(text)
    if no_worker is not None:
        return RunError(in_one_line(no_worker[0]))
    raised = _last_raised(text)
    if raised is not None and raised[1] == UnseenError.__name__:
        return UnseenError(escaped(raised[2]))
    error = RuntimeError(text)
    refused = disk_error(error)
    return error if refused is not None and refused.lasts else None


def _last_raised(text: str) -> tuple[str, str, str] | None:
    """Return what the last traceback of a text ends with: module, kind, words."""
    _, found, trace = text.rpartition("Traceback (most recent call last):")
    raised = _RAISED.findall(trace) if found else []
    if not raised:
        return None
    module, kind, said = raised[-1]
    return module, kind, said.partition(" [while running")[0]


def in_one_line(text: str) -> str:
    """Return a text of an engine in one line; of a long one the beginning and the end, which has the reason."""
    line = escaped(redacted(" ".join(text.split())))
    if len(line) <= _FIRST_CHARACTERS + _LAST_CHARACTERS:
        return line
    return f"{line[:_FIRST_CHARACTERS]} ... {line[-_LAST_CHARACTERS:]}"
