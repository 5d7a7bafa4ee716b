"""Bad and hostile images: every case gets an answer that names the file, and no good image is lost with it."""

from __future__ import annotations

import io
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from shardmill.transforms.errors import InputError, SourceError, UsageError
from shardmill.transforms.format.batches.rejects import Reject
from shardmill.transforms.format.batches.rows import Rows
from shardmill.transforms.inputs.contract.source import Task
from shardmill.transforms.sources.images.listing import list_images
from shardmill.transforms.sources.images.walk import FolderEntry
from shardmill.transforms.sources.registry.settings import Limits

from ...file_sources import made_source


def draw(kind: str = "JPEG", size: tuple[int, int] = (32, 20), mode: str = "RGB", **options: Any) -> bytes:
    noise = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).convert(mode).save(file, kind, **options)
    return file.getvalue()


def read(root: Path, **options: Any) -> Rows:
    source = made_source("images", (root.name,), str(root.parent), **options)
    survey = source.survey(source.list_files(), lambda f, items: [f(i) for i in items])
    (rows,) = source.read(Task(0, survey.pieces), survey.frozen)
    assert rows.batch.num_rows + len(rows.rejects) == source.list_files().files
    return rows


def passed(rows: Rows) -> dict[str, dict[str, Any]]:
    return {record["image/filename"]: record for record in rows.batch.to_pylist()}


def rejected(rows: Rows) -> dict[str, str]:
    return {reject.place.source: reject.errors[0].code for reject in rows.rejects}


def messages(rows: Rows) -> dict[str, str]:
    return {reject.place.source: reject.errors[0].message for reject in rows.rejects}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one good image, which every test finds again."""
    folder = tmp_path / "pics"
    folder.mkdir()
    (folder / "good.jpg").write_bytes(draw())
    return folder


@pytest.mark.parametrize("cut", [2, 50, 300])
def test_a_truncated_jpeg_is_truncated_without_being_decoded(root: Path, cut: int) -> None:
    (root / "cut.jpg").write_bytes(draw()[:-cut])
    rows = read(root)
    assert list(passed(rows)) == ["good.jpg"]
    assert messages(rows)["pics/cut.jpg"] == (
        "the JPEG is cut short: its end marker FF D9 is missing; copy it again, or leave it out"
    )
    assert rejected(rows) == rejected(read(root, check="decode")) == {"pics/cut.jpg": "TRUNCATED"}


def test_damage_in_the_middle_of_a_jpeg_cannot_be_seen_and_its_bytes_pass_untouched(root: Path) -> None:
    data = bytearray(draw(size=(200, 200)))
    data[len(data) // 2 : len(data) // 2 + 20] = bytes(20)
    (root / "damaged.jpg").write_bytes(data)
    rows = read(root, sha256=True)
    assert passed(rows)["damaged.jpg"]["image/encoded"] == bytes(data)
    assert len(passed(rows)["damaged.jpg"]["image/key/sha256"]) == 64


def test_a_png_that_is_cut_or_damaged_or_has_no_end_is_a_reject(root: Path) -> None:
    data = draw("PNG")
    damaged = bytearray(data)
    damaged[data.index(b"IDAT") + 20] ^= 1
    (root / "cut.png").write_bytes(data[:200])
    (root / "damaged.png").write_bytes(damaged)
    (root / "endless.png").write_bytes(data[:-12])
    expected = {"pics/cut.png": "TRUNCATED", "pics/damaged.png": "CORRUPT", "pics/endless.png": "TRUNCATED"}
    assert rejected(read(root)) == rejected(read(root, check="decode")) == expected


def test_every_exception_of_a_decoder_becomes_a_code(root: Path) -> None:
    header = struct.pack(">IIBBBBB", 32, 20, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    start, end = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header), chunk(b"IEND", b"")
    notes = PngInfo()
    notes.add_text("note", "x" * 80_000_000, zip=True)
    (root / "text.png").write_bytes(draw("PNG", pnginfo=notes))  # ValueError
    (root / "zlib.png").write_bytes(start + chunk(b"IDAT", b"no zlib stream") + end)  # OSError
    (root / "short.webp").write_bytes(draw("WEBP", lossless=True)[:60].ljust(len(draw("WEBP", lossless=True)), b"\xff"))
    assert rejected(read(root)) == {}
    assert rejected(read(root, check="decode")) == {
        "pics/short.webp": "CORRUPT",
        "pics/text.png": "CORRUPT",
        "pics/zlib.png": "CORRUPT",
    }


def test_what_is_no_image_is_a_reject_and_known_junk_is_skipped_and_counted(root: Path) -> None:
    contents = {
        "empty.jpg": b"",
        "page.jpg": b"<!DOCTYPE html><html>",
        "notes": b"hello",
        "drawing.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "fake.heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic and no more",
        "figure.jpg": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n(%pipe%id) (w) file",
        ".DS_Store": b"\0\0\0\1Bud1",
        "Thumbs.db": b"\xd0\xcf\x11\xe0",
    }
    for name, data in contents.items():
        (root / name).write_bytes(data)
    rows = read(root)
    assert list(passed(rows)) == ["good.jpg"]
    assert rejected(rows) == dict.fromkeys(
        ["pics/drawing.svg", "pics/empty.jpg", "pics/fake.heic", "pics/figure.jpg", "pics/notes", "pics/page.jpg"],
        "NOT_AN_IMAGE",
    )
    assert messages(rows)["pics/empty.jpg"] == "the file is empty"
    assert made_source("images", (str(root),)).list_files().skipped == {"hidden": 1, "junk": 1}


def test_a_png_named_jpg_is_kept_with_its_real_format(root: Path) -> None:
    (root / "really_png.jpg").write_bytes(draw("PNG"))
    assert passed(read(root))["really_png.jpg"]["image/format"] == "png"


@pytest.mark.parametrize(
    ("kind", "mode", "channels"),
    [("JPEG", "CMYK", 4), ("PNG", "L", 1), ("PNG", "LA", 2), ("PNG", "RGBA", 4), ("PNG", "P", 1), ("PNG", "1", 1)],
)
def test_the_mode_is_recorded_and_nothing_is_converted(root: Path, kind: str, mode: str, channels: int) -> None:
    data = draw(kind, mode=mode)
    (root / "other").write_bytes(data)
    record = passed(read(root))["other"]
    assert (record["image/colorspace"], record["image/channels"], record["image/encoded"]) == (mode, channels, data)


def test_a_palette_with_transparency_stays_a_palette(root: Path) -> None:
    (root / "p.png").write_bytes(draw("PNG", mode="P", transparency=0))
    assert passed(read(root))["p.png"]["image/colorspace"] == "P"


def test_a_png_of_16_bits_keeps_its_bytes_and_says_so(root: Path) -> None:
    file = io.BytesIO()
    Image.fromarray(np.arange(640, dtype=np.uint16).reshape(20, 32) * 100).save(file, "PNG")
    (root / "deep.png").write_bytes(file.getvalue())
    record = passed(read(root, check="decode"))["deep.png"]
    assert (record["image/colorspace"], record["image/encoded"]) == ("I;16", file.getvalue())


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_passes_with_a_counted_warning(root: Path, kind: str) -> None:
    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "blue", "green")]
    frames[0].save(root / "moving", kind, save_all=True, append_images=frames[1:])
    rows = read(root)
    assert passed(rows)["moving"]["image/encoded"] == (root / "moving").read_bytes()
    assert rows.notes[0, "animated images, of which most readers decode the first frame only"] == 1
    assert len(rows.notes) == (2 if kind == "WEBP" else 1)  # that TFDS does not decode it is said too


def test_an_exif_orientation_leaves_bytes_and_size_as_stored(root: Path) -> None:
    tags = Image.Exif()
    tags[0x0112] = 6
    data = draw(exif=tags)
    (root / "turned.jpg").write_bytes(data)
    record = passed(read(root))["turned.jpg"]
    assert (record["image/width"], record["image/height"], record["image/encoded"]) == (32, 20, data)


def test_bombs_are_refused_by_their_header(root: Path) -> None:
    flat = Image.new("1", (9000, 9000))
    flat.save(root / "bomb.png")
    flat.save(root / "fax.tif", compression="group4")
    assert (root / "fax.tif").stat().st_size < 20_000
    for check in ("header", "structure", "decode"):
        rows = read(root, check=check, formats=("jpeg", "png", "tiff"))
        assert rejected(rows) == {"pics/bomb.png": "TOO_MANY_PIXELS", "pics/fax.tif": "TOO_MANY_PIXELS"}
        assert messages(rows)["pics/bomb.png"] == (
            "9000 x 9000 pixels are more than limits.pixels = 50000000; raise it if they are meant"
        )


def test_an_avif_is_unsupported_with_what_to_do(root: Path) -> None:
    (root / "new.avif").write_bytes(draw("AVIF"))
    rows = read(root)
    assert rejected(rows) == {"pics/new.avif": "UNSUPPORTED"}
    assert messages(rows)["pics/new.avif"] == (
        "avif: TensorFlow cannot decode AVIF; write all images as JPEG (--set image.encode.format=jpeg), or let it "
        "pass: add avif to input.formats"
    )
    assert passed(read(root, formats=("jpeg", "avif")))["new.avif"]["image/format"] == "avif"


@pytest.mark.timeout(20)
def test_a_named_pipe_is_never_opened(root: Path) -> None:
    os.mkfifo(root / "pipe.jpg")
    rows = read(root)
    assert rejected(rows) == {"pics/pipe.jpg": "NOT_A_FILE"}
    assert messages(rows)["pics/pipe.jpg"] == "it is a named pipe; only regular files are read"


@pytest.mark.timeout(20)
def test_a_named_pipe_that_took_a_files_place_does_not_block(root: Path) -> None:
    source = made_source("images", (str(root),))
    survey = source.survey(source.list_files(), lambda f, items: [f(i) for i in items])
    (root / "good.jpg").unlink()
    os.mkfifo(root / "good.jpg")
    (rows,) = source.read(Task(0, survey.pieces), survey.frozen)
    assert list(rejected(rows).values()) == ["NOT_A_FILE"]


def test_links_out_of_the_root_in_a_circle_or_to_nowhere_are_rejects(root: Path) -> None:
    (root.parent / "secret.jpg").write_bytes(draw())
    (root / "passwd.jpg").symlink_to("/etc/passwd")
    (root / "up.jpg").symlink_to("../secret.jpg")
    (root / "out").symlink_to("/etc")
    (root / "circle").symlink_to(".")
    (root / "self.jpg").symlink_to("self.jpg")
    (root / "nowhere.jpg").symlink_to("gone.jpg")
    (root / "far.jpg").symlink_to("/nowhere/at/all.jpg")
    (root / "inside.jpg").symlink_to("good.jpg")
    rows = read(root)
    assert sorted(passed(rows)) == ["good.jpg", "inside.jpg"]
    assert rejected(rows) == {
        "pics/circle": "NOT_A_FILE",
        "pics/far.jpg": "MISSING_FILE",
        "pics/nowhere.jpg": "MISSING_FILE",
        "pics/out": "OUTSIDE_ROOT",
        "pics/passwd.jpg": "OUTSIDE_ROOT",
        "pics/self.jpg": "MISSING_FILE",
        "pics/up.jpg": "OUTSIDE_ROOT",
    }
    assert messages(rows)["pics/nowhere.jpg"].startswith("the link leads nowhere: No such file or directory")


def test_a_link_that_was_turned_out_of_the_root_after_the_listing_is_not_followed(root: Path) -> None:
    (root / "link.jpg").symlink_to("good.jpg")
    source = made_source("images", (str(root),))
    survey = source.survey(source.list_files(), lambda f, items: [f(i) for i in items])
    for name in ("link.jpg", "good.jpg"):
        (root / name).unlink()
        (root / name).symlink_to("/etc/passwd")
    (rows,) = source.read(Task(0, survey.pieces), survey.frozen)
    assert set(rejected(rows).values()) == {"OUTSIDE_ROOT"}
    assert rows.batch.num_rows == 0


def test_a_root_that_is_a_link_itself_is_read(root: Path) -> None:
    (root.parent / "alias").symlink_to("pics")
    assert list(passed(read(root.parent / "alias"))) == ["good.jpg"]


def test_names_with_brackets_and_stars_are_read_as_they_stand(root: Path) -> None:
    for name in ("a[1].jpg", "b*.jpg", "c?.jpg"):
        (root / name).write_bytes(draw())
    assert sorted(passed(read(root))) == ["a[1].jpg", "b*.jpg", "c?.jpg", "good.jpg"]


def test_a_name_that_is_not_utf8_is_a_reject_and_the_run_goes_on(root: Path) -> None:
    name = os.fsencode(root) + b"/caf\xe9.jpg"
    with open(name, "wb") as file:
        file.write(draw())
    rows = read(root)
    assert list(passed(rows)) == ["good.jpg"]
    assert rejected(rows) == {"pics/caf\\xe9.jpg": "BAD_UTF8"}
    assert rows.rejects[0].errors[0].value == "pics/caf\\xe9.jpg"  # as on every machine: no absolute path
    assert rows.rejects[0].to_json_line().isprintable()


def test_a_class_that_is_not_utf8_is_no_class_and_its_images_are_rejects(root: Path) -> None:
    os.mkdir(os.fsencode(root) + b"/\xff")
    shutil.move(root / "good.jpg", os.fsencode(root) + b"/\xff/good.jpg")
    (root / "cat").mkdir()
    (root / "cat/1.jpg").write_bytes(draw())
    rows = read(root)
    assert passed(rows)["cat/1.jpg"]["image/class/label"] == 0
    assert rejected(rows) == {"pics/\\xff/good.jpg": "BAD_UTF8"}


def test_line_breaks_and_escapes_in_names_are_shown_escaped_and_kept_in_the_record(root: Path) -> None:
    evil = "a\n2026-01-01 OK\x1b[2J.jpg"
    (root / evil).write_bytes(b"no image")
    (root / ("b" + evil)).write_bytes(draw())
    rows = read(root)
    assert "b" + evil in passed(rows)
    (reject,) = rows.rejects
    assert reject.place.source == "pics/a\\n2026-01-01 OK\\x1b[2J.jpg"
    assert reject.to_json_line().isprintable()


def test_classes_of_two_unicode_forms_stay_two_and_are_warned_of(root: Path) -> None:
    (root / "good.jpg").unlink()
    for name in ("caf\u00e9", "cafe\u0301"):
        (root / name).mkdir()
        (root / name / "1.jpg").write_bytes(draw())
    source = made_source("images", (str(root),))
    survey = source.survey(source.list_files(), lambda f, items: [f(i) for i in items])
    assert survey.frozen.labels == {"image/class/label": ("cafe\u0301", "caf\u00e9")}
    assert len(survey.warnings) == 1


def test_one_class_name_in_two_folders_is_two_classes_or_asked_for(root: Path) -> None:
    (root / "good.jpg").unlink()
    for name in ("wild/cat", "tame/cat", "tame/old dog"):
        (root / name).mkdir(parents=True)
        (root / name / "1.jpg").write_bytes(draw())
    with pytest.raises(UsageError, match=r"choose one of:\n  --set input\.layout="):
        read(root)
    records = passed(read(root, layout="label")).values()
    assert {r["image/class/text"]: r["image/class/label"] for r in records} == {
        "tame/cat": 0,
        "tame/old dog": 1,
        "wild/cat": 2,
    }


def test_many_files_are_listed_once_with_one_look_at_each(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(300):
        (root / f"{i}.jpg").write_bytes(draw(size=(4, 4)))
    looks: list[bytes] = []

    @contextmanager
    def scan(path: bytes) -> Iterator[Iterator[FolderEntry]]:
        with os.scandir(path) as entries:
            yield (Looked(entry, looks) for entry in entries)

    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("a listing opens no file"))
    assert list_images([str(root)], "/", scan).files == 301
    assert len(set(looks)) == len(looks) == 301


class Looked:
    """An entry of a folder that keeps account of who asked what it is."""

    def __init__(self, entry: os.DirEntry[bytes], looks: list[bytes]) -> None:
        self.entry, self.looks = entry, looks
        self.name, self.path = entry.name, entry.path

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.entry.is_dir(follow_symlinks=follow_symlinks)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        self.looks.append(self.name)
        return self.entry.stat(follow_symlinks=follow_symlinks)


def test_a_gif_without_its_trailer_is_truncated(root: Path) -> None:
    (root / "cut.gif").write_bytes(draw("GIF")[:-1])
    assert rejected(read(root)) == {"pics/cut.gif": "TRUNCATED"}


def test_images_that_tensorflow_cannot_read_are_unsupported(root: Path) -> None:
    for bits in (1, 4, 16):
        data = bytearray(draw("BMP"))
        data[28] = bits
        (root / f"{bits}.bmp").write_bytes(data)
    rle = bytearray(draw("BMP", mode="L"))
    rle[30] = 1
    (root / "rle.bmp").write_bytes(rle)
    (root / "lossless.jpg").write_bytes(draw().replace(b"\xff\xc0", b"\xff\xc3"))
    (root / "deep.jpg").write_bytes(draw().replace(b"\xff\xc0\x00\x11\x08", b"\xff\xc0\x00\x11\x0c"))
    (root / "scan.tif").write_bytes(draw("TIFF"))
    (root / "film.jp2").write_bytes(draw("JPEG2000"))
    names = ["1.bmp", "16.bmp", "4.bmp", "deep.jpg", "film.jp2", "lossless.jpg", "rle.bmp", "scan.tif"]
    assert rejected(read(root)) == {f"pics/{name}": "UNSUPPORTED" for name in names}


def test_a_file_gone_since_the_listing_is_a_reject(root: Path) -> None:
    (root / "gone.jpg").write_bytes(draw())
    source = made_source("images", (root.name,), str(root.parent))
    survey = source.survey(source.list_files(), lambda f, items: [f(i) for i in items])
    (root / "gone.jpg").unlink()
    (rows,) = source.read(Task(0, survey.pieces), survey.frozen)
    assert list(passed(rows)) == ["good.jpg"]
    assert rejected(rows) == {"pics/gone.jpg": "MISSING_FILE"}
    assert messages(rows)["pics/gone.jpg"] == (
        "the file is gone: No such file or directory; restore it, or take it away"
    )


def test_a_file_that_became_a_folder_is_a_reject(root: Path) -> None:
    (root / "odd.jpg").write_bytes(draw())
    source = made_source("images", (root.name,), str(root.parent))
    survey = source.survey(source.list_files(), lambda f, items: [f(i) for i in items])
    (root / "odd.jpg").unlink()
    (root / "odd.jpg").mkdir()
    (rows,) = source.read(Task(0, survey.pieces), survey.frozen)
    assert rejected(rows) == {"pics/odd.jpg": "NOT_A_FILE"}


@contextmanager
def as_nobody() -> Iterator[None]:
    """Drop root's rights, which no permission stops; another user has none to drop."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_root() -> Iterator[Path]:
    """A folder that every user may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        folder.chmod(0o755)
        (folder / "pics").mkdir()
        (folder / "pics/good.jpg").write_bytes(draw())
        yield folder / "pics"
    finally:
        for path in folder.rglob("*"):
            path.chmod(0o755)
        shutil.rmtree(folder)


def test_a_file_that_may_not_be_read_is_a_reject(open_root: Path) -> None:
    (open_root / "private.jpg").write_bytes(draw())
    (open_root / "private.jpg").chmod(0)
    with as_nobody():
        rows = read(open_root)
    assert list(passed(rows)) == ["good.jpg"]
    assert rejected(rows) == {"pics/private.jpg": "UNREADABLE"}
    assert messages(rows)["pics/private.jpg"] == "cannot be read: Permission denied; look at its permissions"


def test_a_folder_that_may_not_be_read_is_an_error_since_its_images_cannot_be_counted(open_root: Path) -> None:
    (open_root / "private").mkdir()
    (open_root / "private").chmod(0)
    with as_nobody(), pytest.raises(InputError, match="private: the folder cannot be read: Permission denied"):
        read(open_root)


def test_the_machines_own_trouble_fails_the_run_and_is_no_reject(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many_open(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", too_many_open)
    with pytest.raises(SourceError, match=r"good.jpg: cannot be read: Too many open files; run again"):
        read(root)


def test_a_file_over_the_limit_of_bytes_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (root / "huge.jpg").open("wb") as file:
        file.truncate(300 << 20)
    (reject,) = read(root).rejects
    assert isinstance(reject, Reject)
    assert (reject.errors[0].code, reject.errors[0].message) == (
        "FIELD_TOO_LARGE",
        "314572800 bytes are more than limits.image_bytes = 268435456; raise it if they are meant",
    )
    assert rejected(read(root, limits=Limits(image_bytes=10))) == {
        "pics/good.jpg": "FIELD_TOO_LARGE",
        "pics/huge.jpg": "FIELD_TOO_LARGE",
    }
