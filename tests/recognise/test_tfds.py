"""Folders of TFDS and TFX, and counts in names: read with splits, types and classes, and compared with the files."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, open_dataset
from shardmill.transforms.dataset.reading.open_dataset import Dataset
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.format.examples.decode_examples import Example

from ..command_line import Shardmill
from ..tfds_folder import LABELS, example, feature, picture, write_tfds

TRAIN = [example(number) for number in range(10)]
TEST = [example(number) for number in range(10, 14)]
SPLITS = {"train": [TRAIN[:6], TRAIN[6:]], "test": [TEST]}
TYPES = {
    "age": ("uint8", ()),
    "deep/ragged_flat_values": ("int8", (-1,)),
    "deep/ragged_row_lengths_0": ("int64", (2,)),
    "half": ("float16", ()),
    "image": ("image", ()),
    "label": ("label", ()),
    "name": ("string", ()),
    "nest/a/b": ("int8", ()),
    "numbers": ("int16", (-1,)),
    "objects/bbox": ("float32", (-1,)),
    "objects/label": ("label", (-1,)),
    "ok": ("bool", ()),
    "pair": ("int32", (2, 3)),
    "raw": ("binary", ()),
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def records(path: str = "out") -> dict[str, list[bytes]]:
    dataset = open_dataset(path)
    return {split: list(dataset.records(split)) for split in dataset.splits}


def types_of(dataset: Dataset) -> dict[str, tuple[str, tuple[int, ...]]]:
    assert dataset.schema is not None
    return {feature.name: (feature.type, feature.shape) for feature in dataset.schema}


def put(name: str, rows: list[bytes]) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    write_records(name, iter(rows), "gzip" if name.endswith(".gz") else "none")


def commands(text: str) -> list[list[str]]:
    return [shlex.split(one)[1:] for one in re.findall(r"\bshardmill (?:convert|merge|adopt) .*$", text, re.M)]


@pytest.mark.parametrize(
    ("command", "path"),
    [
        *((command, path) for command in ("convert", "merge", "adopt") for path in ("pets/1.0.0", "pets")),
        ("convert", "pets/1.0.0/*tfrecord*"),
    ],
)
def test_a_folder_of_tfds_is_read_with_splits_types_and_names_of_classes(
    shardmill: Shardmill, command: str, path: str
) -> None:
    shards = write_tfds(Path("pets/1.0.0"), SPLITS)
    before = {one: one.read_bytes() for one in Path("pets/1.0.0").iterdir()}
    screen = shardmill(command, path, *(() if command == "adopt" else ("-o", "out")))
    assert screen.code == 0, screen.err
    assert ("Warning" in screen.out, "label is" in screen.out) == (False, False)
    made = "pets/1.0.0" if command == "adopt" else "out"
    if command == "adopt":
        assert screen.out.startswith("Adopted pets/1.0.0: 14 records in 3 files")
        assert {one: one.read_bytes() for one in before} == before
    dataset = open_dataset(made)
    assert records(made) == {"test": TEST, "train": TRAIN}
    assert types_of(dataset) == TYPES
    assert {name: list(names) for name, names in dataset.labels.items()} == LABELS
    row = dataset["train"][4]
    found = (row["image"], row["label"], row["name"], row["age"], row["ok"], row["objects/label"])
    assert found == (picture(4), "dog", "näme 4", 4, False, ["far"])
    assert shardmill("verify", made).code == 0
    assert all(one.exists() for one in shards)


@pytest.mark.parametrize(
    ("stated", "line"),
    [
        (
            feature("audio_feature.Audio", audio={"dtype": "int64", "encoding": "NONE", "lazyDecode": True}),
            "raw: Audio, whose bytes are kept as they are, and not looked at (features.json)",
        ),
        (
            feature("audio_feature.Audio", audio={"dtype": "int64", "encoding": "ZLIB", "sampleRate": "8000"}),
            "raw: int64 of [], packed as zlib, whose bytes are kept as they are (features.json)",
        ),
        ({"pythonClassName": "my.own.Mesh", "jsonFeature": {}}, "raw: Mesh, read as what its records hold (features."),
        ({}, "raw: no type that is known, read as what its records hold (features.json)"),
    ],
)
def test_a_feature_of_tfds_that_has_no_type_here_keeps_its_values_and_is_named(
    shardmill: Shardmill, stated: dict[str, object], line: str
) -> None:
    write_tfds(Path("pets"), SPLITS)
    tree = json.loads(Path("pets/features.json").read_text())
    tree["featuresDict"]["features"]["raw"] = stated
    Path("pets/features.json").write_text(json.dumps(tree))
    screen = shardmill("convert", "pets", "-o", "out")
    assert screen.code == 0, screen.err
    assert f"Detected: {line}" in screen.out
    assert (records(), types_of(open_dataset("out"))) == ({"test": TEST, "train": TRAIN}, TYPES)


def picture_of(folder: str, **changed: object) -> None:
    tree = json.loads(Path(folder, "features.json").read_text())
    tree["featuresDict"]["features"]["image"]["image"] |= changed
    Path(folder, "features.json").write_text(json.dumps(tree))


def image_of(folder: str) -> object:
    return json.loads(Path(folder, "features.json").read_text())["featuresDict"]["features"]["image"]


def image(dtype: str, *sizes: str, **more: str) -> dict[str, object]:
    return feature("image_feature.Image", image={"dtype": dtype, "shape": {"dimensions": list(sizes)}} | more)


def test_pictures_of_tfds_stay_pictures_to_it_and_those_that_are_added_may_have_other_sizes(
    shardmill: Shardmill,
) -> None:
    write_tfds(Path("pets"), SPLITS)
    picture_of("pets", dtype="uint16", encodingFormat="png")
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert image_of("out") == image("uint16", "4", "6", "3", encodingFormat="png")
    assert shardmill("convert", "out", "-o", "again").code == shardmill("verify", "again").code == 0
    assert image_of("again") == image_of("out")
    write_tfds(Path("more"), SPLITS)
    append("more", output="again", force=True)
    assert image_of("again") == image("uint16", "-1", "-1", "3", encodingFormat="png")
    assert shardmill("verify", "again").code == 0


@pytest.mark.parametrize("command", ["convert", "merge"])
def test_pictures_of_two_folders_of_tfds_have_the_sizes_that_both_state(shardmill: Shardmill, command: str) -> None:
    write_tfds(Path("a"), SPLITS)
    write_tfds(Path("b"), SPLITS)
    picture_of("b", encodingFormat="png", shape={"dimensions": ["4", "8", "3"]})
    if command == "merge":
        assert shardmill("convert", "a", "-o", "c").code == shardmill("convert", "b", "-o", "d").code == 0
    screen = shardmill(command, *("cd" if command == "merge" else "ab"), "-o", "out")
    assert screen.code == 0, screen.err
    assert (image_of("out"), types_of(open_dataset("out"))) == (image("uint8", "4", "-1", "3"), TYPES)


def test_masks_of_classes_of_tfds_are_read_and_the_file_with_their_names_is_said_not_to_be(
    shardmill: Shardmill,
) -> None:
    write_tfds(Path("pets"), SPLITS)
    tree = json.loads(Path("pets/features.json").read_text())
    tree["featuresDict"]["features"]["image"]["pythonClassName"] = (
        "tensorflow_datasets.core.features.labeled_image.LabeledImage"
    )
    Path("pets/features.json").write_text(json.dumps(tree))
    Path("pets/image.labels.txt").write_text("road\nsky\n")
    screen = shardmill("convert", "pets", "-o", "out")
    said = "image: masks of numbers of classes, whose names in image.labels.txt are not kept (features.json)"
    assert f"Detected: {said}" in screen.out
    assert (records(), types_of(open_dataset("out"))) == ({"test": TEST, "train": TRAIN}, TYPES)


def test_stats_shows_the_splits_and_the_classes_of_a_folder_of_tfds(shardmill: Shardmill) -> None:
    write_tfds(Path("pets/1.0.0"), SPLITS)
    found = json.loads(shardmill("stats", "pets", "--full", "--json").out)["splits"]
    assert {name: one["records"] for name, one in found.items()} == {"test": 4, "train": 10}
    assert "a bird" in json.dumps(found["train"])


@pytest.mark.parametrize("split", ["corrupt_2", "10k_rows", "Unlabelled"])
def test_a_split_that_only_dataset_info_names_is_read(shardmill: Shardmill, split: str) -> None:
    write_tfds(Path("pets/1.0.0"), {"train": [TRAIN], split: [TEST]}, template="{DATASET}_{SPLIT}.{FILEFORMAT}")
    screen = shardmill("convert", "pets", "-o", "out")
    if split[0].isdigit():
        assert f'pets/1.0.0/dataset_info.json: calls a split "{split}"' in screen.err
        return
    assert screen.code == 0, screen.err
    assert "from dataset_info.json" in screen.out
    assert records() == {"train": TRAIN, split.lower(): TEST}


def test_without_detection_records_are_read_in_one_split_with_the_types_that_they_show(shardmill: Shardmill) -> None:
    write_tfds(Path("pets/1.0.0"), SPLITS)
    assert shardmill("convert", "pets", "-o", "out", "--set", "input.detect=none").code == 0
    dataset = open_dataset("out")
    assert ({split: len(rows) for split, rows in records().items()}, dict(dataset.labels)) == ({"train": 14}, {})
    assert types_of(dataset)["age"] == ("int64", ())


@pytest.mark.parametrize("rule", ["tfds", "names"])
def test_an_append_replays_the_splits_and_keeps_the_types_and_classes(shardmill: Shardmill, rule: str) -> None:
    write_tfds(Path("pets/1.0.0"), SPLITS)
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert "Splits of files: dataset_info.json" in shardmill("info", "out").out
    if rule == "tfds":
        write_tfds(Path("more/1.1.0"), {"train": [TRAIN[:2]], "test": [TEST[:1]]})
    else:
        put("more/train-00000-of-00001.tfrecord", TRAIN[:2])
        put("more/test-00000-of-00001.tfrecord", TEST[:1])
    append("more", output="out")
    assert records() == {"test": [*TEST, TEST[0]], "train": [*TRAIN, *TRAIN[:2]]}
    assert types_of(open_dataset("out")) == TYPES
    assert {name: list(names) for name, names in open_dataset("out").labels.items()} == LABELS


def test_an_append_of_classes_in_another_order_is_refused(shardmill: Shardmill) -> None:
    write_tfds(Path("pets/1.0.0"), SPLITS)
    assert shardmill("convert", "pets", "-o", "out").code == 0
    write_tfds(Path("more/1.0.0"), {"train": [TRAIN[:2]]})
    Path("more/1.0.0/label.labels.txt").write_text("dog\ncat\na bird\n")
    screen = shardmill("append", "more", "-o", "out")
    assert screen.code != 0
    assert 'label 0 is "cat" in' in screen.err
    assert '"dog" in more/1.0.0' in screen.err


@pytest.mark.parametrize(
    ("changed", "feature", "holds", "kept"),
    [
        ({"label": [-2]}, "label", "-2", "int64, without names of classes"),
        ({"label": [3]}, "label", "3", "int64, without names of classes"),
        ({"age": [256]}, "age", "256", "int64"),
        ({"ok": [2]}, "ok", "2", "int64"),
        ({"name": [b"\xff"]}, "name", "bytes that are not UTF-8", "binary"),
    ],
)
@pytest.mark.parametrize("command", ["convert", "adopt"])
def test_a_type_that_the_values_are_not_of_is_said_and_not_taken(
    shardmill: Shardmill, command: str, changed: dict[str, list[bytes]], feature: str, holds: str, kept: str
) -> None:
    rows = [*TRAIN, example(11, **changed)]
    write_tfds(Path("pets/1.0.0"), {"train": [rows]})
    screen = shardmill(*(["convert", "pets", "-o", "out"] if command == "convert" else ["adopt", "pets"]))
    assert screen.code == 0, screen.err
    said = f'feature "{feature}" is {TYPES[feature][0]} in features.json, and holds {holds}: it is read as {kept}'
    assert said in re.sub(r"\s+", " ", screen.out)
    dataset = open_dataset("out" if command == "convert" else "pets/1.0.0")
    assert types_of(dataset) == TYPES | {feature: (kept.partition(",")[0], ())}
    assert dataset["train"].to_arrow().num_rows == len(rows)


@pytest.mark.parametrize("command", ["convert", "adopt"])
def test_minus_one_is_no_class_and_the_names_of_the_others_stay(shardmill: Shardmill, command: str) -> None:
    rows = [example(number, label=[label]) for number, label in enumerate((0, -1, 2))]
    write_tfds(Path("pets/1.0.0"), {"train": [rows]})
    screen = shardmill(*(["convert", "pets", "-o", "out"] if command == "convert" else ["adopt", "pets"]))
    assert screen.code == 0, screen.err
    assert 'feature "label" holds -1, which is no class, and reads as null' in re.sub(r"\s+", " ", screen.out)
    path = "out" if command == "convert" else "pets/1.0.0"
    dataset = open_dataset(path)
    assert {name: list(names) for name, names in dataset.labels.items()} == LABELS
    wanted = [LABELS["label"][0], None, LABELS["label"][2]]
    assert dataset["train"].to_arrow()["label"].to_pylist() == wanted
    assert [row["label"] for row in dataset["train"]] == wanted
    if command == "convert":
        put("plain/train-00000-of-00001.tfrecord", [example(4, label=[-1])])
        assert shardmill("append", "plain", "-o", "out").code == 0
        assert open_dataset("out")["train"].to_arrow()["label"].to_pylist() == [*wanted, None]
        assert shardmill("export", "out", "-o", "rows.parquet").code == 0
        assert pq.read_table("rows.parquet")["label"].to_pylist() == [*wanted, None]
    assert shardmill("verify", path).code == 0


@pytest.mark.parametrize("text", ["{", "[]", '{"type": "FeaturesDict", "content": {}}', '{"featuresDict": 1}', "\xff"])
def test_a_features_file_of_another_form_states_nothing(shardmill: Shardmill, text: str) -> None:
    write_tfds(Path("pets/1.0.0"), SPLITS)
    Path("pets/1.0.0/features.json").write_bytes(text.encode("latin-1"))
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert records() == {"test": TEST, "train": TRAIN}
    assert types_of(open_dataset("out"))["age"] == ("int64", ())


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"splits": 1}', '{"splits": [{"shardLengths": ["x"]}]}', '{"splits": {"train": {}}}',
             '{"name": "x", "splits": [{"name": "train", "shardLengths": ["3"], "filepathTemplate": "{0}{NO}"}]}'],
)  # fmt: skip
def test_an_info_file_of_another_form_states_nothing(shardmill: Shardmill, text: str) -> None:
    write_tfds(Path("pets/1.0.0"), SPLITS)
    Path("pets/1.0.0/dataset_info.json").write_text(text)
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert records() == {"test": TEST, "train": TRAIN}
    assert types_of(open_dataset("out"))["age"] == ("int64", ())


@pytest.mark.parametrize("gone", ["pets-train.tfrecord-00001-of-00002", "pets-test.tfrecord-00000-of-00001"])
@pytest.mark.parametrize("command", ["convert", "merge", "adopt"])
def test_a_shard_that_is_missing_is_named_and_the_command_reads_those_that_are_there(
    shardmill: Shardmill, command: str, gone: str
) -> None:
    write_tfds(Path("pets/1.0.0"), SPLITS)
    count = 4
    Path("pets/1.0.0", gone).unlink()
    screen = shardmill(command, "pets/1.0.0", *(() if command == "adopt" else ("-o", "out")))
    assert screen.code == 2
    assert f"pets/1.0.0/{gone}: is missing, and dataset_info.json states {count} records in it" in screen.err
    assert not Path("out").exists()
    (read,) = commands(screen.err)
    assert shardmill(*read).code == 0
    rows = {"test": TEST, "train": TRAIN}
    kept = {"test": TEST, "train": TRAIN[:6]} if "train" in gone else {"train": rows["train"]}
    assert records(read[read.index("-o") + 1]) == kept
    assert types_of(open_dataset(read[read.index("-o") + 1])) == TYPES


@pytest.mark.parametrize("kind", ["array_record", "parquet", "riegeli"])
@pytest.mark.parametrize("path", ["pets", "pets/1.0.0", "pets/1.0.0/pets-train.KIND-00000-of-00002"])
def test_records_of_tfds_in_files_of_another_format_are_refused_by_its_name(
    shardmill: Shardmill, kind: str, path: str
) -> None:
    for shard in write_tfds(Path("pets/1.0.0"), SPLITS):
        shard.rename(str(shard).replace(".tfrecord-", f".{kind}-"))
    info = json.loads(Path("pets/1.0.0/dataset_info.json").read_text())
    Path("pets/1.0.0/dataset_info.json").write_text(json.dumps(info | {"fileFormat": kind}))
    screen = shardmill("convert", path.replace("KIND", kind), "-o", "out")
    assert (screen.code, Path("out").exists()) == (2, False)
    assert f"pets/1.0.0: dataset_info.json says that the records of TFDS are in files of {kind}" in screen.err
    assert ("&& shardmill convert pets/1.0.0-tfrecord -o out" in screen.err) == (kind != "riegeli")


def test_shards_that_are_ignored_or_not_named_are_not_missing(shardmill: Shardmill) -> None:
    write_tfds(Path("pets/1.0.0"), SPLITS)
    assert shardmill("convert", "pets", "-o", "out", "--set", "input.ignore=[pets-test*]").code == 0
    assert records() == {"train": TRAIN}
    assert shardmill("convert", "pets/1.0.0/pets-test.tfrecord-00000-of-00001", "-o", "one").code == 0
    assert records("one") == {"test": TEST}


@pytest.mark.parametrize("command", ["convert", "merge", "adopt"])
def test_a_shard_with_fewer_records_is_refused_and_one_with_more_is_said(shardmill: Shardmill, command: str) -> None:
    how = [command, "pets"] if command == "adopt" else [command, "pets", "-o", "out"]
    shards = write_tfds(Path("pets/1.0.0"), SPLITS)
    write_records(str(shards[0]), iter(TRAIN[:5]), "none")
    screen = shardmill(*how)
    assert screen.code not in (0, 1)
    assert "train.tfrecord-00000-of-00002 holds 5 records, and dataset_info.json states 6" in screen.err
    assert (Path("out").exists(), Path("pets/1.0.0/manifest.json").exists()) == (False, False)
    write_records(str(shards[0]), iter([*TRAIN[:6], TRAIN[0]]), "none")
    screen = shardmill(*how)
    assert screen.code == 0, screen.err
    assert "holds 7 records, and dataset_info.json states 6" in re.sub(r"\s+", " ", screen.out)


@pytest.mark.parametrize("versions", [("pets/1.0.0", "pets/2.0.0"), ("pets/big/1.0.0", "pets/small/1.0.0")])
@pytest.mark.parametrize("command", ["convert", "merge", "adopt"])
def test_of_several_versions_or_configs_the_run_stops_with_a_command_for_each(
    shardmill: Shardmill, command: str, versions: tuple[str, str]
) -> None:
    for number, version in enumerate(versions):
        write_tfds(Path(version), {"train": [TRAIN[number:]]})
    screen = shardmill(command, "pets", *(() if command == "adopt" else ("-o", "out")))
    assert screen.code == 2
    assert f"the folder holds 2 datasets or versions of one ({versions[0]}, {versions[1]})" in screen.err
    for number, words in enumerate(commands(screen.err)):
        assert words[:2] == [command, versions[number]]
        if command != "adopt":
            words[words.index("-o") + 1] = f"o{number}"
        assert shardmill(*words).code == 0
        assert records(f"o{number}" if command != "adopt" else versions[number]) == {"train": TRAIN[number:]}
    if command == "merge":
        assert shardmill("merge", *versions, "-o", "both").code == 0
        assert records("both") == {"train": [*TRAIN, *TRAIN[1:]]}


def test_executions_of_tfx_are_asked_for_and_one_is_read_with_its_splits(shardmill: Shardmill) -> None:
    for number in (1, 2):
        for split, rows in (("train", TRAIN), ("eval", TEST)):
            put(f"examples/{number}/Split-{split}/data_tfrecord-00000-of-00001.gz", rows[number:])
    screen = shardmill("convert", "examples", "-o", "out")
    assert screen.code == 2
    assert "(examples/1, examples/2)" in screen.err
    assert shardmill(*commands(screen.err)[1]).code == 0
    assert records() == {"eval": TEST[2:], "train": TRAIN[2:]}
    shutil.rmtree("examples/2")
    assert shardmill("merge", "examples", "-o", "one").code == 0
    assert records("one") == {"eval": TEST[1:], "train": TRAIN[1:]}


def kaggle(*names: str, rows: int | None = None) -> None:
    for name in names:
        count = int(re.findall("[0-9]+", name)[-1])
        put(name, TRAIN[: count if rows is None else rows])


@pytest.mark.parametrize(
    "names",
    [
        ("set/train/00-224x224-3.tfrec", "set/train/01-224x224-2.tfrec", "set/val/00-224x224-4.tfrec"),
        ("set/train/ld_train00-3.tfrec", "set/train/ld_train01-2.tfrec", "set/test/ld_test00-4.tfrec"),
    ],
)
@pytest.mark.parametrize("command", ["convert", "merge"])
def test_counts_in_the_names_of_kaggle_are_compared(shardmill: Shardmill, command: str, names: tuple[str, ...]) -> None:
    kaggle(*names)
    screen = shardmill(command, "set", "-o", "out")
    assert (screen.code, "no manifest states" in screen.out) == (0, False), screen.err
    assert sorted(len(rows) for rows in records().values()) == [4, 5]
    kaggle(names[1], rows=3)
    screen = shardmill(command, "set", "-o", "more")
    said = f"{names[1]} holds 3 records, and its name states 2"
    assert (screen.code, said in re.sub(r"\s+", " ", screen.out)) == (0, True), screen.err
    kaggle(names[1], rows=1)
    screen = shardmill(command, "set", "-o", "less")
    assert f"{names[1]} holds 1 record, and its name states 2; records are missing" in screen.err
    assert not Path("less").exists()
    assert shardmill(command, "set", "-o", "less", "--set", "input.detect=none").code == 0


def test_words_of_splits_in_the_names_of_kaggle_are_asked_for_and_their_counts_compared(shardmill: Shardmill) -> None:
    kaggle("set/train00-5.tfrec", "set/train01-3.tfrec", "set/test00-4.tfrec")
    screen = shardmill("convert", "set", "-o", "out")
    assert screen.code == 2
    assert shardmill(*commands(screen.err)[0]).code == 0
    assert {split: len(rows) for split, rows in records().items()} == {"train": 8, "test": 4}
    kaggle("set/test00-4.tfrec", rows=2)
    for words in (["adopt", "set", "--split", "all"], ["convert", "set", "-o", "o", "--set", "input.splits=names"]):
        screen = shardmill(*words)
        assert screen.code not in (0, 1)
        assert "set/test00-4.tfrec holds 2 records, and its name states 4" in screen.err


@pytest.mark.parametrize(
    "name",
    ["day-2024-11.tfrec", "2024-05.tfrec", "a-3.tfrec", "x01-3.tfrec", "part-00000-of-00009.tfrec", "00-3.tfrecord"],
)
def test_other_numbers_in_names_are_no_counts(shardmill: Shardmill, name: str) -> None:
    kaggle(f"set/{name}", rows=1)
    screen = shardmill("convert", "set", "-o", "out")
    assert (screen.code, "no manifest states the number of records" in screen.out) == (0, True), screen.err


@pytest.mark.parametrize("command", ["convert", "merge"])
def test_files_whose_names_say_that_there_are_more_are_said(shardmill: Shardmill, command: str) -> None:
    put("set/data-00000-of-00003.tfrecord", TRAIN)
    screen = shardmill(command, "set", "-o", "out")
    assert screen.code == 0
    assert "set/data-00001-of-00003.tfrecord is not here: 1 of 3 files" in re.sub(r"\s+", " ", screen.out)


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize(
    "name",
    ["part-r-{0:05}", "part-{0:05}-2ad8aa1c-ee5f-4d26-bb0c-5f1d0a4b6e6b-c000.tfrecord", "split={1}/part-r-{0:05}"],
)
@pytest.mark.parametrize("path", ["spark", "spark/[!_]*", "adopt"])
def test_folders_that_spark_writes_are_read(shardmill: Shardmill, name: str, end: str, path: str) -> None:
    for number, split in enumerate(("train", "train", "test")):
        put(f"spark/{name.format(number, split)}{end}", TRAIN[number : number + 3])
    Path("spark/_SUCCESS").touch()
    splits = {"test": TRAIN[2:5], "train": [*TRAIN[:3], *TRAIN[1:4]]}
    everything = {"train": [*splits["train"], *splits["test"]]}
    if path != "adopt":
        screen = shardmill("convert", path, "-o", "out")
        assert screen.code == 0, screen.err
        assert records() == (splits if "split" in name else everything)
        assert ("Left out: 1 hidden file" in screen.out) == (path == "spark")
    elif name.startswith("part-{"):
        assert shardmill("adopt", "spark").code == 0
        assert records("spark") == everything
    else:
        assert shardmill(*commands(shardmill("adopt", "spark").err)[0]).code == 0
        assert records("spark-dataset") == (splits if "split" in name else everything)


@pytest.mark.parametrize("text", ["", "a\tb\n", '{"a": 1}\n'])
def test_files_of_text_that_are_called_as_those_of_spark_are_no_records(shardmill: Shardmill, text: str) -> None:
    Path("text").mkdir()
    Path("text/part-r-00000").write_text(text)
    screen = shardmill("convert", "text", "-o", "out")
    assert (screen.code, "TFRecord" in screen.err, "tfrecord" in screen.err.partition("say which")[0]) == (
        2,
        False,
        False,
    )


@pytest.mark.parametrize("names", [("a", "b"), ("x.bin", "y.bin")])
@pytest.mark.parametrize("packed", [False, True])
def test_records_in_files_without_a_known_name_are_read_by_the_command_of_the_message(
    shardmill: Shardmill, names: tuple[str, str], packed: bool
) -> None:
    for name in names:
        put(f"some/{name}{'.gz' * packed}", TRAIN[:2])
        Path(f"some/{name}{'.gz' * packed}").rename(f"some/{name}")
    screen = shardmill("convert", "some", "-o", "out")
    assert (screen.code, len(commands(screen.err))) == (2, 1), screen.err
    assert shardmill(*commands(screen.err)[0]).code == 0
    assert records() == {"train": TRAIN[:2] * 2}
    screen = shardmill("convert", f"some/{names[1]}", "-o", "one")
    assert "the first bytes are those of a TFRecord file; read it as one: --format tfrecord" in screen.err


def test_a_folder_of_tfds_and_a_dataset_are_merged_with_their_classes(shardmill: Shardmill) -> None:
    write_tfds(Path("pets/1.0.0"), SPLITS)
    assert shardmill("convert", "pets", "-o", "out").code == 0
    screen = shardmill("merge", "out", "pets", "-o", "both")
    assert screen.code == 0, screen.err
    assert records("both") == {"test": TEST * 2, "train": TRAIN * 2}
    assert types_of(open_dataset("both")) == TYPES
    assert {name: list(names) for name, names in open_dataset("both").labels.items()} == LABELS


@pytest.mark.parametrize("number", [-1, 3])
def test_classes_that_a_dataset_does_not_name_are_not_appended(shardmill: Shardmill, number: int) -> None:
    write_tfds(Path("pets/1.0.0"), SPLITS)
    assert shardmill("convert", "pets", "-o", "out").code == 0
    write_tfds(Path("more/1.0.0"), {"test": [[example(1, label=[number])]]})
    put("plain/test-00000-of-00001.tfrecord", [example(1, label=[number])])
    for source in ("more", "plain"):
        screen = shardmill("append", source, "-o", "out")
        assert screen.code == 2
        assert f'feature "label" holds class {number}, and ' in screen.err
        assert "names 3 classes, from 0 on; leave the file out" in screen.err
    assert records() == {"test": TEST, "train": TRAIN}


def test_the_same_pictures_in_several_sizes_are_asked_for(shardmill: Shardmill) -> None:
    sizes = ("192x192", "224x224")
    kaggle(
        *(f"flowers/tfrecords-jpeg-{size}/{split}/00-{size}-3.tfrec" for size in sizes for split in ("train", "val"))
    )
    screen = shardmill("convert", "flowers", "-o", "out")
    assert screen.code == 2
    assert "flowers/tfrecords-jpeg-192x192, flowers/tfrecords-jpeg-224x224" in screen.err
    assert shardmill(*commands(screen.err)[1]).code == 0
    assert records() == {"train": TRAIN[:3], "val": TRAIN[:3]}


LABEL = "image/object/class/label"


def roboflow(root: str, *names: str) -> None:
    """Write the TFRecord files of Roboflow, a box for each of the classes, which are numbered from 1 on."""
    for split, count in (("train", 2), ("valid", 1), ("test", 1)):
        rows = []
        for number in range(count):
            made = Example()
            made.features.feature["image/source_id"].bytes_list.value.append(f"{root} {split} {number}".encode())
            made.features.feature[LABEL].int64_list.value.extend(range(1, len(names) + 1 - number))
            rows.append(made.SerializeToString())
        put(f"{root}/{split}/cells.tfrecord", rows)
        items = (f'item {{\n    name: "{name}",\n    id: {number}\n}}\n' for number, name in enumerate(names, 1))
        Path(f"{root}/{split}/cells_label_map.pbtxt").write_text("".join(items))


def test_the_label_maps_of_roboflow_name_the_classes_of_all_splits(shardmill: Shardmill) -> None:
    roboflow("cells", "rbc", "wbc")
    done = shardmill("convert", "cells", "-o", "out")
    assert done.code == 0, done.err
    assert "labels of the datasets" not in done.out
    assert f"Detected: names of the classes of {LABEL}, from cells_label_map.pbtxt" in done.out
    dataset = open_dataset("out")
    assert {name: one.records for name, one in dataset.manifest.splits.items()} == {"test": 1, "train": 2, "valid": 1}
    assert dataset.labels == {LABEL: ("_unused_0", "rbc", "wbc")}
    assert types_of(dataset)[LABEL] == ("label", (-1,))
    roboflow("more", "rbc", "wbc")
    assert shardmill("append", "more", "-o", "out").code == 0
    assert open_dataset("out").labels == {LABEL: ("_unused_0", "rbc", "wbc")}
    assert shardmill("convert", "cells", "-o", "none", "--set", "input.detect=none").code == 0
    assert open_dataset("none").labels == {}


def test_an_append_of_label_maps_in_another_order_is_refused(shardmill: Shardmill) -> None:
    roboflow("cells", "rbc", "wbc")
    assert shardmill("convert", "cells", "-o", "out").code == 0
    roboflow("more", "wbc", "rbc")
    refused = shardmill("append", "more", "-o", "out")
    assert (refused.code, LABEL in refused.err) == (2, True)


def test_numbers_beyond_a_label_map_are_said_and_have_no_names(shardmill: Shardmill) -> None:
    roboflow("cells", "rbc", "wbc")
    for split in ("train", "valid", "test"):
        Path(f"cells/{split}/cells_label_map.pbtxt").write_text('item {\n    name: "rbc",\n    id: 1\n}\n')
    done = shardmill("convert", "cells", "-o", "out")
    said = f'feature "{LABEL}" is label in cells_label_map.pbtxt, and holds 2: it is read as int64, without names of '
    assert f"{said}classes\n" in done.out
    assert open_dataset("out").labels == {}
    made, text = Example(), LABEL.replace("label", "text")
    made.features.feature[LABEL].int64_list.value.append(2)
    made.features.feature[text].bytes_list.value.append(b"wbc")
    for split in ("train", "valid", "test"):
        put(f"cells/{split}/cells.tfrecord", [made.SerializeToString()])
    done = shardmill("convert", "cells", "-o", "named")
    assert f"{said}classes, which are in {text}\n" in done.out


@pytest.mark.parametrize("text", ["", "item {}", 'item { name: "a" id: x }', 'item { id: 999999999 name: "a" }'])
def test_a_label_map_of_another_form_states_nothing(shardmill: Shardmill, text: str) -> None:
    roboflow("cells", "rbc")
    for split in ("train", "valid", "test"):
        Path(f"cells/{split}/cells_label_map.pbtxt").write_text(text)
    assert shardmill("convert", "cells", "-o", "out").code == 0
    assert open_dataset("out").labels == {}
