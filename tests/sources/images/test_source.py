from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.transforms.errors import InputError, SchemaError, SourceError, UsageError
from shardmill.transforms.format.batches.rows import Rows
from shardmill.transforms.inputs.contract.source import Survey, Task
from shardmill.transforms.sources.images.listing import ImageListing
from shardmill.transforms.sources.images.pieces import view_array
from shardmill.transforms.sources.images.source import ImageLimits
from shardmill.transforms.sources.registry.settings import Limits

from ...file_sources import made_source


def draw(kind: str = "JPEG", size: tuple[int, int] = (8, 6), mode: str = "RGB", seed: int = 0, **options: Any) -> bytes:
    noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).convert(mode).save(file, kind, **options)
    return file.getvalue()


def lay(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def serial(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    return [function(item) for item in items]


def survey_of(source: Any) -> tuple[ImageListing, Survey]:
    listing = source.list_files()
    assert isinstance(listing, ImageListing)
    return listing, source.survey(listing, serial)


def read_all(source: Any) -> list[Rows]:
    _, survey = survey_of(source)
    return list(source.read(Task(0, survey.pieces), survey.frozen))


def records(batches: list[Rows]) -> list[dict[str, Any]]:
    return [row for rows in batches for row in rows.batch.to_pylist()]


def filenames(source: Any) -> list[str]:
    return [record["image/filename"] for record in records(read_all(source))]


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    return lay(
        tmp_path / "pets",
        {
            "cat/1.jpg": draw(),
            "cat/2.png": draw("PNG", mode="LA"),
            "dog/1.jpg": draw("PNG", (5, 4)),
            "dog/.hidden.jpg": draw(),
            "dog/Thumbs.db": b"junk",
            "dog/_x/2.jpg": draw(),
            "__MACOSX/dog/2.jpg": draw(),
            "desktop.ini": b"junk",
            ".DS_Store": b"junk",
        },
    )


def test_an_image_becomes_its_features(pets: Path) -> None:
    (rows,) = read_all(made_source("images", ("pets",), str(pets.parent), sha256=True))
    cat = (pets / "cat/2.png").read_bytes()
    assert rows.batch.to_pylist()[1] == {
        "image/channels": 2,
        "image/class/label": 0,
        "image/class/text": "cat",
        "image/colorspace": "LA",
        "image/encoded": cat,
        "image/filename": "cat/2.png",
        "image/format": "png",
        "image/height": 6,
        "image/key/sha256": hashlib.sha256(cat).hexdigest(),
        "image/width": 8,
    }
    assert rows.batch.to_pylist()[2]["image/format"] == "png"  # whatever its name says
    assert rows.batch.to_pylist()[2]["image/class/label"] == 1
    assert isinstance(rows.entry, np.ndarray)
    assert rows.entry.tolist() == [0, 0, 1]
    assert rows.origin.place(2).source == "pets/dog/1.jpg"
    assert rows.split_codes is None
    assert rows.rejects == ()


def test_the_schema_is_sorted_and_names_the_labels_file(pets: Path) -> None:
    _, survey = survey_of(made_source("images", ("pets",), str(pets.parent)))
    assert [feature.name for feature in survey.frozen.schema] == [
        "image/channels", "image/class/label", "image/class/text", "image/colorspace", "image/encoded",
        "image/filename", "image/format", "image/height", "image/width",
    ]  # fmt: skip
    label, encoded = survey.frozen.schema.features[1], survey.frozen.schema.features[4]
    assert label.to_json() == {
        "name": "image/class/label", "kind": "int64", "type": "label", "shape": [], "nullable": False,
        "labels": "image-class-label.labels.txt",
    }  # fmt: skip
    assert (encoded.kind, encoded.type) == ("bytes", "image")
    assert survey.frozen.labels == {"image/class/label": ("cat", "dog")}
    assert "layout label, from the names of folders: 2 classes" in {choice.reason for choice in survey.choices}


def test_the_columns_of_a_batch_are_those_of_the_schema(pets: Path) -> None:
    for source in (
        made_source("images", ("pets",), str(pets.parent)),
        made_source("images", ("pets",), str(pets.parent), layout="flat", sha256=True),
    ):
        _, survey = survey_of(source)
        for rows in read_all(source):
            assert rows.batch.schema.names == [feature.name for feature in survey.frozen.schema]
            rows.batch.validate(full=True)


def test_hidden_files_and_junk_are_counted_by_kind(pets: Path) -> None:
    listing, _ = survey_of(made_source("images", ("pets",), str(pets.parent)))
    assert listing.skipped == {"hidden": 2, "hidden folder": 1, "junk": 3}
    assert listing.files == 3
    assert listing.bytes == sum((pets / name).stat().st_size for name in ("cat/1.jpg", "cat/2.png", "dog/1.jpg"))
    assert [(entry.name, entry.files) for entry in listing.entries] == [("pets/cat", 2), ("pets/dog", 1)]


def test_the_fingerprint_of_a_folder_is_of_names_and_sizes_and_not_of_times(pets: Path) -> None:
    source = made_source("images", ("pets",), str(pets.parent))
    before = source.list_files().entries
    os.utime(pets / "cat/1.jpg", ns=(1, 1))
    assert [e.fingerprint for e in source.list_files().entries] == [e.fingerprint for e in before]
    assert source.list_files().entries[0].mtime_ns != before[0].mtime_ns or before[0].mtime_ns > 1
    (pets / "cat/1.jpg").rename(pets / "cat/3.jpg")
    after = source.list_files().entries
    assert after[0].fingerprint != before[0].fingerprint
    assert after[1].fingerprint == before[1].fingerprint


def test_the_encoded_column_is_the_files_bytes_without_a_copy() -> None:
    values = [draw(seed=i) for i in range(5)]
    buffer = pa.py_buffer(b"".join(values))
    ends = np.cumsum([len(value) for value in values])
    array = view_array([0, *ends[:-1].tolist()], [len(value) for value in values], buffer)
    array.validate(full=True)
    assert array.to_pylist() == values
    assert [part.address for part in array.buffers()[2:]] == [buffer.address]
    assert view_array([], [], pa.py_buffer(b"")).to_pylist() == []


@given(st.lists(st.binary(min_size=13, max_size=40)), st.integers(0, 9))
def test_any_values_make_a_view_array(values: list[bytes], gap: int) -> None:
    sizes = [len(value) for value in values]
    offsets = [sum(sizes[:i]) + gap * i for i in range(len(sizes))]
    array = view_array(offsets, sizes, pa.py_buffer(bytes(gap).join(values)))
    array.validate(full=True)
    assert array.to_pylist() == values


def test_a_reject_leaves_no_gap_and_no_trace_in_the_bytes_of_the_others(tmp_path: Path) -> None:
    files = {f"{i:02}.jpg": draw(seed=i) if i % 3 else draw(seed=i)[:-9] for i in range(12)}
    lay(tmp_path / "r", files)
    (rows,) = read_all(made_source("images", (str(tmp_path / "r"),)))
    assert {r["image/filename"]: r["image/encoded"] for r in records([rows])} == {
        name: data for name, data in files.items() if data.endswith(b"\xff\xd9")
    }
    assert len(rows.rejects) == 4


def test_files_in_the_root_have_no_label(tmp_path: Path) -> None:
    lay(tmp_path / "flat", {"b.jpg": draw(), "a.jpg": draw()})
    _, survey = survey_of(made_source("images", ("flat",), str(tmp_path)))
    assert survey.frozen.labels == {}
    assert not [feature for feature in survey.frozen.schema if feature.name.startswith("image/class")]
    assert filenames(made_source("images", ("flat",), str(tmp_path))) == ["a.jpg", "b.jpg"]


def test_the_rows_of_splits_are_counted_before_any_is_read(tmp_path: Path) -> None:
    lay(tmp_path, {f"in/train/cat/{i}.jpg": b"" for i in range(3)} | {"in/val/cat/1.jpg": b"", "in/val/dog/1.jpg": b""})
    _, survey = survey_of(made_source("images", ("in",), str(tmp_path)))
    assert survey.split_rows == {"train": 3, "val": 2}


def test_splits_are_the_top_folders_and_labels_are_one_list_over_them(tmp_path: Path) -> None:
    root = lay(tmp_path / "set", {"Val/cat/1.jpg": draw(), "train/owl/1.jpg": draw(), "train/cat/2.jpg": b"no image"})
    source = made_source("images", (str(root),))
    _, survey = survey_of(source)
    assert survey.frozen.splits == ("train", "val")
    assert survey.frozen.labels == {"image/class/label": ("cat", "owl")}
    (rows,) = read_all(source)
    assert rows.split_codes is not None
    assert rows.split_codes.tolist() == [1, 0]
    assert [r["image/class/label"] for r in rows.batch.to_pylist()] == [0, 1]
    assert [reject.split for reject in rows.rejects] == ["train"]


def test_the_label_offset_moves_labels_and_their_names(pets: Path) -> None:
    source = made_source("images", ("pets",), str(pets.parent), label_offset=2)
    _, survey = survey_of(source)
    names = survey.frozen.labels["image/class/label"]
    assert names == ("_unused_0", "_unused_1", "cat", "dog")
    for record in records(read_all(source)):
        assert names[record["image/class/label"]] == record["image/class/text"]


def test_order_is_by_the_bytes_of_whole_paths(tmp_path: Path) -> None:
    lay(
        tmp_path / "r",
        {"a/1.jpg": draw(), "a-b/1.jpg": draw(), "a/B.jpg": draw(), "é/1.jpg": draw(), "Z/1.jpg": draw()},
    )
    names = filenames(made_source("images", (str(tmp_path / "r"),)))
    assert names == ["Z/1.jpg", "a-b/1.jpg", "a/1.jpg", "a/B.jpg", "é/1.jpg"]
    assert names == sorted(names, key=str.encode)


def test_a_shuffle_depends_on_the_seed_and_the_paths_alone(tmp_path: Path) -> None:
    files = {f"c{i % 3}/{i:02}.jpg": draw() for i in range(20)}
    lay(tmp_path / "here", files)
    lay(tmp_path / "there/deep", dict(reversed(files.items())))
    first = filenames(made_source("images", ("here",), str(tmp_path), seed=7))
    assert first == filenames(made_source("images", ("there/deep",), str(tmp_path), seed=7))
    assert sorted(first) == sorted(files)
    assert first != sorted(files)
    assert first != filenames(made_source("images", ("here",), str(tmp_path), seed=8))
    # golden: this order is a promise, on every machine and in every version
    assert first[:4] == ["c0/18.jpg", "c0/06.jpg", "c2/05.jpg", "c1/01.jpg"]


def test_pieces_cover_every_file_once_and_count_by_folder(tmp_path: Path) -> None:
    lay(tmp_path / "r", {f"{c}/{i}.jpg": draw(seed=i) for c in "ab" for i in range(10)})
    source = made_source("images", (str(tmp_path / "r"),), seed=3, limits=ImageLimits(piece_bytes=2000))
    listing, survey = survey_of(source)
    assert len(survey.pieces) > 3
    assert sum(piece.rows or 0 for piece in survey.pieces) == 20
    assert sum(piece.bytes for piece in survey.pieces) == listing.bytes
    total: dict[int, int] = {}
    for piece in survey.pieces:
        for entry, rows in piece.rows_by_entry().items():
            total[entry] = total.get(entry, 0) + (rows or 0)
    assert total == {0: 10, 1: 10}
    whole = records(read_all(source))
    apart = [records(list(source.read(Task(i, (p,)), survey.frozen))) for i, p in enumerate(survey.pieces)]
    assert [record for piece in apart for record in piece] == whole


def test_batches_end_at_a_number_of_files_or_bytes(tmp_path: Path) -> None:
    lay(tmp_path / "r", {f"{i:02}.jpg": draw() if i % 4 else b"no image" for i in range(20)})
    batches = read_all(made_source("images", (str(tmp_path / "r"),), limits=ImageLimits(batch_rows=6)))
    assert [rows.batch.num_rows + len(rows.rejects) for rows in batches] == [6, 6, 6, 2]
    assert [rows.ordinal for rows in batches] == [0, 1, 2, 3]
    source = made_source(
        "images", (str(tmp_path / "r"),), limits=ImageLimits(batch_rows=6, batch_bytes=len(draw()) * 2)
    )
    assert max(rows.batch.num_rows for rows in read_all(source)) == 2


def test_rows_are_counted_by_folder_with_their_rejects(tmp_path: Path) -> None:
    lay(tmp_path / "r", {"a/1.jpg": draw(), "a/2.jpg": b"", "b/1.jpg": draw()})
    counts: dict[int, int] = {}
    for rows in read_all(made_source("images", (str(tmp_path / "r"),))):
        rows.count_into(counts)
    assert counts == {0: 2, 1: 1}


def test_source_survey_and_tasks_can_be_pickled(pets: Path) -> None:
    source = made_source("images", ("pets",), str(pets.parent))
    _, survey = survey_of(source)
    task = Task(0, survey.pieces)
    again, task_again, frozen = pickle.loads(pickle.dumps((source, task, survey.frozen)))
    assert records(list(again.read(task_again, frozen))) == records(list(source.read(task, survey.frozen)))


def test_several_roots_files_and_globs_are_read_each_file_once(tmp_path: Path) -> None:
    lay(tmp_path, {"r1/cat/1.jpg": draw(), "r2/cat/2.jpg": draw(), "r2/dog/3.jpg": draw(), "a[1].jpg": draw()})
    _, survey = survey_of(made_source("images", ("r1", "r2", "./r1"), str(tmp_path)))
    assert survey.frozen.labels == {"image/class/label": ("cat", "dog")}
    assert filenames(made_source("images", ("r2", "r1"), str(tmp_path))) == [
        "r1/cat/1.jpg",
        "r2/cat/2.jpg",
        "r2/dog/3.jpg",
    ]
    assert filenames(made_source("images", ("r2/*/*.jpg",), str(tmp_path))) == ["cat/2.jpg", "dog/3.jpg"]
    assert filenames(made_source("images", ("a[1].jpg",), str(tmp_path))) == ["a[1].jpg"]


def test_the_folder_of_the_config_can_be_the_root(pets: Path) -> None:
    listing, _ = survey_of(made_source("images", (".",), str(pets / "cat")))
    assert [entry.name for entry in listing.entries] == ["."]
    (rows,) = read_all(made_source("images", (".",), str(pets / "cat")))
    assert rows.origin.place(0).source == "1.jpg"


def test_paths_that_match_nothing_overlap_or_hold_nothing_are_errors(pets: Path, tmp_path: Path) -> None:
    (tmp_path / "empty/deep").mkdir(parents=True)
    for paths, message in (
        (("nowhere",), "nowhere: no such file or folder"),
        (("pets", "pets/cat"), "pets/cat is in pets, which is read too"),
        (("pets/cat/1.jpg", "pets"), "pets/cat/1.jpg is in pets, which is read too"),
        (("pe?s/*.tiff",), r"no such file or folder \(looked in"),
        (("empty",), "empty: the folder holds no file"),
        ((), "input.paths is empty"),
    ):
        with pytest.raises(InputError, match=message.replace("?", ".").replace("*", ".")):
            made_source("images", ("pets",), str(tmp_path)).with_options(paths=paths).list_files()


def test_a_layout_that_cannot_be_told_is_asked_for(pets: Path) -> None:
    lay(pets, {"about": b"hello"})
    source = made_source("images", ("pets",), str(pets.parent))
    with pytest.raises(UsageError, match=r"there are files in the root and in \"cat\"; choose one of:\n  --set"):
        survey_of(source)
    (rows,) = read_all(source.with_options(layout="label"))
    assert rows.batch.num_rows == 3
    assert [(r.place.source, r.errors[0].code) for r in rows.rejects] == [("pets/about", "NOT_AN_IMAGE")]


def test_only_the_chosen_features_are_kept(pets: Path) -> None:
    source = made_source("images", ("pets",), str(pets.parent), columns=("image/width", "image/class/label"))
    _, survey = survey_of(source)
    (rows,) = read_all(source)
    assert records([rows]) == [
        {"image/class/label": label, "image/width": width} for label, width in ((0, 8), (0, 8), (1, 5))
    ]
    assert survey.frozen.labels == {"image/class/label": ("cat", "dog")}
    assert [choice.column for choice in survey.choices] == ["image/class/label"]
    assert sum(piece.output_bytes or 0 for piece in survey.pieces) < 1000  # without the images' own bytes
    with pytest.raises(SchemaError, match='"image/with", which is not a column; did you mean "image/width"'):
        survey_of(source.with_options(columns=["image/with"]))


def test_without_the_label_an_image_needs_no_class_folder(pets: Path) -> None:
    lay(pets, {"lost.jpg": draw()})
    source = made_source("images", ("pets",), str(pets.parent), layout="label", columns=("image/filename",))
    _, survey = survey_of(source)
    assert survey.frozen.labels == {}
    assert filenames(source) == ["cat/1.jpg", "cat/2.png", "dog/1.jpg", "lost.jpg"]


def test_an_image_that_has_no_class_folder_is_a_reject_where_classes_are_asked_for(pets: Path) -> None:
    lay(pets, {"lost.jpg": draw()})
    (rows,) = read_all(made_source("images", ("pets",), str(pets.parent), layout="label"))
    assert [(r.place.source, r.errors[0].code) for r in rows.rejects] == [("pets/lost.jpg", "DECLARED_NOT_NULL")]


@pytest.mark.parametrize(
    "options", [{"label_offset": -1}, {"label_offset": 5000}, {"check": "x"}, {"formats": ["x"]}, {"layout": "x"}]
)
def test_options_without_such_a_value_are_usage_errors(options: dict[str, Any]) -> None:
    section = {"format": "images", "paths": ["pets"], **options}
    with pytest.raises(UsageError, match=next(iter(options))):
        conversion_of(load_config({"input": section, "output": {"path": "o"}}))


def test_a_limit_that_no_batch_could_hold_is_a_usage_error() -> None:
    limits = made_source("images", ("pets",), limits=Limits(image_bytes=1 << 30)).settings.limits
    assert limits.image_bytes == 1 << 30
    with pytest.raises(UsageError, match=r"limits\.image_bytes: 1073741825 is more than 1073741824, which is 1GiB"):
        made_source("images", ("pets",), limits=Limits(image_bytes=(1 << 30) + 1))


def test_a_file_that_changed_since_it_was_listed_fails_the_run(pets: Path) -> None:
    source = made_source("images", ("pets",), str(pets.parent))
    _, survey = survey_of(source)
    (pets / "cat/1.jpg").write_bytes(draw() + b"more")
    with pytest.raises(
        SourceError, match=r"cat/1.jpg: is not what it was when it was listed \(\d+ bytes then, \d+ now"
    ):
        list(source.read(Task(0, survey.pieces), survey.frozen))


def test_a_file_that_changed_within_its_size_fails_the_run(pets: Path) -> None:
    source = made_source("images", ("pets",), str(pets.parent))
    _, survey = survey_of(source)
    os.utime(pets / "cat/1.jpg", ns=(5, 5))
    with pytest.raises(SourceError, match="is not what it was when it was listed"):
        list(source.read(Task(0, survey.pieces), survey.frozen))


def test_the_check_and_the_formats_are_those_of_the_source(tmp_path: Path) -> None:
    cut = draw()[:-10]
    lay(tmp_path / "r", {"cut.jpg": cut, "b.tif": draw("TIFF"), "c.gif": draw("GIF")})
    codes = {
        r.place.source[-7:]: r.errors[0].code
        for rows in read_all(made_source("images", (str(tmp_path / "r"),)))
        for r in rows.rejects
    }
    assert codes == {"cut.jpg": "TRUNCATED", "r/b.tif": "UNSUPPORTED"}
    assert filenames(made_source("images", (str(tmp_path / "r"),), check="header")) == ["c.gif", "cut.jpg"]
    assert filenames(made_source("images", (str(tmp_path / "r"),), check="decode", formats=("jpeg", "tiff"))) == [
        "b.tif"
    ]
