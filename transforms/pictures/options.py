"""What may be done to pictures before they are written, as the section `image` states it; no library is imported."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, Literal

Mode = Literal["keep_ratio", "keep_ratio_largest", "center_crop", "border", "exact"]
Color = Literal["keep", "rgb", "gray"]
Format = Literal["keep", "jpeg", "png", "webp"]


@dataclass(frozen=True, slots=True)
class Resize:
    """How pictures get another size, in pixels: a side of `width` x `height`, which are equal for most modes."""

    width: int
    height: int
    mode: Mode = "keep_ratio"
    upscale: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which pictures stay, by their header: None for no bound; sides and areas are of the stored picture, in pixels.

    `max_aspect` is the longer side over the shorter one.
    """

    min_side: int | None = None
    max_aspect: float | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None

    @property
    def bounds(self) -> dict[str, int | float]:
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: bound for name, bound in named.items() if bound is not None}

    def takes(self, width: int, height: int) -> bool:
        """Return whether a picture of this size stays.

        >>> Wanted(min_side=64, max_aspect=2.0).takes(200, 100), Wanted(max_aspect=2.0).takes(201, 100)
        (True, False)
        """
        short, long = sorted((width, height))
        return (
            (self.min_side is None or short >= self.min_side)
            and (self.max_aspect is None or long <= self.max_aspect * short)
            and (self.min_pixels is None or width * height >= self.min_pixels)
            and (self.max_pixels is None or width * height <= self.max_pixels)
        )


@dataclass(frozen=True, slots=True)
class Preprocess:
    """What is done to each picture of a row, in this order: left out, turned, resized, given its colours, encoded.

    Boxes were drawn on the stored picture, or on the turned one, as `boxes_on` says; None where the annotations say it.
    `masks` are the pictures whose pixels are numbers of classes: these are resized to their nearest pixels, and PNG.
    """

    resize: Resize | None = None
    format: Format = "keep"
    quality: int = 95
    orientation: Literal["keep", "apply"] = "keep"
    color: Color = "keep"
    wanted: Wanted = Wanted()
    masks: tuple[str, ...] = ()
    boxes_on: Literal["stored", "turned"] | None = None

    @property
    def changes_pictures(self) -> bool:
        """Whether a picture may be written otherwise than it is."""
        return (self.resize, self.format, self.orientation, self.color) != (None, "keep", "keep", "keep")

    def to_json(self) -> dict[str, Any]:
        """Return the steps as a manifest states them: scalars by option, without those at their defaults.

        >>> Preprocess(Resize(256, 256), color="rgb").to_json()
        {'resize': 256, 'mode': 'keep_ratio', 'color': 'rgb', 'quality': 95}
        """
        steps: dict[str, Any] = {}
        if self.resize is not None:
            one = self.resize
            square = one.width == one.height
            steps |= {"resize": one.width} if square else {"width": one.width, "height": one.height}
            steps |= {"mode": one.mode} | ({"upscale": True} if one.upscale else {})
        for name in ("format", "orientation", "color"):
            if (value := getattr(self, name)) != "keep":
                steps[name] = value
        steps |= {"quality": self.quality} if self.changes_pictures else {}
        steps |= {"boxes_on": self.boxes_on} if self.boxes_on is not None else {}
        steps |= self.wanted.bounds
        return steps | ({"masks": json.dumps(self.masks)} if self.masks else {})
