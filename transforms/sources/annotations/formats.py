"""COCO's, Pascal VOC's and YOLO's annotations in the registry: their options, and the source that they make."""

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


class CocoInput(Options):
    """COCO's JSON files; the pictures that they name are below `schema.files_root`."""

    format: Literal["coco"] = "coco"
    masks: bool = True


class VocInput(Options):
    """VOC's XML files, one for each picture; the pictures are below `schema.files_root`.

    `classes` are in the order of their numbers.
    """

    format: Literal["voc"] = "voc"
    label_offset: Annotated[int, Field(ge=0, le=1000)] = 0
    classes: Literal["numeric"] | list[str] | None = None


class YoloInput(Options):
    """YOLO's text files, one for each picture of the folder `images`; `classes` are their names by number.

    Without `masks` polygons are boxes alone.
    """

    format: Literal["yolo"] = "yolo"
    images: InputPath | None = None
    label_offset: Annotated[int, Field(ge=0, le=1000)] = 0
    classes: list[str] | None = None
    masks: bool = True


class CocoFormat(Format[CocoInput]):
    """Files that list pictures, and what is in them."""

    options = CocoInput

    def source(self, options: CocoInput, settings: Settings) -> Source:
        from .rows import AnnotationOptions
        from .source import AnnotationSource

        wanted = AnnotationOptions(masks=options.masks)
        return AnnotationSource("coco", tuple(options.paths), settings.base, wanted, ignore=tuple(options.ignore))


class VocFormat(Format[VocInput]):
    """Files of which each names a picture, and what is in it."""

    options = VocInput

    def source(self, options: VocInput, settings: Settings) -> Source:
        from .rows import AnnotationOptions
        from .source import AnnotationSource

        names = tuple(options.classes) if isinstance(options.classes, list) else None
        wanted = AnnotationOptions(label_offset=options.label_offset, names=names, numeric=options.classes == "numeric")
        return AnnotationSource("voc", tuple(options.paths), settings.base, wanted, ignore=tuple(options.ignore))


class YoloFormat(Format[YoloInput]):
    """Files of which each has the name of a picture, and says what is in it."""

    options = YoloInput

    def source(self, options: YoloInput, settings: Settings) -> Source:
        if options.images is None:
            raise UsageError("input.images: is missing; name the folder of the pictures")
        from .rows import AnnotationOptions
        from .source import AnnotationSource

        wanted = AnnotationOptions(
            masks=options.masks,
            label_offset=options.label_offset,
            names=None if options.classes is None else tuple(options.classes),
            images=os.path.join(settings.base, options.images),
        )
        return AnnotationSource("yolo", tuple(options.paths), settings.base, wanted, ignore=tuple(options.ignore))


COCO: Final = CocoFormat()
VOC: Final = VocFormat()
YOLO: Final = YoloFormat()
