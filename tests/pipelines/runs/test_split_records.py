"""Existing records in new splits and in a random order: of datasets and of anyone's files, byte for byte."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.record_file import read_records, write_records
from shardmill.transforms.errors import ShardmillError

from ...command_line import Shardmill
from ...examples import example_from_values

ROWS = 3000
TABLE = pa.table(
    {
        "n": range(ROWS),
        "fold": ["train", "val", "train", "test"] * (ROWS // 4),
        "day": [f"2024-{1 + n % 12:02d}-15" for n in range(ROWS)],
        "user": [f"u{n * 7919 % 211}" for n in range(ROWS)],
        "kind": [n * n % 5 for n in range(ROWS)],
    }
)
BEFORE = "{column: day, train: 2024-04-01, val: 2024-07-01, rest: test}"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "t.parquet")
    return tmp_path


def dataset(path: str = "made", **settings: Any) -> str:
    convert("t.parquet", output=path, shard_size="64KiB", **settings)
    return path


def foreign(path: str = "foreign.tfrecord") -> str:
    """Write the records to a file that no manifest describes."""
    records = [record for file in sorted(Path(dataset("source")).glob("*.tfrecord")) for record in read_records(file)]
    write_records(Path(path), records)
    return path


def held(path: str) -> dict[str, list[bytes]]:
    """Return the records of each split, sorted."""
    assert verify_dataset(path).findings == ()
    found = open_dataset(path)
    return {split: sorted(found.records(split)) for split in found.splits}


RULES = {
    "hash": ["--split-fractions", "train=0.8,val=0.2"],
    "key": ["--split-fractions", "train=0.8,val=0.2", "--split-key", "user"],
    "folds": ["--set", "split.folds=5"],
    "exact key": ["--split-fractions", "train=0.8,val=0.2", "--split-key", "user", "--set", "split.by=exact"],
    "column": ["--set", "split.column=fold"],
    "names": ["--set", "split.column=kind", "--set", "split.names={'0': a, '1': b, '2': c, '3': d, '4': e}"],
    "before": ["--set", f"split.before={BEFORE}"],
}


@pytest.mark.parametrize(
    ("make", "rule"),
    [*((foreign, rule) for rule in RULES), (dataset, "key"), (dataset, "before")],
)
def test_records_go_where_the_rows_go_that_they_were_made_of(shardmill: Shardmill, make: Any, rule: str) -> None:
    options = RULES[rule]
    shardmill("rebuild", make(), "-o", "split", "--shard-size", "64KiB", *options)
    shardmill("convert", "t.parquet", "-o", "rows", "--shard-size", "64KiB", *options)
    assert held("split") == held("rows")
    assert len(held("split")) > 1


def test_exact_fractions_of_records_are_exact_in_every_class(shardmill: Shardmill) -> None:
    options = ["--split-fractions", "train=0.8,val=0.2", "--set", "split.by=exact", "--set", "split.stratify=kind"]
    shardmill("rebuild", foreign(), "-o", "split", "--shard-size", "64KiB", *options)
    kinds = {split: open_dataset("split").to_arrow(split)["kind"].to_pylist() for split in ("train", "val")}
    for kind in range(5):
        total = TABLE["kind"].to_pylist().count(kind)
        assert abs(kinds["train"].count(kind) - 0.8 * total) <= 1
    assert sorted(held("split")["train"] + held("split")["val"]) == held("source")["train"]


@pytest.mark.parametrize("rule", [[], RULES["key"]], ids=["one split", "two splits"])
def test_a_merge_is_shuffled_the_same_with_any_number_of_workers(shardmill: Shardmill, rule: list[str]) -> None:
    inputs = [dataset(), foreign()]
    for workers in "12":
        options = ["--shuffle", "7", "--shard-size", "64KiB", "--workers", workers]
        shardmill("merge", *inputs, "-o", f"shuffled{workers}", *options, *rule)
    shardmill("merge", *inputs, "-o", "plain", "--shard-size", "64KiB", *rule)
    assert held("shuffled1") == held("plain")
    first, second = (sorted(Path(path).glob("*.tfrecord")) for path in ("shuffled1", "shuffled2"))
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    order = open_dataset("shuffled1").to_arrow("train")["n"].to_pylist()
    rising = sum(one < other for one, other in itertools.pairwise(order)) / len(order)
    assert 0.45 < rising < 0.55, "half of all neighbours are in order in a random one"


def test_splits_of_a_dataset_are_split_again_with_a_word_or_one_of_them_is_cut(shardmill: Shardmill) -> None:
    path = dataset("made", split={"column": "fold"})
    before = held(path)
    text = shardmill("rebuild", path, "-o", "again", "--split-fractions", "a=0.5,b=0.5").out
    assert "made: is split again, so that records of one of its splits (test, train, val) may go to another" in text
    assert "to cut one of them: --set split.of=train" in text
    assert set(held("again")) == {"a", "b"}
    shardmill("rebuild", path, "-o", "cut", "--set", "split={fractions: {train: 0.5, dev: 0.5}, of: train}")
    after = held("cut")
    assert (after["val"], after["test"]) == (before["val"], before["test"])
    assert sorted(after["train"] + after["dev"]) == before["train"]
    error = shardmill("rebuild", path, "-o", "no", "--set", "split={folds: 2, of: traim}").err
    assert 'split.of: "traim" is no folder that is a split; did you mean "train"?' in error


def test_records_cut_into_a_split_of_the_source_are_announced_and_no_fraction_counts_that_split(
    shardmill: Shardmill,
) -> None:
    command = ["rebuild", dataset("made", split={"column": "fold"})]
    rule = ["--split-fractions", "train=0.9,val=0.1", "--set", "split.of=train"]
    caution = "the source has a split val already, and records cut out of train are added to it"
    assert caution in shardmill(*command, "-o", "out", *rule, "--dry-run").out
    made = shardmill(*command, "-o", "out", *rule)
    assert caution in made.err, "before the run"
    assert caution in made.out
    assert "Fractions" not in made.out
    assert len(held("out")["val"]) > len(held("made")["val"])
    apart = ["--split-fractions", "train=0.9,dev=0.1", "--set", "split.of=train"]
    assert "\nFractions: train 0." in shardmill(*command, "-o", "apart", *apart).out


@pytest.mark.parametrize("key", [[], ["--split-key", "user"]])
def test_a_split_that_a_hash_has_made_is_cut_by_another_part_of_the_hash(shardmill: Shardmill, key: list[str]) -> None:
    made = dataset("made", split={"fractions": {"train": 0.8, "test": 0.2}, "key": "user" if key else None})
    cut = ["--split-fractions", "train=0.9,val=0.1", *key, "--set", "split.of=train"]
    shown = shardmill("rebuild", made, "-o", "out", *cut)
    before, after = held("made"), held("out")
    assert after["test"] == before["test"]
    assert 0.06 < len(after["val"]) / len(before["train"]) < 0.14
    assert "expected)" not in shown.out


def test_records_of_a_split_that_the_same_hash_splits_again_are_warned_of(shardmill: Shardmill) -> None:
    made = dataset("made", split={"fractions": {"train": 0.8, "test": 0.2}})
    write_records(Path("train.tfrecord"), held(made)["train"])
    halves, tenth = ["--split-fractions", "a=0.5,b=0.5"], ["--split-fractions", "train=0.9,val=0.1"]
    said = re.findall(r"Warning: (split .*)", shardmill("rebuild", "train.tfrecord", "-o", "halves", *halves).out)
    why = "records that a hash has split before, and equal ones, are not split evenly by a hash; to split by counts: "
    found = r"split a has 1,\d+ of 2,\d+ records \(about 1,\d+ expected\): "
    assert re.fullmatch(f"{found}{why}--set split.by=exact", said[0])
    shown = shardmill("rebuild", "train.tfrecord", "-o", "tenth", *tenth)
    assert re.search(r"Warning: split val has 0 of 2,\d+ records \(about 2\d\d expected\): ", shown.out)
    shown = shardmill("rebuild", "train.tfrecord", "-o", "exact", *tenth, "--set", "split.by=exact")
    assert "expected)" not in shown.out
    assert set(held("exact")) == {"train", "val"}


def test_a_split_that_is_named_for_a_dataset_with_splits_is_said_to_be_for_other_files(shardmill: Shardmill) -> None:
    made = dataset("made", split={"fractions": {"train": 0.8, "val": 0.2}})
    said = "split val is for files of no dataset, and records of datasets keep their splits: train"
    assert f"Warning: {said}\n" in shardmill("merge", made, "-o", "out", "--split", "val").out
    write_records(Path("more.tfrecord"), held(made)["train"][:5])
    assert "for files of no dataset" not in shardmill("append", "more.tfrecord", "-o", "out", "--split", "val").out
    assert f"Warning: {said}\n" in shardmill("append", made, "-o", "out", "--split", "val", "--force").out
    assert "for files of no dataset" not in shardmill("merge", made, "-o", "two").out


def test_records_of_a_file_that_is_named_like_a_split_are_split_again_with_a_warning(shardmill: Shardmill) -> None:
    made = dataset("made")
    Path("in").mkdir()
    for name in ("train-00000", "val-00000"):
        write_records(Path("in", f"{name}.tfrecord"), held(made)["train"][:500])
    shown = shardmill("merge", "in", "-o", "out", "--split-fractions", "train=0.5,val=0.5")
    said = "the files are of splits (train, val), which are not used, since the rule of split is for all rows; to cut"
    assert f"Detected: {said} one of them only: --set split.of=train\n" in shown.out
    shown = shardmill("merge", "in/train-00000.tfrecord", "-o", "one", "--split-fractions", "train=0.5,val=0.5")
    assert "which are not used" not in shown.out


def test_records_that_no_split_takes_are_rejects_with_their_number_and_offset(shardmill: Shardmill) -> None:
    values = [{"n": 0, "day": "2024-01-01"}, {"n": 1, "day": "soon"}, {"n": 2, "day": "2024-05-01"}, {"n": 3}]
    write_records(Path("x.tfrecord"), [example_from_values(one).SerializeToString() for one in values])
    rule = ["--set", "split.before={column: day, train: 2024-02-01, rest: val}"]
    text = shardmill("rebuild", "x.tfrecord", "-o", "out", "--max-rejects", "2", *rule).out
    assert "record 1 at byte" in text
    assert '"soon" is no date or time in ISO 8601' in text
    assert "record 3 at byte" in text
    assert "it has no day, and split.before.column says the split of a record" in text
    assert {split: len(found) for split, found in held("out").items()} == {"train": 1, "val": 1}
    assert "it is left out" not in text, "max_rejects decides that"
    assert not any(key in text for key in ("schema.columns", "--where")), "no key changes a record that exists"


def test_a_damaged_record_is_left_out_and_the_others_are_split(shardmill: Shardmill) -> None:
    data = bytearray(Path(foreign()).read_bytes())
    data[40] ^= 1
    Path("bad.tfrecord").write_bytes(data)
    shardmill("rebuild", "bad.tfrecord", "-o", "out", "--max-rejects", "1", *RULES["column"])
    assert sum(map(len, held("out").values())) == ROWS - 1


def test_a_record_that_is_no_example_is_not_said_to_be_one_where_a_feature_decides(shardmill: Shardmill) -> None:
    records = [*read_records(Path(foreign())), b"no example"]
    write_records(Path("x.tfrecord"), records)
    out = shardmill("rebuild", "x.tfrecord", "-o", "one", "--max-rejects", "1").out
    assert "to keep such records as they are: --set input.records=opaque" in out
    out = shardmill("rebuild", "x.tfrecord", "-o", "two", "--max-rejects", "1", *RULES["key"]).out
    assert "it is not a tf.train.Example" in out
    assert "opaque" not in out


def test_plain_bytes_are_split_by_their_hash_and_by_nothing_else(shardmill: Shardmill) -> None:
    write_records(Path("plain.tfrecord"), [b"x%d" % n for n in range(1000)])
    shardmill("rebuild", "plain.tfrecord", "-o", "out", *RULES["hash"])
    assert 150 < len(held("out")["val"]) < 250
    error = shardmill("rebuild", "plain.tfrecord", "-o", "no", *RULES["key"]).err
    assert 'split.key names "user", which is not a column' in error


def test_an_append_of_records_is_split_by_the_rule_that_it_states() -> None:
    rule = {"fractions": {"train": 0.8, "val": 0.2}, "key": "user"}
    path = dataset("made", split=rule)
    before = held(path)
    append(foreign(), output=path, split=rule)
    assert held(path) == {split: sorted(records * 2) for split, records in before.items()}


def test_a_dry_run_says_how_many_records_and_splits_there_are_about(shardmill: Shardmill) -> None:
    path = foreign()
    text = shardmill("rebuild", path, "-o", "out", "--dry-run").out
    count = int(re.search(r"about ([\d,]+) rows", text)[1].replace(",", ""))  # type: ignore[index]
    assert abs(count - ROWS) < 0.05 * ROWS
    text = shardmill("rebuild", path, "-o", "out", "--dry-run", *RULES["column"]).out
    assert all(f"\n{split} " in text for split in ("train", "val", "test"))


@pytest.mark.parametrize("checks", ["duplicates", "leaks"])
def test_checks_do_not_go_with_existing_records_yet(checks: str) -> None:
    with pytest.raises(ShardmillError, match="checks: does not go with tfrecord yet"):
        convert(foreign(), output="out", checks={checks: {"columns": ["user"]}})
