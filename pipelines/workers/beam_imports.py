"""Beam without pandas, in the command's own process: Beam imports it where it is installed, for 0.2 s of CPU.

Two of its modules ask for it: one to learn of batches that are DataFrames, the other for Beam's own way to read CSV.
No step of ours uses either. Every other module, a user's function above all, imports pandas as always.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from types import FrameType
from typing import Final

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
