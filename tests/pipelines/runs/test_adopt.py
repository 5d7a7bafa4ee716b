"""TFRecord files of any writer become a dataset, and stay as they are."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import DamageError
from shardmill.transforms.format.examples.decode_examples import Example

from ...command_line import Shardmill
from ...examples import example_from_values


def example(**features: Any) -> bytes:
    """Return an Example as TensorFlow makes it: its keys are in the order in which they were given."""
    made = Example()
    for name, values in features.items():
        kind = {int: "int64_list", float: "float_list", bytes: "bytes_list"}[type(values[0])]
        getattr(made.features.feature[name], kind).value.extend(values)
    return bytes(made.SerializeToString())


def put(folder: Path, name: str, records: Sequence[bytes], compression: str = "none") -> Path:
    folder.mkdir(exist_ok=True)
    write_records(str(folder / name), iter(records), compression)
    return folder / name


ROWS = [example(z=[n], a=[b"x" * n], pair=[0.5, 1.5], tags=[1] * (n % 3 + 1)) for n in range(1, 21)]


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    folder = tmp_path / "mnist"
    for index in range(3):
        put(folder, f"mnist-train.tfrecord-{index:05d}-of-00003", ROWS[index * 6 : index * 6 + 6])
    put(folder, "mnist-test.tfrecord-00000-of-00001", [*ROWS[18:], example(z=[7], a=[b"y"], tags=[1])])
    (folder / "notes.txt").write_text("mine")
    return folder


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir() if path.is_file()}


def test_files_of_tfds_become_a_dataset_that_is_verified_and_read_and_stay_as_they_are(
    mnist: Path, shardmill: Shardmill
) -> None:
    before = state(mnist)
    screen = shardmill("adopt", "mnist")
    assert (screen.code, screen.err) == (0, "")
    assert screen.out.startswith("Adopted mnist: 21 records in 4 files")
    assert {name: found for name, found in state(mnist).items() if name in before} == before
    screen = shardmill("verify", "mnist")
    assert (screen.code, "OK: generation 1 of mnist: 4 shards, 21 records" in screen.out) == (0, True)
    dataset = open_dataset(mnist)
    assert {name: len(dataset[name]) for name in dataset.splits} == {"test": 3, "train": 18}
    assert [row["z"] for row in dataset["train"]] == list(range(1, 19))
    assert dataset["train"][17]["a"] == b"x" * 18
    assert dataset.schema is not None
    found = {one.name: (one.kind, one.shape, one.nullable) for one in dataset.schema}
    assert found == {
        "a": ("bytes", (), False),
        "pair": ("float", (2,), True),
        "tags": ("int64", (-1,), False),
        "z": ("int64", (), False),
    }
    assert shardmill("info", "mnist").code == 0
    assert len(list((mnist / "index").iterdir())) == 4


def test_rows_can_be_appended_to_what_was_adopted(tmp_path: Path, shardmill: Shardmill) -> None:
    for number in range(1, 3):  # numbered from 1: an append has to give other names
        put(tmp_path / "mine", f"train-{number:05d}.tfrecord", [example(id=[number])])
    assert shardmill("adopt", "mine").code == 0
    (tmp_path / "more.jsonl").write_text('{"id": 7}\n')
    append(tmp_path / "more.jsonl", output=tmp_path / "mine")
    assert [row["id"] for row in open_dataset(tmp_path / "mine")] == [1, 2, 7]
    assert shardmill("verify", "mine").code == 0
    assert shardmill("rebuild", "mine", "-o", "again").code == 0
    assert [row["id"] for row in open_dataset(tmp_path / "again")] == [1, 2, 7]


def test_files_of_a_set_that_are_not_here_are_named(mnist: Path, shardmill: Shardmill) -> None:
    (mnist / "mnist-train.tfrecord-00001-of-00003").unlink()
    screen = shardmill("adopt", "mnist")
    assert screen.code == 0
    said = "is not here: 2 of 3 files of this name are; if others hold records, the dataset lacks them"
    assert f"Note: mnist-train.tfrecord-00001-of-00003 {said}" in screen.out
    assert "00000-of-00001 is" not in screen.out


def test_the_manifest_says_how_many_files_of_which_size_were_adopted(mnist: Path, shardmill: Shardmill) -> None:
    sizes = [path.stat().st_size for path in mnist.glob("*tfrecord*")]
    assert shardmill("adopt", "mnist").code == 0
    source = open_dataset(mnist).manifest.source
    assert (source.format, source.files, source.bytes) == ("tfrecord", len(sizes), sum(sizes))


def test_compressed_files_and_records_that_are_no_examples(tmp_path: Path, shardmill: Shardmill) -> None:
    put(tmp_path / "packed", "coco_val.record-00000-of-00001", ROWS, "gzip")
    put(tmp_path / "bytes", "a.tfrecords", [b"\xff not an Example", *ROWS])
    assert shardmill("adopt", "packed", "--name", "coco").code == 0
    dataset = open_dataset(tmp_path / "packed")
    assert (dataset.splits, dataset.manifest.name, dataset.manifest.compression) == (("val",), "coco", "gzip")
    screen = shardmill("adopt", "bytes", "--split", "all")
    assert (screen.code, "so there is no schema" in screen.out) == (0, True)
    assert list(open_dataset(tmp_path / "bytes").records("all")) == [b"\xff not an Example", *ROWS]
    for folder in ("packed", "bytes"):
        assert shardmill("verify", folder).code == 0


def test_files_for_tfds_that_are_there_stay_as_they_are(mnist: Path, shardmill: Shardmill) -> None:
    (mnist / "features.json").write_text("{}")
    screen = shardmill("adopt", "mnist")
    assert "Note: features.json was there, and stays as it is" in screen.out
    assert (mnist / "features.json").read_text() == "{}"
    assert not (mnist / "dataset_info.json").exists()
    assert (mnist / "schema.pbtxt").exists()
    assert shardmill("verify", "mnist").code == 0


def test_an_adoption_that_did_not_end_is_made_again_with_all_that_belongs_to_it(
    mnist: Path, shardmill: Shardmill
) -> None:
    assert shardmill("adopt", "mnist").code == 0
    names = sorted(path.name for path in mnist.rglob("*"))
    (mnist / "manifest.json").unlink()
    (mnist / "manifests/00000001.json").unlink()
    (mnist / "manifests").rmdir()
    screen = shardmill("adopt", "mnist")
    assert (screen.code, "stays as it is" in screen.out) == (0, False)
    assert sorted(path.name for path in mnist.rglob("*")) == names
    assert "features.json" in open_dataset(mnist).manifest.sidecars
    assert shardmill("verify", "mnist").code == 0


def test_every_damaged_file_is_named_and_nothing_is_written(mnist: Path, shardmill: Shardmill) -> None:
    for index, change in ((0, lambda data: data[:-1]), (2, lambda data: data[:40] + b"?" + data[41:])):
        path = mnist / f"mnist-train.tfrecord-{index:05d}-of-00003"
        path.write_bytes(change(path.read_bytes()))
    before = sorted(mnist.rglob("*"))
    screen = shardmill("adopt", "mnist")
    assert screen.code == 3
    assert "2 files of 4 cannot be read to the end" in screen.err
    assert all(f"mnist-train.tfrecord-{index:05d}-of-00003" in screen.err for index in (0, 2))
    assert "mnist-train.tfrecord-00001" not in screen.err
    assert sorted(mnist.rglob("*")) == before


def test_what_cannot_be_adopted_is_refused_with_what_helps(mnist: Path, tmp_path: Path, shardmill: Shardmill) -> None:
    def refused(*arguments: str) -> str:
        screen = shardmill("adopt", *arguments)
        assert screen.code == 2
        return screen.err

    (tmp_path / "empty").mkdir()
    assert "holds no file with one of the suffixes .tfrecord, " in refused("empty")
    assert "is no folder" in refused("nowhere")
    assert "shardmill merge s3://bucket/x -o s3://bucket/x-dataset" in refused("s3://bucket/x")
    assert '--split: "No" is not lowercase' in refused("mnist", "--split", "No")
    assert '--name: "No" is not lowercase' in refused("mnist", "--name", "No")
    put(tmp_path / "nothing", "a.tfrecord", [])
    assert "a.tfrecord: holds no record; remove it" in refused("nothing")
    put(tmp_path / "odd", "a b.tfrecord", ROWS)
    assert "rename it to letters" in refused("odd")
    put(tmp_path / "mixed", "a.tfrecord", ROWS)
    put(tmp_path / "mixed", "b.tfrecord", ROWS, "gzip")
    assert "b.tfrecord is compressed, and mixed/a.tfrecord is not" in refused("mixed")
    put(tmp_path / "kinds", "a.tfrecord", [example(x=[1])])
    put(tmp_path / "kinds", "b.tfrecord", [example(x=[1.0])])
    assert 'feature "x" holds int64 values in kinds/a.tfrecord and float values in kinds/b.tfrecord' in refused("kinds")
    put(tmp_path / "within", "a.tfrecord", [example(x=[1]), example(x=[1.0])])
    assert "shardmill merge within -o within-dataset --records opaque" in refused("within")
    assert shardmill("adopt", "mnist").code == 0
    assert "is a dataset, with a manifest of its own: shardmill info mnist" in refused("mnist")


@pytest.mark.parametrize("command", ["verify", "report", "export", "snippet"])
def test_each_command_that_takes_a_dataset_names_the_way_to_one(
    mnist: Path, tmp_path: Path, shardmill: Shardmill, command: str
) -> None:
    words = {
        "report": ["mnist", "-o", "r.html"],
        "export": ["mnist", "-o", "x.jsonl"],
        "snippet": ["torch", "mnist"],
    }
    screen = shardmill(command, *words.get(command, ["mnist"]))
    assert screen.code == 2
    way = re.search(r"without changing them: shardmill (adopt mnist); ", screen.err)
    assert way is not None, screen.err
    assert shardmill(*way[1].split()).code == 0
    assert shardmill(command, *words.get(command, ["mnist"])).code == 0


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train-00000.tfrecord", "train"),
        ("val-00000-of-00001.tfrecord", "val"),
        ("mnist-test.tfrecord-00000-of-00001", "test"),
        ("coco_val.record-00000-of-00001", "val"),
        ("evaluation-0.tfrec", "evaluation"),
        ("training-wheels.tfrecord", "all"),
        ("train-of-thought-00000.tfrecord", "all"),
        ("my-test.tfrecord", "all"),
        ("data_tfrecord-00000-of-00012", "all"),
        ("a.tfrec", "all"),
    ],
)
def test_a_split_is_stated_by_a_whole_name_alone_and_the_user_says_it_before_names(
    tmp_path: Path, shardmill: Shardmill, name: str, split: str
) -> None:
    for folder in ("mine", "said"):
        put(tmp_path / folder, name, ROWS)
    assert shardmill("adopt", "mine").code == 0
    assert open_dataset(tmp_path / "mine").splits == ("train" if split == "all" else split,)
    screen = shardmill("adopt", "said", "--split", "all")
    note = f"Note: names of files state splits ({split}), which are not used, since --split is for all files"
    assert (screen.code, note in screen.out, "which are not used" in screen.out) == (0, split != "all", split != "all")
    assert open_dataset(tmp_path / "said").splits == ("all",)
    assert shardmill("verify", "mine").code == shardmill("verify", "said").code == 0


def test_words_that_may_be_splits_are_refused_with_commands_that_work(tmp_path: Path, shardmill: Shardmill) -> None:
    put(tmp_path / "mine", "train.tfrecord", ROWS[:12])
    put(tmp_path / "mine", "my_test.tfrecord", ROWS[12:])
    screen = shardmill("adopt", "mine")
    assert screen.code == 2
    second, first = re.findall(r"^  .*?: +(shardmill .*)$", screen.err, re.M)
    assert not (tmp_path / "mine/manifests").exists()
    assert shardmill(*shlex.split(second)[1:]).code == 0
    dataset = open_dataset(tmp_path / "mine-dataset")
    assert {name: len(dataset[name]) for name in dataset.splits} == {"test": 8, "train": 12}
    assert shardmill(*shlex.split(first)[1:]).code == 0
    assert open_dataset(tmp_path / "mine").splits == ("train",)


def test_a_form_that_states_a_split_beside_names_that_state_none_is_refused_too(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    put(tmp_path / "mine", "test-00000.tfrecord", ROWS[:12])
    put(tmp_path / "mine", "extra.tfrecord", ROWS[12:])
    screen = shardmill("adopt", "mine")
    assert (screen.code, "names of files may mean splits: mine/test-00000.tfrecord, beside" in screen.err) == (2, True)
    assert shardmill("adopt", "mine", "--split", "rest").code == 0
    dataset = open_dataset(tmp_path / "mine")
    assert {name: len(dataset[name]) for name in dataset.splits} == {"rest": 20}


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 12345\n"


@pytest.mark.parametrize(
    "command", [["adopt", "mine"], ["merge", "mine", "-o", "out"], ["rebuild", "mine", "-o", "out"]]
)
def test_a_pointer_a_web_page_and_a_copy_are_known_among_records(
    tmp_path: Path, shardmill: Shardmill, command: list[str]
) -> None:
    put(tmp_path / "mine", "a.tfrecord", ROWS)
    shutil.copy(tmp_path / "mine/a.tfrecord", tmp_path / "mine/a (1).tfrecord")
    (tmp_path / "mine/a (1).tfrecord").rename(tmp_path / "mine/a-copy.tfrecord")
    for data, said in ((POINTER, "is a Git LFS pointer"), (b"<!DOCTYPE html><html></html>", "is a web page")):
        (tmp_path / "mine/b.tfrecord").write_bytes(data)
        screen = shardmill(*command)
        assert (screen.code, f"mine/b.tfrecord: {said}" in screen.err) == (2, True)
    (tmp_path / "mine/b.tfrecord").unlink()
    (tmp_path / "mine/notes.txt").write_text("x")
    screen = shardmill(*command)
    assert (screen.code, "mine/a.tfrecord and mine/a-copy.tfrecord: a copy by its name" in screen.out) == (0, True)
    assert ("\nLeft out: 1 .txt\n" in screen.out) == (command[0] != "adopt")  # which leaves it where it is


@pytest.mark.parametrize(
    "files",
    [
        {"train/x.tfrecord": "train", "valid/x.tfrecord": "valid"},
        {"Split-train/data_tfrecord-00000-of-00001.gz": "train", "Split-eval/data_tfrecord-00000-of-00001.gz": "eval"},
        {"all/Train/a.tfrec": "train", "all/Test/a.tfrec": "test"},
        {"train/cat/x.record": "train", "train/dog/x.record": "train", "test/cat/x.record": "test"},
    ],
)
def test_folders_are_splits_in_the_command_that_a_refused_adoption_names(
    tmp_path: Path, shardmill: Shardmill, files: dict[str, str]
) -> None:
    counts: dict[str, int] = {}
    for number, (name, split) in enumerate(files.items()):
        (tmp_path / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        put(tmp_path / "mine", name, ROWS[: number + 1], "gzip" if name.endswith(".gz") else "none")
        counts[split] = counts.get(split, 0) + number + 1
    screen = shardmill("adopt", "mine")
    assert screen.code == 2
    assert not (tmp_path / "mine/manifests").exists()
    assert shardmill(*shlex.split(screen.err.strip().rpartition(": ")[2])[1:]).code == 0
    dataset = open_dataset(tmp_path / "mine-dataset")
    assert {name: len(dataset[name]) for name in dataset.splits} == counts
    found = json.loads(shardmill("stats", "mine", "--json").out)["splits"]
    assert {name: found[name]["records"] for name in found} == counts


def test_folders_that_are_given_are_splits_and_one_that_is_called_like_a_split_is_none(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    for name in ("train", "test"):
        (tmp_path / "in").mkdir(exist_ok=True)
        put(tmp_path / "in" / name, "x.tfrecord", ROWS)
    assert shardmill("merge", "in/train", "in/test", "-o", "both").code == 0
    assert shardmill("merge", "in/test", "-o", "one").code == 0
    assert shardmill("merge", "in", "-o", "all", "--split", "all").code == 0
    found = [open_dataset(tmp_path / name).splits for name in ("both", "one", "all")]
    assert found == [("test", "train"), ("train",), ("all",)]


def test_files_of_tfx_are_adopted_merged_and_counted(tmp_path: Path, shardmill: Shardmill) -> None:
    for number in range(2):
        put(tmp_path / "mine", f"data_tfrecord-{number:05d}-of-00002.gz", ROWS[number * 10 : number * 10 + 10], "gzip")
    assert shardmill("merge", "mine", "-o", "merged").code == 0
    assert list(open_dataset(tmp_path / "merged").records()) == ROWS
    assert shardmill("stats", "mine").code == 0
    assert shardmill("convert", "mine", "-o", "converted").code == 0
    assert shardmill("adopt", "mine").code == 0
    assert list(open_dataset(tmp_path / "mine").records()) == ROWS
    assert shardmill("verify", "mine").code == 0


@pytest.mark.parametrize("case", ["mixed", "odd", "within"])
def test_the_command_of_a_refusal_works(tmp_path: Path, shardmill: Shardmill, case: str) -> None:
    put(tmp_path / "in", "a.tfrecord", [example(x=[1]), example(x=[1.0])] if case == "within" else ROWS)
    if case == "mixed":
        put(tmp_path / "in", "b.tfrecord", ROWS, "gzip")
    elif case == "odd":
        put(tmp_path / "in", "a b.tfrecord", ROWS)
    said = shardmill("adopt", "in").err
    command = re.search(r"shardmill (merge in -o in-dataset(?: --records opaque)?)", said)
    assert command is not None
    assert shardmill(*command[1].split()).code == 0
    assert len(open_dataset(tmp_path / "in-dataset")) == (2 if case == "within" else 40)


def test_a_file_beside_the_folders_of_splits_is_refused_with_what_helps(tmp_path: Path, shardmill: Shardmill) -> None:
    for name in ("train/a.tfrecord", "test/a.tfrecord", "extra.tfrecord"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        put(tmp_path / "in", name, ROWS)
    screen = shardmill("merge", "in", "-o", "out")
    assert (screen.code, "in/extra.tfrecord: is in no folder of a split" in screen.err) == (2, True)
    assert shardmill("merge", "in/train", "in/test", "-o", "out").code == 0
    assert shardmill("merge", "in", "-o", "one", "--split", "train").code == 0
    assert len(open_dataset(tmp_path / "one")["train"]) == 60


def test_a_dataset_of_another_format_version_is_refused_with_what_takes_its_shards_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shardmill: Shardmill
) -> None:
    monkeypatch.chdir(tmp_path)
    convert(data=pa.table({"a": [1, 2]}), output="old")
    for path in (Path("old/manifest.json"), *Path("old/manifests").iterdir()):
        path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 2'))
    with pytest.raises(DamageError, match="convert again; or remove all but the shards, and run shardmill adopt"):
        open_dataset("old")
    for path in Path("old").iterdir():
        if path.suffix != ".tfrecord":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert shardmill("adopt", "old").code == 0
    assert shardmill("verify", "old").code == 0
    assert [row["a"] for row in open_dataset("old")] == [1, 2]


def _files(folder: str, odd: dict[tuple[int, int], bytes]) -> None:
    """Write five files of ten Examples, some records in their place: by the numbers of file and record, from 0."""
    Path(folder).mkdir()
    for file in range(5):
        rows = [odd.get((file, row), example_from_values({"id": [row]}).SerializeToString()) for row in range(10)]
        write_records(f"{folder}/{file}.tfrecord", rows)


def test_one_file_without_examples_does_not_make_all_plain_bytes(tmp_path: Path, shardmill: Shardmill) -> None:
    _files("odd", {(3, row): b"\xff\xffno" for row in range(10)})
    says = "odd/3.tfrecord: none of its records is a tf.train.Example"
    screen = shardmill("adopt", "odd", "-q")
    assert (screen.code, f"{says}, and 4 files beside it hold Examples; move it elsewhere" in screen.err) == (2, True)
    assert not Path("odd/manifest.json").exists()
    assert shardmill("stats", "odd").err == f"error: {says}; leave it out\n"
    assert shardmill("merge", "odd", "-o", "odd-dataset", "--records", "opaque", "-q").code == 0


def test_the_record_that_breaks_a_schema_is_named_with_its_byte_and_options_only_where_the_command_has_them(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    _files("two", {(3, 4): example_from_values({"id": ["a"]}).SerializeToString()})
    says = (
        'error: two/3.tfrecord: feature "id" holds int64 values in some records and bytes values in others, first in '
        "record 4 at byte 124"
    )
    assert shardmill("stats", "two").err == f"{says}\n"
    assert shardmill("merge", "two", "-o", "x").err.startswith(f"{says}; such records have no schema; to keep them as ")
    assert shardmill("adopt", "two").err.startswith(f"{says}; such records have no schema; merge them as plain bytes: ")


def test_records_that_are_no_examples_are_counted_by_adopt_with_the_first_of_them(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    _files("some", {(0, 4): b"\xff\xffno", (0, 7): b"\xff\xffno"})
    screen = shardmill("adopt", "some")
    assert "Its records are not all tf.train.Example, so there is no schema." in screen.out
    note = "Note: some/0.tfrecord: 2 of 10 records are no tf.train.Example, first record 4 at byte 124; without them"
    assert note in screen.out.replace("\n", " ")


def test_the_records_that_made_the_schema_wider_are_named_by_each_command(shardmill: Shardmill) -> None:
    rows: list[dict[str, Any]] = [{"id": i, "box": [1.0, 2.0]} for i in range(200)]
    rows[150] = {"id": 150, "box": [1.0]}
    del rows[120]["box"]
    Path("some").mkdir()
    payloads = [example_from_values(row).SerializeToString(deterministic=True) for row in rows]
    write_records("some/a.tfrecord", payloads)
    lacks, other = (sum(len(one) + 16 for one in payloads[:row]) for row in (120, 150))
    notes = [
        f'feature "box" may be null: 1 of 200 records lacks it, first some/a.tfrecord record 120 at byte {lacks}',
        'feature "box" is a list of any length: 1 of 199 records has another number of values than 2, first '
        f"some/a.tfrecord record 150 at byte {other}",
    ]
    for command in (["info", "some"], ["stats", "some"], ["merge", "some", "-o", "merged"], ["adopt", "some"]):
        screen = shardmill(*command)
        assert screen.code == 0, screen.err
        for note in notes:
            assert note in screen.out, command
    assert json.loads(shardmill("stats", "merged", "--json").out).get("notes") is None
