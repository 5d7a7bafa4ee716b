"""Pascal VOC's annotations in the registry: their options, and the source that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from ..registry.format import Format
from ..registry.options import Options
from ..registry.settings import Settings

if TYPE_CHECKING:
    from ..contract.source import Source


class VocInput(Options):
    """VOC's XML files, one for each picture; the pictures are below `schema.files_root`.

    `classes` are in the order of their numbers.
    """

    format: Literal["voc"] = "voc"
    label_offset: Annotated[int, Field(ge=0, le=1000)] = 0
    classes: Literal["numeric"] | list[str] | None = None


class VocFormat(Format[VocInput]):
    """Files of which each names a picture, and what is in it."""

    options = VocInput

    def source(self, options: VocInput, settings: Settings) -> Source:
        from .options import AnnotationOptions
        from .source import AnnotationSource

        names = tuple(options.classes) if isinstance(options.classes, list) else None
        wanted = AnnotationOptions(label_offset=options.label_offset, names=names, numeric=options.classes == "numeric")
        return AnnotationSource("voc", tuple(options.paths), settings.base, wanted, ignore=tuple(options.ignore))


FORMAT: Final = VocFormat()
