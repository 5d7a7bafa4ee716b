"""The commands of Shardmill, and the only folder that knows argv, config files and runners.

    from shardmill.pipelines import convert, open_dataset

Nothing is imported before it is used, so that `shardmill --help` answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..transforms.dataset.open import open_dataset as open_dataset
    from .conversion import convert as convert

__all__ = ["convert", "open_dataset"]


def __getattr__(name: str) -> object:
    if name == "convert":
        from .conversion import convert

        return convert
    if name == "open_dataset":
        from ..transforms.dataset.open import open_dataset

        return open_dataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, loaded or not, so that `help` finds them."""
    return sorted({*globals(), *__all__})
