"""Pictures of every kind that a rule is about, made here, and how alike two pictures are."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

HEIC_64_48 = base64.b64decode(
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAX1tZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAACJpbG9jAAAA"
    "AERAAAEAAQAAAAABoQABAAAAAAAAAEkAAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAABAABodmMxAAAAAA5waXRtAAAAAAABAAAA/WlwcnAAAADd"
    "aXBjbwAAAHZodmNDAQNwAAAAkAAAAAAAHvAA/P34+AAADwNgAAEAGEABDAH//wNwAAADAJAAAAMAAAMAHroCQGEAAQAqQgEBA3AAAAMAkAAAAwAA"
    "AwAeoCCBBZbq5Ka5uAhoMCAAAAMDIAAAAwAhYgABAAZEAcFzwIkAAAATY29scm5jbHgAAQANAAaAAAAAFGlzcGUAAAAAAAAAQAAAAEAAAAAoY2xh"
    "cAAAAEAAAAABAAAAMAAAAAEAAAAAAAAAAv////AAAAACAAAAEHBpeGkAAAAAAwgICAAAABhpcG1hAAAAAAAAAAEAAQWBAgMFhAAAAFFtZGF0AAAA"
    "RSgBrxmA71BJjpGz79llG95cByUlm/X58xbwxIFPZZBcAExxwcDYQUaLaq7IlGJDesqJysDlEsTTq3UGydHOxpPTxkGY+Q=="
)
"""A gradient of 64 x 48 pixels: red by column, green by row, blue 128."""


def pixels_of(width: int, height: int) -> npt.NDArray[np.uint8]:
    """Return a picture with gradients, edges and texture, like a photograph more than like noise."""
    y, x = np.mgrid[0:height, 0:width].astype(float)
    disc = 80.0 * ((x - width / 3) ** 2 + (y - height / 2) ** 2 < (height / 4) ** 2)
    waves = 25 * np.sin(x / 9) * np.cos(y / 7)
    channels = [200 * x / width + waves, 200 * y / height + disc, 120 + disc - waves]
    return np.clip(np.stack(channels, -1), 0, 255).astype(np.uint8)


def picture(width: int = 120, height: int = 80, mode: str = "RGB") -> Image.Image:
    """Return a picture in a mode of Pillow."""
    return Image.fromarray(pixels_of(width, height)).convert(mode)


def file_of(image: Image.Image, name: str, **options: Any) -> bytes:
    """Return the file of a picture in a format of Pillow."""
    file = io.BytesIO()
    image.save(file, name, **options)
    return file.getvalue()


def opened(data: bytes) -> Image.Image:
    """Return the picture in a file, loaded."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def likeness(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> float:
    """Return the mean structural similarity of two pictures, in windows of 8 x 8 (Wang et al., 2004)."""
    a, b = (np.lib.stride_tricks.sliding_window_view(x.mean(axis=-1), (8, 8)) for x in (one, other))
    mean_a, mean_b = a.mean(axis=(2, 3)), b.mean(axis=(2, 3))
    both = (a * b).mean(axis=(2, 3)) - mean_a * mean_b
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    up = (2 * mean_a * mean_b + c1) * (2 * both + c2)
    down = (mean_a**2 + mean_b**2 + c1) * (a.var(axis=(2, 3)) + b.var(axis=(2, 3)) + c2)
    return float((up / down).mean())
