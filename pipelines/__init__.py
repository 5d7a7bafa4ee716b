"""The commands of Shardmill, and the only layer that knows argv, config files and engines.

    from shardmill.pipelines import append, convert, open_dataset

A command goes `cli`, `runs` (convert, append, merge), which has `prepare` plan it and one of `engines` run it.
Nothing is imported before it is used, so that `shardmill --help` answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..transforms.dataset.reading.open_dataset import open_dataset as open_dataset
    from .runs.append import append as append
    from .runs.convert import convert as convert

__all__ = ["append", "convert", "open_dataset"]


def __getattr__(name: str) -> object:
    if name == "append":
        from .runs.append import append

        return append
    if name == "convert":
        from .runs.convert import convert

        return convert
    if name == "open_dataset":
        from ..transforms.dataset.reading.open_dataset import open_dataset

        return open_dataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, loaded or not, so that `help` finds them."""
    return sorted({*globals(), *__all__})
