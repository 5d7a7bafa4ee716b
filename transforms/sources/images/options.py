"""The options of pictures: the keys of `input`."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from ...format.wording.printable import quoted
from ...recognise.evidence.names import MAX_LABEL_OFFSET
from ..registry.options import STRICT, InputPath, Options, check_classes


def _check_labels(value: object) -> list[str] | str | None:
    if value is None:
        return None
    if value == "numeric":
        return "numeric"
    if not isinstance(value, list) or not value:
        raise ValueError(f"{quoted(value)} is no list of classes, like [cat, dog], and not numeric")
    return check_classes(value)


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


_Files: TypeAlias = Annotated[
    list[InputPath], BeforeValidator(_as_list, json_schema_input_type=str | list[str]), Field(min_length=1)
]


ANNOTATION_KINDS: Final = ("coco", "boxes", "voc", "yolo")


class Annotations(BaseModel):
    """The files that say what is in pictures; segmentations are read as `masks` where they are asked for."""

    model_config = STRICT

    coco: _Files | None = None
    boxes: _Files | None = None
    voc: InputPath | None = None
    yolo: InputPath | None = None
    masks: bool = False
    classes: Literal["dense", "numeric"] | list[str] | None = None

    @model_validator(mode="after")
    def _of_one_kind(self) -> Annotations:
        given = [key for key in ANNOTATION_KINDS if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError("annotations are of one kind: coco or boxes (a list of files), voc or yolo (a folder)")
        if self.classes not in (None, "dense") and self.coco is not None:
            raise ValueError(
                "classes go with voc and yolo and boxes; files of coco list theirs: leave the key out, or number them "
                "from 0 with classes: dense"
            )
        if self.classes == "dense" and self.coco is None:
            raise ValueError("classes: dense goes with coco; those of other files have no gaps: leave it out")
        if self.classes == "numeric" and self.yolo is not None:
            raise ValueError("classes: numeric goes with voc and boxes; files of yolo have numbers: leave it out")
        return self


class ImagesInput(Options):
    """Folders of images."""

    format: Literal["images"] = "images"
    layout: Literal["auto", "label", "split", "split_label", "inner_label", "flat"] = "auto"
    label_offset: Annotated[int, Field(ge=0, le=MAX_LABEL_OFFSET)] = 0
    labels: Annotated[
        Literal["numeric"] | list[str] | None,
        BeforeValidator(_check_labels, json_schema_input_type=Literal["numeric"] | list[str | int] | None),
    ] = None
    sha256: bool = False
    formats: list[str] = Field(["jpeg", "png", "gif", "webp", "bmp"], min_length=1)
    metadata: Literal["none"] | None = None
    annotations: Annotations | None = None

    @model_validator(mode="after")
    def _splits_are_said_once(self) -> ImagesInput:
        if self.layout in ("split", "split_label") and self.splits is not None:
            raise ValueError(
                f"layout: {self.layout} says that folders are splits, and splits says it too; leave one out"
            )
        return self
