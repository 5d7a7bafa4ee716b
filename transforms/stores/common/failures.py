"""Errors of a store that refuses or fails: one line, with the place, the reason and the fix.

A client's own text is not passed on: it may hold a signed URL or the name of a key. Its code is, where it is a word.
"""

from __future__ import annotations

import re
from typing import Final

from ...errors import StoreAccessError, StoreError
from ...format.wording.hints import install_line
from .schemes import STORES
from .store_url import StoreUrl

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
