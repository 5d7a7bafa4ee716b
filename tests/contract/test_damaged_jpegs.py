"""JPEGs whose data are damaged are counted and named wherever pictures are decoded; `check: strict` rejects them."""

from __future__ import annotations

import io
import itertools
import json
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.errors import ShardmillWarning, UsageError
from shardmill.transforms.pictures import pillow_decode
from shardmill.transforms.pictures.codec import Codec, decode
from shardmill.transforms.pictures.facts import ImageProblem
from shardmill.transforms.pictures.options import Preprocess, Resize
from shardmill.transforms.pictures.preprocess import PictureMaker
from shardmill.transforms.pictures.structure import ImageCheck

from ..command_line import Shardmill

RNG = np.random.default_rng(20261125)
SHAPES = np.add.outer(np.sin(np.arange(240) / 17), np.cos(np.arange(320) / 9))[..., None] * 60 + 128
PIXELS = (SHAPES + RNG.normal(0, 12, (240, 320, 3))).clip(0, 255).astype(np.uint8)


def jpeg(mode: str = "RGB", **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(PIXELS).convert(mode).save(file, "JPEG", quality=85, **options)
    return file.getvalue()


def middle(data: bytes) -> int:
    return (data.index(b"\xff\xda") + len(data)) // 2


def overwritten(data: bytes, fill: bytes) -> bytes:
    return data[: middle(data)] + fill + data[middle(data) + len(fill) :]


def noise(count: int) -> bytes:
    return RNG.bytes(count).replace(b"\xff", b"\xfe")


PLAIN, RESTARTS = jpeg(), jpeg(restart_marker_rows=2)
SOUND = {
    "baseline": PLAIN,
    "progressive": jpeg(progressive=True),
    "restart intervals": RESTARTS,
    "gray": jpeg("L"),
    "Adobe CMYK": jpeg("CMYK"),
    "progressive CMYK": jpeg("CMYK", progressive=True),
    "4:4:4": jpeg(subsampling=0),
    "EXIF": jpeg(exif=Image.Exif()),
    "fill bytes before the end": PLAIN[:-2] + b"\xff" * 9 + PLAIN[-2:],
    "fill bytes before a segment": PLAIN[:2] + b"\xff" * 5 + PLAIN[2:],
    "bytes after the end": PLAIN + b"made by a camera" * 9,
    "a picture after the end": PLAIN + PLAIN,
}
DAMAGED = {
    "zeros": overwritten(PLAIN, bytes(2000)),
    "noise": overwritten(PLAIN, noise(2000)),
    "a run removed": PLAIN[: middle(PLAIN)] + PLAIN[middle(PLAIN) + 2000 :],
    "a restart marker lost": RESTARTS.replace(b"\xff\xd3", b"", 1),
    "all restart markers lost": re.sub(rb"\xff[\xd0-\xd7]", b"", RESTARTS),
    "an end in the middle": overwritten(PLAIN, b"\xff\xd9"),
    "progressive, zeros": overwritten(SOUND["progressive"], bytes(6000)),
    "progressive, noise": overwritten(SOUND["progressive"], noise(2000)),
    "gray, zeros": overwritten(SOUND["gray"], bytes(2000)),
    "CMYK, zeros": overwritten(SOUND["Adobe CMYK"], bytes(2000)),
    "CMYK, noise": overwritten(SOUND["Adobe CMYK"], noise(2000)),
    "padded with zeros before its end": PLAIN[:-2] + bytes(64) + PLAIN[-2:],
}
RARE = PLAIN.replace(b"\x03\x01\x22\x00", b"\x03\x01\x31\x00", 1)
"""A JPEG whose components are sampled as simplejpeg does not read it."""

CODECS = [Codec.installed(), Codec.installed(("pillow",))]


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_jpeg_has_no_warning_whichever_decoder_takes_it(name: str) -> None:
    for level in ("structure", "decode", "strict"):
        assert ImageCheck(level).check(SOUND[name]).warning is None  # type: ignore[arg-type]
    for options in (Preprocess(Resize(64, 64)), Preprocess(color="gray"), Preprocess(format="png")):
        made = PictureMaker(options, CODECS[0]).make(SOUND[name], ImageCheck().check(SOUND[name]))
        assert (made.data is None, made.warning) == (name == "gray" and options.color == "gray", None)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_jpeg_has_a_warning_whichever_decoder_takes_it_and_strict_rejects_it(name: str) -> None:
    data = DAMAGED[name]
    assert ImageCheck("structure").check(data).warning is None
    warning = ImageCheck("decode").check(data).warning
    assert warning
    with pytest.raises(ImageProblem, match=re.escape(f"the JPEG is damaged: libjpeg warns: {warning}")) as caught:
        ImageCheck("strict").check(data)
    assert caught.value.code == "CORRUPT"
    for options in (Preprocess(Resize(64, 64)), Preprocess(Resize(200, 200)), Preprocess(format="png")):
        assert PictureMaker(options, CODECS[0]).make(data, ImageCheck().check(data)).warning == warning


@pytest.mark.parametrize("name", {**SOUND, **DAMAGED})
def test_pixels_are_those_of_a_lenient_decoder(name: str) -> None:
    import simplejpeg

    data = {**SOUND, **DAMAGED}[name]
    facts = ImageCheck().check(data)
    if facts.colorspace == "CMYK":
        fast, slow = (decode(data, facts, codec, (320, 240), gray=False)[0] for codec in CODECS)
        assert np.array_equal(fast, slow)
        return
    for scale, gray in itertools.product((1, 4), (True, False)):
        size = (320 // scale, 240 // scale)
        pixels, _ = CODECS[0].decode_jpeg(data, (320, 240), size, gray=gray)
        space = "GRAY" if gray else "RGB"
        settings = {"fastdct": False, "fastupsample": False, "strict": False}
        wanted = simplejpeg.decode_jpeg(
            data, space, min_height=size[1], min_width=size[0], min_factor=scale, **settings
        )
        assert np.array_equal(pixels, wanted)


def test_a_sound_jpeg_is_decoded_once_and_a_damaged_one_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    import simplejpeg

    calls: list[bool] = []
    decode = simplejpeg.decode_jpeg

    def counted(*args: Any, **settings: Any) -> Any:
        calls.append(settings["strict"])
        return decode(*args, **settings)

    monkeypatch.setattr(simplejpeg, "decode_jpeg", counted)
    for data, wanted in ((PLAIN, [True]), (DAMAGED["zeros"], [True, False])):
        for level in ("decode", "strict"):
            calls.clear()
            try:
                ImageCheck(level).check(data)  # type: ignore[arg-type]
            except ImageProblem:
                assert level == "strict"
            assert calls == wanted
        calls.clear()
        PictureMaker(Preprocess(Resize(64, 64)), CODECS[0]).make(data, ImageCheck().check(data))
        assert calls == wanted


def test_a_jpeg_of_a_rare_sampling_is_read_by_pillow_and_no_reject() -> None:
    """simplejpeg refuses to read it: nobody reports what libjpeg warns of."""
    facts = ImageCheck("decode").check(RARE)
    made = [PictureMaker(Preprocess(Resize(64, 64)), codec).make(RARE, facts) for codec in CODECS]
    assert [(one.facts.width, one.warning) for one in made] == [(85, None), (85, None)]


def test_without_the_extra_there_are_no_warnings_and_strict_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pillow_decode, "has_simplejpeg", lambda: False)
    monkeypatch.setattr("shardmill.transforms.pictures.structure.has_simplejpeg", lambda: False)
    assert ImageCheck("decode").check(DAMAGED["zeros"]).warning is None
    assert PictureMaker(Preprocess(Resize(64, 64)), CODECS[1]).make(PLAIN, ImageCheck().check(PLAIN)).warning is None
    with pytest.raises(UsageError, match=r"input.check: strict takes simplejpeg, which is not installed; .*images"):
        ImageCheck("strict")


NAMES = {"0.jpg": PLAIN, "1.jpg": DAMAGED["zeros"], "2.jpg": SOUND["Adobe CMYK"], "3.jpg": DAMAGED["CMYK, noise"]}
"""Pictures of which the first and the third are sound."""


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def folders() -> tuple[str, dict[str, Any]]:
    for number, (name, data) in enumerate(NAMES.items()):
        path = Path("pics", "ab"[number % 2], name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return "pics", {}


def flat() -> Path:
    Path("flat").mkdir()
    for name, data in NAMES.items():
        Path("flat", name).write_bytes(data)
    return Path("flat")


def metadata() -> tuple[str, dict[str, Any]]:
    lines = [json.dumps({"file_name": name, "n": number}) for number, name in enumerate(NAMES)]
    (flat() / "metadata.jsonl").write_text("\n".join(lines) + "\n")
    return "flat", {}


def paths_in_csv() -> tuple[str, dict[str, Any]]:
    flat()
    Path("t.csv").write_text("n,photo\n" + "".join(f"{n},flat/{name}\n" for n, name in enumerate(NAMES)))
    return "t.csv", {"schema__columns__photo__image": "path"}


def bytes_in_parquet() -> tuple[str, dict[str, Any]]:
    pq.write_table(pa.table({"n": range(4), "photo": list(NAMES.values())}), "t.parquet")
    return "t.parquet", {"schema__columns__photo__image": "bytes"}


def lists_in_parquet() -> tuple[str, dict[str, Any]]:
    pq.write_table(pa.table({"n": range(4), "photo": [[PLAIN, data] for data in NAMES.values()]}), "t.parquet")
    return "t.parquet", {"schema__columns__photo__image": "bytes"}


def exported() -> tuple[str, dict[str, Any]]:
    photos = [{"bytes": data, "path": name} for name, data in NAMES.items()]
    pq.write_table(pa.table({"photo": pa.array(photos)}), "t.parquet")
    return "t.parquet", {}


def coco() -> tuple[str, dict[str, Any]]:
    flat()
    images = [{"id": n, "file_name": name, "width": 320, "height": 240} for n, name in enumerate(NAMES)]
    boxes = [
        {"id": n, "image_id": n, "category_id": 1, "bbox": [1, 1, 5, 5], "area": 25, "iscrowd": 0} for n in range(4)
    ]
    document = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "cat"}]}
    Path("coco.json").write_text(json.dumps(document))
    return "flat", {"input__annotations": {"coco": ["coco.json"]}}


def yolo() -> tuple[str, dict[str, Any]]:
    flat()
    Path("labels").mkdir()
    for name in NAMES:
        Path("labels", name).with_suffix(".txt").write_text("0 0.5 0.5 0.1 0.1\n")
    return "flat", {"input__annotations": {"yolo": "labels", "classes": ["cat"]}}


def voc() -> tuple[str, dict[str, Any]]:
    flat()
    Path("xml").mkdir()
    for name in NAMES:
        box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"
        Path("xml", name).with_suffix(".xml").write_text(
            f"<annotation><filename>{name}</filename><size><width>320</width><height>240</height><depth>3</depth></size>"
            f"<object><name>cat</name>{box}</object></annotation>"
        )
    return "flat", {"input__annotations": {"voc": "xml"}}


def tar() -> tuple[str, dict[str, Any]]:
    with tarfile.open("t.tar", "w") as file:
        for name, data in NAMES.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return "t.tar", {}


def zipped() -> tuple[str, dict[str, Any]]:
    with zipfile.ZipFile("t.zip", "w") as file:
        for name, data in NAMES.items():
            file.writestr(name, data)
    return "t.zip", {}


WAYS = {
    one.__name__: one
    for one in (
        folders, metadata, paths_in_csv, bytes_in_parquet, lists_in_parquet, exported, coco, yolo, voc, tar, zipped
    )
}  # fmt: skip
Way = Callable[[], tuple[str, dict[str, Any]]]


def warned(record: pytest.WarningsRecorder) -> list[str]:
    return [str(one.message) for one in record if "says libjpeg" in str(one.message)]


@pytest.mark.parametrize(
    "decodes", [{"check": "decode"}, {"image__resize": 64}, {"check": "decode", "image__resize": 64}]
)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_damaged_pictures_are_counted_once_and_named_on_every_way_in(way: Way, decodes: dict[str, Any]) -> None:
    path, settings = way()
    with pytest.warns(ShardmillWarning) as record:
        summary = convert(path, output="out", **settings, **decodes)
    (text,) = warned(record)
    assert text.startswith("2 JPEG pictures are damaged or padded, says libjpeg (input.check=strict rejects them): ")
    assert "premature end of data segment" in text
    assert "extraneous bytes before marker 0xd9" in text
    assert summary.manifest.counts.written == 4
    assert summary.manifest.details.checks["pictures"]["records"] == 2


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_strict_rejects_damaged_pictures_on_every_way_in(way: Way) -> None:
    path, settings = way()
    for number, more in enumerate(({}, {"image__resize": 64}, {"image__filter": {"min_side": 8}})):
        summary = convert(path, output=f"out{number}", check="strict", max_rejects=2, **settings, **more)
        assert summary.manifest.rejects.by_code == {"CORRUPT": 2}
        assert "pictures" not in summary.manifest.details.checks
        lines = [json.loads(line) for line in Path(f"out{number}/rejects/00000001.jsonl").read_text().splitlines()]
        assert all("libjpeg warns: " in line["errors"][0]["message"] for line in lines)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_no_byte_of_a_record_changes_by_a_warning_and_none_is_looked_for_unless_pictures_are_decoded(way: Way) -> None:
    path, settings = way()
    convert(path, output="plain", **settings)
    assert "pictures" not in open_dataset("plain").manifest.details.checks
    with pytest.warns(ShardmillWarning):
        convert(path, output="decoded", check="decode", **settings)
    held = [[*open_dataset(name).records("train")] for name in ("plain", "decoded")]
    assert held[0] == held[1]


@pytest.mark.parametrize("kind", ["frame", "arrow", "dicts"])
def test_data_in_python_too(kind: str) -> None:
    rows = [{"n": number, "photo": data} for number, data in enumerate(NAMES.values())]
    data: Any = {"frame": pd.DataFrame(rows), "arrow": pa.Table.from_pylist(rows), "dicts": rows}[kind]
    given: dict[str, Any] = {"data": data, "schema__columns__photo__image": "bytes"}
    with pytest.warns(ShardmillWarning, match="2 JPEG pictures are damaged or padded"):
        convert(output="decode", check="decode", **given)
    summary = convert(output="strict", check="strict", max_rejects=2, **given)
    assert summary.manifest.rejects.by_code == {"CORRUPT": 2}
    with pytest.raises(UsageError, match=r'input.check: "deep" is not a check'):
        convert(output="x", check="deep", **given)


def test_an_append_counts_its_own(shardmill: Shardmill) -> None:
    bytes_in_parquet()
    shown = shardmill("convert", "t.parquet", "-o", "out", "--set", "schema.columns.photo.image=bytes").out
    assert "says libjpeg" not in shown
    pq.write_table(pa.table({"n": [5], "photo": [DAMAGED["zeros"]]}), "more.parquet")
    with pytest.warns(ShardmillWarning) as record:
        append("more.parquet", output="out", check="decode")
    assert warned(record) == [
        "1 JPEG picture is damaged or padded, says libjpeg (input.check=strict rejects it): more.parquet row 1 "
        "(premature end of data segment)"
    ]


def test_a_screen_a_dry_run_json_and_the_report_count_and_name_them(shardmill: Shardmill) -> None:
    folders()
    given = ("convert", "pics", "-o", "out", "--set", "input.check=decode")
    dry = shardmill(*given, "--dry-run").out
    named = "pics/b/1.jpg (premature end of data segment), pics/b/3.jpg"
    text = f"are damaged or padded, says libjpeg (input.check=strict rejects them): {named}"
    assert f"Warning: 2 JPEG pictures in the sample {text}" in dry
    assert f"in the sample {text}" in json.loads(shardmill(*given, "--dry-run", "--json").out)["warnings"][-1]
    assert f"Warning: 2 JPEG pictures {text}" in shardmill(*given).out
    assert shardmill("report", "out", "-o", "r.html").code == 0
    text = Path("r.html").read_text()
    assert "Damaged or padded JPEG pictures in generation 1" in text
    assert "<li>pics/b/1.jpg (premature end of data segment)</li>" in text
    strict = shardmill("convert", "pics", "-o", "strict", "--set", "input.check=strict")
    assert strict.code == 4
    assert "2 of 4 rows were rejected (CORRUPT 2)" in strict.err


def test_many_are_counted_and_the_first_ten_are_named_whatever_the_tasks(shardmill: Shardmill) -> None:
    Path("pics").mkdir()
    for number in range(40):
        Path("pics", f"{number:02d}.jpg").write_bytes(DAMAGED["zeros"] if number % 2 else PLAIN)
    found = []
    for number, workers in enumerate(("1", "3")):
        done = shardmill(
            "convert", "pics", "-o", f"{number}", "--name", "pics", "--set", "image.resize=64", "--workers", workers
        )
        assert "pics/19.jpg (premature end of data segment) and 10 more" in done.out
        found.append(open_dataset(f"{number}").manifest.details.checks)
    assert found[0] == found[1]
    assert len(found[0]["pictures"]["examples"]) == 10


@pytest.mark.parametrize("source", ["rows.csv", "records"])
def test_a_check_of_pictures_is_refused_where_there_are_none_to_decode(source: str, shardmill: Shardmill) -> None:
    Path("rows.csv").write_text("a\n1\n")
    convert("rows.csv", output="records")
    path = "records/*.tfrecord" if source == "records" else source
    refused = shardmill("convert", path, "-o", "out", "--set", "input.check=strict")
    why = "existing records are copied as they are" if source == "records" else "there are no pictures"
    assert (refused.code, refused.err) == (2, f"error: input.check is strict, and {why}; leave the key out\n")
