"""`info`: what a dataset holds, from one file of it, and what can be known of anyone's records."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from shardmill.pipelines.cli import main
from shardmill.pipelines.commands.info import look_at_files, readers_of
from shardmill.transforms.dataset.storage.manifest_files import read_overview
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import DamageError, InputError
from shardmill.transforms.format.manifest.manifest import Manifest, ShardEntry, SplitEntry
from shardmill.transforms.format.manifest.parser import parse_manifest
from shardmill.transforms.format.schema.schema import Feature, Schema

from ...examples import example_from_values


def info(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["info", *args])
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().out


@pytest.fixture
def here(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> Manifest:
    """Make the dataset's folder the working folder's `dataset`, and return its manifest, with labels and a null."""
    monkeypatch.chdir(dataset.parent)
    path = dataset / "manifests/00000001.json"
    features = (Feature("a", "int64", "label", labels="a.labels.txt"), Feature("b", "float", "float64", nullable=True))
    schema = Schema(features)
    manifest = dataclasses.replace(
        parse_manifest(path.read_bytes(), "it"),
        schema=schema,
        schema_fingerprint=schema.fingerprint(),
        labels={"a": ("cat", "dog")},
        sidecars=("dataset_info.json", "index/train-00000.tfrecord.idx"),
    )
    path.write_bytes(manifest.to_bytes())
    return manifest


def test_a_dataset_is_told_by_its_manifest_and_no_record_is_read(
    here: Manifest, capsys: pytest.CaptureFixture[str]
) -> None:
    for shard in Path("dataset").glob("*.tfrecord"):
        shard.unlink()
    code, out = info(capsys, "dataset/")
    size = sum(split.bytes for split in here.splits.values())
    assert code == 0
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "dataset: dataset dataset, generation 1",
        f"5 records in 3 shards, {size} B",
        "made 2026-01-31T12:00:00Z (UTC) by create from csv",
        "",
        "split records shards bytes",
        f"train 4 2 {here.splits['train'].bytes} B",
        f"val 1 1 {here.splits['val'].bytes} B",
        "",
        "feature kind type nulls",
        "a int64 label no",
        "b float float64 yes",
        "Nulls possible in b: their records lack it, and TFDS reads the smallest number or empty text "
        "(docs/types.md, Nulls)",
        "Labels of a: cat = 0, dog = 1",
        "",
        "Read by: tf.data, TFDS, Keras, TFX, grain, tfrecord (PyTorch), NVIDIA DALI, shardmill.pipelines.open_dataset",
        "import tensorflow_datasets as tfds",
        "dataset = tfds.builder_from_directory('dataset').as_dataset(split='train')",
        "for example in dataset.take(1): print(example)",
    ]


def test_the_same_as_json(here: Manifest, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = info(capsys, "dataset", "--json")
    document = json.loads(out)
    assert (code, document["name"], document["generations"]) == (0, "dataset", [1])
    assert document["splits"]["train"] == {"records": 4, "shards": 2, "bytes": here.splits["train"].bytes}
    assert [feature["nullable"] for feature in document["schema"]] == [False, True]
    assert document["labels"] == {"a": ["cat", "dog"]}
    assert document["readers"] == readers_of(here)
    packed = readers_of(dataclasses.replace(here, compression="gzip"))
    assert ("TFDS" in document["readers"], "TFDS" in packed, "tf.data" in packed) == (True, False, True)


def test_of_any_number_of_shards_one_file_is_read(here: Manifest, dataset: Path) -> None:
    shards = tuple(ShardEntry(f"train-{i:05d}.tfrecord", 1, 2, 100, "00000000") for i in range(25_007))
    split = SplitEntry(50_014, 2_500_700, 256, "sum128:" + "0" * 32, shards)
    main_document, parts = dataclasses.replace(here, splits={"train": split}).to_documents()
    assert len(parts) == 2  # which are not written: whoever reads them fails
    (dataset / "manifests/00000001.json").write_bytes(main_document)
    found = read_overview(str(dataset))
    assert found.shards == {"train": 25_007}
    assert (found.manifest.splits["train"].records, found.manifest.splits["train"].bytes) == (50_014, 2_500_700)
    (dataset / "manifests/00000001.json").write_bytes(main_document.replace(b'"records": 20000', b'"records": 20001'))
    with pytest.raises(DamageError, match="not the sum over its shards"):
        read_overview(str(dataset))


@pytest.mark.parametrize(("shards", "bytes_each", "said"), [(7, 100, False), (8, 100, True), (8, 40_000, False)])
def test_many_small_shards_are_named_with_what_joins_them(
    shards: int, bytes_each: int, said: bool, here: Manifest, dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tuple(ShardEntry(f"train-{i:05d}.tfrecord", 1, 2, bytes_each, "00000000") for i in range(shards))
    split = SplitEntry(2 * shards, bytes_each * shards, 256, "sum128:" + "0" * 32, listed)
    manifest = dataclasses.replace(here, splits={"train": split}, shard_size=65_536)
    (dataset / "manifests/00000001.json").write_bytes(manifest.to_bytes())
    hint = "8 shards, where 1 of 64.0 KiB would hold all; to join them: shardmill rebuild dataset -o FOLDER\n"
    assert (hint in info(capsys, "dataset")[1]) is said


@pytest.mark.parametrize("command", [["info", "x"], ["convert", "a.csv", "-o", "out"], ["verify", "x"]])
def test_a_working_folder_that_was_removed_is_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SystemExit, match="2"):
        main(command)
    monkeypatch.undo()
    assert capsys.readouterr().err == "error: the working folder was removed: change to another one (cd)\n"


def test_of_foreign_files_it_says_what_the_first_records_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    examples = [example_from_values({"n": [i], "words": [b"x"] * (i + 1)}).SerializeToString() for i in range(3)]
    write_records("data/a.tfrecord.gz", examples, compression="gzip")
    write_records("data/b.tfrecord", [b"plain"])
    code, out = info(capsys, "data")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0
    assert lines[0].startswith("data: 2 TFRecord files, ")
    assert lines[1:] == [
        "No manifest says how many records there are",
        "The first 3 records of the first file:",
        "",
        "feature kind type nulls",
        "n int64 int64 no",
        "words bytes list list of binary no",
        "",
        "A dataset of them where they are, unchanged: shardmill adopt data",
        "A dataset of copies of their records: shardmill merge data -o FOLDER",
    ]
    assert "shardmill adopt" not in info(capsys, "data/a.tfrecord.gz")[1]
    assert look_at_files("data/b.tfrecord").problem == "they are not tf.train.Example"
    document = json.loads(info(capsys, "data/a.tfrecord.gz", "--json")[1])
    assert (document["compression"], document["looked_at"]["records"], document["records"]) == ("gzip", 3, None)
    Path("data/empty.tfrecord").touch()
    assert "The first file holds no record." in info(capsys, "data/empty.tfrecord")[1]


def test_a_shard_is_told_by_the_manifest_of_its_dataset(here: Manifest, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = info(capsys, "dataset/train-00000.tfrecord")
    assert "3 records, as the manifest of dataset dataset states; to see it: shardmill info dataset" in out


def test_nothing_there_is_an_input_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert info(capsys, str(tmp_path / "gone"))[0] == 2
    with pytest.raises(InputError, match="no dataset"):
        read_overview(str(tmp_path))


def test_a_folder_in_which_a_run_stopped_says_so_and_how_to_resume_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id,n\n" + "".join(f"{i},{i}\n" for i in range(99)) + "x\n")
    command = ["convert", "a.csv", "-o", "out", "--workers", "1"]
    with pytest.raises(SystemExit):
        main(command)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["info", "out"])
    err = capsys.readouterr().err
    assert ended.value.code == 2
    assert err.startswith("error: out: holds no dataset yet: a run stopped here (1 of 1 task done; ")
    assert err.endswith(
        " staged). To resume: the same command again; to see what may go: shardmill gc out --older-than 0s\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["gc", "out", "--older-than", "0s"])
    assert (ended.value.code, "Would remove" in capsys.readouterr().out) == (0, True)
    with pytest.raises(SystemExit) as ended:
        main([*command, "--max-rejects", "1"])
    assert (ended.value.code, "resuming: 1 of 1 task already done" in capsys.readouterr().err) == (0, True)
