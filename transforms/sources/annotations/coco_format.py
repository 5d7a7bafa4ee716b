"""COCO's annotations in the registry: their options, and the source that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ..registry.format import Format
from ..registry.options import Options
from ..registry.settings import Settings

if TYPE_CHECKING:
    from ..contract.source import Source


class CocoInput(Options):
    """COCO's JSON files; the pictures that they name are below `schema.files_root`."""

    format: Literal["coco"] = "coco"
    masks: bool = True


class CocoFormat(Format[CocoInput]):
    """Files that list pictures, and what is in them."""

    options = CocoInput

    def source(self, options: CocoInput, settings: Settings) -> Source:
        from .options import AnnotationOptions
        from .source import AnnotationSource

        return AnnotationSource(
            "coco",
            tuple(options.paths),
            settings.base,
            AnnotationOptions(masks=options.masks),
            ignore=tuple(options.ignore),
        )


FORMAT: Final = CocoFormat()
