"""Splits by counts, in whole conversions: exact for all sources, engines, tasks, rejects, resumed runs and appends."""

from __future__ import annotations

import hashlib
from collections import Counter
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.errors import UsageError

SHARES = {"train": 0.7, "val": 0.2, "test": 0.1}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table_of(rows: int, seed: int = 1, **more: Any) -> pa.Table:
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["cat", "dog", "owl", "emu", None], rows, p=[0.6, 0.25, 0.1, 0.04, 0.01])
    return pa.table(
        {
            "n": range(rows),
            "kind": pa.array(kinds.tolist(), pa.string()),
            "user": rng.geometric(0.02, rows),
            "text": [hashlib.shake_256(b"%d" % n).hexdigest(100) for n in range(rows)],
            **more,
        }
    )


def in_files(table: pa.Table, files: int) -> list[str]:
    step = -(-table.num_rows // files)
    for number in range(files):
        pq.write_table(table.slice(number * step, step), f"{number}.parquet", row_group_size=100)
    return [f"{number}.parquet" for number in range(files)]


def held(column: str, path: str = "out", generation: int | None = None) -> dict[str, list[Any]]:
    dataset = open_dataset(path) if generation is None else open_dataset(path, generation)
    return {split: dataset.to_arrow(split)[column].to_pylist() for split in dataset.splits}


def check(path: str = "out") -> None:
    """The shards have the promised sizes, and are what the manifest states."""
    manifest = open_dataset(path).manifest
    for split in manifest.splits.values():
        sizes = [shard.bytes for shard in split.shards]
        assert max(sizes) <= manifest.shard_size
        assert sum(size <= manifest.shard_size - split.unit_bytes for size in sizes) <= 2
    assert verify_dataset(path).findings == ()


def errors(counts: dict[str, int], total: int) -> list[float]:
    shares = {name: Fraction(repr(share)) for name, share in SHARES.items()}
    return [abs(float(counts.get(name, 0) - share * total)) for name, share in shares.items()]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_fractions_are_met_within_one_record_over_many_tasks(compression: str) -> None:
    table = table_of(8_001)
    split = {"fractions": SHARES, "by": "exact"}
    paths = in_files(table, 3)
    summary = convert(paths, output="out", split=split, compression=compression, shard_size="64KiB")
    check()
    found = held("n")
    assert sorted(n for rows in found.values() for n in rows) == list(range(8_001))
    assert max(errors({name: len(rows) for name, rows in found.items()}, 8_001)) < 1
    assert summary.manifest.conversion["split"] == {"by": "exact", "fractions": SHARES}


@pytest.mark.parametrize("column", ["kind", "user"])
def test_each_class_is_within_one_record_and_so_is_the_whole(column: str) -> None:
    table = table_of(8_000)
    convert(
        in_files(table, 4),
        output="out",
        split={"fractions": SHARES, "by": "exact", "stratify": column},
        shard_size="64KiB",
    )
    check()
    found = held(column)
    totals = Counter(table[column].to_pylist())
    for value, total in totals.items():
        assert max(errors({name: rows.count(value) for name, rows in found.items()}, total)) < 1
    assert max(errors({name: len(rows) for name, rows in found.items()}, 8_000)) < 2


@pytest.mark.parametrize("users", [3, 50, 2_000])
def test_a_group_never_straddles_and_fractions_are_met_within_the_largest_one(users: int) -> None:
    rng = np.random.default_rng(users)
    who = (rng.pareto(1.2, 6_000) * 2).astype(int) % users
    table = table_of(6_000, user=[f"user {number}" for number in who.tolist()])
    convert(
        in_files(table, 3), output="out", split={"fractions": SHARES, "by": "exact", "key": "user"}, shard_size="64KiB"
    )
    check()
    found = held("user")
    assert sorted(n for rows in held("n").values() for n in rows) == list(range(6_000))
    owners = [set(rows) for rows in found.values()]
    assert sum(map(len, owners)) == len(set().union(*owners)) == len(set(who.tolist()))
    largest = max(Counter(who.tolist()).values())
    assert max(errors({name: len(rows) for name, rows in found.items()}, 6_000)) <= largest


@settings(max_examples=25)
@given(st.integers(0, 400), st.integers(1, 12), st.sampled_from([None, "kind", "key"]), st.integers(0, 2**32))
def test_any_few_records_are_dealt(rows: int, values: int, column: str | None, seed: int) -> None:
    kinds = np.random.default_rng(seed).integers(0, values, rows)
    table = pa.table({"n": range(rows), "kind": [f"k{kind}" for kind in kinds.tolist()]})
    more = {"stratify": "kind"} if column == "kind" else {"key": "kind"} if column == "key" else {}
    convert(data=table, output="few", if_exists="replace", split={"fractions": SHARES, "by": "exact", **more})
    found = held("kind", "few")
    sizes = Counter(table["kind"].to_pylist())
    counts = {name: len(found.get(name, ())) for name in SHARES}
    assert sum(counts.values()) == rows
    assert max(errors(counts, rows)) <= (max(sizes.values(), default=0) if column == "key" else 2)
    if column == "kind":
        for value, total in sizes.items():
            assert max(errors({name: kept.count(value) for name, kept in found.items()}, total)) < 1


def test_rejected_and_dropped_rows_are_not_counted() -> None:
    bad = pa.array([2**63 if n % 3 == 0 else n for n in range(5_000)], pa.uint64())
    table = table_of(5_000, bad=bad)
    split = {"fractions": SHARES, "by": "exact", "stratify": "kind"}
    convert(in_files(table, 3), output="out", split=split, max_rejects=2_000, where="n < 4000", limit=4_500)
    kept = [n for n in range(4_000) if n % 3]
    found = held("kind")
    assert sorted(n for rows in held("n").values() for n in rows) == kept
    totals = Counter(table["kind"][n].as_py() for n in kept)
    for value, total in totals.items():
        assert max(errors({name: rows.count(value) for name, rows in found.items()}, total)) < 1


def test_the_bytes_do_not_depend_on_workers() -> None:
    paths = in_files(table_of(6_000), 3)
    for more in ({"stratify": "kind"}, {"key": "user"}, {}):
        split = {"fractions": SHARES, "by": "exact", **more}
        digests = []
        for workers in (1, 3):
            summary = convert(
                paths, output="out", split=split, if_exists="replace", runner__workers=workers, runner__resume=False
            )
            shards = [path for name in open_dataset("out").splits for path in open_dataset("out").shard_paths(name)]
            digests.append([hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in shards])
            assert summary.manifest.counts.written == 6_000
        assert digests[0] == digests[1]


def test_an_append_is_exact_within_its_own_records() -> None:
    split = {"fractions": SHARES, "by": "exact", "stratify": "kind"}
    for generation, rows in enumerate((3_003, 1_007)):
        table = table_of(rows, seed=generation)
        pq.write_table(table, f"part-{generation}.parquet")
        (convert if generation == 0 else append)(f"part-{generation}.parquet", output="out", split=split)
    manifests = [open_dataset("out", number).manifest for number in (1, 2)]
    first, both = ({name: split.records for name, split in one.splits.items()} for one in manifests)
    assert max(errors(first, 3_003)) < 2
    assert max(errors({name: both[name] - first[name] for name in both}, 1_007)) < 2


def test_val_is_cut_out_of_a_folder_exactly() -> None:
    from PIL import Image

    for folder in ("train/cat", "train/dog", "test/cat", "test/dog"):
        Path("pets", folder).mkdir(parents=True)
        for number in range(25):
            Image.new("RGB", (8, 8), (number, 9 * len(folder), 0)).save(Path("pets", folder, f"{number}.png"))
    split = {"fractions": {"train": 0.8, "val": 0.2}, "of": "train", "by": "exact", "stratify": "image/class/label"}
    convert("pets", output="out", split=split)
    classes = {name: Counter(found) for name, found in held("image/class/text").items()}
    assert classes == {
        "train": {"cat": 20, "dog": 20}, "val": {"cat": 5, "dog": 5}, "test": {"cat": 25, "dog": 25},
    }  # fmt: skip


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("way", [{}, {"stratify": "kind"}, {"key": "user"}], ids=str)
def test_splits_that_share_records_are_named_when_all_records_are_in_splits(
    way: dict[str, str], seed: int | None
) -> None:
    texts = np.random.default_rng(3).integers(0, 1_500, 4_000).tolist()
    table = table_of(4_000, text=[f"{text:09d}" for text in texts])
    split = {"fractions": SHARES, "by": "exact", **way}
    checks = {"duplicates": {"columns": ["text"]}}
    more = {} if seed is None else {"shuffle": {"seed": seed}}
    summary = convert(in_files(table, 3), output="out", split=split, checks=checks, shard_size="64KiB", **more)
    found = {name: set(rows) for name, rows in held("text").items()}
    shared = summary.manifest.details.checks["duplicates"]["splits"]
    expected = {tuple(sorted(pair)): len(found[pair[0]] & found[pair[1]]) for pair in combinations(found, 2)}
    assert {tuple(sorted(pair.split())): count for pair, count in shared.items()} == expected


def test_folds_may_be_exact_and_stratified() -> None:
    table = pa.table({"n": range(1000), "kind": ["a", "b", "b", "b", "b"] * 200})
    summary = convert(data=table, output="out", split={"folds": 5, "by": "exact", "stratify": "kind"})
    assert {name: Counter(kinds) for name, kinds in held("kind").items()} == {
        f"fold_{number}": {"a": 40, "b": 160} for number in range(5)
    }
    assert summary.manifest.conversion["split"] == {"by": "exact", "stratify": "kind", "folds": 5}


def test_one_split_takes_all() -> None:
    convert(data=pa.table({"n": range(10)}), output="out", split={"fractions": {"all": 1.0}, "by": "exact"})
    assert held("n") == {"all": list(range(10))}


def test_what_does_not_go_with_exact_splits_is_refused_by_name() -> None:
    table, exact = pa.table({"n": range(10)}), {"fractions": {"a": 0.5, "b": 0.5}, "by": "exact"}
    with pytest.raises(UsageError, match="leave order: source out"):
        convert(data=table, output="out", split=exact, order="source")
    with pytest.raises(UsageError, match=r"checks.duplicates.action: drop leaves records out after split.by: exact"):
        convert(data=table, output="out", split=exact, checks={"duplicates": {"action": "drop"}})
    for more, says in (
        ({"by": "hash", "stratify": "n"}, "split.stratify: does not go with by: hash"),
        ({"key": "n", "stratify": "n"}, "split.stratify: does not go with key"),
    ):
        with pytest.raises(UsageError, match=says):
            convert(data=table, output="out", split={**exact, **more})
