"""IDX files, as MNIST has them, in the registry."""

from __future__ import annotations

from typing import Final, Literal

from ..registry.options import Options
from .options import RawPictureFormat


class IdxInput(Options):
    """IDX files, as MNIST has them."""

    format: Literal["idx"] = "idx"


class IdxFormat(RawPictureFormat):
    """IDX files, as MNIST has them."""

    options = IdxInput
    kind = "idx"


FORMAT: Final = IdxFormat()
