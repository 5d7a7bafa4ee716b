"""What decodes and encodes JPEG and resizes pixels: simplejpeg and cykooz-resizer where they are installed, or Pillow.

Both are libjpeg-turbo, and the same filter in integers: Lanczos with three lobes, whose support grows with the picture,
so that a smaller picture is antialiased. They differ by a level or two of some pixels. What wrote a dataset is in its
manifest, and all workers of a run use the same.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import UsageError
from ..facts import Content
from ..pillow_decode import decode_jpeg, opened

Pixels = npt.NDArray[Any]
"""Pixels of (height, width, channels), uint8 or uint16: 1 (gray), 2 (gray, alpha), 3 (RGB) or 4 (RGB, alpha)."""

_FAST: Final = ("simplejpeg", "cykooz-resizer", "pillow")
_SLOW: Final = ("pillow",)
_SCALES: Final = (8, 4, 2)
"""By how much the DCT makes a JPEG smaller while it is decoded; other scales are slower than none."""

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
        """Whether it is not Pillow alone."""
        return len(self.releases) > 1

    def to_json(self) -> dict[str, str]:
        """Return the codec and its version, as a manifest states them.

        >>> Codec((("simplejpeg", "1.9.0"), ("pillow", "12.3.0"))).to_json()
        {'codec': 'simplejpeg, pillow', 'version': '1.9.0, 12.3.0'}
        """
        names, versions = zip(*self.releases, strict=True)
        return {"codec": ", ".join(names), "version": ", ".join(versions)}

    def check(self) -> None:
        """Check that it is installed here.

        Raises:
            UsageError: another one is, so that pictures would become other bytes than on the other machines.
        """
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

        Raises:
            ImageProblem: the file is damaged.
        """
        scale = next((one for one in _SCALES if all(s // a >= one for s, a in zip(size, at_least, strict=True))), 1)
        found = decode_jpeg(data, size, scale, "GRAY" if gray else "RGB") if self.is_fast else None
        if found is None:
            return self._decode_slowly(data, size, scale, gray=gray), None
        return _pixels(found[0]), found[1]

    def _decode_slowly(self, data: Content, size: tuple[int, int], scale: int, *, gray: bool) -> Pixels:
        with opened(data, "jpeg") as image:
            mode = "L" if gray else "RGB"
            image.draft(mode, (max(1, size[0] // scale), max(1, size[1] // scale)))
            return _pixels(np.asarray(image.convert(mode)))

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
        return _resize_fast(pixels, size) if self.is_fast else _resize_slowly(pixels, size)


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


def _resize_fast(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    import cykooz_resizer as resizer

    wide = pixels.dtype == np.uint16
    channels = pixels.shape[2]
    kind = resizer.PixelType[f"U{16 if wide else 8}{f'x{channels}' if channels > 1 else ''}"]
    source = resizer.ImageData(pixels.shape[1], pixels.shape[0], kind, pixels.tobytes())
    target = resizer.ImageData(*size, kind)
    _resizer()[0].resize(source, target, _resizer()[1])
    values = np.frombuffer(target.get_buffer(), pixels.dtype)
    return _pixels(values.reshape(size[1], size[0], channels))


@cache
def _resizer() -> tuple[Any, Any]:
    """Return the resizer of this process, which keeps its memory, and the filter."""
    import cykooz_resizer as resizer

    convolution = resizer.ResizeAlg.convolution(resizer.FilterType.lanczos3)
    return resizer.Resizer(), resizer.ResizeOptions(resize_alg=convolution)
