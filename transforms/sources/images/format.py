"""Images in the registry: their options, the source that they make, their starter text, what an append settles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from ...format.wording.printable import quoted
from ..registry.format import Format, Resolved
from ..registry.options import STRICT, InputPath, Options, check_classes
from ..registry.settings import Limits, Settings
from .layout import MAX_LABEL_OFFSET

if TYPE_CHECKING:
    from ..contract.source import Source


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


class Annotations(BaseModel):
    """The files that say what is in pictures; without `masks` segmentations are left out."""

    model_config = STRICT

    coco: (
        Annotated[
            list[InputPath], BeforeValidator(_as_list, json_schema_input_type=str | list[str]), Field(min_length=1)
        ]
        | None
    ) = None
    voc: InputPath | None = None
    yolo: InputPath | None = None
    masks: bool = True
    classes: Literal["numeric"] | list[str] | None = None

    @model_validator(mode="after")
    def _of_one_kind(self) -> Annotations:
        given = [key for key in ("coco", "voc", "yolo") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError("annotations are of one kind: coco (a list of files), voc or yolo (a folder)")
        if self.classes is not None and self.coco is not None:
            raise ValueError("classes go with voc and yolo; files of coco list theirs: leave the key out")
        if self.classes == "numeric" and self.voc is None:
            raise ValueError("classes: numeric goes with voc; files of yolo have numbers of classes: leave it out")
        return self


class ImagesInput(Options):
    """Folders of images."""

    format: Literal["images"] = "images"
    layout: Literal["auto", "label", "split", "split_label", "flat"] = "auto"
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


_STARTER: Final = """\
  layout: auto                # label | split | split_label | flat: what the folders mean
  check: structure            # header | structure | decode: how closely each image is looked at
# shuffle: {seed: 7}
"""


class ImagesFormat(Format[ImagesInput]):
    """Files of which each is one row."""

    options = ImagesInput
    refused_keys = ("schema.columns",)
    is_shuffled = True
    projects = True

    def source(self, options: ImagesInput, settings: Settings) -> Source:
        from ...pictures.check import READABLE_FORMATS
        from .source import ImageSource

        pictures, given = settings.pictures, options.model_fields_set
        all_pass = pictures.format != "keep" and "formats" not in given
        hashed = options.sha256 or (pictures.changes_pictures and "sha256" not in given)
        return ImageSource(
            tuple(options.paths),
            settings.base,
            layout="flat" if options.detect == "none" and options.layout == "auto" else options.layout,
            splits=settings.splits,
            check=options.check,
            label_offset=options.label_offset,
            labels=tuple(options.labels) if isinstance(options.labels, list) else None,
            numeric=options.labels == "numeric",
            sha256=hashed,
            formats=READABLE_FORMATS if all_pass else tuple(options.formats),
            columns=options.kept,
            exclude=tuple(options.exclude_columns),
            seed=settings.seed,
            pixels_limit=settings.limits.pixels,
            bytes_limit=settings.limits.image_bytes,
            ignore=tuple(options.ignore),
            pictures=pictures,
        )

    def resolved(self, given: Mapping[str, Any], paths: Sequence[str], base: str) -> Resolved | None:
        """Read the table beside the pictures, if there is one."""
        from ..image_tables.resolve import of_annotations, of_metadata

        fields = {
            key: one
            for key, one in ImagesInput.model_fields.items()
            if key not in Options.model_fields or key == "ignore"  # which is of the pictures here, and not of tables
        }
        own = {key: one.get_default(call_default_factory=True) for key, one in fields.items()}
        if given.get("annotations") is not None:
            try:
                files = Annotations.model_validate(given["annotations"])
            except ValidationError:
                return None  # the model of the section says what is wrong
            return of_annotations(given, own, paths, base, files.model_dump())
        beside = given.get("metadata") is None and given.get("detect") is None
        return of_metadata(given, own, paths, base) if beside else None

    def starter(self, options: ImagesInput, columns: str, column: str) -> str:  # noqa: ARG002
        return _STARTER

    def field_bytes(self, limits: Limits) -> int:
        return limits.image_bytes


FORMAT: Final = ImagesFormat()
