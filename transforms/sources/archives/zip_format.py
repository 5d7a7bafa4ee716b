"""Zip archives in the registry."""

from __future__ import annotations

from typing import Final

from .format import ArchiveFormat
from .options import ZipInput


class ZipFormat(ArchiveFormat):
    """Zip archives."""

    options = ZipInput
    kind = "zip"


FORMAT: Final = ZipFormat()
