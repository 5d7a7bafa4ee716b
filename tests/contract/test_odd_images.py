"""What a user of the command line meets with images that are sound, and that not every reader takes."""

from __future__ import annotations

import io
import shutil
import struct
from typing import Any

import numpy as np
import pytest
from PIL import Image


def jpeg() -> bytes:
    noise = np.random.default_rng(1).integers(0, 256, (20, 32, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "JPEG")
    return file.getvalue()


JPEG = jpeg()
JUNK = {
    "junk": JPEG[:20] + b"\0\1\2" + JPEG[20:],
    "ff00": JPEG[:20] + b"\xff\x00" + JPEG[20:],
    "app14": JPEG[:2] + b"\xff\xee\x00\x04Adobe" + JPEG[2:],
}


@pytest.mark.parametrize("case", JUNK)
def test_junk_before_a_marker_is_decided_by_decoding_where_that_is_asked_for(desk: Any, case: str) -> None:
    desk.put({"pics/1.jpg": JPEG, "pics/2.jpg": JUNK[case]})
    screen = desk.convert("pics")
    told = "(decoders may pass over that: --set input.check=decode); copy it again"
    assert (screen.code, told in screen.err) == (4, True)
    shutil.rmtree(desk.root / "out")
    assert desk.convert("pics", "--set", "input.check=decode").code == 0
    rows = desk.records()
    assert [row["image/encoded"] for row in rows] == [JPEG, JUNK[case]]
    assert {(row["image/width"], row["image/height"], row["image/colorspace"]) for row in rows} == {(32, 20, "RGB")}


@pytest.mark.parametrize("data", [JUNK["junk"][:-2], JUNK["junk"][: len(JPEG) // 2]])
def test_junk_and_a_missing_end_stay_refused(desk: Any, data: bytes) -> None:
    desk.put({"pics/1.jpg": JPEG, "pics/2.jpg": data})
    assert desk.convert("pics", "--set", "input.check=decode").code == 4


def tiff(bits: int, sample_format: int, data: bytes) -> bytes:
    """Return a grey TIFF of 4 x 2 pixels."""
    tags = {256: 4, 257: 2, 258: bits, 259: 1, 262: 1, 273: 134, 277: 1, 278: 2, 279: len(data), 339: sample_format}
    entries = b"".join(struct.pack("<HHIHH", tag, 3, 1, value, 0) for tag, value in tags.items())
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + data


SAID = {
    "float.tif": (
        tiff(64, 3, np.arange(8.0).tobytes()),
        "TIFF: float samples of 64 bits are not read; convert it to PNG",
    ),
    "p.ppm": (b"P6\n4 2\n255\n" + bytes(24), "pnm: the format is not read; convert it to JPEG or PNG"),
    "p.pgm": (b"P5 # drawn\n4 2 255\n" + bytes(8), "pnm: the format is not read; convert it to JPEG or PNG"),
    "p.psd": (b"8BPS\0\1" + bytes(20), "psd: the format is not read; convert it to JPEG or PNG"),
}


@pytest.mark.parametrize("name", SAID)
def test_a_format_that_is_not_read_is_named_with_what_to_do(desk: Any, name: str) -> None:
    data, said = SAID[name]
    desk.put({"pics/1.jpg": JPEG, f"pics/{name}": data})
    screen = desk.convert("pics", "--set", "input.formats=[jpeg, tiff]")
    assert (screen.code, f"UNSUPPORTED: {said}" in screen.err) == (4, True)


def test_floats_of_32_bits_are_read(desk: Any) -> None:
    desk.put({"pics/1.tif": tiff(32, 3, np.arange(8, dtype=np.float32).tobytes())})
    assert desk.convert("pics", "--set", "input.formats=[tiff]", "--set", "input.format=images").code == 0
