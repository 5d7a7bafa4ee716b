"""Zip archives in the registry."""

from __future__ import annotations

from typing import Final, Literal

from .format import ArchiveFormat
from .options import ArchiveInput


class ZipInput(ArchiveInput):
    """Zip archives."""

    format: Literal["zip"] = "zip"


class ZipFormat(ArchiveFormat):
    """Zip archives."""

    options = ZipInput
    kind = "zip"


FORMAT: Final = ZipFormat()
