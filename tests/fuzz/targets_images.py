"""Images: their structure, and their decoders."""

from __future__ import annotations

import io
import random
import zlib

from mutate import EXTREMES, mutate
from PIL import Image
from shardmill.transforms.pictures.facts import ImageFacts, ImageProblem
from shardmill.transforms.pictures.structure import ImageCheck
from targets import Target

_ALL = ("jpeg", "png", "gif", "webp", "bmp", "tiff", "avif", "jpeg2000")


def _draw(kind: str, mode: str = "RGB", **options: object) -> bytes:
    sink = io.BytesIO()
    picture = Image.effect_noise((24, 16), 50).convert(mode)
    picture.save(sink, kind, **options)
    return sink.getvalue()


def _frames(kind: str) -> bytes:
    sink = io.BytesIO()
    first, *others = [Image.new("RGB", (9, 7), (i * 60, 0, 0)) for i in range(3)]
    first.save(sink, kind, save_all=True, append_images=others)
    return sink.getvalue()


SEEDS = [
    _draw("JPEG"), _draw("JPEG", "L", progressive=True), _draw("JPEG", "CMYK"), _draw("PNG"), _draw("PNG", "P"),
    _draw("PNG", "RGBA"), _draw("GIF", "L"), _frames("GIF"), _draw("WEBP"), _draw("WEBP", lossless=True),
    _frames("WEBP"),
    _draw("BMP"), _draw("BMP", "P"), _draw("TIFF"),
]  # fmt: skip
TOKENS = [
    b"\xff\xd8\xff",
    b"\xff\xd9",
    b"\xff\xda",
    b"\xff\xc0",
    b"IDAT",
    b"IEND",
    b"acTL",
    b"\x3b",
    b"\x21\xff",
    b"VP8X",
    b"ANMF",
    b"BM",
    b"\0\0\0\x18ftypavif",
    b"II*\0",
    b"IHDR",
]


def mend_png(rng: random.Random, data: bytearray) -> None:
    """Set the right CRCs of chunks, so that only their content is wrong."""
    at = 8
    if rng.random() < 0.2 and len(data) > 24:
        data[16:20] = (rng.choice(EXTREMES) & 0xFFFFFFFF).to_bytes(4, "big")
    while at + 12 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        if end + 4 > len(data):
            return
        data[end : end + 4] = zlib.crc32(data[at + 4 : end]).to_bytes(4, "big")
        at = end + 4


def make(rng: random.Random) -> bytes:
    data = mutate(rng, SEEDS, TOKENS)
    if data[:4] == b"\x89PNG" and rng.random() < 0.7:
        mend_png(rng, data)
    return bytes(data)


def _check(data: bytes, check: ImageCheck) -> str:
    outcomes = []
    for content in (data, memoryview(data)):
        try:
            facts = check.check(content)
        except ImageProblem as problem:
            assert len(str(problem)) < 400
            problem.to_cell_error()
            outcomes.append(problem.code)
        else:
            assert isinstance(facts, ImageFacts)
            assert 0 < facts.width * facts.height <= check.pixels_limit
            outcomes.append(facts.format)
    assert outcomes[0] == outcomes[1]
    return outcomes[0]


def check_image(data: bytes) -> str:
    _check(data, ImageCheck("header"))
    return _check(data, ImageCheck("structure"))


def check_decode(data: bytes) -> str:
    """Decode far fewer pixels than the product may: 40 million of an animated WebP take longer than an input may."""
    return _check(data, ImageCheck("decode", _ALL, pixels_limit=8_000_000))


TARGETS = {"image": Target(make, check_image), "image_decode": Target(make, check_decode)}
