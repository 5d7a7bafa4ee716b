"""Appends that say nothing of splits: the source's own splits, else the rule of the dataset, else a refusal."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.dataset.storage.record_file import read_records, write_records
from shardmill.transforms.errors import DamageError, UsageError

from ...command_line import Shardmill

ROWS = pa.table(
    {
        "n": range(400),
        "fold": ["train", "val", "train", "test"] * 100,
        "day": [f"2024-{1 + n % 12:02d}-15" for n in range(400)],
        "user": [f"u{n % 97}" for n in range(400)],
    }
)
HASH = {"fractions": {"val": 0.4, "train": 0.6}, "key": "user"}
RULES: dict[str, dict[str, Any]] = {
    "hash": HASH,
    "records": {"fractions": {"train": 0.5, "val": 0.5}},
    "folds": {"folds": 3, "key": "user"},
    "column": {"column": "fold", "names": {"train": "a", "val": "b", "test": "b"}},
    "before": {"before": {"column": "day", "train": "2024-04-01", "val": "2024-08-01", "rest": "test"}},
    "exact": {"fractions": {"train": 0.75, "val": 0.25}, "by": "exact", "stratify": "fold"},
}


@pytest.fixture(autouse=True)
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(ROWS.slice(0, 200), "a.parquet")
    pq.write_table(ROWS.slice(200), "b.parquet")


def held(path: str = "out") -> dict[str, list[int]]:
    """Return the column `n` of each split, sorted."""
    dataset = open_dataset(path)
    return {split: sorted(dataset.to_arrow(split)["n"].to_pylist()) for split in dataset.splits}


@pytest.mark.parametrize("rule", RULES)
def test_rows_are_split_by_the_rule_of_the_dataset(rule: str) -> None:
    convert("a.parquet", output="out", split=RULES[rule])
    convert("a.parquet", output="same", split=RULES[rule])
    summary = append("b.parquet", output="out")
    append("b.parquet", output="same", split=RULES[rule])
    assert held() == held("same")
    assert sum(map(len, held().values())) == 400
    assert summary.manifest.conversion["split"] == open_dataset("same").manifest.conversion["split"]
    assert append("b.parquet", output="out", split=RULES[rule]).nothing_to_do


def test_a_user_stays_in_the_split_of_earlier_rows_though_another_append_named_one(shardmill: Shardmill) -> None:
    convert("a.parquet", output="out", split=HASH)
    append(data=pa.table({**{name: ROWS[name][:1] for name in ROWS.column_names}}), output="out", output__split="odd")
    shown = shardmill("append", "b.parquet", "-o", "out")
    rule = "by a hash, rows of one user together: val 0.4, train 0.6"
    said = f"Detected: rows are split as the dataset was, {rule}; to say otherwise: --split NAME, or a rule"
    assert said in " ".join(shown.out.split())
    dataset = open_dataset("out")
    users = {split: set(dataset.to_arrow(split)["user"].to_pylist()) for split in ("train", "val")}
    assert not users["train"] & users["val"]
    assert f"Split {rule}" in shardmill("info", "out").out


def test_what_is_rebuilt_keeps_its_rule_but_where_it_is_split_again(shardmill: Shardmill) -> None:
    convert("a.parquet", output="out", split=HASH)
    shardmill("rebuild", "out", "-o", "kept", "--compression", "gzip")
    append("b.parquet", output="kept")
    append("b.parquet", output="out")
    assert held("kept") == held()
    shardmill("rebuild", "out", "-o", "folds", "--set", "split.folds=3")
    assert open_dataset("folds").manifest.conversion["split"] == {"folds": 3}


def test_a_dry_run_says_by_which_rule_rows_would_be_split(shardmill: Shardmill) -> None:
    convert("a.parquet", output="out", split=HASH)
    shown = json.loads(shardmill("append", "b.parquet", "-o", "out", "--dry-run", "--json").out)
    assert (list(shown["splits"]), len(shown["detected"])) == (["val", "train"], 1)


def test_a_split_that_is_named_comes_before_the_rule() -> None:
    convert("a.parquet", output="out", split=HASH)
    summary = append("b.parquet", output="out", output__split="val")
    assert set(range(200, 400)) <= set(held()["val"])
    assert not summary.detected


def test_another_rule_than_that_of_the_dataset_is_taken_with_a_warning() -> None:
    convert("a.parquet", output="out", split=HASH)
    with pytest.warns(
        UserWarning, match="rows are split by a hash: train 0.5, val 0.5, and the dataset was split by a"
    ):
        append("b.parquet", output="out", split=RULES["records"])


@pytest.mark.parametrize("shares", [["--split-fractions", "train=0.6,val=0.4"], ["--set", "split.folds=3"]])
def test_exact_groups_of_an_append_may_be_in_other_splits_so_that_they_are_asked_for(
    shardmill: Shardmill, shares: list[str]
) -> None:
    said = "an append counts its own rows alone, so that rows of one user may be in another split than those"
    shardmill("convert", "a.parquet", "-o", "out", *shares, "--set", "split.by=exact", "--split-key", "user")
    shown = shardmill("append", "b.parquet", "-o", "out")
    assert (shown.code, said in shown.err) == (2, True)
    before = held()
    options = shlex.split(shown.err.strip().rpartition("or say so: ")[2])
    shown = shardmill("append", "b.parquet", "-o", "out", *options)
    assert (shown.code, said in shown.out) == (0, True)
    assert "and the dataset was split" not in shown.out, "it is the rule of the dataset"
    convert("b.parquet", output="other", output__split=next(iter(before)))
    assert shardmill("append", "other", "-o", "out").code == 0, "records that have splits need no rule"


def test_a_dataset_of_several_splits_that_states_no_rule_takes_no_row_without_one() -> None:
    convert("a.parquet", output="out")
    append("b.parquet", output="out", output__split="val")
    fix = "has the splits train, val, and states no rule for these rows: say where they go: --split train, or a rule"
    with pytest.raises(UsageError, match=fix):
        append(data=ROWS, output="out")
    records = [record for file in Path("out").glob("*.tfrecord") for record in read_records(file)]
    write_records(Path("foreign.tfrecord"), records[:3])
    with pytest.raises(UsageError, match=fix):
        append("foreign.tfrecord", output="out")
    assert open_dataset("out").manifest.generation == 2


def pictures(*folders: str) -> None:
    for folder in folders:
        Path(folder).mkdir(parents=True)
        for i in range(20):
            noise = np.random.default_rng([i, *folder.encode()]).integers(0, 256, (8, 8, 3), dtype=np.uint8)
            file = io.BytesIO()
            Image.fromarray(noise).save(file, "PNG")
            Path(folder, f"{i}.png").write_bytes(file.getvalue())


def records(path: str = "out") -> dict[str, int]:
    return {name: split.records for name, split in open_dataset(path).manifest.splits.items()}


def test_folders_that_are_splits_come_before_the_rule_of_the_dataset() -> None:
    pictures("pets/cat", "pets/dog", "more/train/cat", "more/train/dog", "more/test/cat", "more/test/dog")
    convert("pets", output="out", split={"fractions": {"train": 0.5, "val": 0.5}})
    before = records()
    summary = append("more", output="out")
    assert records() == {"test": 40, "train": before["train"] + 40, "val": before["val"]}
    assert not any("split as the dataset was" in text for text in summary.detected)


def test_a_folder_is_cut_as_it_was_and_pictures_of_no_split_are_refused() -> None:
    pictures("pets/train/cat", "pets/train/dog", "pets/test/cat", "pets/test/dog")
    pictures("more/train/cat", "more/train/dog", "more/test/cat", "more/test/dog", "tests/test/cat", "tests/test/dog")
    pictures("flat/cat", "flat/dog")
    convert("pets", output="out", split={"fractions": {"train": 0.5, "val": 0.5}, "of": "train"})
    before = records()
    append("more", output="out")
    after = records()
    assert after["test"] == before["test"] + 40
    assert 0 < after["val"] - before["val"] < 40
    append("tests", output="out")
    assert records() == {**after, "test": after["test"] + 40}
    assert append("tests", output="out").nothing_to_do
    with pytest.raises(UsageError, match="states no rule for these rows: say where they go: --split train"):
        append("flat", output="out")


def test_records_of_a_dataset_keep_their_splits_and_those_of_no_split_go_by_the_rule(shardmill: Shardmill) -> None:
    convert("a.parquet", output="out", split=HASH)
    before = held()
    convert("b.parquet", output="other", output__split="test")
    append("other", output="out")
    assert held() == {**before, "test": list(range(200, 400))}
    convert(data=ROWS, output="whole")
    (shard,) = Path("whole").glob("*.tfrecord")
    write_records(Path("foreign.tfrecord"), list(read_records(shard)))
    pq.write_table(ROWS.slice(0, 3), "few.parquet")
    convert("few.parquet", output="few", output__split="dev")
    shown = json.loads(
        shardmill("append", "foreign.tfrecord", "few", "-o", "out", "--format", "tfrecord", "--dry-run", "--json").out
    )
    assert set(shown["splits"]) == {"dev", "train", "val"}
    append(["foreign.tfrecord", "few"], output="out", format="tfrecord")
    convert(data=ROWS, output="rows", split=HASH)
    rows, after = held("rows"), held()
    assert after["dev"] == [0, 1, 2]
    assert after["train"] == sorted([*before["train"], *rows["train"]])
    assert after["val"] == sorted([*before["val"], *rows["val"]])


def test_a_rule_in_a_manifest_that_is_none_is_damage_with_what_to_do() -> None:
    convert("a.parquet", output="out", split=HASH)
    for path in (Path("out/manifest.json"), Path("out/manifests/00000001.json")):
        path.write_text(path.read_text().replace('"val": 0.4', '"val": 0.3'))
    with pytest.raises(DamageError, match=r"conversion\.split of generation 1 is not valid .*0.9.*--split train"):
        append("b.parquet", output="out")
