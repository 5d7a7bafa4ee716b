"""The transforms of Shardmill: rows in, blocks of framed Examples, shards out.

    from shardmill.transforms import ReadRows, EncodeExamples, WriteShards, read_records, write_records

`read`, `encode` and `write` are the Beam transforms, and `elements` is how Beam carries what is between their steps;
packages below have the plain functions. `tasks` stages a task in one call and without Beam, for worker processes, and
keeps a large plan out of the job's graph. Nothing is imported before it is used: Beam alone takes seconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .dataset.storage.record_file import read_records as read_records
    from .dataset.storage.record_file import write_records as write_records
    from .encode import EncodeExamples as EncodeExamples
    from .read import ReadRows as ReadRows
    from .write import WriteShards as WriteShards

__all__ = ["EncodeExamples", "ReadRows", "WriteShards", "read_records", "write_records"]

_MODULES: Final = {
    "ReadRows": ".read",
    "EncodeExamples": ".encode",
    "WriteShards": ".write",
    "read_records": ".dataset.storage.record_file",
    "write_records": ".dataset.storage.record_file",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    """Return the public names, loaded or not, so that `help` finds them."""
    return sorted({*globals(), *__all__})
