from __future__ import annotations

import io
import struct
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from shardmill.transforms.errors import UsageError
from shardmill.transforms.format.batches.rejects import CODES
from shardmill.transforms.pictures.facts import ImageFacts, ImageProblem
from shardmill.transforms.pictures.structure import DEFAULT_FORMATS, ImageCheck, tell_image_format

from ..tiers import examples

STRUCTURE = ImageCheck("structure")
DECODE = ImageCheck("decode")


def picture(mode: str, width: int = 23, height: int = 17) -> Image.Image:
    noise = np.random.default_rng(7).integers(0, 256, (height, width, 4), dtype=np.uint8)
    return Image.fromarray(noise, "RGBA").convert("L" if mode == "I;16" else mode).convert(mode)


def save(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    depth: int, colour: int, raw: bytes, *more: bytes, width: int = 4, height: int = 2, interlace: int = 0
) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    body = chunk(b"IDAT", zlib.compress(raw))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(more) + body + chunk(b"IEND", b"")


def problem(data: bytes, check: ImageCheck = STRUCTURE) -> ImageProblem:
    with pytest.raises(ImageProblem) as caught:
        check.check(data)
    assert caught.value.code in CODES
    return caught.value


def outcome_of(data: bytes, check: ImageCheck) -> ImageFacts | str:
    try:
        return check.check(data)
    except ImageProblem as error:
        return error.code


def exif(orientation: int) -> Image.Exif:
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags


def thumbnailed() -> bytes:
    """A JPEG whose APP1 segment holds a whole JPEG of its own, end marker and all."""
    data = save(picture("RGB"), "JPEG")
    inner = save(picture("RGB", 8, 8), "JPEG")
    return data[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(inner)) + inner + data[2:]


def bmp_with_masks(*masks: int) -> bytes:
    info = struct.pack("<IiiHHIIiiII", 56, 3, 2, 1, 32, 3, 24, 0, 0, 0, 0) + struct.pack("<4I", *masks)
    return b"BM" + struct.pack("<III", 0, 0, 14 + len(info)) + info + bytes(24)


JPEGS = {
    "rgb": save(picture("RGB"), "JPEG"),
    "grey": save(picture("L"), "JPEG"),
    "cmyk": save(picture("CMYK"), "JPEG"),
    "progressive": save(picture("RGB", 40, 40), "JPEG", progressive=True),
    "restarts": save(picture("RGB", 40, 40), "JPEG", restart_marker_blocks=1),
    "exif": save(picture("RGB"), "JPEG", exif=exif(6)),
    "icc": save(picture("RGB"), "JPEG", icc_profile=b"\xff\xd9" * 200),
    "comment": save(picture("RGB"), "JPEG", comment=b"\xff\xd9 not the end"),
    "thumbnail": thumbnailed(),
    "fill": save(picture("RGB"), "JPEG").replace(b"\xff\xdb", b"\xff\xff\xff\xdb"),
    "subsampled": save(picture("RGB"), "JPEG", subsampling=2, optimize=True),
}
PNGS = {mode: save(picture(mode), "PNG") for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")} | {
    "transparent": save(picture("P"), "PNG", transparency=3),
    "grey2": png(2, 0, b"\0\x1b" * 2),
    "grey4": png(4, 0, b"\0\x12\x34" * 2),
    "palette1": png(1, 3, b"\0\xa0" * 2, chunk(b"PLTE", b"\0\0\0\xff\xff\xff")),
    "grey16": png(16, 0, b"\0" + bytes(8) + b"\0" + bytes(8)),
    "grey alpha 16": png(16, 4, (b"\0" + bytes(16)) * 2),
    "rgb16": png(16, 2, (b"\0" + bytes(24)) * 2),
    "rgba16": png(16, 6, (b"\0" + bytes(32)) * 2),
    "interlaced": png(8, 0, b"\0\1" * 1 + b"\0\1" * 1 + b"\0\1\2" + b"\0\1\2\3\4", interlace=1),
    "texts": save(picture("RGB"), "PNG", icc_profile=b"x" * 99, exif=exif(3), dpi=(72, 72)),
}
GIFS = {
    "palette": save(picture("P"), "GIF"),
    "grey": save(picture("L"), "GIF"),
    "interlaced": save(picture("P", 50, 50), "GIF", interlace=1),
    "comment": save(picture("P"), "GIF", comment=b"; , !"),
    "transparent": save(picture("P"), "GIF", transparency=1),
}
WEBPS = {
    "lossy": save(picture("RGB"), "WEBP"),
    "lossy alpha": save(picture("RGBA"), "WEBP"),
    "lossless": save(picture("RGB"), "WEBP", lossless=True),
    "lossless alpha": save(picture("RGBA"), "WEBP", lossless=True),
    "exif": save(picture("RGB"), "WEBP", exif=exif(6), icc_profile=b"profile"),
    "odd": save(picture("RGB"), "WEBP", exif=exif(6), xmp=b"odd"),
}
BMPS = {mode: save(picture(mode), "BMP") for mode in ("L", "P", "RGB", "RGBA")}
BMPS["top down"] = BMPS["RGB"][:22] + struct.pack("<i", -17) + BMPS["RGB"][26:]
BMPS["core"] = b"BM" + struct.pack("<IIIIHHHH", 0, 0, 26, 12, 3, 2, 1, 24) + bytes(24)
BMPS["core palette"] = (
    b"BM" + struct.pack("<IIIIHHHH", 0, 0, 26 + 768, 12, 3, 2, 1, 8) + bytes(range(256)) * 3 + bytes(8)
)
BMPS["rgb32"] = b"BM" + struct.pack("<IIIIiiHHIIiiII", 0, 0, 54, 40, 3, 2, 1, 32, 0, 0, 0, 0, 0, 0) + bytes(24)
BMPS["masks"] = bmp_with_masks(0xFF0000, 0xFF00, 0xFF, 0)
BMPS["masks alpha"] = bmp_with_masks(0xFF0000, 0xFF00, 0xFF, 0xFF000000)
WHOLE = {
    f"{kind} {name}": data
    for kind, group in (("jpeg", JPEGS), ("png", PNGS), ("gif", GIFS), ("webp", WEBPS), ("bmp", BMPS))
    for name, data in group.items()
}


@pytest.mark.parametrize("name", WHOLE)
def test_the_header_says_what_pillow_says(name: str) -> None:
    with Image.open(io.BytesIO(WHOLE[name])) as image:
        expected = (*image.size, len(image.getbands()), image.mode)
        image.load()
    for level in ("header", "structure", "decode"):
        facts = ImageCheck(level).check(WHOLE[name])  # type: ignore[arg-type]
        assert (facts.width, facts.height, facts.channels, facts.colorspace) == expected
        assert facts.format == name.split()[0]
        assert not facts.animated
        among_others = memoryview(bytearray(b"x" + WHOLE[name]))[1:]
        assert ImageCheck(level).check(among_others) == facts  # type: ignore[arg-type]


MODES = {
    "JPEG": ("L", "RGB", "CMYK"),
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "GIF": ("1", "L", "P", "RGB"),
    "WEBP": ("RGB", "RGBA"),
    "BMP": ("L", "P", "RGB", "RGBA"),
}
KINDS = st.sampled_from([(kind, mode) for kind, modes in MODES.items() for mode in modes])


@settings(max_examples=examples(150), deadline=None)
@given(KINDS, st.integers(1, 70), st.integers(1, 70))
def test_the_header_of_any_generated_image_is_pillows(kind: tuple[str, str], width: int, height: int) -> None:
    data = save(picture(kind[1], width, height), kind[0])
    with Image.open(io.BytesIO(data)) as image:
        assert STRUCTURE.check(data) == (
            kind[0].lower(),
            width,
            height,
            len(image.getbands()),
            image.mode,
            False,
            None,
            1,
        )


@pytest.mark.parametrize("name", [n for n in WHOLE if n.split()[0] != "jpeg" or "thumbnail" not in n])
def test_a_file_cut_at_any_byte_is_rejected(name: str) -> None:
    data = WHOLE[name]
    for end in range(len(data)):
        code = problem(data[:end]).code
        assert code in ({"TRUNCATED"} if end > 32 else {"TRUNCATED", "NOT_AN_IMAGE"}), end


def test_a_cut_jpeg_is_rejected_though_its_thumbnail_is_whole() -> None:
    data = JPEGS["thumbnail"]
    for end in range(100, len(data)):
        assert problem(data[:end]).code == "TRUNCATED"


@pytest.mark.parametrize("name", ["rgb", "progressive", "restarts"])
def test_what_follows_the_end_of_a_jpeg_is_allowed(name: str) -> None:
    assert STRUCTURE.check(JPEGS[name] + b"SEFT trailer") == STRUCTURE.check(JPEGS[name])


def test_what_follows_the_end_of_a_png_and_of_a_gif_is_allowed() -> None:
    assert STRUCTURE.check(PNGS["RGB"] + b"\n") == STRUCTURE.check(PNGS["RGB"])
    assert STRUCTURE.check(GIFS["palette"] + b"\n") == STRUCTURE.check(GIFS["palette"])


@pytest.mark.parametrize("name", ["RGB", "palette1", "grey16"])
def test_any_flipped_bit_of_a_critical_png_chunk_is_seen(name: str) -> None:
    data = PNGS[name]
    for position in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << position % 8
        assert problem(bytes(flipped)).code in {"CORRUPT", "TRUNCATED", "NOT_AN_IMAGE"}, position


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(sorted(WHOLE)), st.data())
def test_damage_anywhere_gives_facts_or_a_reject_and_never_another_error(name: str, draw: st.DataObject) -> None:
    data = bytearray(WHOLE[name])
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    outcome = outcome_of(bytes(data), STRUCTURE)
    assert outcome in CODES or (isinstance(outcome, ImageFacts) and 0 < outcome.width * outcome.height <= 50_000_000)


SIGNATURES = (
    b"\xff\xd8\xff",
    b"\x89PNG\r\n\x1a\n",
    b"GIF89a",
    b"RIFF\1\0\0\0WEBP",
    b"BM",
    b"II*\0",
    b"\0\0\0\x18ftyp",
    b"",
)


@given(st.binary(max_size=80), st.sampled_from(SIGNATURES))
def test_random_bytes_behind_any_signature_never_give_another_error(tail: bytes, signature: bytes) -> None:
    for level in ("header", "structure"):
        outcome = outcome_of(signature + tail, ImageCheck(level))  # type: ignore[arg-type]
        assert isinstance(outcome, ImageFacts) or outcome in CODES


def test_damaged_transparency_is_seen_and_a_damaged_comment_is_not() -> None:
    data = bytearray(PNGS["transparent"])
    data[data.index(b"tRNS") + 4] ^= 1
    assert "the CRC of its chunk tRNS" in str(problem(bytes(data)))
    texts = bytearray(PNGS["texts"])
    texts[texts.index(b"eXIf") + 6] ^= 1
    assert STRUCTURE.check(bytes(texts)) == STRUCTURE.check(PNGS["RGB"])


def test_a_png_without_data_or_palette_is_corrupt() -> None:
    start, end = b"\x89PNG\r\n\x1a\n", chunk(b"IEND", b"")
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    assert str(problem(start + header + end)) == (
        "the PNG is damaged: it has no picture data (IDAT); copy it again, or leave it out"
    )
    assert "palette" in str(problem(png(8, 3, b"\0" + bytes(4))))
    assert "bit depth 3" in str(problem(png(3, 0, b"\0")))
    assert "second" not in str(problem(start + header + header + end))
    assert problem(start + header + chunk(b"IDAt", b"x") + chunk(b"iDAT", b"x") + end).code == "CORRUPT"
    assert problem(start + chunk(b"CgBI", b"abcd") + header + end).code == "CORRUPT"
    assert problem(start + header + chunk(b"CgBI", b"abcd") + end).code == "UNSUPPORTED"


@pytest.mark.parametrize("marker", [0xC3, 0xC5, 0xC9, 0xCB, 0xCF])
def test_lossless_hierarchical_and_arithmetic_jpegs_are_unsupported(marker: int) -> None:
    assert problem(JPEGS["rgb"].replace(b"\xff\xc0", bytes([0xFF, marker]))).code == "UNSUPPORTED"


def test_a_jpeg_of_twelve_bits_is_unsupported() -> None:
    error = problem(JPEGS["rgb"].replace(b"\xff\xc0\x00\x11\x08", b"\xff\xc0\x00\x11\x0c"))
    assert (error.code, str(error)) == ("UNSUPPORTED", "JPEG: 12 bits per sample; convert it to 8")


def test_a_jpeg_without_a_frame_header_or_without_data_is_corrupt() -> None:
    data = JPEGS["rgb"]
    frame, scan = data.index(b"\xff\xc0"), data.index(b"\xff\xda")
    assert problem(data[:frame] + data[frame + 19 :]).code == "CORRUPT"
    assert problem(data[: scan + 14] + b"\xff\xd9").code == "CORRUPT"
    assert problem(data[: frame + 19] + data[frame:]).code == "CORRUPT"
    assert problem(data[:frame] + b"\0" + data[frame:]).code == "CORRUPT"


@pytest.mark.parametrize("bits", [1, 4, 16])
def test_a_bmp_of_other_depths_is_unsupported(bits: int) -> None:
    data = bytearray(BMPS["RGB"])
    data[28] = bits
    assert problem(bytes(data)).code == "UNSUPPORTED"


def test_a_bmp_with_run_lengths_or_strange_masks_is_unsupported() -> None:
    data = bytearray(BMPS["L"])
    data[30] = 1
    assert problem(bytes(data)).code == "UNSUPPORTED"
    swapped = bmp_with_masks(0xFF, 0xFF00, 0xFF0000, 0)
    assert "channel masks" in str(problem(swapped))


def test_an_animation_passes_and_is_told() -> None:
    frames = [picture("RGB", 20, 20), picture("RGB", 20, 20).rotate(90)]
    for kind in ("GIF", "WEBP", "PNG"):
        data = save(frames[0], kind, save_all=True, append_images=frames[1:])
        assert STRUCTURE.check(data).animated
        assert (STRUCTURE.check(data).width, STRUCTURE.check(data).height) == (20, 20)
        for end in range(0, len(data), 7):
            assert problem(data[:end]).code in {"TRUNCATED", "NOT_AN_IMAGE"}


def test_a_gif_without_its_trailer_is_truncated() -> None:
    assert GIFS["palette"].endswith(b"\0;")
    assert problem(GIFS["palette"][:-1]).code == "TRUNCATED"


def test_the_first_frame_of_a_gif_may_enlarge_its_screen() -> None:
    data = bytearray(GIFS["palette"])
    data[6:8] = b"\1\0"
    with Image.open(io.BytesIO(data)) as image:
        facts = STRUCTURE.check(bytes(data))
        assert (facts.width, facts.height, facts.colorspace) == (*image.size, image.mode) == (23, 17, "P")


def test_an_orientation_leaves_width_and_height_as_stored() -> None:
    facts = STRUCTURE.check(save(picture("RGB", 32, 20), "JPEG", exif=exif(6)))
    assert (facts.width, facts.height, facts.orientation) == (32, 20, 6)


def test_the_limit_of_pixels_is_checked_in_the_header_of_every_format() -> None:
    for data in WHOLE.values():
        for level in ("header", "structure", "decode"):
            error = problem(data, ImageCheck(level, pixels_limit=5))  # type: ignore[arg-type]
            assert error.code == "TOO_MANY_PIXELS"
            assert "limits.pixels = 5" in str(error)


def test_a_bomb_of_zeros_is_refused_before_it_is_inflated() -> None:
    bomb = png(8, 2, b"", width=30_000, height=30_000)
    assert str(problem(bomb, DECODE)) == (
        "30000 x 30000 pixels are more than limits.pixels = 50000000; raise it if they are meant"
    )


def test_our_limit_of_pixels_counts_and_not_pillows_own() -> None:
    data = png(8, 2, b"", width=10_000, height=10_000)
    assert problem(data, ImageCheck("decode", pixels_limit=10**10)).code == "TRUNCATED"
    assert problem(data, ImageCheck("decode", pixels_limit=10**7)).code == "TOO_MANY_PIXELS"
    assert Image.MAX_IMAGE_PIXELS is not None


def test_a_compressed_text_of_a_hundred_megabytes_is_corrupt_when_decoded() -> None:
    notes = PngInfo()
    notes.add_text("k", "a" * 100_000_000, zip=True)
    data = save(picture("L"), "PNG", pnginfo=notes)
    assert STRUCTURE.check(data).format == "png"
    assert problem(data, DECODE).code == "CORRUPT"


def test_decoding_finds_what_the_structure_hides() -> None:
    scrambled = bytearray(png(8, 2, (b"\0" + bytes(12)) * 2))
    position = scrambled.index(b"IDAT") + 4
    scrambled[position] ^= 0xFF
    length = struct.unpack_from(">I", scrambled, position - 8)[0]
    struct.pack_into(">I", scrambled, position + length, zlib.crc32(scrambled[position - 4 : position + length]))
    assert STRUCTURE.check(bytes(scrambled)).format == "png"
    assert problem(bytes(scrambled), DECODE).code == "CORRUPT"


def test_decoding_leaves_the_warning_filters_as_they_were_with_many_threads() -> None:
    before = list(warnings.filters)
    with ThreadPoolExecutor(8) as pool:
        facts = list(pool.map(DECODE.check, [JPEGS["rgb"]] * 200))
    assert facts == [STRUCTURE.check(JPEGS["rgb"])] * 200
    assert warnings.filters == before


NO_IMAGES = (
    b"", b"x", b"hello\n", b"<!DOCTYPE html><html>", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7",
    b"%!PS-Adobe-3.0 EPSF-3.0", b"\0\0\0\1Bud1\0\0", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"P5 of text", b"PK\3\4",
    b"SIMPLE  =                    T", b"BMW is a maker of cars", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
)  # fmt: skip


@pytest.mark.parametrize("content", NO_IMAGES)
def test_what_is_no_image_is_told_by_its_content(content: bytes) -> None:
    for level in ("header", "structure", "decode"):
        error = problem(content, ImageCheck(level))  # type: ignore[arg-type]
        assert error.code == "NOT_AN_IMAGE"
        assert error.to_cell_error().expected == "an image"


def test_other_formats_pass_only_where_they_are_named() -> None:
    for name, kind in (("tiff", "TIFF"), ("avif", "AVIF"), ("jpeg2000", "JPEG2000")):
        data = save(picture("RGB"), kind)
        error = problem(data)
        assert error.code == "UNSUPPORTED"
        assert f"add {name} to input.formats" in str(error)
        named = ImageCheck("structure", (*DEFAULT_FORMATS, name))
        assert named.check(data) == (name, 23, 17, 3, "RGB", False, None, 1)
        assert problem(data[: len(data) // 2], named).code in {"TRUNCATED", "CORRUPT", "NOT_AN_IMAGE"}


def test_a_format_that_is_not_named_does_not_pass() -> None:
    error = problem(GIFS["palette"], ImageCheck("header", ("jpeg", "png")))
    assert (error.code, str(error)) == ("UNSUPPORTED", "gif: the format does not pass; add gif to input.formats")


def test_heic_is_unsupported_with_what_to_do() -> None:
    box = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"
    error = problem(box + b"\0\0\0\x08free" + b"\0\0\0\x0cmeta\0\0\0\0")
    assert error.code == "UNSUPPORTED"
    assert str(error) == (
        "heic: TensorFlow cannot decode HEIC; write all images as JPEG (--set image.encode.format=jpeg), or let it "
        "pass: add heic to input.formats"
    )


def test_an_unknown_check_or_format_is_a_usage_error() -> None:
    with pytest.raises(
        UsageError, match=r'input.check: "deep" is not a check; choose one of header, structure, decode'
    ):
        ImageCheck("deep")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r'input.formats: "eps" is not a format; choose from jpeg, png'):
        ImageCheck(formats=("jpeg", "eps"))
    with pytest.raises(UsageError, match=r"input.formats is empty"):
        ImageCheck(formats=())


def test_a_problem_shows_its_value_escaped_and_cut() -> None:
    error = problem(b"\x1b[2Jevil\n" + b"x" * 100).to_cell_error("image/encoded")
    assert error.value == "\\x1b[2Jevil\\n" + "x" * 23
    assert (error.column, error.code) == ("image/encoded", "NOT_AN_IMAGE")


def test_a_png_named_jpg_and_every_sample_is_told_by_content(tmp_path: Path) -> None:
    path = tmp_path / "picture.jpg"
    path.write_bytes(PNGS["RGB"])
    assert tell_image_format(path.read_bytes()) == "png"
