"""An append gives its files their splits by the rule of its dataset, or stops and says how."""

from __future__ import annotations

import json
import shlex
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.errors import DamageError, InputError, UsageError

from ...command_line import Shardmill

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def put(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".png"):
            shade = sum(name.encode()) % 256
            Image.new("RGB", (8, 8), (shade, len(name), 7)).save(name)
        else:
            Path(name).write_text(f"path,n\n{name},{len(name)}\n")


def counts(path: str = "out") -> dict[str, int]:
    dataset = open_dataset(path)
    return {name: len(dataset[name]) for name in dataset.splits}


def recognised(path: str = "out") -> Any:
    return open_dataset(path).manifest.conversion.get("recognised")


FOLDERS = ("in/train/a.csv", "in/test/a.csv")
NAMES = ("in/train-00000-of-00001.csv", "in/test-00000-of-00001.csv")
WORDS = ("in/my_train.csv", "in/my_test.csv")
GLOBS = {"train": "a*", "test": ["b*"]}
BY_FOLDERS = {"rule": "folders"}
BY_GLOBS = {"rule": "globs", "arguments": {"train": ["a*"], "test": ["b*"]}}


@pytest.mark.parametrize(
    ("files", "given", "held", "more", "splits"),
    [
        (FOLDERS, {}, BY_FOLDERS, ["new/test/b.csv"], {"test": 2, "train": 1}),
        (FOLDERS, {}, BY_FOLDERS, ["new/x/dev/b.csv"], {"dev": 1, "test": 1, "train": 1}),
        (NAMES, {}, {"rule": "names"}, ["new/test-00001-of-00002.csv"], {"test": 2, "train": 1}),
        (WORDS, {"splits": "names"}, {"rule": "words"}, ["new/my_test_2.csv"], {"test": 2, "train": 1}),
        (("in/a.csv", "in/b.csv"), {"splits": GLOBS}, BY_GLOBS, ["new/b2.csv"], {"test": 2, "train": 1}),
        (FOLDERS, {"splits": "none"}, {"rule": "off"}, ["new/train/b.csv", "new/test/b.csv"], {"train": 4}),
        (FOLDERS, {"output__split": "all"}, {"rule": "unused"}, ["new/train/b.csv", "new/test/b.csv"], {"all": 4}),
        (("in/a.csv", "in/b.csv"), {}, None, ["new/train-00000-of-00001.csv"], {"train": 3}),
    ],
)  # fmt: skip
def test_files_of_an_append_get_their_splits_by_the_rule_of_the_dataset(
    files: tuple[str, ...], given: dict[str, Any], held: Any, more: list[str], splits: dict[str, int]
) -> None:
    put(*files, *more)
    convert("in", output="out", **given)
    assert recognised() == held
    append("new", output="out")
    assert counts() == splits
    assert recognised() == held
    assert append("in", output="out").nothing_to_do


def test_the_rule_of_all_rows_is_that_of_an_append_too_whatever_its_files_say() -> None:
    put(*FOLDERS, "new/train/b.csv", "new/test/b.csv")
    convert("in", output="out", split={"column": "n", "names": {"13": "short", "14": "long", "15": "long"}})
    found = append("new", output="out")
    assert counts() == {"long": 3, "short": 1}
    assert any("not used, since the rule of the dataset is for all rows" in line for line in found.detected)


@pytest.mark.parametrize("path", ["new/test", "new/test/b.csv", "new/test/*.csv"])
def test_one_folder_of_a_split_is_enough_where_folders_said_the_splits_of_the_dataset(path: str) -> None:
    put(*FOLDERS, "new/test/b.csv")
    convert("in", output="out")
    append(path, output="out")
    assert counts() == {"test": 2, "train": 1}


def commands_in(text: str) -> list[list[str]]:
    return [shlex.split(line.strip().partition("shardmill ")[2]) for line in text.splitlines() if "shardmill " in line]


@pytest.mark.parametrize(
    ("files", "more", "found"),
    [
        (FOLDERS, ["new/a.csv"], [{"test": 2, "train": 1}, {"test": 1, "train": 2}]),
        (FOLDERS[:1], ["new/a.csv"], [{"train": 2}]),
        (NAMES, ["new/test/b.csv", "new/train/b.csv"], [{"test": 2, "train": 2}, {"test": 1, "train": 3}]),
        (FOLDERS, ["new/my_train.csv", "new/my_test.csv"], [{"test": 2, "train": 2}, {"test": 1, "train": 3}]),
        (FOLDERS, ["new/train/b.csv", "new/test/b.csv", "new/x.csv"],
         [{"test": 2, "train": 2}, {"test": 1, "train": 2}]),
        (FOLDERS, ["new/train.csv", "new/test.csv", "new/x.csv"], [{"test": 2, "train": 2}, {"test": 1, "train": 2}]),
        (("in/a.csv",), ["new/train/b.csv", "new/test/b.csv"], [{"test": 1, "train": 2}, {"train": 3}]),
        (("in/a.csv",), ["new/test-00000-of-00001.csv"], [{"test": 1, "train": 1}, {"train": 2}]),
        (("in/a.csv",), ["new/train/test_b.csv", "new/test/train_b.csv"], [{"train": 3}]),
    ],
)  # fmt: skip
def test_an_append_that_the_rule_says_nothing_of_or_that_contradicts_it_stops_and_each_command_runs(
    shardmill: Shardmill, files: tuple[str, ...], more: list[str], found: list[dict[str, int]]
) -> None:
    put(*files, *more)
    assert shardmill("convert", "in", "-o", "out").code == 0
    stopped = shardmill("append", "new", "-o", "out")
    assert (stopped.code, open_dataset("out").manifest.generation) == (2, 1)
    commands = commands_in(stopped.err)
    for number, command in enumerate(commands):
        assert shardmill("convert", "in", "-o", f"out{number}").code == 0
        command[command.index("-o") + 1] = f"out{number}"
        assert shardmill(*command).code == 0, command
    assert [counts(f"out{number}") for number in range(len(commands))] == found


def test_an_append_that_says_a_split_or_globs_of_its_own_is_not_bound_by_the_rule() -> None:
    put(*WORDS, "new/a.csv", "more/b.csv")
    convert("in", output="out", splits="names")
    with pytest.raises(InputError, match=r"new/a\.csv: input\.splits is names, and its name has no word"):
        append("new", output="out")
    append("new", output="out", output__split="test")
    append("more", output="out", splits={"dev": "b*"})
    assert counts() == {"dev": 1, "test": 2, "train": 1}
    assert recognised() == {"rule": "words"}


def test_folders_of_pictures_keep_what_they_mean() -> None:
    put("in/train/cat/a.png", "in/test/dog/b.png", "new/test/cat/ccc.png", "flat/cat/dddd.png")
    convert("in", output="out")
    append("new", output="out")
    append("new/test", output="out")
    assert counts() == {"test": 2, "train": 1}
    with pytest.raises(
        UsageError, match=r"states no rule for these rows(?s:.)*shardmill append flat -o out --split test"
    ):
        append("flat", output="out")
    put("classes/train/1.png", "classes/bus/22.png", "later/train/333.png", "later/test/4444.png")
    convert("classes", output="kinds", splits="none")
    append("later", output="kinds")
    assert counts("kinds") == {"train": 4}
    assert open_dataset("kinds").manifest.labels["image/class/label"] == ("bus", "train", "test")


def pack(name: str, *members: str) -> None:
    with zipfile.ZipFile(name, "w") if name.endswith(".zip") else tarfile.open(name, "w") as archive:
        for member in members:
            put(member)
            archive.write(member) if isinstance(archive, zipfile.ZipFile) else archive.add(member)


INSIDE = ("train/cat/1.png", "train/dog/22.png", "test/cat/333.png", "test/dog/4444.png")


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize(
    ("given", "held", "splits"),
    [
        ({}, {"rule": "folders"}, {"test": 3, "train": 3}),
        ({"output__split": "all"}, {"rule": "unused"}, {"all": 6}),
        ({"split__column": "image/format"}, {"rule": "unused"}, {"png": 6}),
        ({"layout": "split_label"}, None, {"test": 3, "train": 3}),
        ({"splits": "none", "layout": "flat"}, {"rule": "off"}, {"train": 6}),
    ],
)  # fmt: skip
def test_splits_inside_of_archives_are_remembered_and_an_append_gives_what_one_conversion_gives(
    kind: str, given: dict[str, Any], held: Any, splits: dict[str, int]
) -> None:
    pack(f"a.{kind}", *INSIDE)
    pack(f"b.{kind}", "train/cat/55555.png", "test/dog/666666.png")
    convert(f"a.{kind}", output="out", **given)
    assert recognised() == held
    append(f"b.{kind}", output="out")
    assert (counts(), recognised()) == (splits, held)
    convert([f"a.{kind}", f"b.{kind}"], output="both", **given)
    one, other = open_dataset("out").manifest, open_dataset("both").manifest
    assert one.conversion == other.conversion
    assert [split.records_digest for split in one.splits.values()] == [
        split.records_digest for split in other.splits.values()
    ]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_that_says_splits_does_not_go_to_a_dataset_of_one_that_said_none(
    shardmill: Shardmill, kind: str
) -> None:
    pack(f"a.{kind}", "cat/1.png", "dog/22.png")
    pack(f"b.{kind}", *INSIDE)
    for number, splits in enumerate(({"test": 2, "train": 4}, {"train": 6})):
        assert shardmill("convert", f"a.{kind}", "-o", f"out{number}").code == 0
        stopped = shardmill("append", f"b.{kind}", "-o", f"out{number}")
        assert (stopped.code, "folders inside of these files say splits" in stopped.err) == (2, True)
        assert shardmill(*commands_in(stopped.err)[number]).code == 0
        assert counts(f"out{number}") == splits


def test_an_archive_without_splits_does_not_go_to_a_dataset_of_archives_with_one_split(shardmill: Shardmill) -> None:
    pack("a.zip", *INSIDE[:2])
    pack("b.zip", "cat/7.png")
    convert("a.zip", output="out")
    stopped = shardmill("append", "b.zip", "-o", "out")
    assert (stopped.code, recognised()) == (2, {"rule": "folders"})
    for command in commands_in(stopped.err):
        assert shardmill(*command).code == 0
    assert counts() == {"train": 3}


def table(folder: str, *names: str) -> None:
    put(*(f"{folder}/{name}" for name in names))
    Path(folder, "metadata.csv").write_text("file_name,n\n" + "".join(f"{name},{len(name)}\n" for name in names))


@pytest.mark.parametrize(
    ("given", "held", "splits"),
    [
        ({}, {"rule": "folders"}, {"test": 2, "train": 3}),
        ({"output__split": "all"}, {"rule": "unused"}, {"all": 5}),
        ({"splits": "none"}, {"rule": "off"}, {"train": 5}),
    ],
)
def test_splits_of_a_table_beside_pictures_are_remembered_and_an_append_gives_what_one_conversion_gives(
    given: dict[str, Any], held: Any, splits: dict[str, int]
) -> None:
    table("a", "train/1.png", "train/22.png", "test/333.png")
    table("b", "train/4444.png", "test/55555.png")
    convert("a", output="out", **given)
    append("b", output="out")
    assert (counts(), recognised()) == (splits, held)
    convert(["a", "b"], output="both", **given)
    one, other = open_dataset("out").manifest, open_dataset("both").manifest
    assert one.conversion == other.conversion
    assert {name: split.records_digest for name, split in one.splits.items()} == {
        name: split.records_digest for name, split in other.splits.items()
    }


def test_globs_split_tables_beside_pictures_and_an_append_by_the_same_globs(shardmill: Shardmill) -> None:
    table("a/one", "1.png", "22.png")
    table("a/two", "333.png")
    table("b/one", "4444.png")
    table("b/two", "55555.png", "666666.png")
    convert("a", output="out", splits={"train": "one/*", "test": "two/*"})
    append("b", output="out")
    assert (counts(), recognised()["rule"]) == ({"test": 3, "train": 3}, "globs")
    stopped = shardmill("convert", "a", "-o", "some", "--set", "input.splits.train=one/*")
    assert (stopped.code, "a/two/metadata.csv: no glob of input.splits matches it" in stopped.err) == (2, True)


def test_a_table_that_says_splits_does_not_go_to_a_dataset_of_one_that_said_none(shardmill: Shardmill) -> None:
    table("a", "cat/1.png", "dog/22.png")
    table("b", "train/333.png", "test/4444.png")
    for number, splits in enumerate(({"test": 1, "train": 3}, {"train": 4})):
        assert shardmill("convert", "a", "-o", f"out{number}").code == 0
        stopped = shardmill("append", "b", "-o", f"out{number}")
        assert (stopped.code, "folders inside of these files say splits" in stopped.err) == (2, True)
        assert shardmill(*commands_in(stopped.err)[number]).code == 0
        assert counts(f"out{number}") == splits


def test_a_dataset_like_another_is_split_as_it_was_and_a_merge_keeps_what_all_share(shardmill: Shardmill) -> None:
    put(*WORDS, "new/my_dev.csv", "new/my_train.csv")
    convert("in", output="out", splits="names")
    assert shardmill("convert", "--like", "out", "new", "-o", "like").code == 0
    assert (counts("like"), recognised("like")) == ({"dev": 1, "train": 1}, {"rule": "words"})
    assert shardmill("convert", "--like", "out", "new", "-o", "one", "--split", "all").code == 0
    assert counts("one") == {"all": 2}
    assert shardmill("merge", "out", "like", "-o", "both").code == 0
    assert recognised("both") == {"rule": "words"}
    assert shardmill("rebuild", "out", "-o", "cut", "--set", "split.folds=2").code == 0
    assert recognised("cut") is None
    assert "Splits of files: words in names" in shardmill("info", "out").out


def test_a_rule_that_is_none_is_damage() -> None:
    put(*FOLDERS, "new/test/b.csv")
    convert("in", output="out")
    for path in ("out/manifest.json", "out/manifests/00000001.json"):
        document = json.loads(Path(path).read_text())
        document["conversion"]["recognised"]["rule"] = "luck"
        Path(path).write_text(Path(path).read_text().replace('"rule": "folders"', '"rule": "luck"'))
    with pytest.raises(DamageError, match=r"conversion\.recognised of generation 1 is not valid"):
        append("new", output="out")
