"""What the user of the command line sees of bad and hostile images: one screen a case, word for word."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shardmill.transforms.inputs.files.file_names import FORMATS
from shardmill.transforms.pictures.facts import TURNED

Files = Mapping[str, bytes | Callable[[Path], object]]


def draw(kind: str = "JPEG", size: tuple[int, int] = (32, 20), mode: str = "RGB", **options: Any) -> bytes:
    noise = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).convert(mode).save(file, kind, **options)
    return file.getvalue()


def link(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


def bitmap(bits: int) -> bytes:
    data = bytearray(draw("BMP"))
    data[28] = bits
    return bytes(data)


def flipped_png() -> bytes:
    data = bytearray(PNG)
    data[data.index(b"IDAT") + 20] ^= 1
    return bytes(data)


def png_without_a_picture() -> bytes:
    body = b"IDATabc"
    return PNG[:33] + struct.pack(">I", 3) + body + struct.pack(">I", zlib.crc32(body)) + PNG[-12:]


def flat(path: Path) -> None:
    Image.new("1", (9000, 9000)).save(path, "PNG")


def fax(path: Path) -> None:
    Image.new("1", (9000, 9000)).save(path, "TIFF", compression="group4")


def animation(path: Path) -> None:
    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "blue")]
    frames[0].save(path, "GIF", save_all=True, append_images=frames[1:])


def of_16_bits(path: Path) -> None:
    Image.fromarray(np.arange(640, dtype=np.uint16).reshape(20, 32) * 100).save(path, "PNG")


def not_utf8(path: Path) -> None:
    with open(os.fsencode(path.parent) + b"/caf\xe9.jpg", "wb") as file:
        file.write(JPEG)


JPEG, PNG = draw(), draw("PNG")
AS_JPEG = "write all images as JPEG (--set image.encode.format=jpeg), or let it pass: add"
NO_IMAGE = "NOT_AN_IMAGE: the content is not an image of a known format"
AGAIN = "copy it again, or leave it out"
OUTSIDE = "OUTSIDE_ROOT: a link that leads out of the root folder is not followed; copy its target here"

REJECTED: dict[str, tuple[Files, Sequence[str], str, Sequence[str]]] = {
    "JPEG without its end": (
        {"pics/cut.jpg": JPEG[:-2]},
        [],
        "1 of 2 rows was rejected (TRUNCATED 1)",
        [f"pics/cut.jpg: TRUNCATED: the JPEG is cut short: its end marker FF D9 is missing; {AGAIN}"],
    ),
    "PNG cut, damaged, without its end": (
        {"pics/cut.png": PNG[:200], "pics/damaged.png": flipped_png(), "pics/endless.png": PNG[:-12]},
        [],
        "3 of 4 rows were rejected (CORRUPT 1, TRUNCATED 2)",
        [
            f"pics/cut.png: TRUNCATED: the PNG is cut short: its chunk IDAT at byte 33 is incomplete; {AGAIN}",
            f"pics/damaged.png: CORRUPT: the PNG is damaged: the CRC of its chunk IDAT at byte 33 is wrong; {AGAIN}",
            "pics/endless.png: TRUNCATED: the PNG is cut short: its end chunk IEND is missing",
        ],
    ),
    "GIF without its trailer": (
        {"pics/cut.gif": draw("GIF")[:-1]},
        [],
        "1 of 2 rows was rejected (TRUNCATED 1)",
        [f"pics/cut.gif: TRUNCATED: the GIF is cut short: its trailer is missing; {AGAIN}"],
    ),
    "WebP and BMP, cut": (
        {"pics/cut.bmp": draw("BMP")[:-5], "pics/cut.webp": draw("WEBP")[:-5]},
        [],
        "2 of 3 rows were rejected (TRUNCATED 2)",
        [
            f"pics/cut.bmp: TRUNCATED: the BMP is cut short: its pixels end at byte 1974; {AGAIN}",
            f"pics/cut.webp: TRUNCATED: the WebP is cut short: {len(draw('WEBP'))} bytes are announced",
        ],
    ),
    "a decoder's exception": (
        {"pics/hollow.png": png_without_a_picture()},
        ["--set", "input.check=decode"],
        "1 of 2 rows was rejected (CORRUPT 1)",
        [
            "pics/hollow.png: CORRUPT: the PNG is damaged: Pillow says OSError: broken data stream when reading image "
            f"file; {AGAIN}"
        ],
    ),
    "no images": (
        {
            "pics/drawing.svg": b"<svg/>", "pics/empty.jpg": b"", "pics/fake.heic": b"\0\0\0\x18ftypheic",
            "pics/figure.jpg": b"%!PS-Adobe-3.0 EPSF-3.0\n(%pipe%id) (w) file", "pics/notes": b"hello",
            "pics/page.jpg": b"<!DOCTYPE html>", "pics/.DS_Store": b"x", "pics/Thumbs.db": b"x",
        },
        [],
        "6 of 7 rows were rejected (NOT_AN_IMAGE 6)",
        [
            f"5 rows, first pics/drawing.svg, pics/fake.heic, pics/figure.jpg: {NO_IMAGE}",
            "pics/empty.jpg: NOT_AN_IMAGE: the file is empty",
        ],
    ),
    "bombs": (
        {"pics/bomb.png": flat, "pics/fax.tif": fax},
        ["--set", "input.formats=[jpeg, png, tiff]"],
        "2 of 3 rows were rejected (TOO_MANY_PIXELS 2)",
        [
            "2 rows, pics/bomb.png, pics/fax.tif: TOO_MANY_PIXELS: 9000 x 9000 pixels are more than limits.pixels = "
            "50000000; raise it if they are meant"
        ],
    ),
    "a file over the limit": (
        {"pics/large.jpg": draw(size=(200, 200))},
        ["--set", "limits.image_bytes=10KiB"],
        "1 of 2 rows was rejected (FIELD_TOO_LARGE 1)",
        [
            f"pics/large.jpg: FIELD_TOO_LARGE: {len(draw(size=(200, 200)))} bytes are more than limits.image_bytes = "
            "10240; raise it if they are meant"
        ],
    ),
    "what TensorFlow does not read": (
        {
            "pics/1.bmp": bitmap(1), "pics/deep.jpg": JPEG.replace(b"\xff\xc0\0\x11\x08", b"\xff\xc0\0\x11\x0c"),
            "pics/film.jp2": draw("JPEG2000"), "pics/lossless.jpg": JPEG.replace(b"\xff\xc0", b"\xff\xc3"),
            "pics/new.avif": draw("AVIF"), "pics/scan.tif": draw("TIFF"),
        },
        [],
        "6 of 7 rows were rejected (UNSUPPORTED 6)",
        [
            "pics/1.bmp: UNSUPPORTED: BMP: 1 bits a pixel; 8, 24 and 32 are read: convert it",
            "pics/deep.jpg: UNSUPPORTED: JPEG: 12 bits per sample; convert it to 8",
            f"pics/film.jp2: UNSUPPORTED: jpeg2000: TensorFlow cannot decode JPEG2000; {AS_JPEG} jpeg2000 to "
            "input.formats",
            "pics/lossless.jpg: UNSUPPORTED: JPEG: lossless coding; convert it to a baseline JPEG",
            f"pics/new.avif: UNSUPPORTED: avif: TensorFlow cannot decode AVIF; {AS_JPEG} avif to input.formats",
            f"pics/scan.tif: UNSUPPORTED: tiff: TensorFlow cannot decode TIFF; {AS_JPEG} tiff to input.formats",
        ],
    ),
    "a named pipe": (
        {"pics/pipe.jpg": os.mkfifo},
        [],
        "1 of 2 rows was rejected (NOT_A_FILE 1)",
        ["pics/pipe.jpg: NOT_A_FILE: it is a named pipe; only regular files are read"],
    ),
    "links": (
        {
            "pics/circle": link("."), "pics/nowhere.jpg": link("gone.jpg"), "pics/out": link("/etc"),
            "pics/passwd.jpg": link("/etc/passwd"), "pics/self.jpg": link("self.jpg"),
        },
        [],
        "5 of 6 rows were rejected (MISSING_FILE 2, NOT_A_FILE 1, OUTSIDE_ROOT 2)",
        [
            f"2 rows, pics/out, pics/passwd.jpg: {OUTSIDE}",
            "pics/circle: NOT_A_FILE: a link to a folder; links to folders are not followed: move the folder here",
            "pics/nowhere.jpg: MISSING_FILE: the link leads nowhere: No such file or directory; restore it, or take it "
            "away",
            "pics/self.jpg: MISSING_FILE: the link leads nowhere: Too many levels of symbolic links",
        ],
    ),
    "a name that is not UTF-8": (
        {"pics/made": not_utf8},
        [],
        "1 of 2 rows was rejected (BAD_UTF8 1)",
        [
            'pics/caf\\xe9.jpg: column "image/filename": BAD_UTF8: the path is not UTF-8, so it cannot be a feature; '
            "rename the file or its folder"
        ],
    ),
    "a name that would write on the screen": (
        {"pics/a\n2026 OK\x1b[2J.jpg": b"no"},
        [],
        "1 of 2 rows was rejected (NOT_AN_IMAGE 1)",
        [f"pics/a\\n2026 OK\\x1b[2J.jpg: {NO_IMAGE}"],
    ),
}  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("case", REJECTED)
def test_a_bad_image_is_named_and_the_good_one_is_kept(desk: Any, case: str) -> None:
    files, args, counts, lines = REJECTED[case]
    desk.put({"pics/good.jpg": JPEG, **files})
    desk.assert_rejected(["pics", *args], counts, lines, _assert_good)


def _assert_good(found: list[dict[str, Any]]) -> None:
    assert [(row["image/filename"], row["image/encoded"]) for row in found] == [("good.jpg", JPEG)]


LAYOUT = """choose one of:
  --set input.layout=flat        root/1.jpg            no classes
  --set input.layout=label       root/cat/1.jpg        a class in each folder
  --set input.layout=split       root/train/1.jpg      a split in each folder
  --set input.layout=split_label root/train/cat/1.jpg  splits, with a class in each folder
  --set input.layout=inner_label root/p1/cat/1.jpg     classes in folders of something else, such as patients"""
REFUSED: dict[str, tuple[Files, str]] = {
    "one class name in two folders": (
        {"pics/tame/cat/1.jpg": JPEG, "pics/wild/cat/1.jpg": JPEG},
        f'it is unclear what the folders mean: "tame" is not the name of a split (in "tame/cat"); {LAYOUT}',
    ),
    "files beside folders": (
        {"pics/2.jpg": JPEG, "pics/cat/1.jpg": JPEG},
        f'it is unclear what the folders mean: there are files in the root and in "cat"; {LAYOUT}',
    ),
    "hidden files only": (
        {"pics/.x.jpg": JPEG},
        "pics: holds no file of a known kind; name its files ('pics/*'), and say which they are: --set input.format="
        f"csv (or {', '.join(list(FORMATS)[1:])})",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_folders_that_can_mean_two_things_are_asked_about(desk: Any, case: str) -> None:
    files, message = REFUSED[case]
    desk.put(files)
    desk.assert_refused(desk.convert("pics"), 2, message)


def rotated() -> bytes:
    tags = Image.Exif()
    tags[0x0112] = 6
    return draw(exif=tags)


def damaged_in_the_middle() -> bytes:
    data = bytearray(draw(size=(200, 200)))
    data[len(data) // 2 : len(data) // 2 + 20] = bytes(20)
    return bytes(data)


ACCEPTED: dict[str, tuple[bytes | Callable[[Path], object], Sequence[str], dict[str, Any]]] = {
    "PNG named .jpg": (PNG, [], {"image/format": "png"}),
    "CMYK": (
        draw(mode="CMYK"),
        ["Warning: JPEG images in CMYK, which TensorFlow decodes to 3 channels: channels is 4, as stored: 1"],
        {"image/colorspace": "CMYK", "image/channels": 4},
    ),
    "grey with alpha": (
        draw("PNG", mode="LA"),
        [
            "Warning: PNG images of gray with transparency, which TensorFlow decodes to 2 channels where no other "
            "number is given: 1"
        ],
        {"image/colorspace": "LA", "image/channels": 2},
    ),
    "palette with transparency": (
        draw("PNG", mode="P", transparency=0),
        [
            "Warning: PNG images with a palette, which TensorFlow decodes to 3 channels, or 4 with transparency: "
            "channels is 1, as stored: 1"
        ],
        {"image/colorspace": "P"},
    ),
    "16 bits": (
        of_16_bits,
        [
            "Warning: PNG images of gray with 16 bits, which TensorFlow decodes to 8 bits where no dtype=tf.uint16 is "
            "given: 1"
        ],
        {"image/colorspace": "I;16"},
    ),
    "animation": (
        animation,
        ["Warning: animated images, of which most readers decode the first frame only: 1"],
        {"image/format": "gif"},
    ),
    "turned by EXIF": (rotated(), [f"Warning: {TURNED}: 1"], {"image/width": 32, "image/height": 20}),
    "damage that no check without decoding sees": (damaged_in_the_middle(), [], {"image/format": "jpeg"}),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_an_odd_image_passes_untouched_and_what_is_odd_is_said(desk: Any, case: str) -> None:
    content, said, features = ACCEPTED[case]
    desk.put({"pics/a[1].jpg": content})

    def check(found: list[dict[str, Any]]) -> None:
        (row,) = found
        assert row["image/encoded"] == (desk.root / "pics/a[1].jpg").read_bytes()
        assert {name: row[name] for name in features} == features

    desk.assert_accepted(["pics"], said, check)


def test_classes_that_differ_in_unicode_form_or_case_only_stay_two_and_are_warned_of(desk: Any) -> None:
    desk.put({f"pics/{name}/1.jpg": JPEG for name in ("caf\u00e9", "cafe\u0301", "Dog", "dog")})
    said = [
        f'Warning: the classes "{one}" and "{two}" differ only in case, blanks or Unicode form; they stay two classes'
        for one, two in (("cafe\\u0301", "caf\\xe9"), ("Dog", "dog"))
    ]
    desk.assert_accepted(
        ["pics"], said, lambda found: _assert_classes(found, ["Dog", "cafe\u0301", "caf\u00e9", "dog"])
    )


def test_one_class_name_in_two_folders_is_two_classes_where_the_layout_says_label(desk: Any) -> None:
    desk.put({"pics/tame/cat/1.jpg": JPEG, "pics/wild/cat/1.jpg": JPEG})
    desk.assert_accepted(
        ["pics", "--set", "input.layout=label"], [], lambda found: _assert_classes(found, ["tame/cat", "wild/cat"])
    )


def _assert_classes(found: list[dict[str, Any]], wanted: list[str]) -> None:
    assert sorted(row["image/class/text"] for row in found) == wanted
    assert all(row["image/class/label"] == row["image/class/text"] for row in found)
