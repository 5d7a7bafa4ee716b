"""Tar archives in the registry: WebDataset's shards, and folders of pictures that were packed."""

from __future__ import annotations

from typing import Final, Literal

from .format import ArchiveFormat
from .options import ArchiveInput


class TarInput(ArchiveInput):
    """Tar archives, compressed or not."""

    format: Literal["tar"] = "tar"


class TarFormat(ArchiveFormat):
    """Tar archives."""

    options = TarInput
    kind = "tar"


FORMAT: Final = TarFormat()
