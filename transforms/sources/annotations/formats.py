"""COCO's, Pascal VOC's, YOLO's and tables' annotations in the registry: their options, and the source they make."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from ...errors import UsageError
from ..registry.format import Format
from ..registry.options import InputPath, Options
from ..registry.settings import Settings

if TYPE_CHECKING:
    from ...inputs.contract.source import Source
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
    """COCO's JSON files; `dense` classes are numbered from 0 in the order of their ids."""

    format: Literal["coco"] = "coco"
    classes: Literal["dense"] | None = None
    masks: bool = False


class _NamedClasses(_Annotations):
    """Files that name classes, and do not number them; `classes` are in the order of their numbers."""

    label_offset: Annotated[int, Field(ge=0, le=1000)] = 0
    classes: Literal["numeric"] | list[str] | None = None

    def wanted(self, base: str) -> AnnotationOptions:
        from .rows import AnnotationOptions

        return AnnotationOptions(
            label_offset=self.label_offset,
            names=tuple(self.classes) if isinstance(self.classes, list) else None,
            folders=self.folders(base),
            numeric=self.classes == "numeric",
        )


class VocInput(_NamedClasses):
    """VOC's XML files, one for each picture."""

    format: Literal["voc"] = "voc"


class BoxesInput(_NamedClasses):
    """Tables with a row for each box."""

    format: Literal["boxes"] = "boxes"


class YoloInput(_Annotations):
    """YOLO's text files, one for each picture of the folders `images`; `classes` are their names by number.

    Polygons are boxes alone where no `masks` are asked for.
    """

    format: Literal["yolo"] = "yolo"
    label_offset: Annotated[int, Field(ge=0, le=1000)] = 0
    classes: list[str] | None = None
    masks: bool = False


class CocoFormat(Format[CocoInput]):
    """Files that list pictures, and what is in them."""

    options = CocoInput

    def source(self, options: CocoInput, settings: Settings) -> Source:
        from .rows import AnnotationOptions

        folders = options.folders(settings.base)
        wanted = AnnotationOptions(masks=options.masks, folders=folders, dense=options.classes == "dense")
        return options.source(wanted, settings)


class VocFormat(Format[VocInput]):
    """Files of which each names a picture, and what is in it."""

    options = VocInput

    def source(self, options: VocInput, settings: Settings) -> Source:
        return options.source(options.wanted(settings.base), settings)


class BoxesFormat(Format[BoxesInput]):
    """Tables of which each row is a box in the picture that it names."""

    options = BoxesInput

    def source(self, options: BoxesInput, settings: Settings) -> Source:
        return options.source(options.wanted(settings.base), settings)


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
BOXES: Final = BoxesFormat()
YOLO: Final = YoloFormat()
