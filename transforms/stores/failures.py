"""Errors of a store that refuses or fails: one line, with the place, the reason and the fix.

A client's own text is not passed on: it may hold a signed URL or the name of a key. Its code is, where it is a word.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from typing import Final, TypeVar

from ..errors import StoreAccessError, StoreError
from ..format.wording.hints import install_line
from .store_url import STORES, StoreUrl

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


T = TypeVar("T")

TRIES: Final = 10
"""The tries of one request: with the pauses below, some 45 s on the average before a store that is down is given up."""

FIRST_PAUSE: Final = 0.2
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
