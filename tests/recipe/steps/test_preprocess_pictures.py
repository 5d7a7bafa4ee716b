"""The section `image`: pictures of folders, of paths and of bytes are made ready in the same pass."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.remembered import remembered
from shardmill.pipelines.prepare.from_config import config_fingerprint, conversion_of
from shardmill.pipelines.runs.convert import dry_run
from shardmill.pipelines.runs.merge import plan_merge
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.errors import ConfigError, SchemaError, TooManyRejects, UsageError
from shardmill.transforms.pictures.codec import Codec

from ...command_line import Shardmill

SIZES = {"cat/wide.jpg": (640, 400), "cat/tall.png": (300, 500), "dog/small.jpg": (48, 40), "dog/web.webp": (200, 200)}


def picture(width: int, height: int, kind: str, mode: str = "RGB", **options: Any) -> bytes:
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([x * 255 // width, y * 255 // height, (x + y) % 256], -1).astype(np.uint8)
    memory = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(memory, kind, **options)
    return memory.getvalue()


def suffix_of(name: str) -> str:
    return name.rpartition(".")[2].replace("jpg", "jpeg")


PICTURES = {name: picture(*size, suffix_of(name)) for name, size in SIZES.items()}


@pytest.fixture(autouse=True)
def pics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, data in PICTURES.items():
        (tmp_path / "pics" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pics" / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "pics"


def records(path: str = "out", split: str = "train") -> list[dict[str, Any]]:
    return open_dataset(path).to_arrow(split).to_pylist()


def by_name(path: str = "out") -> dict[str, dict[str, Any]]:
    return {row["image/filename"]: row for row in records(path)}


def size_of(row: dict[str, Any], name: str = "image") -> tuple[int, int]:
    """Return the size of the picture in a record, which its features state."""
    image = Image.open(io.BytesIO(row[f"{name}/encoded"]))
    assert (row[f"{name}/width"], row[f"{name}/height"]) == image.size
    assert row[f"{name}/format"] == (image.format or "").lower()
    return image.size


def test_pictures_of_a_folder_are_resized_and_small_ones_keep_their_bytes() -> None:
    convert("pics", output="out", image={"resize": 64})
    found = by_name()
    assert {name: size_of(row) for name, row in found.items()} == {
        "cat/wide.jpg": (102, 64), "cat/tall.png": (64, 107), "dog/small.jpg": (48, 40), "dog/web.webp": (64, 64),
    }  # fmt: skip
    assert found["dog/small.jpg"]["image/encoded"] == PICTURES["dog/small.jpg"]
    assert verify_dataset("out").ok


def test_all_pictures_get_one_format_one_size_and_one_colour_space() -> None:
    image = {"resize": {"size": 32, "mode": "exact"}, "encode": {"format": "jpeg", "quality": 80}, "color": "gray"}
    convert("pics", output="out", image=image)
    facts = {(size_of(row), row["image/format"], row["image/colorspace"], row["image/channels"]) for row in records()}
    assert facts == {((32, 32), "jpeg", "L", 1)}
    features = json.loads(Path("out/features.json").read_text())["featuresDict"]["features"]
    assert features["image"]["featuresDict"]["features"]["encoded"]["pythonClassName"].endswith("Image")


def test_the_manifest_states_the_steps_and_what_carried_them_out() -> None:
    convert("pics", output="out", image={"resize": {"size": {"width": 64, "height": 32}, "mode": "border"}})
    manifest = read_manifest("out")
    assert manifest.conversion["image"] == {"resize": {"size": {"width": 64, "height": 32}, "mode": "border"}}
    assert manifest.details.image == Codec.installed().to_json()


def test_a_filter_looks_at_headers_alone_and_drops_rows() -> None:
    image = {"filter": {"min_side": 60, "max_aspect": 1.62, "max_pixels": 300 * 500}}
    Path("pics/cat/wide_and_flat.jpg").write_bytes(picture(900, 90, "jpeg"))
    assert convert("pics", output="out", image=image).manifest.counts.dropped == 4
    assert sorted(by_name()) == ["dog/web.webp"]
    assert by_name()["dog/web.webp"]["image/encoded"] == PICTURES["dog/web.webp"]


def test_formats_that_tensorflow_cannot_read_pass_where_all_become_one_that_it_can(pics: Path) -> None:
    for kind in ("tiff", "avif"):
        (pics / "dog" / f"other.{kind}").write_bytes(picture(80, 60, kind))
    with pytest.raises(TooManyRejects, match=r"write all images as JPEG \(--set image\.encode\.format=jpeg\)"):
        convert("pics", output="no", image={"resize": 64})
    convert("pics", output="out", image={"encode": {"format": "png"}})
    assert {row["image/format"] for row in records()} == {"png"}
    assert size_of(by_name()["dog/other.tiff"]) == (80, 60)


def test_a_picture_that_cannot_be_decoded_is_a_reject_with_one_reason(pics: Path) -> None:
    memory = io.BytesIO()
    Image.fromarray(np.ones((9, 9), np.float32)).save(memory, "tiff")
    (pics / "dog" / "float.tiff").write_bytes(memory.getvalue())
    convert("pics", output="out", max_rejects=1, image={"encode": {"format": "jpeg"}})
    (line,) = Path("out/rejects/00000001.jsonl").read_text().splitlines()
    (error,) = json.loads(line)["errors"]
    assert (error["column"], error["code"]) == ("image", "UNSUPPORTED")
    assert "make them 8 or 16 bits" in error["message"]


def test_what_is_lost_is_counted_on_the_screen(pics: Path, shardmill: Shardmill) -> None:
    (pics / "dog" / "clear.png").write_bytes(picture(80, 60, "png", "RGBA"))
    other = Image.new("RGB", (200, 100), "red")
    (pics / "dog" / "moving.gif").write_bytes(picture(200, 100, "gif", save_all=True, append_images=[other]))
    done = shardmill("convert", "pics", "-o", "out", "--set", "image.resize=64", "--set", "image.encode.format=jpeg")
    shown = " ".join((done.out + done.err).split())
    assert "animated images, of which the first frame was kept: 1" in shown
    assert "most readers decode" not in shown
    assert "laid on white" not in shown
    assert "Pictures made ready: resize 64, mode keep_ratio, format jpeg" in shardmill("info", "out").out


def test_a_picture_that_is_none_is_a_reject_once() -> None:
    pq.write_table(pa.table({"photo": [PICTURES["cat/wide.jpg"][:500], b"no", PICTURES["cat/tall.png"]]}), "t.parquet")
    columns = {"photo": {"image": "bytes"}}
    convert("t.parquet", output="out", max_rejects=2, schema={"columns": columns}, image={"resize": 40})
    lines = map(json.loads, Path("out/rejects/00000001.jsonl").read_text().splitlines())
    assert [[error["code"] for error in line["errors"]] for line in lines] == [["TRUNCATED"], ["NOT_AN_IMAGE"]]


@pytest.mark.parametrize("key", ["path", "bytes"])
def test_columns_of_pictures_are_made_ready_too(key: str) -> None:
    values = [*PICTURES] if key == "path" else [*PICTURES.values()]
    pq.write_table(pa.table({"photo": values}), "pics/t.parquet")
    columns = {"photo": {"image": key}}
    convert("pics/t.parquet", output="out", schema={"columns": columns}, image={"resize": 40})
    assert [min(size_of(row, "photo")) for row in records()] == [40, 40, 40, 40]


def test_lists_of_pictures_are_made_ready_and_a_row_stays_if_all_pass() -> None:
    rows = [[{"bytes": PICTURES[name], "path": name} for name in names] for names in ([*PICTURES], ["cat/tall.png"])]
    pq.write_table(pa.table({"photos": rows}), "t.parquet")
    convert("t.parquet", output="out", image={"resize": 40, "filter": {"min_side": 41}})
    ((row,),) = [records()]
    assert (row["photos/width"], row["photos/height"]) == ([40], [67])
    convert("t.parquet", output="all", image={"resize": 30, "encode": {"format": "png"}})
    assert [row["photos/width"] for row in records("all")] == [[48, 30, 36, 30], [30]]


def test_a_null_picture_stays_null() -> None:
    pq.write_table(pa.table({"photo": [PICTURES["cat/wide.jpg"], None]}), "t.parquet")
    columns = {"photo": {"image": "bytes", "null": "absent"}}
    convert("t.parquet", output="out", schema={"columns": columns}, image={"resize": 40})
    assert [row["photo/height"] for row in records()] == [40, None]


def test_masks_get_their_nearest_pixels_stay_png_and_follow_a_turned_picture() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    numbers = np.zeros((40, 80), np.uint8)
    numbers[:20, :40] = 7
    mask = Image.fromarray(numbers)
    mask.putpalette([index for color in range(256) for index in (color, 0, 255 - color)])
    memory = io.BytesIO()
    mask.save(memory, "png")
    photo = picture(80, 40, "jpeg", exif=exif)
    pq.write_table(pa.table({"photo": [photo], "mask": [memory.getvalue()]}), "t.parquet")
    columns = {"photo": {"image": "bytes"}, "mask": {"image": "bytes"}}
    image = {"resize": 20, "orientation": "apply", "encode": {"format": "jpeg"}, "masks": ["mask"]}
    convert("t.parquet", output="out", schema={"columns": columns}, image=image)
    (row,) = records()
    assert (size_of(row, "photo"), size_of(row, "mask")) == ((20, 40), (20, 40))
    found = Image.open(io.BytesIO(row["mask/encoded"]))
    assert (found.format, found.mode) == ("PNG", "P")
    expected = np.zeros((40, 20), np.uint8)
    expected[:20, 10:] = 7  # the upper left became the upper right
    assert np.array_equal(np.asarray(found), expected)


def test_an_append_does_what_was_done_and_knows_the_files_that_it_has_by_their_digests(pics: Path) -> None:
    image = {"resize": 64, "encode": {"format": "jpeg"}}
    convert("pics", output="out", image=image)
    digests = {row["image/filename"]: row["image/key/sha256"] for row in records()}
    assert digests == {name: hashlib.sha256(data).hexdigest() for name, data in PICTURES.items()}
    assert append("pics", output="out").nothing_to_do
    (pics / "cat" / "new.png").write_bytes(picture(300, 100, "png"))
    append("pics", output="out")
    assert len(records()) == 5
    assert size_of(by_name()["cat/new.png"]) == (192, 64)
    assert by_name()["cat/new.png"]["image/format"] == "jpeg"
    assert read_manifest("out").conversion["image"] == {"resize": {"size": 64}, "encode": {"format": "jpeg"}}


def test_an_append_that_would_do_something_else_is_refused_with_both() -> None:
    convert("pics", output="out", image={"resize": 64})
    text = r"are written with resize 64, mode keep_ratio, quality 95, and would be written with resize 32, "
    with pytest.raises(UsageError, match=text):
        append("pics", output="out", image={"resize": 32})
    convert("pics", output="plain")
    with pytest.raises(UsageError, match=r"are written as they are, and would be written with resize 64"):
        append("pics", output="plain", image={"resize": 64})


def test_a_picture_that_was_replaced_is_refused_in_an_append(pics: Path) -> None:
    convert("pics", output="out", image={"resize": 64})
    (pics / "cat" / "tall.png").write_bytes(picture(301, 500, "png"))
    (pics / "cat" / "new.png").write_bytes(picture(300, 100, "png"))
    with pytest.raises(UsageError, match=r"cat/tall\.png"):
        append("pics", output="out")
    append("pics", output="out", changed="skip")
    assert len(records()) == 5


def test_a_merge_states_what_was_done_to_the_pictures_of_all_and_can_be_appended_to(pics: Path) -> None:
    for name, size in (("one", 64), ("two", 64), ("other", 32)):
        convert("pics", output=name, image={"resize": size})
    plan_merge("merge", ["one", "two"], {"output.path": "both"}).run()
    assert read_manifest("both").details.image == read_manifest("one").details.image
    assert read_manifest("both").conversion["image"] == {"resize": {"size": 64}}
    plan_merge("merge", ["one", "other"], {"output.path": "mixed"}).run()
    assert read_manifest("mixed").details.image == {}
    assert "image" not in read_manifest("mixed").conversion
    (pics / "cat" / "new.png").write_bytes(picture(300, 100, "png"))
    append("pics", output="both", force=True)
    assert size_of(by_name("both")["cat/new.png"]) == (192, 64)


def test_workers_write_the_same_bytes() -> None:
    for workers in (1, 2):
        image, runner = {"resize": 64, "encode": {"format": "webp"}}, {"name": "local", "workers": workers}
        convert("pics", output=f"out{workers}", runner=runner, image=image)
    one, two = (sorted(Path(f"out{n}").glob("train-*")) for n in (1, 2))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_a_dry_run_estimates_the_pictures_that_are_written() -> None:
    image = {"resize": 16}
    planned = dry_run(
        conversion_of(load_config({"input": {"paths": ["pics"]}, "output": {"path": "out"}, "image": image}))
    )
    convert("pics", output="out", image=image)
    written = sum(path.stat().st_size for path in Path("out").glob("train-*"))
    assert sum(split.bytes for split in planned.splits) == pytest.approx(written, rel=0.02)


def test_without_a_picture_the_section_is_refused_with_what_makes_one() -> None:
    Path("t.csv").write_text("a\n1\n")
    with pytest.raises(SchemaError, match=r"image: there is no picture .*--set schema\.columns\.NAME\.image=path"):
        convert("t.csv", output="out", image={"resize": 64})
    with pytest.raises(SchemaError, match=r'image\.masks names "mask", which is not a column; there are: image'):
        convert("pics", output="out", image={"resize": 64, "masks": ["mask"]})


@pytest.mark.parametrize(
    ("image", "text"),
    [
        (
            {"resize": 0},
            r"resize\.size: 0 is no side of 1 to 16383 pixels, nor two: \{width: 320, height: 240\}",
        ),
        (
            {"resize": {"size": {"width": 3, "height": 4}}},
            r"keep_ratio takes one number, the length of the shorter",
        ),
        ({"encode": {"format": "webp"}, "color": "gray"}, r"WebP has no gray; choose encode: \{format: jpeg\} or png"),
        ({"encode": {"quality": 101}}, r"image\.encode\.quality: 101 "),
        ({"resize": {"size": 3, "mode": "crop"}}, r'"crop" is not a choice; choices: keep_ratio, keep_ratio_largest, '),
        ({"boxes_on": "turned"}, r"boxes_on: turned is for pictures that are turned; add"),
        ({"filter": {"max_aspect": 0.5}}, r"image\.filter\.max_aspect"),
    ],
)
def test_a_value_that_is_none_is_refused_with_those_that_are(image: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        convert("pics", output="out", image=image)


def test_the_section_is_in_the_fingerprint_and_remembered() -> None:
    def prints(**keys: Any) -> tuple[str, str]:
        config = load_config({"input": {"paths": ["pics"]}, "output": {"path": "out"}, **keys})
        return config_fingerprint(config), json.dumps(remembered(config, []))

    plain, resized, other = prints(), prints(image={"resize": 64}), prints(image={"resize": 65})
    assert len({*plain, *resized, *other}) == 6
    assert prints(image=None) == plain


@pytest.mark.parametrize(
    ("size", "image", "text"),
    [
        ((1, 30_000), {"encode": {"format": "webp"}}, r"a side of WEBP has at most 16383; resize it, or write PNG"),
        ((66_000, 2), {"encode": {"format": "jpeg"}}, r"a side of JPEG has at most 65500"),
        ((1, 30_000), {"resize": {"size": 256, "upscale": True}}, r"resized to 256 x 7680000 it has more pixels than"),
        (
            (9, 9),
            {"resize": {"size": 9_000, "mode": "border"}},
            r"padded to 9000 x 9000 it has more pixels than limits",
        ),
    ],
)
def test_a_picture_that_would_be_too_large_is_a_reject(
    pics: Path, size: tuple[int, int], image: dict[str, Any], text: str
) -> None:
    shutil.rmtree(pics)
    (pics / "a").mkdir(parents=True)
    (pics / "a" / "1.png").write_bytes(picture(*size, "png"))
    with pytest.raises(TooManyRejects, match=text):
        convert("pics", output="out", image=image)


@pytest.mark.parametrize(("mode", "kind"), [("F", "tiff"), ("I", "tiff"), ("CMYK", "jpeg")])
def test_a_mask_whose_numbers_png_does_not_hold_is_a_reject(mode: str, kind: str) -> None:
    memory = io.BytesIO()
    Image.new(mode, (80, 40)).save(memory, kind)
    pq.write_table(pa.table({"photo": [picture(80, 40, "jpeg")], "mask": [memory.getvalue()]}), "t.parquet")
    columns = {"photo": {"image": "bytes"}, "mask": {"image": "bytes"}}
    image = {"resize": 20, "encode": {"format": "jpeg"}, "masks": ["mask"]}
    with pytest.raises(TooManyRejects, match=rf"pixels of mode {mode} has no numbers that PNG holds"):
        convert("t.parquet", output="out", schema={"columns": columns}, image=image)


def test_a_dataset_that_was_filtered_alone_knows_its_pictures_by_their_bytes(pics: Path) -> None:
    convert("pics", output="out", image={"filter": {"min_side": 60}})
    assert "image/key/sha256" not in records()[0]
    (pics / "cat" / "new.png").write_bytes(picture(300, 100, "png"))
    append("pics", output="out")
    assert sorted(by_name()) == ["cat/new.png", "cat/tall.png", "cat/wide.jpg", "dog/web.webp"]


def test_an_append_states_the_packages_that_made_its_own_pictures(pics: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert("pics", output="out", image={"resize": 64})
    (pics / "cat" / "new.png").write_bytes(picture(300, 100, "png"))
    slow = Codec.installed(("pillow",))
    monkeypatch.setattr(Codec, "installed", lambda *names: slow)
    append("pics", output="out")
    assert read_manifest("out").conversion["image"] == {"resize": {"size": 64}}
    assert read_manifest("out").details.image == slow.to_json()
    assert read_manifest("out", 1).details.image["codec"].startswith("simplejpeg")


def test_pictures_of_a_scanner_or_a_phone_are_found_where_all_become_jpeg(pics: Path) -> None:
    shutil.rmtree(pics)
    pics.mkdir()
    (pics / "1.tif").write_bytes(picture(80, 60, "tiff"))
    (pics / "2.avif").write_bytes(picture(80, 60, "avif"))
    convert("pics", output="out", image={"encode": {"format": "jpeg"}})
    assert {row["image/format"] for row in records()} == {"jpeg"}


@pytest.mark.parametrize("flags", [["resize=50", "resize.mode=border"], ["resize.mode=border", "resize=50"]])
def test_a_size_alone_goes_with_other_keys_of_resize_in_any_order(flags: list[str], shardmill: Shardmill) -> None:
    sets = [part for flag in flags for part in ("--set", f"image.{flag}")]
    assert shardmill("convert", "pics", "-o", "out", *sets).code == 0
    assert {size_of(row) for row in records()} == {(50, 50)}
