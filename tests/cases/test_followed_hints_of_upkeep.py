"""Commands that `info`, `stats` and `append` propose for datasets, and for shards in none, do what they say."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.stage.spec import DatasetSpec
from shardmill.transforms.errors import DamageError, RunError

from .. import followed_hints
from ..command_line import Shardmill
from ..faults import plain_run
from .test_sets_that_people_bring import counts_of


@pytest.fixture(autouse=True)
def _shards(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("a\n1\n2\n")
    assert shardmill("convert", "a.csv", "-o", "out").code == 0
    Path("loose").mkdir()
    (shard,) = Path("out").glob("*.tfrecord*")
    shutil.copy(shard, "loose/x-train.tfrecord")


def command_in(screen: str, before: str, after: str = "") -> list[str]:
    """Return the command between some words of a screen; without words after it, it goes to the end of the line."""
    found = re.search(rf"{before}shardmill (.*?){after or '$'}", screen, re.MULTILINE)
    assert found, screen
    return shlex.split(found[1])


def test_shards_in_no_dataset_become_one_by_the_commands_of_info(shardmill: Shardmill) -> None:
    screen = shardmill("info", "loose").out
    for before, path in (("copies of their records: ", "FOLDER"), ("where they are, unchanged: ", "loose")):
        assert shardmill(*command_in(screen, before)).code == 0
        assert counts_of(path) == {"train": 2}
    stated = shardmill("info", "loose/x-train.tfrecord").out
    assert "loose" in shardmill(*command_in(stated, "to see it: ")).out


def test_shards_in_no_dataset_get_statistics_by_the_command_of_stats(shardmill: Shardmill) -> None:
    refused = shardmill("stats", "loose", "--write")
    assert shardmill(*command_in(refused.err, "make one: ")).code == 0
    assert counts_of("FOLDER") == {"train": 2}
    assert shardmill("append", "a.csv", "-o", "FOLDER", "--set", "stats=true").code == 0


def test_an_append_counts_after_the_command_that_counts_what_is_there(shardmill: Shardmill) -> None:
    Path("b.csv").write_text("a\n3\n")
    append = ["append", "b.csv", "-o", "out", "--set", "stats=true"]
    refused = shardmill(*append)
    assert shardmill(*command_in(refused.err, "count all of it: ")).code == 0
    assert shardmill(*append).code == 0
    assert [row["a"] for row in open_dataset("out")["train"]] == [1, 2, 3]


def values_of(path: str) -> list[object]:
    return [row["a"] for row in open_dataset(path)["train"]]


def test_a_file_that_no_manifest_states_is_counted_by_the_command_of_info(shardmill: Shardmill) -> None:
    shutil.rmtree("out")
    screen = shardmill("info", "loose/x-train.tfrecord").out
    assert "2 records" in shardmill(*command_in(screen, "to count and check them: ")).out


def test_many_small_shards_and_generations_become_one_by_the_commands_of_info_and_gc(shardmill: Shardmill) -> None:
    for number in range(3, 10):
        Path(f"{number}.csv").write_text(f"a\n{number}\n")
        assert shardmill("append", f"{number}.csv", "-o", "out").code == 0
    for screen, words in (
        (shardmill("info", "out").out, "to join them: "),
        (shardmill("gc", "out", "--keep", "1", "--older-than", "0s").out, "one generation of all records: "),
    ):
        assert shardmill(*command_in(screen, words)).code == 0
        assert values_of("FOLDER") == values_of("out") == [*range(1, 10)]
        assert len(list(Path("FOLDER").glob("*.tfrecord"))) == 1
        shutil.rmtree("FOLDER")


BAD = ["convert", "bad.csv", "-o", "bad", "--set", "schema.columns.a.type=int64"]


def test_what_a_stopped_run_left_is_listed_by_the_command_of_info(shardmill: Shardmill) -> None:
    Path("bad.csv").write_text("a\n1\nx\n")
    assert shardmill(*BAD).code == 4
    (staging,) = [path for path in Path("bad/.staging").iterdir() if path.is_dir()]
    found = shardmill(*command_in(shardmill("info", "bad").err, "to see what may go: "))
    assert f".staging/{staging.name}" in found.out
    assert staging.exists()


def stop(*_: object) -> None:
    raise RunError("the machine went down")


def test_a_source_that_changed_is_read_from_its_start_by_the_option_that_is_proposed(shardmill: Shardmill) -> None:
    Path("bad.csv").write_text("a\n1\n2\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_run, "write_generation", stop)
        assert shardmill(*BAD).code == 1
    Path("bad.csv").write_text("a\n1\n2\n3\n")
    refused = shardmill(*BAD).err
    options = re.search(r"put the source back as it was; or (--set \S+) starts over", refused)
    assert options, refused
    assert shardmill(*BAD, *shlex.split(options[1])).code == 0
    assert values_of("bad") == [1, 2, 3]


def test_figures_that_a_side_lacks_are_compared_after_the_commands_of_diff(shardmill: Shardmill) -> None:
    Path("b.csv").write_text("a\n1\n1\n")
    assert shardmill("convert", "b.csv", "-o", "other", "--set", "stats=full").code == 0
    assert shardmill("convert", "a.csv", "-o", "out", "--overwrite", "--set", "stats=false").code == 0
    none = shardmill("diff", "out", "other").out
    assert shardmill(*command_in(none, r"has no statistics \(", r"\)")).code == 0
    basic = shardmill("diff", "out", "other").out
    assert "has no statistics" not in basic
    assert "train a: max 2 -> 1" in basic
    assert shardmill(*command_in(basic, r"does not have them \(", r"\)")).code == 0
    full = shardmill("diff", "out", "other").out
    assert "does not have them" not in full
    assert "distinct" in full


def test_statistics_that_are_damaged_are_made_again_by_the_command_that_is_said(shardmill: Shardmill) -> None:
    path = Path("out/stats.json")
    whole = path.read_text()
    path.write_text(whole.replace('"records": 2', '"records": 3', 1))
    refused = shardmill("diff", "out", "out").err
    assert shardmill(*command_in(refused, "make it again: ")).code == 0
    assert path.read_text() == whole


@pytest.mark.parametrize("read", ["in order", "by number"])
def test_a_shard_that_was_cut_is_placed_by_the_command_that_is_said(shardmill: Shardmill, read: str) -> None:
    (shard,) = Path("out").glob("*.tfrecord")
    shard.write_bytes(shard.read_bytes()[: shard.stat().st_size // 2])
    train = open_dataset("out")["train"]
    with pytest.raises(DamageError) as refused:
        list(train) if read == "in order" else train.record(1)
    found = shardmill(*command_in(str(refused.value), "replaced; ", " finds the place"))
    assert (found.code, f"{shard.name}: 1 whole records, the manifest states 2" in found.out) == (3, True), found.out


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("train-00000.idx", b"0 60\n60 0\n"),
        ("train-00000.offsets", b"abc"),
        ("train-00000.offsets", np.array([0, 70, 60]).astype("<i8").tobytes()),
    ],
    ids=["pairs that overlap", "no index", "numbers that overlap"],
)
def test_an_index_that_is_wrong_is_made_again_by_the_command_that_is_said(
    shardmill: Shardmill, name: str, wrong: bytes
) -> None:
    sidecars = ["--set", "output.sidecars=[index]"]
    assert shardmill("convert", "a.csv", "-o", "out", "--overwrite", *sidecars).code == 0
    index = Path("out/index", name)
    whole = index.read_bytes()
    index.write_bytes(wrong)
    if index.suffix == ".idx":
        index.with_suffix(".offsets").unlink()
    with pytest.raises(DamageError) as refused:
        open_dataset("out")["train"].record(1)
    assert shardmill(*command_in(str(refused.value), "; ", " makes it again")).code == 0
    assert index.read_bytes() == whole
    assert open_dataset("out")["train"][1] == {"a": 2}


def test_records_that_are_damaged_are_left_out_by_the_commands_of_adopt(shardmill: Shardmill) -> None:
    damaged = bytearray(Path("loose/x-train.tfrecord").read_bytes())
    damaged[-1] ^= 1
    Path("loose/x-train.tfrecord").write_bytes(damaged)
    refused = shardmill("adopt", "loose").err
    salvage = [{"FILE": "loose/x-train.tfrecord"}.get(word, word) for word in command_in(refused, "adopt that: ")]
    assert "record 1" in shardmill(*salvage).out
    (whole,) = (path.parent for path in Path("FOLDER").rglob("*.tfrecord"))
    assert shardmill("adopt", str(whole)).code == 0
    assert counts_of(str(whole)) == {"train": 1}
    again = shardmill("adopt", str(whole)).err
    assert "1 record" in shardmill(*command_in(again, "a manifest of its own: ")).out


def test_an_append_to_a_folder_that_is_none_names_the_command_that_makes_the_dataset(shardmill: Shardmill) -> None:
    Path("empty").mkdir()
    refused = shardmill("append", "a.csv", "-o", "empty").err
    command = command_in(refused, "make one: ")
    assert shardmill(*("a.csv" if word == "SOURCE" else word for word in command)).code == 0
    assert values_of("empty") == [1, 2]


def test_a_shard_in_place_of_its_dataset_is_shown_by_the_command_that_is_said(shardmill: Shardmill) -> None:
    refused = shardmill("report", "loose/x-train.tfrecord", "-o", "r.html").err
    assert "2" in shardmill(*command_in(refused, "see its records: ")).out


SPEC = DatasetSpec(path="/out", name="out", shard_size=1 << 20)


def test_two_folders_of_a_pipeline_become_one_by_the_command_that_is_said(shardmill: Shardmill) -> None:
    followed_hints.typed([], SPEC.ways_out)
    for name in "AB":
        Path(f"{name}.csv").write_text(f"a\n{name}\n")
        assert shardmill("convert", f"{name}.csv", "-o", name).code == 0
    assert shardmill(*command_in(SPEC.ways_out, "join the two: ", ";")).code == 0
    assert values_of("C") == ["A", "B"]


def test_one_split_of_a_dataset_is_cut_by_the_option_of_rebuild(shardmill: Shardmill) -> None:
    for split, rows in (("train", 40), ("test", 3)):
        Path(f"in/{split}").mkdir(parents=True)
        Path(f"in/{split}/a.csv").write_text("n\n" + "".join(f"{number}\n" for number in range(rows)))
    assert shardmill("convert", "in", "-o", "both").code == 0
    rebuild = ["rebuild", "both", "-o", "cut", "--split-fractions", "train=0.5,dev=0.5"]
    screen = shardmill(*rebuild)
    option = re.search(r"to cut one of them: (.*)", screen.out)
    assert option, screen
    shutil.rmtree("cut")
    assert shardmill(*rebuild, *shlex.split(option[1])).code == 0
    counts = counts_of("cut")
    assert (counts["test"], counts["train"] + counts["dev"], min(counts.values()) > 0) == (3, 40, True)


def test_the_intact_records_of_a_damaged_file_are_copied_by_the_command_that_merge_names(shardmill: Shardmill) -> None:
    file = Path("loose/x-train.tfrecord")
    data = bytearray(file.read_bytes())
    data[9] ^= 1  # the checksum of a length
    file.write_bytes(data)
    refused = shardmill("merge", str(file), "-o", "merged")
    command = re.search(r"shardmill (\w+) copies the intact records of a file", refused.err)
    assert command, refused.err
    assert shardmill(command[1], str(file), "-o", "saved").code == 3
    assert shardmill("merge", "saved/x-train.tfrecord", "-o", "merged").code == 0
    assert counts_of("merged") == {"train": 2}


def test_an_append_to_a_dataset_whose_rule_of_splits_is_damaged_goes_by_the_option_that_is_said(
    shardmill: Shardmill,
) -> None:
    assert shardmill("convert", "a.csv", "-o", "two", "--split-fractions", "train=0.5,val=0.5").code == 0
    for path in (Path("two/manifest.json"), Path("two/manifests/00000001.json")):
        path.write_text(path.read_text().replace('"val": 0.5', '"val": 0.4'))
    Path("b.csv").write_text("a\n3\n4\n")
    append = ["append", "b.csv", "-o", "two"]
    refused = shardmill(*append)
    assert refused.code == 3
    option = re.search(
        r"conversion\.split of generation 1 is not valid \(.*\); say the split of the rows: (.*)", refused.err
    )
    assert option, refused.err
    before = counts_of("two")
    done = shardmill(*append, *shlex.split(option[1]))
    assert done.code == 0, done.err
    assert counts_of("two") == before | {"train": before["train"] + 2}
