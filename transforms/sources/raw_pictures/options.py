"""The options of files of pixels: those that all formats have."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..registry.format import Format
from ..registry.options import Options
from ..registry.settings import Settings

if TYPE_CHECKING:
    from ..contract.source import Source


class RawPictureFormat(Format[Options]):
    """Files of pixels in records of one size."""

    kind: ClassVar[str]
    numbered = ("image/class/label", "image/class/coarse_label")

    def source(self, options: Options, settings: Settings) -> Source:
        """Return the source of files of pixels."""
        from .source import RawPictureSource

        return RawPictureSource(self.kind, tuple(options.paths), settings.base)
