"""The section `image`: what is done to pictures before they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from ...transforms.format.wording.printable import quoted
from ...transforms.pictures.codec import Codec
from ...transforms.pictures.preprocess_options import Preprocess, Resize, Wanted
from ...transforms.sources.registry.options import STRICT, Count

_LARGEST: Final = 16_383
"""The most pixels of a side: what WebP takes."""

Side: TypeAlias = Annotated[int, Field(ge=1, le=_LARGEST)]


class _Section(BaseModel):
    model_config = STRICT


class SizeConfig(_Section):
    """Two sides, in pixels."""

    width: Side
    height: Side


def _check_size(value: object) -> object:
    if isinstance(value, dict | SizeConfig):
        return value
    if type(value) is not int or not 1 <= value <= _LARGEST:
        raise ValueError(f"{quoted(value)} is no side of 1 to {_LARGEST} pixels, nor two: {{width: 320, height: 240}}")
    return value


def _as_size(value: object) -> object:
    return {"size": value} if isinstance(value, int) and not isinstance(value, bool) else value


class ResizeConfig(_Section):
    """The size that pictures get."""

    size: Annotated[int | SizeConfig, BeforeValidator(_check_size)]
    mode: Literal["keep_ratio", "keep_ratio_largest", "center_crop", "border", "exact"] = "keep_ratio"
    upscale: bool = False

    @model_validator(mode="after")
    def _one_side_where_ratios_stay(self) -> ResizeConfig:
        if self.mode == "keep_ratio" and isinstance(self.size, SizeConfig):
            raise ValueError(
                "mode: keep_ratio takes one number, the length of the shorter side; give that (size: 256), or choose "
                "center_crop, border, keep_ratio_largest or exact"
            )
        return self


class EncodeConfig(_Section):
    """The format of the files that are written."""

    format: Literal["keep", "jpeg", "png", "webp"] = "keep"
    quality: Annotated[int, Field(ge=1, le=100)] = 95


class FilterConfig(_Section):
    """Which pictures stay, by the sizes in their headers."""

    min_side: Count | None = None
    max_aspect: Annotated[float, Field(ge=1)] | None = None
    min_pixels: Count | None = None
    max_pixels: Count | None = None


class ImageConfig(_Section):
    """What is done to each picture."""

    resize: Annotated[
        ResizeConfig | None, BeforeValidator(_as_size, json_schema_input_type=int | ResizeConfig | None)
    ] = None
    encode: EncodeConfig = EncodeConfig()
    orientation: Literal["keep", "apply"] = "keep"
    color: Literal["keep", "rgb", "gray"] = "keep"
    filter: FilterConfig = FilterConfig()
    masks: list[str] = []
    boxes_on: Literal["stored", "turned"] | None = None

    @model_validator(mode="after")
    def _keys_agree(self) -> ImageConfig:
        if self.encode.format == "webp" and self.color == "gray":
            raise ValueError("WebP has no gray; choose encode: {format: jpeg} or png, or leave color out")
        if self.boxes_on == "turned" and self.orientation == "keep":
            raise ValueError(
                "boxes_on: turned is for pictures that are turned; add orientation: apply, or leave it out"
            )
        return self

    def options(self) -> Preprocess:
        resize = None
        if self.resize is not None:
            size = self.resize.size
            sides = (size.width, size.height) if isinstance(size, SizeConfig) else (size, size)
            resize = Resize(*sides, self.resize.mode, self.resize.upscale)
        return Preprocess(
            resize,
            self.encode.format,
            self.encode.quality,
            self.orientation,
            self.color,
            Wanted(**self.filter.model_dump()),
            tuple(self.masks),
            self.boxes_on,
        )

    def stated(self) -> dict[str, Any]:
        """Return the codec that changes pictures, as the manifest states it; nothing where they stay as they are."""
        return Codec.installed().to_json() if self.options().changes_pictures else {}


def image_shown(steps: Mapping[str, Any]) -> str:
    """Return steps as they are stated.

    >>> image_shown({"resize": 256, "mode": "keep_ratio"}), image_shown({})
    ('written with resize 256, mode keep_ratio', 'written as they are')
    """
    return f"written with {steps_text(steps)}" if steps else "written as they are"


def image_text(section: Mapping[str, Any], codec: Mapping[str, str]) -> str:
    """Return what was done to the pictures of a dataset, for the screen, by the section `image` of its conversion.

    >>> image_text({"resize": {"size": 256}}, {"codec": "simplejpeg, pillow", "version": "1.9.0, 12.3.0"})
    'resize 256, mode keep_ratio, quality 95; by simplejpeg 1.9.0, pillow 12.3.0'
    """
    by = zip(codec.get("codec", "").split(", "), codec.get("version", "").split(", "), strict=False)
    text = steps_text(ImageConfig.model_validate(section).options().to_json())
    return f"{text}; by {', '.join(map(' '.join, by))}" if codec else text


def steps_text(steps: Mapping[str, Any]) -> str:
    """Return the steps of a manifest, for the screen.

    >>> steps_text({"resize": 256, "upscale": True})
    'resize 256, upscale true'
    """
    return ", ".join(
        f"{key} {str(value).lower() if isinstance(value, bool) else value}" for key, value in steps.items()
    )
