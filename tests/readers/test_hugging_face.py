"""Datasets of Hugging Face's own library are converted as its Arrow tables."""

from __future__ import annotations

import gc
import io
import re
import shlex
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow_datasets as tfds
from huggingface_hub import DatasetCardData
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.errors import SchemaError, TooManyRejects, UsageError

from ..command_line import Shardmill
from ..label_numbers import in_numbers

datasets.disable_progress_bars()  # they would be on the screens that are compared

ROWS = 3000
SAMPLES = Path(__file__).parents[2] / "configs/samples"


def texts() -> datasets.Dataset:
    features = {
        "text": datasets.Value("string"),
        "tokens": datasets.List(datasets.Value("int32")),
        "label": datasets.ClassLabel(names=["neg", "pos"]),
    }
    rows = {
        "text": [f"row {n}" for n in range(ROWS)],
        "tokens": [list(range(n % 4)) for n in range(ROWS)],
        "label": [n % 2 for n in range(ROWS)],
    }
    return datasets.Dataset.from_dict(rows, features=datasets.Features(features))


def held(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = open_dataset(path).to_arrow("train").to_pylist()
    return rows


@pytest.mark.parametrize("way", ["dataset", "shuffled", "filtered", "stream"])
def test_a_dataset_is_converted_in_its_own_order_with_the_values_that_it_gives(tmp_path: Path, way: str) -> None:
    dataset = texts()
    source = {
        "dataset": lambda: dataset,
        "shuffled": lambda: dataset.shuffle(seed=7),
        "filtered": lambda: dataset.filter(lambda row: row["label"] == 1),
        "stream": dataset.to_iterable_dataset,
    }[way]()
    convert(data=source, output=tmp_path / "out", name="texts", order="source")
    rows = in_numbers(open_dataset(tmp_path / "out").to_arrow("train")).to_pylist()
    assert rows == [{name: row[name] for name in ("label", "text", "tokens")} for row in source]


def test_pictures_are_features_of_pictures(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6)).save(buffer, "png")
    rows = {"photo": [{"bytes": buffer.getvalue(), "path": "a.png"}] * 3, "caption": ["a", "b", "c"]}
    features = datasets.Features({"photo": datasets.Image(), "caption": datasets.Value("string")})
    dataset = datasets.Dataset.from_dict(rows, features=features)
    convert(data=dataset, output=tmp_path / "out", name="photos", schema__columns__photo__image="bytes")
    (first, *_) = held(tmp_path / "out")
    assert (first["caption"], first["photo/height"], first["photo/width"]) == ("a", 6, 8)
    assert first["photo/encoded"] == buffer.getvalue()


LABELS = datasets.ClassLabel(names=["neg", "pos", "odd"])
TEXT = datasets.Value("string")


def pets(first: int, count: int, labels: datasets.ClassLabel = LABELS) -> datasets.Dataset:
    """Return pictures with a class (-1 for none), tags of words, and a text, from number `first` on."""
    features = datasets.Features({
        "text": datasets.Value("string"),
        "label": labels,
        "tags": datasets.List(datasets.ClassLabel(names=["O", "B"])),
        "photo": datasets.Image(),
    })  # fmt: skip
    numbers = range(first, first + count)
    pictures = []
    for number in numbers:
        buffer = io.BytesIO()
        Image.new("RGB", (4, 3), (number, 0, 0)).save(buffer, "png")
        pictures.append({"bytes": buffer.getvalue(), "path": f"{number}.png"})
    rows = {
        "text": [f"row {number}" for number in numbers],
        "label": [number % 4 - 1 for number in numbers],
        "tags": [[0, 1, 1][: number % 4] for number in numbers],
        "photo": pictures,
    }
    return datasets.Dataset.from_dict(rows, features=features)


def same_rows(path: Path, theirs: dict[str, datasets.Dataset]) -> None:
    """Compare every value, picture, class name and split with what `datasets` reads."""
    ours = open_dataset(path)
    assert set(ours.splits) == set(theirs)
    features = next(iter(theirs.values())).features
    assert ours.labels == {"label": tuple(features["label"].names), "tags": tuple(features["tags"].feature.names)}
    for split, dataset in theirs.items():
        rows = in_numbers(ours.to_arrow(split)).to_pylist()
        plain = list(dataset.cast_column("photo", datasets.Image(decode=False)))
        assert [row["photo/encoded"] for row in rows] == [row["photo"]["bytes"] for row in plain]
        assert [row["photo/filename"] for row in rows] == [row["photo"]["path"] for row in plain]
        assert [row["text"] for row in rows] == [row["text"] for row in plain]
        assert [row["tags"] for row in rows] == [row["tags"] for row in plain]
        assert [-1 if row["label"] is None else row["label"] for row in rows] == [row["label"] for row in plain]


def test_what_save_to_disk_writes_has_the_rows_splits_and_classes_of_load_from_disk(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    some = pets(0, 12).filter(lambda row: row["label"] != 1).shuffle(seed=1)
    datasets.DatasetDict(clean=pets(40, 9), noisy=some).save_to_disk(saved, num_shards={"clean": 2, "noisy": 1})
    theirs = datasets.load_from_disk(str(saved))
    theirs.map(lambda row: {"text": row["text"] + "!"})
    assert len(list(saved.rglob("*.arrow"))) == 5  # map left two
    convert(saved, output=tmp_path / "out", order="source")
    same_rows(tmp_path / "out", theirs)
    pets(70, 3).save_to_disk(tmp_path / "one")
    convert(tmp_path / "one", output=tmp_path / "alone", order="source")
    same_rows(tmp_path / "alone", {"train": datasets.load_from_disk(str(tmp_path / "one"))})


def test_parquet_of_datasets_has_the_classes_and_an_append_finds_them_by_name(tmp_path: Path) -> None:
    pets(0, 8).to_parquet(tmp_path / "a.parquet")
    convert(tmp_path / "a.parquet", output=tmp_path / "out", order="source")
    same_rows(tmp_path / "out", {"train": pets(0, 8)})
    other = pets(20, 8, datasets.ClassLabel(names=["pos", "odd", "new"]))
    other.to_parquet(tmp_path / "b.parquet")
    append(tmp_path / "b.parquet", output=tmp_path / "out")
    ours = open_dataset(tmp_path / "out")
    assert ours.labels["label"] == ("neg", "pos", "odd", "new")
    names = [None if number < 0 else other.features["label"].int2str(number) for number in other["label"]]
    assert ours.to_arrow("train")["label"].to_pylist()[8:] == names


@pytest.mark.parametrize("way", ["dict", "stream"])
def test_a_dict_of_datasets_keeps_its_splits_its_classes_and_its_rows(tmp_path: Path, way: str) -> None:
    theirs = datasets.DatasetDict(train=pets(0, 9).select([7, 1, 3]), test=pets(40, 5).shuffle(seed=2))
    streams = datasets.IterableDatasetDict({name: one.to_iterable_dataset() for name, one in theirs.items()})
    convert(data=theirs if way == "dict" else streams, output=tmp_path / "out", name="pets", order="source")
    same_rows(tmp_path / "out", theirs)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_pictures_that_a_loaded_folder_names_by_their_paths_are_read(tmp_path: Path) -> None:
    for split, count in (("train", 40), ("test", 3)):
        for number in range(count):
            path = tmp_path / "in" / split / ("cat", "dog")[number % 2] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4, 3), (number, 0, 0)).save(path)
    theirs = datasets.load_dataset("imagefolder", data_dir=str(tmp_path / "in"), cache_dir=str(tmp_path / "cache"))
    gc.collect()
    convert(data=theirs, output=tmp_path / "out", name="pets", order="source")
    ours = open_dataset(tmp_path / "out")
    assert ours.labels == {"label": ("cat", "dog")}
    for split in ("train", "test"):
        rows = in_numbers(ours.to_arrow(split)).to_pylist()
        plain = list(theirs[split].cast_column("image", datasets.Image(decode=False)))
        assert [row["label"] for row in rows] == [row["label"] for row in plain]
        assert [row["image/encoded"] for row in rows] == [Path(row["image"]["path"]).read_bytes() for row in plain]
        assert [row["image/filename"] for row in rows] == [Path(row["image"]["path"]).name for row in plain]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_path_without_bytes_is_a_reject_until_the_line_of_python_reads_it(tmp_path: Path, form: str) -> None:
    picture, table = tmp_path / "1.png", tmp_path / f"a.{form}"
    Image.new("RGB", (4, 3)).save(picture)
    features = datasets.Features({"photo": datasets.Image()})
    stored = datasets.Dataset.from_dict({"photo": [str(picture)]}, features=features).data.table
    if form == "parquet":
        pq.write_table(stored, table)
    else:
        with pa.ipc.new_stream(str(table), stored.schema) as writer:
            writer.write_table(stored)
    with pytest.raises(TooManyRejects, match="a path without the bytes of the picture") as caught:
        convert(table, output=tmp_path / "out")
    (line,) = re.findall(r"library reads it: (.*\)), output=\.\.\.\)", str(caught.value))
    assert line == f"convert(data=datasets.Dataset.from_{'parquet' if form == 'parquet' else 'file'}('{table}')"
    exec(f"{line}, output=out, name='x')", {"convert": convert, "datasets": datasets, "out": tmp_path / "out"})
    assert held(tmp_path / "out")[0]["photo/encoded"] == picture.read_bytes()


@pytest.mark.parametrize("way", ["data", "parquet", "saved"])
def test_sounds_are_bytes_and_no_pictures(tmp_path: Path, way: str) -> None:
    clips = [{"bytes": b"RIFF" + bytes([number]) * 40, "path": f"{number}.wav"} for number in range(3)]
    features = datasets.Features({"clip": datasets.Audio(decode=False), "n": datasets.Value("int64")})
    table = pa.table({"clip": clips, "n": [0, 1, 2]}, schema=features.arrow_schema)  # encoding takes PyTorch
    theirs = datasets.Dataset(datasets.table.InMemoryTable(table))
    where = tmp_path / ("a.parquet" if way == "parquet" else "saved")
    if way == "data":
        summary = convert(data=theirs, output=tmp_path / "out", name="x", order="source")
    else:
        (theirs.to_parquet if way == "parquet" else theirs.save_to_disk)(where)
        summary = convert(where, output=tmp_path / "out", order="source")
    assert "clip: Audio, whose bytes are kept as they are, and not looked at" in summary.detected
    assert [row["clip"] for row in held(tmp_path / "out")] == list(theirs["clip"]) == clips


def test_a_repository_of_the_hub_has_the_splits_and_classes_that_its_readme_states(tmp_path: Path) -> None:
    repository = tmp_path / "r"
    for split, one in (("train", texts()), ("test", texts().select(range(9)))):
        (repository / "data").mkdir(parents=True, exist_ok=True)
        one.remove_columns("tokens").to_csv(repository / f"data/{split[:2]}.csv")
    card = DatasetCardData()
    datasets.info.DatasetInfosDict(default=texts().remove_columns("tokens").info).to_dataset_card_data(card)
    files = {"train": "data/tr.csv", "test": "data/te.csv"}
    paths = [{"split": split, "path": path} for split, path in files.items()]
    card["configs"] = [{"config_name": "default", "data_files": paths}]
    (repository / "README.md").write_text(f"---\n{card}\n---\n\n# Texts\n")
    theirs = datasets.load_dataset(str(repository), cache_dir=str(tmp_path / "cache"))
    convert(repository, output=tmp_path / "out", order="source")
    ours = open_dataset(tmp_path / "out")
    assert ours.labels == {"label": tuple(theirs["train"].features["label"].names)} == {"label": ("neg", "pos")}
    assert set(ours.splits) == set(theirs)
    for split, one in theirs.items():
        assert in_numbers(ours.to_arrow(split)).select(one.column_names).to_pylist() == one.to_list()


@pytest.mark.parametrize("form", ["structs", "lists"])
def test_the_classes_of_objects_that_a_readme_alone_names_are_those_of_their_boxes(tmp_path: Path, form: str) -> None:
    repository = tmp_path / "r"
    repository.mkdir()

    def write(*names: str) -> None:
        box, kind = datasets.List(datasets.Value("float32"), 4), datasets.ClassLabel(names=list(names))
        fields = {"bbox": datasets.List(box), "category": datasets.List(kind)}
        objects = fields if form == "lists" else datasets.List({"bbox": box, "category": kind})
        features = datasets.Features({"image": datasets.Image(), "objects": objects})
        buffer = io.BytesIO()
        Image.new("RGB", (8, 6)).save(buffer, "png")
        found = {"bbox": [[1, 2, 3, 4], [0, 0, 2, 2]], "category": [2, 0]}
        each = [dict(zip(found, one, strict=True)) for one in zip(*found.values(), strict=True)]
        given = found if form == "lists" else each
        rows = {"image": [{"bytes": buffer.getvalue(), "path": "1.png"}], "objects": [given]}
        made = datasets.Dataset.from_dict(rows, features=features)
        pq.write_table(made.data.table.replace_schema_metadata(), repository / "a.parquet")
        card = DatasetCardData()
        datasets.info.DatasetInfosDict(default=made.info).to_dataset_card_data(card)
        (repository / "README.md").write_text(f"---\n{card}\n---\n")

    write("cat", "dog", "yak")
    convert(repository, output=tmp_path / "out")
    ours = open_dataset(tmp_path / "out")
    assert ours.labels == {"image/object/class/label": ("cat", "dog", "yak")}
    assert ours.to_arrow("train")["image/object/class/label"].to_pylist() == [["yak", "cat"]]
    write("dog", "cat", "yak")
    with pytest.raises(SchemaError, match='its class 0 is "dog", and "cat" in the dataset'):
        append(repository, output=tmp_path / "out", force=True)


@pytest.mark.parametrize("field", ["category", "category_id"])
def test_boxes_of_a_root_of_the_hub_are_those_of_each_split(field: str, tmp_path: Path) -> None:
    objects = {
        "bbox": datasets.List(datasets.List(datasets.Value("float32"), 4)),
        field: datasets.List(datasets.ClassLabel(names=["hot dog", "Löwe", "yak"])),
    }
    features = datasets.Features({"image": datasets.Image(), "objects": objects})
    for at, split in enumerate(("train", "validation", "test")):
        buffer = io.BytesIO()
        Image.new("RGB", (8, 6), (at, 9, 9)).save(buffer, "png")
        pictures = [{"bytes": buffer.getvalue(), "path": f"{n} a.png"} for n in range(2)]
        found = [{"bbox": [[1, 2, 3, 4], [at, 0.5, 2, 2]], field: [2, at]}, {"bbox": [], field: []}]
        made = datasets.Dataset.from_dict({"image": pictures, "objects": found}, features=features)
        (tmp_path / "r/data").mkdir(parents=True, exist_ok=True)
        made.to_parquet(tmp_path / f"r/data/{split}-00000-of-00001.parquet")
    theirs = datasets.load_dataset(str(tmp_path / "r"), cache_dir=str(tmp_path / "cache"))
    convert(tmp_path / "r", output=tmp_path / "out", order="source")
    ours = open_dataset(tmp_path / "out")
    assert ours.labels == {"image/object/class/label": ("hot dog", "Löwe", "yak")}
    assert {*ours.splits} == {*theirs}
    for split, one in theirs.items():
        rows = in_numbers(ours.to_arrow(split)).to_pylist()
        assert [row["image/encoded"] for row in rows] == [
            each["bytes"] for each in one.cast_column("image", datasets.Image(decode=False))["image"]
        ]
        for row, other in zip(rows, one["objects"], strict=True):
            assert (row["image/object/class/label"] or []) == other[field]
            sides = [row[f"image/object/bbox/{side}"] or [] for side in ("xmin", "ymin", "xmax", "ymax")]
            boxes = [[x * 8, y * 6, (to_x - x) * 8, (to_y - y) * 6] for x, y, to_x, to_y in zip(*sides, strict=True)]
            assert boxes == [pytest.approx(box, abs=0.01) for box in other["bbox"]]


@pytest.mark.parametrize("way", ["data", "parquet", "saved", "readme"])
def test_fields_within_structs_keep_the_names_of_their_classes(tmp_path: Path, way: str) -> None:
    kind = datasets.ClassLabel(names=["cat", "dog"])
    features = datasets.Features({"m": {"k": kind}, "l": kind, "s": datasets.List({"k": kind}), "n": {"k": TEXT}})
    row = {"m": {"k": 1}, "l": 0, "s": [{"k": 1}, {"k": 0}], "n": {"k": "a"}}
    made = datasets.Dataset.from_list([row], features=features)
    folder, out = tmp_path / "in", tmp_path / "out"
    if way == "data":
        summary = convert(data=made, output=out, name="x")
    elif way == "saved":
        made.save_to_disk(folder)
    elif way == "parquet":
        made.to_parquet(folder / "a.parquet")
    else:
        folder.mkdir()
        pq.write_table(made.data.table.replace_schema_metadata(), folder / "a.parquet")
        card = DatasetCardData()
        datasets.info.DatasetInfosDict(default=made.info).to_dataset_card_data(card)
        (folder / "README.md").write_text(f"---\n{card}\n---\n")
    if way != "data":
        summary = convert(folder, output=out)
    said = "classes that the files name: m/k: cat, dog; s/k: cat, dog; to keep plain numbers: --set input.detect=none"
    assert said in summary.detected
    ours = open_dataset(out)
    assert ours.labels == dict.fromkeys(("l", "m/k", "s/k"), ("cat", "dog"))
    assert held(out) == [row | {"l": "cat"}]
    assert ours.to_arrow("train", ["m/k", "s/k"]).to_pylist() == [{"m/k": "dog", "s/k": ["dog", "cat"]}]
    builder = tfds.builder_from_directory(out)
    assert builder.info.features["s"]["k"].feature.names == ["cat", "dog"]
    (theirs,) = tfds.as_numpy(builder.as_dataset(split="train"))
    assert (theirs["m"]["k"].tolist(), theirs["s"]["k"].tolist()) == (1, [1, 0])


def test_each_command_of_a_repository_with_several_configs_reads_what_datasets_does(
    tmp_path: Path, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    configs = []
    for number, name in enumerate(("de", "fr")):
        for split in ("train", "test"):
            table = texts().select(range(number, 20, 2 if split == "train" else 5))
            Path("r", name).mkdir(parents=True, exist_ok=True)
            table.to_parquet(f"r/{name}/{split}-00000-of-00001.parquet")
        paths = [{"split": split, "path": f"{name}/{split}-*"} for split in ("train", "test")]
        configs.append({"config_name": name, "data_files": paths})
    card = DatasetCardData(configs=configs)
    Path("r/README.md").write_text(f"---\n{card}\n---\n")
    screen = shardmill("convert", "r", "-o", "out")
    commands = re.findall(r"^  (de|fr): +shardmill (.*) -o out (.*)$", screen.err, re.M)
    assert [name for name, _, _ in commands] == ["de", "fr"]
    for name, start, end in commands:
        assert shardmill(*shlex.split(f"{start} -o {name} {end} --set output.order=source")).code == 0
        theirs = datasets.load_dataset("./r", name, cache_dir=str(tmp_path / "cache"))
        ours = open_dataset(name)
        assert (set(ours.splits), ours.labels) == (set(theirs), {"label": ("neg", "pos")})
        for split, one in theirs.items():
            assert in_numbers(ours.to_arrow(split)).select(one.column_names).to_pylist() == one.to_list()


def test_an_empty_split_of_a_dict_of_datasets_is_left_out(tmp_path: Path) -> None:
    convert(data=datasets.DatasetDict(train=texts(), test=texts().select([])), output=tmp_path / "out", name="x")
    assert open_dataset(tmp_path / "out").splits == ("train",)


def test_an_empty_dataset_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="data is empty: without a row its columns are not known"):
        convert(data=texts().select([]), output=tmp_path / "out", name="nothing")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # imagefolder leaves its CSV file open
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_folder_with_a_table_beside_its_pictures_has_the_rows_that_imagefolder_gives(
    tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / "album"
    for split, count in (("train", 4), ("test", 2)):
        (folder / split / "deep").mkdir(parents=True)
        names = [f"deep/{number}.png" if number % 2 else f"{number}.png" for number in range(count)]
        for number, name in enumerate(names):
            Image.new("RGB", (3 + number, 2), (number, 9, 9)).save(folder / split / name)
        Image.new("RGB", (9, 9)).save(folder / split / "no-row.png")
        table = datasets.Dataset.from_dict({
            "file_name": names[::-1],
            "mask_file_name": names,
            "text": [f"{split} of {name}" for name in names],
            "score": [number / 2 for number in range(count)],
        })  # fmt: skip
        write = {"csv": table.to_csv, "jsonl": table.to_json, "parquet": table.to_parquet}[kind]
        write(str(folder / split / f"metadata.{kind}"))
    theirs = datasets.load_dataset("imagefolder", data_dir=str(folder), cache_dir=str(tmp_path / "cache"))
    gc.collect()  # the file that it leaves open is closed here, and not in a test that comes later
    convert(str(folder), output=str(tmp_path / "out"))
    ours = open_dataset(tmp_path / "out")
    for split in ("train", "test"):
        rows = ours.to_arrow(split).to_pylist()
        assert [(row["text"], row["score"]) for row in rows] == [(row["text"], row["score"]) for row in theirs[split]]
        for feature in ("image", "mask"):
            pictures = [Image.open(io.BytesIO(row[f"{feature}/encoded"])) for row in rows]
            assert [picture.tobytes() for picture in pictures] == [row[feature].tobytes() for row in theirs[split]]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("sample", "column"), [("albums", "caption"), ("pets", "label")])
def test_a_folder_of_pictures_that_was_exported_has_the_rows_that_imagefolder_gives(
    tmp_path: Path, shardmill: Shardmill, sample: str, column: str
) -> None:
    convert(str(SAMPLES / sample), output=str(tmp_path / "out"), max_rejects=1)
    target = tmp_path / "pictures"
    assert shardmill("export", str(tmp_path / "out"), "-o", str(target)).code == 0
    theirs = datasets.load_dataset("imagefolder", data_dir=str(target), cache_dir=str(tmp_path / "cache"))
    gc.collect()
    ours = open_dataset(tmp_path / "out")
    assert len(theirs) == len(ours.splits)
    for split in ours.splits:
        rows = in_numbers(ours.to_arrow(split)).to_pylist()
        wanted = [(row["image/width"], row.get(column, row.get("image/class/label"))) for row in rows]
        found = theirs["validation" if split == "val" else split]
        assert sorted((row["image"].width, row[column]) for row in found) == sorted(wanted)


@pytest.mark.parametrize("processes", [None, 2])
def test_the_cache_of_load_dataset_has_the_rows_and_splits_that_it_gives(processes: int | None, tmp_path: Path) -> None:
    for split, count in (("train", 9), ("test", 3)):
        for part in range(2):
            rows = pa.table(
                {"n": [100 * part + n for n in range(count)], "text": [f"{split} {n}" for n in range(count)]}
            )
            pq.write_table(rows, tmp_path / f"{split}{part}.parquet")
    files = {split: [str(tmp_path / f"{split}{part}.parquet") for part in range(2)] for split in ("train", "test")}
    theirs = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"), num_proc=processes)
    theirs["train"].map(lambda row: {"n": -row["n"]})  # leaves a file in the cache
    convert(tmp_path / "cache", output=tmp_path / "out")
    ours = open_dataset(tmp_path / "out")
    assert set(ours.splits) == {"train", "test"}
    for split in ours.splits:
        assert ours.to_arrow(split).to_pylist() == list(theirs[split])
