"""Why a job failed, as far as an engine reports what was raised in a worker: as the traceback of Python."""

from __future__ import annotations

import re
from typing import Final

from ...transforms.errors import RunError, UnseenError
from ...transforms.format.wording.printable import escaped, redacted
from ..outcomes.disk_errors import disk_error

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
