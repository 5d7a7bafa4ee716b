"""Keep the memory that a conversion frees, for its next batch: for a process that is the conversion's own.

Every batch takes some tens of MB and frees them again. As they are set up, both allocators then hand the pages back to
the system, and the next batch takes fresh ones: a page fault and 4 KiB of zeros each (on a virtual machine a multiple
of that, where the host takes free pages away), in all a tenth of the run.

    malloc (numpy, Python)    gives back the top of its heap, and maps large pieces one by one
    mimalloc (Arrow)          gives back what has been free for 10 ms

The peak is hardly higher for it: what one batch took is what the next one takes.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

_M_TRIM_THRESHOLD: Final = -1  # <malloc.h> of glibc
_M_MMAP_THRESHOLD: Final = -3

_KEPT_BYTES: Final = 256 << 20
"""Free memory at the top of a heap that is not given back: what all batches in flight take, and more."""

_MAPPED_BYTES: Final = 32 << 20
"""Pieces from here on are mapped one by one: the largest value that glibc takes."""


def keep_freed_memory() -> None:
    """Let the allocators of this process keep what is freed; to be called before pyarrow is imported.

    What the user has set in the environment stands. Where malloc is not glibc's, it is left alone.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
