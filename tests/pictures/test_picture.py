"""The table of docs/pictures.md, "What becomes of what": a test for each row, with both codecs where they matter."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms
from shardmill.transforms.pictures.codec import Codec
from shardmill.transforms.pictures.facts import ImageProblem
from shardmill.transforms.pictures.options import Preprocess, Resize
from shardmill.transforms.pictures.pillow_decode import PILLOW_NAMES
from shardmill.transforms.pictures.preprocess import FEWER_BITS, FIRST_FRAME, ON_WHITE, PictureMaker, Ready
from shardmill.transforms.pictures.structure import ImageCheck

from .pictures import HEIC_64_48, file_of, likeness, opened, picture, pixels_of

ORIENTATION = 0x0112
SMALL = Resize(32, 32)
CHECK = ImageCheck("structure", tuple(PILLOW_NAMES))


@pytest.fixture(params=["fast", "pillow"])
def codec(request: pytest.FixtureRequest) -> Codec:
    return Codec.installed() if request.param == "fast" else Codec.installed(("pillow",))


def made(data: bytes, codec: Codec | None = None, **options: Any) -> Ready:
    """Return a picture made ready; what is stated of it is true of its bytes."""
    ready = PictureMaker(Preprocess(**options), codec or Codec.installed()).make(data, CHECK.check(data))
    if ready.data is not None:
        assert CHECK.check(ready.data) == ready.facts
    return ready


def file_made(data: bytes, codec: Codec | None = None, **options: Any) -> bytes:
    found = made(data, codec, **options).data
    assert found is not None
    return found


def with_exif(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif


@pytest.mark.parametrize(
    ("image", "name", "options"),
    [
        (picture(), "JPEG", {"resize": Resize(80, 80)}),
        (picture(), "JPEG", {"resize": Resize(300, 300), "color": "rgb", "format": "jpeg", "orientation": "apply"}),
        (picture(120, 120), "PNG", {"resize": Resize(120, 120, "border"), "color": "rgb"}),
        (picture(mode="L"), "PNG", {"color": "gray", "format": "png"}),
        (picture(mode="CMYK"), "JPEG", {"format": "jpeg"}),
        (picture(), "GIF", {"resize": Resize(80, 80)}),
        (picture(), "TIFF", {"resize": Resize(80, 80)}),
    ],
)
def test_a_picture_that_need_not_change_keeps_its_bytes(image: Image.Image, name: str, options: dict[str, Any]) -> None:
    ready = made(file_of(image, name), **options)
    assert ready.data is None
    assert (ready.facts.width, ready.facts.height) == image.size


def test_alpha_is_laid_on_white_in_jpeg_and_counted(codec: Codec) -> None:
    image = picture(mode="RGBA")
    image.putalpha(0)
    ready = made(file_of(image, "PNG"), codec, format="jpeg")
    assert ready.notes == (ON_WHITE,)
    assert np.asarray(opened(ready.data or b"")).min() >= 253


def test_alpha_that_hides_nothing_is_taken_off_without_a_note() -> None:
    ready = made(file_of(picture(mode="RGBA"), "PNG"), format="jpeg")
    assert ready.notes == ()
    assert ready.facts.colorspace == "RGB"


def test_alpha_stays_in_png_and_webp(codec: Codec) -> None:
    image = picture(mode="RGBA")
    image.putalpha(Image.fromarray(np.where(np.arange(120) < 60, 255, 0)[None].repeat(80, 0).astype(np.uint8)))
    for name in ("png", "webp"):
        found = opened(file_made(file_of(image, "PNG"), codec, format=name, resize=SMALL))
        assert found.mode == "RGBA"
        assert found.getpixel((2, 2))[3] == 255
        assert found.getpixel((45, 2))[3] == 0


def test_a_pixel_without_alpha_gives_none_of_its_colour_to_its_neighbours(codec: Codec) -> None:
    pixels = np.zeros((64, 64, 4), np.uint8)
    pixels[:, :32] = (0, 255, 0, 255)
    pixels[:, 32:] = (255, 0, 0, 0)
    found = np.asarray(opened(file_made(file_of(Image.fromarray(pixels), "PNG"), codec, resize=Resize(16, 16))))
    assert found[..., 0][found[..., 3] > 8].max() <= 2


@pytest.mark.parametrize("color", ["rgb", "gray"])
def test_alpha_is_laid_on_white_where_colours_are_asked_for(color: str) -> None:
    image = picture(mode="LA")
    image.putalpha(0)
    ready = made(file_of(image, "PNG"), color=color)
    assert ready.notes == (ON_WHITE,)
    assert ready.facts.channels == (3 if color == "rgb" else 1)
    assert np.asarray(opened(ready.data or b"")).min() == 255


def test_a_palette_becomes_its_colours_and_stays_where_nothing_changes() -> None:
    data = file_of(picture().quantize(32), "PNG")
    assert made(data, format="png").data is None
    found = opened(file_made(data, resize=SMALL))
    assert found.mode == "RGB"
    assert likeness(np.asarray(found), np.asarray(picture().resize(found.size))) > 0.8


def test_a_palette_with_transparency_becomes_colours_with_alpha() -> None:
    image = picture().quantize(8)
    found = opened(file_made(file_of(image, "PNG", transparency=image.getpixel((0, 0))), resize=SMALL))
    assert found.mode == "RGBA"
    assert found.getpixel((0, 0))[3] == 0  # type: ignore[index]


def test_cmyk_becomes_rgb(codec: Codec) -> None:
    found = opened(file_made(file_of(picture(mode="CMYK"), "JPEG", quality=95), codec, resize=Resize(40, 40)))
    assert (found.format, found.mode) == ("JPEG", "RGB")
    assert likeness(np.asarray(found), np.asarray(picture().resize(found.size))) > 0.9


def test_gray_of_16_bits_stays_so_in_png(codec: Codec) -> None:
    pixels = np.tile(np.linspace(0, 65535, 120).astype(np.uint16), (80, 1))
    ready = made(file_of(Image.fromarray(pixels), "PNG"), codec, resize=SMALL)
    assert (ready.facts.colorspace, ready.notes) == ("I;16", ())
    assert np.asarray(opened(ready.data or b"")).max() > 64000


@pytest.mark.parametrize("options", [{"format": "jpeg"}, {"color": "rgb"}, {"format": "webp"}])
def test_gray_of_16_bits_gets_8_where_there_is_no_room_for_more_and_is_counted(options: dict[str, Any]) -> None:
    pixels = np.tile(np.array([0, 257, 32768, 65535], np.uint16).repeat(16), (64, 1))
    ready = made(file_of(Image.fromarray(pixels), "PNG"), **options)
    assert ready.notes == (FEWER_BITS,)
    found = np.asarray(opened(ready.data or b"").convert("L")).astype(int)
    assert np.abs(found[32, [4, 24, 40, 60]] - [0, 1, 128, 255]).max() <= 3


def test_colours_of_16_bits_become_8_and_are_counted() -> None:
    rows = b"".join(b"\0" + bytes(range(48)) for _ in range(8))  # 8 pixels of 6 bytes
    ready = made(_png(8, 8, bits=16, kind=2, data=rows), resize=Resize(4, 4))
    assert ready.notes == (FEWER_BITS,)
    assert ready.facts.colorspace == "RGB"


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_the_first_frame_is_kept_and_counted(name: str) -> None:
    other = Image.fromarray(255 - pixels_of(120, 80))
    data = file_of(picture(), name, save_all=True, append_images=[other], duration=100)
    ready = made(data, resize=Resize(40, 40))
    assert ready.notes == (FIRST_FRAME,)
    assert not ready.facts.animated
    assert likeness(np.asarray(opened(ready.data or b"").convert("RGB")), np.asarray(picture().resize((60, 40)))) > 0.8


def test_a_profile_and_other_metadata_are_left_out_and_pixels_are_what_readers_see(codec: Codec) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    plain, rich = file_of(picture(), "JPEG"), file_of(picture(), "JPEG", icc_profile=profile, comment=b"by me")
    assert file_made(rich, codec, resize=SMALL) == file_made(plain, codec, resize=SMALL)


def test_alpha_that_hides_nothing_is_left_out_of_webp() -> None:
    ready = made(file_of(picture(mode="RGBA"), "PNG"), format="webp")
    assert ready.facts.colorspace == "RGB"


def test_colours_of_16_bits_in_a_tiff_are_counted_too() -> None:
    assert made(_tiff_of_16_bits(8, 4), resize=Resize(2, 2)).notes == (FEWER_BITS,)


@pytest.mark.parametrize("name", ["jpeg", "png"])
def test_a_damaged_exif_block_damages_no_picture(name: str, codec: Codec) -> None:
    data = file_of(picture(), name.upper(), exif=b"Exif\0\0II*\0\x08\0\0\0\x09\0")
    assert opened(file_made(data, codec, resize=SMALL)).size == (48, 32)


def test_one_bit_becomes_gray() -> None:
    found = opened(file_made(file_of(picture(mode="1"), "PNG"), resize=SMALL))
    assert found.mode == "L"
    assert len(np.unique(np.asarray(found))) > 2


@pytest.mark.parametrize("orientation", [3, 6])
@pytest.mark.parametrize("name", ["jpeg", "png", "webp"])
def test_a_kept_orientation_is_stated_by_the_new_file(name: str, orientation: int, codec: Codec) -> None:
    data = file_of(picture(), name.upper(), exif=with_exif(orientation))
    found = opened(file_made(data, codec, resize=SMALL))
    assert found.size == (48, 32)
    assert found.getexif()[ORIENTATION] == orientation


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("name", ["jpeg", "png", "webp", "tiff"])
def test_an_orientation_is_applied_and_gone(name: str, orientation: int, codec: Codec) -> None:
    from PIL import ImageOps

    data = file_of(picture(), name.upper(), exif=with_exif(orientation))
    options = {"resize": SMALL, "format": "png"}
    found = opened(file_made(data, codec, orientation="apply", **options))
    expected = ImageOps.exif_transpose(opened(data)).convert("RGB")
    assert found.getexif().get(ORIENTATION) is None
    assert found.size == ((32, 48) if orientation > 4 else (48, 32))
    assert likeness(np.asarray(found), np.asarray(expected.resize(found.size, Image.Resampling.LANCZOS))) > 0.97


@pytest.mark.parametrize("block", [b"", b"II*\0\xff\xff\xff\xff", b"XX*\0\0\0\0\x08", b"MM\0*\0\0\0\x08\0\x09\x01\x12"])
def test_an_exif_block_that_cannot_be_read_states_no_orientation(block: bytes) -> None:
    data = file_of(picture(), "JPEG", exif=b"Exif\0\0" + block)
    assert made(data, orientation="apply").turn == 1


@pytest.mark.parametrize(
    ("name", "pillow", "kept"),
    [("gif", "GIF", "png"), ("bmp", "BMP", "png"), ("tiff", "TIFF", "png"), ("avif", "AVIF", "jpeg"),
     ("jpeg2000", "JPEG2000", "jpeg"), ("webp", "WEBP", "webp")],
)  # fmt: skip
def test_a_picture_of_another_format_is_brought_to_jpeg_or_png(name: str, pillow: str, kept: str) -> None:
    data = file_of(picture(), pillow)
    assert made(data, resize=SMALL).facts.format == kept
    for wanted in ("jpeg", "png"):
        found = opened(file_made(data, format=wanted))
        assert found.format == wanted.upper()
        assert likeness(np.asarray(found.convert("RGB")), np.asarray(picture())) > 0.8, name


def test_heic_is_brought_to_jpeg() -> None:
    found = np.asarray(opened(file_made(HEIC_64_48, format="jpeg"))).astype(int)
    assert found.shape == (48, 64, 3)
    assert np.abs(found[24, 8:56, 0] - np.arange(8, 56) * 4).mean() < 12  # red by column
    assert np.abs(found[8:40, 32, 1] - np.arange(8, 40) * 5).mean() < 12  # green by row


def test_floats_are_refused_with_what_to_do() -> None:
    data = file_of(Image.fromarray(np.ones((9, 9), np.float32)), "TIFF")
    with pytest.raises(ImageProblem, match=r"^TIFF: pixels of mode F are not resized or encoded; make them 8"):
        made(data, format="png")


def test_a_jpeg_that_is_cut_within_its_data_is_what_libjpeg_makes_of_it(codec: Codec) -> None:
    data = bytearray(file_of(picture(400, 300), "JPEG"))
    data[len(data) // 2 : len(data) // 2 + 40] = b"\xff\xd0" * 20
    assert opened(file_made(bytes(data), codec, resize=SMALL)).size == (43, 32)


def test_a_border_is_white_and_around_the_picture(codec: Codec) -> None:
    found = np.asarray(opened(file_made(file_of(picture(), "PNG"), codec, resize=Resize(60, 60, "border"))))
    assert found.shape == (60, 60, 3)
    assert (found[:10] == 255).all()
    assert (found[50:] == 255).all()
    assert (found[10:50] != 255).any(axis=(1, 2)).all()


def _png(width: int, height: int, *, bits: int, kind: int, data: bytes) -> bytes:
    """Return a PNG of these rows, as Pillow writes no colours of 16 bits."""
    import struct
    import zlib

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    file = io.BytesIO(b"\x89PNG\r\n\x1a\n")
    file.seek(0, io.SEEK_END)
    file.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)))
    file.write(chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))
    return file.getvalue()


def _tiff_of_16_bits(width: int, height: int) -> bytes:
    """Return an RGB TIFF of 16 bits, as Pillow writes none (TIFF 6.0, section 6)."""
    import struct

    pixels = bytes(width * height * 6)
    shorts = {256: width, 257: height, 259: 1, 262: 2, 277: 3, 278: height}
    after = 8 + 2 + 12 * 9 + 4  # the header, the directory, and its end
    entries = {tag: struct.pack("<HHIHH", tag, 3, 1, value, 0) for tag, value in shorts.items()}
    entries[258] = struct.pack("<HHII", 258, 3, 3, after)
    entries[273] = struct.pack("<HHII", 273, 4, 1, after + 6)
    entries[279] = struct.pack("<HHII", 279, 4, 1, len(pixels))
    table = b"".join(entry for _, entry in sorted(entries.items()))
    head = b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries)) + table + bytes(4)
    return head + struct.pack("<HHH", 16, 16, 16) + pixels
