"""Set up a process before it loads anything: keep freed memory, collect garbage rarely, load Beam without pandas."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from importlib.abc import MetaPathFinder
from types import FrameType
from typing import Final

# Keep the memory that a batch frees, for the next one: for a worker process, which does nothing else.
#
# Every batch takes some tens of MB and frees them again. As they are set up, both allocators then hand the pages back
# to the system, and the next batch takes fresh ones: a page fault and 4 KiB of zeros each (on a virtual machine a
# multiple of that, where the host takes free pages away), in all a tenth of the run.
#
#     malloc (numpy, Python)    gives back the top of its heap, and maps large pieces one by one
#     mimalloc (Arrow)          gives back what has been free for 10 ms
#
# The peak is hardly higher for it: what one batch took is what the next one takes. The command itself, which plans and
# then waits for its workers, gives back what planning took.

_M_TRIM_THRESHOLD: Final = -1  # <malloc.h> of glibc
_M_MMAP_THRESHOLD: Final = -3

_KEPT_BYTES: Final = 256 << 20
"""Free memory at the top of a heap that is not given back: what all batches in flight take, and more."""

_MAPPED_BYTES: Final = 32 << 20
"""Pieces from here on are mapped one by one: the largest value that glibc takes."""


ARROW_ENVIRONMENT: Final = {"MIMALLOC_PURGE_DELAY": "-1"}
"""Environment variables that let Arrow keep memory, if set when a process loads it."""


_ALLOCATIONS: Final = 400_000
"""New values before Python searches for cycles again: imports make 320,000. Python's default is 700."""


def collect_rarely() -> None:
    """Let Python search for cycles rarely.

    It would search all that the imports of a command make hundreds of times, for half a second of the three that a
    small conversion takes. Records are in buffers, which it does not search. At its end it would search all of it
    again, for another half a second, to free what the system takes back anyway.
    """
    gc.set_threshold(_ALLOCATIONS)
    atexit.register(gc.freeze)


def keep_freed_memory() -> None:
    """Make the allocators of this process keep what is freed; call it before pyarrow is imported.

    Settings in the user's environment are kept. Where malloc is not glibc's, it is left alone.
    """
    for name, value in ARROW_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)


def release_freed_memory() -> None:
    """Return to the system what Arrow and malloc have kept until now."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)


# Beam without pandas, in the command's own process: Beam imports it where it is installed, for 0.2 s of CPU.
#
# Two of its modules ask for it: one to learn of batches that are DataFrames, the other for Beam's own way to read
# CSV. No step of ours uses either. Every other module, a user's function above all, imports pandas as always.


_ASK: Final = frozenset({"apache_beam.typehints", "apache_beam.io.textio"})


class _PandasHidden(MetaPathFinder):
    """Finds no module itself; says that there is no pandas to the modules of Beam that ask."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Return nothing, so that other finders look; a module of Beam's gets an error."""
        del path, target
        if fullname == "pandas" and _importer(sys._getframe(1)) in _ASK:
            raise ModuleNotFoundError("Beam does without pandas here", name=fullname)


def hide_pandas_from_beam() -> None:
    sys.meta_path.insert(0, _PandasHidden())


def _importer(frame: FrameType | None) -> str:
    """Return the name of the module that imports: the first frame that is not of Python's own machinery."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith("importlib."):
            return name
        frame = frame.f_back
    return ""
