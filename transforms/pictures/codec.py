"""Decode and encode pictures and resize pixels: with simplejpeg and cykooz-resizer if installed, else with Pillow.

Both are libjpeg-turbo, and the same filter in integers: Lanczos with three lobes, whose support grows with the picture,
so that a smaller picture is antialiased. They differ by a level or two of some pixels. What wrote a dataset is in its
manifest, and all workers of a run use the same.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from .facts import ORIENTATION, UPRIGHT, Content, ImageFacts, unsupported
from .pillow_decode import decode_jpeg, opened

if TYPE_CHECKING:
    from PIL import Image


Pixels = npt.NDArray[Any]
"""Pixels of (height, width, channels), uint8 or uint16: 1 (gray), 2 (gray, alpha), 3 (RGB) or 4 (RGB, alpha)."""

_FAST: Final = ("simplejpeg", "cykooz-resizer", "pillow")
_SLOW: Final = ("pillow",)
_SCALES: Final = (8, 4, 2)
"""By how much the DCT makes a JPEG smaller while it is decoded; other scales are slower than none."""

_LARGE: Final = 48 << 20
"""Pixels with more bytes are resized in strips."""

_STRIP_BYTES: Final = 4 << 20

_MODES: Final = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True, slots=True)
class Codec:
    """Packages and their releases, the first of which reads and writes JPEG."""

    releases: tuple[tuple[str, str], ...]

    @classmethod
    @cache
    def installed(cls, names: tuple[str, ...] = _FAST) -> Codec:
        """Return what is installed of these packages, Pillow alone where one of them is not there."""
        try:
            return cls(tuple((name, version(name)) for name in names))
        except PackageNotFoundError:
            return cls.installed(_SLOW)

    @property
    def is_fast(self) -> bool:
        return len(self.releases) > 1

    def to_json(self) -> dict[str, str]:
        """Return the codec and its version, as a manifest states them.

        >>> Codec((("simplejpeg", "1.9.0"), ("pillow", "12.3.0"))).to_json()
        {'codec': 'simplejpeg, pillow', 'version': '1.9.0, 12.3.0'}
        """
        names, versions = zip(*self.releases, strict=True)
        return {"codec": ", ".join(names), "version": ", ".join(versions)}

    def check(self) -> None:
        """Check that it is installed here: another one would make other bytes than on the other machines."""
        here = Codec.installed(tuple(name for name, _ in self.releases))
        if here != self:
            ours, theirs = (_shown(one.releases) for one in (here, self))
            raise UsageError(
                f"a worker has {ours}, and the run was planned with {theirs} for its pictures; install the same "
                f"packages on all machines"
            )

    def decode_jpeg(
        self, data: Content, size: tuple[int, int], at_least: tuple[int, int], *, gray: bool
    ) -> tuple[Pixels, str | None]:
        """Return the pixels of a JPEG of a `size` (width, height), in gray or in RGB, and libjpeg's warning.

        They are fewer, by 1/2, 1/4 or 1/8, where that is still `at_least` so many in width and height. The warning is
        None where nobody reports one.
        """
        scale = _scale(size, at_least)
        found = decode_jpeg(data, size, scale, "GRAY" if gray else "RGB") if self.is_fast else None
        if found is None:
            return self._decode_slowly(data, size, scale, gray=gray), None
        return _pixels(found[0]), found[1]

    def _decode_slowly(self, data: Content, size: tuple[int, int], scale: int, *, gray: bool) -> Pixels:
        with opened(data, "jpeg") as image:
            mode = "L" if gray else "RGB"
            image.draft(mode, (max(1, size[0] // scale), max(1, size[1] // scale)))
            return converted(image, mode)

    def decode_cmyk(
        self, data: Content, size: tuple[int, int], at_least: tuple[int, int]
    ) -> tuple[Pixels, str | None] | None:
        """Return the pixels of a JPEG of inks in RGB, as `decode_jpeg` does; None where simplejpeg does not read it."""
        from PIL import Image

        found = decode_jpeg(data, size, _scale(size, at_least), "CMYK") if self.is_fast else None
        if found is None:
            return None
        inks = np.invert(found[0], out=found[0])  # Adobe's are inverted, and Pillow takes all for these
        return converted(Image.frombuffer("CMYK", inks.shape[1::-1], inks, "raw", "CMYK", 0, 1), "RGB"), found[1]

    def encode_jpeg(self, pixels: Pixels, quality: int) -> bytes:
        """Return the JPEG file of pixels of one or three channels: baseline, 4:2:0."""
        gray = pixels.shape[2] == 1
        if not self.is_fast:
            from PIL import Image

            file = io.BytesIO()
            image = Image.fromarray(pixels[..., 0] if gray else pixels)
            image.save(file, "JPEG", quality=quality, subsampling=-1 if gray else "4:2:0")
            return file.getvalue()
        import simplejpeg

        space, sampling = ("GRAY", "Gray") if gray else ("RGB", "420")
        pixels = np.ascontiguousarray(pixels)
        found: bytes = simplejpeg.encode_jpeg(pixels, quality, space, sampling, fastdct=False)
        return found

    def resize(self, pixels: Pixels, size: tuple[int, int]) -> Pixels:
        """Return pixels in another size (width, height); colours count by their alpha."""
        if (pixels.shape[1], pixels.shape[0]) == size:
            return pixels
        if not self.is_fast:
            return _resize_slowly(pixels, size)
        return (_resize_in_strips if pixels.nbytes > _LARGE and pixels.itemsize == 1 else _resize_fast)(pixels, size)


def _scale(size: tuple[int, int], at_least: tuple[int, int]) -> int:
    return next((one for one in _SCALES if all(s // a >= one for s, a in zip(size, at_least, strict=True))), 1)


def converted(image: Image.Image, mode: str) -> Pixels:
    """Return the pixels of a picture in a mode: rows of a large one are converted and copied some at a time."""
    width, height = image.size
    if width * height <= _LARGE // 4:
        return _pixels(np.asarray(image.convert(mode)))
    found = np.empty((height, width, len(mode)), np.uint8)
    step = max(1, _STRIP_BYTES // (4 * width))
    for first in range(0, height, step):
        rows = image.crop((0, first, width, min(first + step, height)))
        found[first : first + step] = _pixels(np.asarray(rows.convert(mode)))
    return found


def _shown(releases: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name} {release}" for name, release in releases)


def _pixels(values: npt.NDArray[Any]) -> Pixels:
    return values if values.ndim == 3 else values[..., None]


def _resize_slowly(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    from PIL import Image

    if pixels.dtype == np.uint16:
        image = Image.fromarray(pixels[..., 0].astype(np.float32)).resize(size, Image.Resampling.LANCZOS)
        return _pixels(np.clip(np.rint(np.asarray(image)), 0, 65535).astype(np.uint16))
    flat = pixels[..., 0] if pixels.shape[2] == 1 else pixels
    image = Image.fromarray(np.ascontiguousarray(flat), _MODES[pixels.shape[2]])
    return _pixels(np.asarray(image.resize(size, Image.Resampling.LANCZOS)))


def _resize_fast(
    pixels: Pixels, size: tuple[int, int], *, use_alpha: bool = True, multiply: bool = False, divide: bool = False
) -> Pixels:
    """Return pixels in another size; `multiply` and `divide` are the steps that `use_alpha` does before and after."""
    import cykooz_resizer as resizer

    wide = pixels.dtype == np.uint16
    channels = pixels.shape[2]
    kind = resizer.PixelType[f"U{16 if wide else 8}{f'x{channels}' if channels > 1 else ''}"]
    source = resizer.ImageData(pixels.shape[1], pixels.shape[0], kind, pixels.tobytes())
    target = resizer.ImageData(*size, kind)
    if multiply:
        resizer.AlphaMulDiv().multiply_alpha_inplace(source)
    _resizer(use_alpha)[0].resize(source, target, _resizer(use_alpha)[1])
    if divide:
        resizer.AlphaMulDiv().divide_alpha_inplace(target)
    values = np.frombuffer(target.get_buffer(), pixels.dtype)
    return _pixels(values.reshape(size[1], size[0], channels))


def _resize_in_strips(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Return what `_resize_fast` does, with copies of a few columns and rows: it resizes columns first."""
    height, width, channels = pixels.shape
    has_alpha = channels in (2, 4)
    is_taller = size[1] != height
    tall = np.empty((size[1], width, channels), np.uint8) if is_taller else pixels
    step = max(1, _STRIP_BYTES // (height * channels))
    for first in range(0, width if is_taller else 0, step):
        strip = pixels[:, first : first + step]
        there = (strip.shape[1], size[1])
        tall[:, first : first + step] = _resize_fast(strip, there, use_alpha=False, multiply=has_alpha)
    found = np.empty((size[1], size[0], channels), np.uint8)
    step = max(1, _STRIP_BYTES // (width * channels))
    for first in range(0, size[1], step):
        rows = tall[first : first + step]
        to = (size[0], len(rows))
        found[first : first + step] = _resize_fast(
            rows, to, use_alpha=False, multiply=has_alpha and not is_taller, divide=has_alpha
        )
    return found


@cache
def _resizer(use_alpha: bool) -> tuple[Any, Any]:  # noqa: FBT001 - the key of the cache
    """Return the resizer of this process, which keeps its memory, and the filter."""
    import cykooz_resizer as resizer

    convolution = resizer.ResizeAlg.convolution(resizer.FilterType.lanczos3)
    return resizer.Resizer(), resizer.ResizeOptions(resize_alg=convolution, use_alpha=use_alpha)


# Pixels of pictures: what is stored in a file, as an array, and an array as a file.
#
# stored                                        pixels
# 1-bit, gray                                   1 channel
# gray with alpha                               2
# 16-bit gray                                   1, of 16 bits
# palette                                       3, or 4 where it has transparency
# RGB, YCbCr, CMYK                              3
# RGB with alpha                                4
# floats, 32-bit integers, Lab                  UNSUPPORTED: no range of values is known to be black to white
#
# Only the first frame of an animation is read. Colour profiles are not applied, as readers apply none.


WHITE: Final = 255
_ROWS_AT_ONCE: Final = 256
_PNG_BITS: Final = 24
"""The byte of the header of a PNG that says how many bits a sample has."""

_DEEP: Final = 16
_TIFF_BITS: Final = 258
"""The tag of a TIFF that says it."""

_WIDE: Final = ("I;16", "I;16B", "I;16L", "I;16N")
_AS_THEY_ARE: Final = ("L", "LA", "RGB", "RGBA")
_NO_RANGE: Final = ("F", "I", "LAB")


def decode(
    data: Content, facts: ImageFacts, codec: Codec, at_least: tuple[int, int], *, gray: bool
) -> tuple[Pixels, str | None]:
    """Return the pixels of a picture, as they are stored, or fewer of a JPEG: `at_least` so many (width, height).

    And libjpeg's warning, None where nobody reports one. With `gray` those of a JPEG may be gray.
    """
    if facts.format == "jpeg" and facts.colorspace in ("L", "RGB"):
        gray = gray or facts.colorspace == "L"
        return codec.decode_jpeg(data, (facts.width, facts.height), at_least, gray=gray)
    if facts.format == "jpeg" and facts.colorspace == "CMYK":
        found = codec.decode_cmyk(data, (facts.width, facts.height), at_least)
        if found is not None:
            return found
    with opened(data, facts.format) as image:
        mode = image.mode
        if mode not in _NO_RANGE:
            return _values(image), None
    raise unsupported(facts.format.upper(), f"pixels of mode {mode} are not resized or encoded; make them 8 or 16 bits")


def _values(image: Image.Image) -> Pixels:
    if image.mode in _WIDE:
        return np.asarray(image).astype(np.uint16)[..., None]
    if image.has_transparency_data:
        mode = "LA" if image.mode in ("1", "L", "LA", "La") else "RGBA"
    else:
        mode = "L" if image.mode in ("1", "L") else "RGB"
    return converted(image, mode)


def has_deep_colors(data: Content, facts: ImageFacts) -> bool:
    """Return whether a picture has colours of 16 bits, which Pillow reads as 8."""
    if facts.colorspace == "I;16":
        return False
    if facts.format == "png":
        return data[_PNG_BITS] == _DEEP
    if facts.format != "tiff":
        return False
    with opened(data, "tiff") as image:
        bits: tuple[int, ...] = image.tag_v2.get(_TIFF_BITS, (8,))  # type: ignore[attr-defined]
    return max(bits) == _DEEP


def without_alpha(pixels: Pixels) -> Pixels:
    """Return pixels laid on white: `c` with alpha `a` is `(c a + 255 (255 - a)) / 255`, rounded."""
    if pixels.shape[2] not in (2, 4):
        return pixels
    found = np.empty((*pixels.shape[:2], pixels.shape[2] - 1), np.uint8)
    for first in range(0, len(pixels), _ROWS_AT_ONCE):
        rows = pixels[first : first + _ROWS_AT_ONCE].astype(np.uint32)
        colors, alpha = rows[..., :-1], rows[..., -1:]
        found[first : first + _ROWS_AT_ONCE] = (colors * alpha + WHITE * (WHITE - alpha) + WHITE // 2) // WHITE
    return found


def in_8_bits(pixels: Pixels) -> Pixels:
    """Return pixels of 8 bits: `v / 257`, rounded, so that black and white stay what they are."""
    if pixels.dtype == np.uint8:
        return pixels
    found = np.empty(pixels.shape, np.uint8)
    for first in range(0, len(pixels), _ROWS_AT_ONCE):
        found[first : first + _ROWS_AT_ONCE] = (pixels[first : first + _ROWS_AT_ONCE].astype(np.uint32) + 128) // 257
    return found


def in_rgb(pixels: Pixels) -> Pixels:
    """Return pixels of three channels, those of gray ones three times, and of four where they have alpha."""
    gray = pixels.shape[2] < 3
    return np.concatenate([pixels[..., :1]] * 3 + [pixels[..., 1:]], axis=2) if gray else pixels


def in_gray(pixels: Pixels) -> Pixels:
    """Return pixels of one channel: luma after ITU-R BT.601, as Pillow and JPEG have it; they have no alpha."""
    if pixels.shape[2] == 1:
        return pixels
    from PIL import Image

    found = np.empty((*pixels.shape[:2], 1), np.uint8)
    for first in range(0, len(pixels), _ROWS_AT_ONCE):
        rows = Image.fromarray(np.ascontiguousarray(pixels[first : first + _ROWS_AT_ONCE]))
        found[first : first + _ROWS_AT_ONCE] = np.asarray(rows.convert("L"))[..., None]
    return found


def encode(pixels: Pixels, name: str, quality: int, codec: Codec, orientation: int) -> bytes:
    """Return the file of pixels, in a format that has room for them; an orientation but 1 is stated in its EXIF."""
    if name == "jpeg":
        data = codec.encode_jpeg(pixels, quality)
        return data if orientation == UPRIGHT else with_orientation(data, orientation)
    from PIL import Image

    more: dict[str, Any] = {} if orientation == UPRIGHT else {"exif": exif_block(orientation)}
    more |= {"quality": quality} if name == "webp" else {}
    flat = np.ascontiguousarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    file = io.BytesIO()
    Image.fromarray(flat).save(file, name.upper(), **more)
    return file.getvalue()


def mode_of(pixels: Pixels) -> str:
    """Return Pillow's mode of pixels.

    >>> mode_of(np.zeros((1, 1, 3), np.uint8)), mode_of(np.zeros((1, 1, 1), np.uint16))
    ('RGB', 'I;16')
    """
    return "I;16" if pixels.dtype == np.uint16 else _AS_THEY_ARE[pixels.shape[2] - 1]


def exif_block(orientation: int) -> bytes:
    from PIL import Image

    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif.tobytes()


def with_orientation(jpeg: bytes, orientation: int) -> bytes:
    """Return a JPEG file, which begins with its JFIF segment, with the orientation behind that."""
    block = exif_block(orientation)
    at = 4 + int.from_bytes(jpeg[4:6], "big")
    return b"".join((jpeg[:at], b"\xff\xe1", (len(block) + 2).to_bytes(2, "big"), block, jpeg[at:]))
