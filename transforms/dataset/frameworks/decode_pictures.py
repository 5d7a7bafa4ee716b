"""Encoded pictures as arrays of their pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import DamageError
from ...format.wording.printable import printable
from ...pictures.check import READABLE_FORMATS, ImageCheck
from ...pictures.facts import ImageProblem
from ...pictures.preprocess.codec import Codec
from ...pictures.preprocess.pixels import decode

_CHECK: Final = ImageCheck("header", READABLE_FORMATS, pixels_limit=1 << 30, loads_others=False)


def decode_pictures(name: str, pictures: Sequence[bytes | None]) -> list[npt.NDArray[Any] | None]:
    """Return the pixels of the pictures of the feature `name`: height x width x channels, uint8, or uint16 of 16 bits.

    A picture has 1 (gray), 2, 3 (RGB) or 4 channels, as it is stored: neither is its EXIF orientation applied, nor are
    its colours changed; but CMYK becomes RGB, and a palette the colours that are in it. None stays None.
    """
    codec = Codec.installed()
    return [None if picture is None else _decode(name, row, picture, codec) for row, picture in enumerate(pictures)]


def _decode(name: str, row: int, picture: bytes, codec: Codec) -> npt.NDArray[Any]:
    try:
        facts = _CHECK.check(picture)
        return np.asarray(decode(picture, facts, codec, (facts.width, facts.height), gray=False)[0])
    except ImageProblem as problem:
        raise DamageError(f'feature "{printable(name)}", picture {row + 1} of the batch: {problem}') from problem
