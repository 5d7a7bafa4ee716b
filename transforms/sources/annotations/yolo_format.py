"""YOLO's labels in the registry: their options, and the source that they make."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from ...errors import UsageError
from ..registry.format import Format
from ..registry.options import InputPath, Options
from ..registry.settings import Settings

if TYPE_CHECKING:
    from ..contract.source import Source


class YoloInput(Options):
    """YOLO's text files, one for each picture of the folder `images`; `classes` are their names by number.

    Without `masks` polygons are boxes alone.
    """

    format: Literal["yolo"] = "yolo"
    images: InputPath | None = None
    label_offset: Annotated[int, Field(ge=0, le=1000)] = 0
    classes: list[str] | None = None
    masks: bool = True


class YoloFormat(Format[YoloInput]):
    """Files of which each has the name of a picture, and says what is in it."""

    options = YoloInput

    def source(self, options: YoloInput, settings: Settings) -> Source:
        if options.images is None:
            raise UsageError("input.images: is missing; name the folder of the pictures")
        from .options import AnnotationOptions
        from .source import AnnotationSource

        wanted = AnnotationOptions(
            masks=options.masks,
            label_offset=options.label_offset,
            names=None if options.classes is None else tuple(options.classes),
            images=os.path.join(settings.base, options.images),
        )
        return AnnotationSource("yolo", tuple(options.paths), settings.base, wanted, ignore=tuple(options.ignore))


FORMAT: Final = YoloFormat()
