"""Load an image with Pillow, safely: one format, a limit of pixels, its warnings as errors; and JPEG with simplejpeg.

Both decode JPEG by libjpeg-turbo, which passes over damage with a warning. Pillow does not report it, simplejpeg does.
"""

from __future__ import annotations

import io
import struct
import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal

from ..format.wording.hints import install_line
from ..format.wording.printable import printable
from ..limits.turns import PIXELS, taking_turns
from .facts import (
    UPRIGHT,
    Content,
    ImageFacts,
    ImageProblem,
    corrupt,
    orientation_in,
    too_many_pixels,
    truncated,
    unsupported,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

HEIC: Final = "heic"

PILLOW_NAMES: Final = {
    "jpeg": "JPEG", "png": "PNG", "gif": "GIF", "webp": "WEBP", "bmp": "BMP",
    "tiff": "TIFF", "avif": "AVIF", "jpeg2000": "JPEG2000", HEIC: "HEIF",
}  # fmt: skip
"""Pillow's name of every format that may pass. A closed list: no plugin that runs other programs is ever reached."""


SOUND: Final = ""
"""The warning of a JPEG that libjpeg decodes without one."""

_WITH_EXIF: Final = frozenset({"jpeg", "avif", HEIC})
"""Formats whose orientation Pillow gives. It turns a TIFF by itself."""

_TIFF_BITS, _TIFF_FORMAT, _TIFF_SHORT = 258, 339, 3


class _PillowWarningsAsErrors:
    """Makes Pillow's warnings errors while any thread decodes.

    The filters of `warnings` belong to the whole process, so the first thread in sets them and the last one out
    restores them; `catch_warnings` in every thread could restore them in the wrong order. Only warnings that are
    raised in Pillow's own modules are touched.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._saved: AbstractContextManager[object] | None = None
        self._pixels: int | None = None

    def __enter__(self) -> None:
        from PIL import Image

        with self._lock:
            if self._inside == 0:
                self._saved = warnings.catch_warnings()
                self._saved.__enter__()
                warnings.filterwarnings("error", module=r"PIL\.")
                warnings.filterwarnings("ignore", "Corrupt EXIF data", module=r"PIL\.")  # the pixels are good
                self._pixels, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # ours are checked
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from PIL import Image

        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._saved is not None:
                self._saved.__exit__(None, None, None)
                self._saved = None
                Image.MAX_IMAGE_PIXELS = self._pixels


_warnings_as_errors = _PillowWarningsAsErrors()


def decode_image(data: Content, name: str, *, pixels_limit: int, load: bool) -> ImageFacts:
    """Open an image of a known format, as that format alone, and with `load` decode its first frame.

    The limit is checked before anything is decoded.
    """
    with opened(data, name, pixels_limit=pixels_limit) as image:
        animated = getattr(image, "is_animated", False)
        if load:
            with taking_turns(PIXELS, image.width * image.height):
                image.load()
        block = image.info.get("exif") if name in _WITH_EXIF else None
        turn = orientation_in(block) if isinstance(block, bytes) else UPRIGHT
        return ImageFacts(name, *image.size, len(image.getbands()), image.mode, animated, orientation=turn)


@contextmanager
def opened(data: Content, name: str, *, pixels_limit: int | None = None) -> Iterator[Image.Image]:
    """Give an image of a known format to a block, in which Pillow's errors and warnings are problems of the image."""
    from PIL import Image, UnidentifiedImageError  # 60 ms that the other checks do without

    shown = name.upper()
    _check_decoder(name, shown)
    try:
        with _warnings_as_errors, Image.open(io.BytesIO(data), formats=[PILLOW_NAMES[name]]) as image:
            width, height = image.size
            if pixels_limit is not None and width * height > pixels_limit:
                raise too_many_pixels(width, height, pixels_limit)
            yield image
    except (ImageProblem, MemoryError):  # running out of memory is no fault of the file
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageProblem("TOO_MANY_PIXELS", f"over Pillow's own limit: {error}") from None
    except UnidentifiedImageError:
        samples = _tiff_samples(data) if name == "tiff" else None
        if samples is not None:
            raise unsupported(shown, f"{samples} are not read; convert it to PNG", samples) from None
        raise corrupt(shown, "Pillow cannot read its header") from None
    except Exception as error:  # noqa: BLE001 - decoders raise OSError, SyntaxError, ValueError, EOFError, warnings, ...
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, (EOFError, OSError)) and "truncated" in str(error).lower():
            raise truncated(shown, len(data), f"Pillow says {text}") from None
        raise corrupt(shown, f"Pillow says {text}") from None


def jpeg_warning(data: Content, pixels: int) -> str | None:
    """Return what libjpeg warns of in a JPEG, `SOUND` where it warns of nothing.

    It has so many `pixels`; they are not made but for one of 64, as warnings come of the compressed data.

    None where that is unknown: without simplejpeg, or where it does not read the file.
    """
    if not has_simplejpeg():
        return None
    with taking_turns(PIXELS, pixels):
        found = decode_jpeg(data, (8, 8), 8)
    return None if found is None else found[1]


@cache
def has_simplejpeg() -> bool:
    return find_spec("simplejpeg") is not None


def decode_jpeg(
    data: Content, size: tuple[int, int], scale: int, space: Literal["RGB", "GRAY", "CMYK"] = "RGB"
) -> tuple[npt.NDArray[np.uint8], str] | None:
    """Return the pixels of a JPEG as simplejpeg decodes it, and libjpeg's warning.

    They are those of a `size` (width, height) divided by `scale`. Only a picture with a warning is decoded twice.

    None where simplejpeg does not read it: it is damaged, or its components are sampled in a rare way.
    """
    import simplejpeg

    width, height = (-(-side // scale) for side in size)
    warning = SOUND
    for strict in (True, False):  # at the second look what libjpeg passes over, as in Pillow and TensorFlow
        try:
            values = simplejpeg.decode_jpeg(
                data,
                space,
                fastdct=False,
                fastupsample=False,
                min_height=height,
                min_width=width,
                min_factor=scale,
                strict=strict,
            )
        except ValueError as error:
            warning = printable(str(error).removeprefix("Corrupt JPEG data: "))
        else:
            return values, warning
    return None


def _check_decoder(name: str, shown: str) -> None:
    from PIL import features

    if name == HEIC and not _registers_heif():
        raise unsupported(shown, f"its decoder is not installed; {install_line('images')}")
    if name in ("avif", "webp", "jpeg2000") and not features.check({"jpeg2000": "jpg_2000"}.get(name, name)):
        raise unsupported(shown, "this build of Pillow has no decoder for it; install Pillow from its wheel")


@cache
def _registers_heif() -> bool:
    """Make HEIF known to Pillow, and return whether its decoder is there."""
    try:
        from pi_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def _tiff_samples(data: Content) -> str | None:
    """Return what the samples of a TIFF are, None if its first directory is not sound.

    TIFF 6.0, section 2: an entry is a tag, a type (3: SHORT), a count, and the value or where it is.
    """
    order = "<" if bytes(data[:2]) == b"II" else ">"
    try:
        (first,) = struct.unpack_from(f"{order}I", data, 4)
        (count,) = struct.unpack_from(f"{order}H", data, first)
        found = {}
        for at in range(first + 2, first + 2 + 12 * count, 12):
            tag, kind, values = struct.unpack_from(f"{order}HHI", data, at)
            if tag in (_TIFF_BITS, _TIFF_FORMAT) and kind == _TIFF_SHORT:
                place = at + 8 if values <= 2 else struct.unpack_from(f"{order}I", data, at + 8)[0]
                (found[tag],) = struct.unpack_from(f"{order}H", data, place)
    except struct.error:
        return None
    if _TIFF_BITS not in found:
        return None
    sample = {2: "signed integer", 3: "float"}.get(found.get(_TIFF_FORMAT, 1), "integer")
    return f"{sample} samples of {found[_TIFF_BITS]} bits"
