"""Hostile pictures, tables beside pictures, and annotations."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from PIL import Image

from .hostile_file import SOUND, Holes, Hostile, setting
from .tables import MANY, csv_row, levels, parquet

RESIZE = setting("image.resize=8")
WIDEST = (1 << 31) - 1


def picture(kind: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (1, 2, 3)).save(file, kind)
    return file.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PIXELS = chunk(b"IDAT", zlib.compress(bytes(121 * 30)))


def stated_png(width: int, height: int) -> bytes:
    return png(width, height, PIXELS)


def png(width: int, height: int, *more: bytes) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(more) + chunk(b"IEND", b"")


def zeros_png() -> bytes:
    """Return a PNG that has far more pixel data than pixels."""
    return png(40, 30, chunk(b"IDAT", zlib.compress(bytes(20 << 20), 1)))


def jpeg(width: int, height: int) -> bytes:
    data = picture("JPEG")
    at = data.index(b"\xff\xc0")
    return data[: at + 5] + struct.pack(">HH", height, width) + data[at + 9 :]


def gif(width: int, height: int) -> bytes:
    data = picture("GIF")
    at = data.index(b"\x2c\0\0\0\0")
    sides = struct.pack("<HH", width, height)
    return data[:6] + sides + data[10 : at + 5] + sides + data[at + 9 :]


def bmp(width: int, height: int) -> bytes:
    data = picture("BMP")
    return data[:18] + struct.pack("<ii", width, height) + data[26:]


def webp(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30)).save(file, "WEBP", lossless=True)
    data = bytearray(file.getvalue())
    at = data.index(b"VP8L") + 9
    bits = struct.unpack_from("<I", data, at)[0]
    struct.pack_into("<I", data, at, bits & 0xF0000000 | (height - 1) << 14 | width - 1)
    return bytes(data)


def canvas(width: int, height: int) -> bytes:
    """Return an extended WebP, whose canvas has a size of its own."""
    body = (
        b"WEBPVP8X"
        + struct.pack("<IB3x", 10, 0)
        + (width - 1).to_bytes(3, "little")
        + (height - 1).to_bytes(3, "little")
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


def tiff(width: int, height: int, *, loop: bool = False) -> bytes:
    tags = [(256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1),
            (278, 4, height), (279, 4, 16)]  # fmt: skip
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    end = struct.pack("<I", 8 if loop else 0)
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags)) + entries + end + bytes(64)


STATED: Mapping[str, tuple[Callable[[int, int], bytes], int]] = {
    "png": (stated_png, WIDEST), "jpg": (jpeg, 65_535), "gif": (gif, 65_535), "bmp": (bmp, WIDEST),
    "webp": (webp, 16_384), "tiff": (tiff, (1 << 32) - 1),
}  # fmt: skip


def picture_files() -> Iterator[Hostile]:
    for suffix, (make, widest) in STATED.items():
        yield Hostile(f"widest.{suffix}", 4, f"widest.{suffix}", lambda make=make, widest=widest: make(widest, widest))
    yield Hostile("pixels.png", 4, "TOO_MANY_PIXELS", lambda: stated_png(7100, 7100))
    yield Hostile("pixels.jpg", 4, "TOO_MANY_PIXELS", lambda: jpeg(7100, 7100))
    yield Hostile("just.png", 0, SOUND, lambda: picture("PNG"), setting("limits.pixels=1200"))
    yield Hostile("above.png", 4, "TOO_MANY_PIXELS", lambda: picture("PNG"), setting("limits.pixels=1199"))
    yield Hostile("bytes.png", 4, "FIELD_TOO_LARGE", lambda: Holes((256 << 20) + 1, {0: picture("PNG")}))
    yield Hostile("zero.jpg", 4, "zero.jpg", lambda: jpeg(0, 0))
    yield Hostile("canvas.webp", 4, "CORRUPT", lambda: canvas(1 << 24, 1 << 24))
    yield Hostile("loop.tiff", 4, "loop.tiff", lambda: tiff(40, 30, loop=True), RESIZE)
    yield Hostile("zeros.png", 0, SOUND, zeros_png, RESIZE)
    text = chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(100 << 20), 1))
    yield Hostile("text.png", 4, "text.png", lambda: png(40, 30, text, PIXELS), RESIZE)
    profile = chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(100 << 20), 1))
    yield Hostile("profile.png", 4, "profile.png",
                  lambda: png(40, 30, profile, PIXELS), RESIZE)  # fmt: skip
    yield Hostile("chunks.png", 0, SOUND,
                  lambda: png(40, 30, chunk(b"tEXt", b"a\0b") * 100_000, PIXELS))  # fmt: skip
    data = picture("JPEG")
    yield Hostile("fill.jpg", 0, SOUND, lambda: data[:2] + b"\xff" * (4 << 20) + data[2:])
    yield Hostile("cut.png", 4, "TRUNCATED", lambda: picture("PNG")[:-20])


def beside(table: str, text: bytes, **more: bytes) -> dict[str, bytes]:
    """Return a folder of a picture and a table."""
    return {"in/a.png": picture("PNG"), f"in/{table}": text, **more}


def picture_tables() -> Iterator[Hostile]:
    row = b"a.png," + csv_row(MANY, "1")
    yield Hostile("in", 2, "limits.columns (100000)",
                  lambda: beside("metadata.csv", b"file_name," + csv_row(MANY, "c{}") + row))  # fmt: skip
    names = {"file_name": ["a.png"], **{f"c{i}": [1] for i in range(1000)}}
    yield Hostile("in", 2, "limits.columns (1000)", lambda: beside("metadata.parquet", parquet(pa.table(names))),
                  setting("limits.columns=1000"))  # fmt: skip
    line = f'{{"file_name":"a.png","a":{levels(5000)}}}\n'.encode()
    yield Hostile("in", 2, "names no column, so no pictures", lambda: beside("metadata.jsonl", line))
    for name in ("../../etc/passwd", "/etc/passwd", "x" * 5000, "a.png\0", "sub/" * 1000 + "a.png"):
        table = json.dumps({"file_name": name}).encode() + b"\n"
        yield Hostile("in", 4, "metadata.jsonl", lambda table=table: beside("metadata.jsonl", table))
    many = json.dumps({"file_names": ["a.png"] * 20_000}).encode()
    yield Hostile(
        "in", 4, "RECORD_TOO_LARGE", lambda: beside("metadata.jsonl", many), setting("limits.record_bytes=1MiB")
    )
    large = json.dumps({"file_name": "b.png"}).encode()
    yield Hostile("in", 4, "FIELD_TOO_LARGE", lambda: {
        "in/metadata.jsonl": large, "in/b.png": Holes((256 << 20) + 1, {0: picture("PNG")}),
    })  # fmt: skip
    bytes_table = pa.table({"image": pa.array([stated_png(7100, 7100)], pa.binary())})
    yield Hostile("bytes.parquet", 4, "TOO_MANY_PIXELS", lambda: parquet(bytes_table),
                  setting("schema.columns.image.image=bytes"))  # fmt: skip
    yield Hostile(
        "paths.csv", 4, "paths.csv", lambda: b"image\n../../../etc/passwd\n", setting("schema.columns.image.file=path")
    )
    yield Hostile("large.csv", 4, "FIELD_TOO_LARGE", lambda: {
        "large.csv": b"image\nb.png\n", "b.png": Holes((256 << 20) + 1, {0: picture("PNG")}),
    }, setting("schema.columns.image.file=path"))  # fmt: skip


def hostile_pictures() -> Iterator[Hostile]:
    """Yield hostile pictures, and tables of pictures."""
    yield from picture_files()
    yield from picture_tables()
