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
    from .rows import AnnotationOptions, PictureFolder


class _Annotations(Options):
    """Files that say what is in pictures, which are below `schema.files_root`.

    `images` are the folders of the pictures of each of `paths`, in their order, where these are several folders.
    """

    images: list[InputPath] | None = None

    def folders(self, base: str) -> tuple[tuple[bytes, PictureFolder], ...]:
        from .rows import PictureFolder

        images = [os.path.abspath(os.path.join(base, one)) for one in self.images or ()]
        files = [os.fsencode(os.path.abspath(os.path.join(base, one))) for one in self.paths]
        if len(images) < 2:
            return tuple((one, PictureFolder(folder)) for one in files for folder in images)
        if len(images) != len(files):
            raise UsageError(f"input.images: has {len(images)} folders for {len(files)} paths; give one for each")
        root = os.path.commonpath(images)
        pairs = zip(files, images, strict=True)
        return tuple((one, PictureFolder(folder, os.path.relpath(folder, root))) for one, folder in pairs)

    def source(self, wanted: AnnotationOptions, settings: Settings) -> Source:
        from .source import AnnotationSource

        kind, paths, ignore = str(self.format), tuple(self.paths), tuple(self.ignore)
        return AnnotationSource(kind, paths, settings.base, wanted, ignore=ignore, splits=settings.splits)


class CocoInput(_Annotations):
    """COCO's JSON files."""

    format: Literal["coco"] = "coco"
    masks: bool = True


class VocInput(_Annotations):
    """VOC's XML files, one for each picture; `classes` are in the order of their numbers."""

    format: Literal["voc"] = "voc"
    label_offset: Annotated[int, Field(ge=0, le=1000)] = 0
    classes: Literal["numeric"] | list[str] | None = None


class YoloInput(_Annotations):
    """YOLO's text files, one for each picture of the folders `images`; `classes` are their names by number.

    Without `masks` polygons are boxes alone.
    """

    format: Literal["yolo"] = "yolo"
    label_offset: Annotated[int, Field(ge=0, le=1000)] = 0
    classes: list[str] | None = None
    masks: bool = True


class CocoFormat(Format[CocoInput]):
    """Files that list pictures, and what is in them."""

    options = CocoInput

    def source(self, options: CocoInput, settings: Settings) -> Source:
        from .rows import AnnotationOptions

        wanted = AnnotationOptions(masks=options.masks, folders=options.folders(settings.base))
        return options.source(wanted, settings)


class VocFormat(Format[VocInput]):
    """Files of which each names a picture, and what is in it."""

    options = VocInput

    def source(self, options: VocInput, settings: Settings) -> Source:
        from .rows import AnnotationOptions

        names = tuple(options.classes) if isinstance(options.classes, list) else None
        wanted = AnnotationOptions(
            label_offset=options.label_offset,
            names=names,
            folders=options.folders(settings.base),
            numeric=options.classes == "numeric",
        )
        return options.source(wanted, settings)


class YoloFormat(Format[YoloInput]):
    """Files of which each has the name of a picture, and says what is in it."""

    options = YoloInput

    def source(self, options: YoloInput, settings: Settings) -> Source:
        if not options.images:
            raise UsageError("input.images: is missing; name the folder of the pictures")
        from .rows import AnnotationOptions

        wanted = AnnotationOptions(
            masks=options.masks,
            label_offset=options.label_offset,
            names=None if options.classes is None else tuple(options.classes),
            folders=options.folders(settings.base),
        )
        return options.source(wanted, settings)


COCO: Final = CocoFormat()
VOC: Final = VocFormat()
YOLO: Final = YoloFormat()
