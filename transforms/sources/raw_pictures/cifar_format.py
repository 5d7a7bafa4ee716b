"""CIFAR's binary files, in the registry."""

from __future__ import annotations

from typing import Final, Literal

from ..registry.options import Options
from .options import RawPictureFormat


class CifarInput(Options):
    """CIFAR's binary files."""

    format: Literal["cifar"] = "cifar"


class CifarFormat(RawPictureFormat):
    """CIFAR's binary files."""

    options = CifarInput
    kind = "cifar"


FORMAT: Final = CifarFormat()
