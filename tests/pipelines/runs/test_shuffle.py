"""A shuffle, in whole conversions: one random permutation of each split, whatever reads, runs and writes it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.dataset.commit import second_pass as regroup
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.stage import spill as spiller
from shardmill.transforms.dataset.stage.spill import Shuffle
from shardmill.transforms.errors import UsageError
from shardmill.transforms.format.splits import shard_plan

from ...command_line import Shardmill

ROWS = 6000
SHUFFLE = {"seed": 7}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shard_plan, "MIN_TASK_BYTES", 100_000)  # several tasks, and buckets, of little data
    return tmp_path


def table_of(rows: int = ROWS) -> pa.Table:
    text = [hashlib.shake_256(b"%d" % n).hexdigest(20 + n % 50) for n in range(rows)]
    return pa.table({"n": range(rows), "text": text})


def parquet(rows: int = ROWS, name: str = "t.parquet") -> str:
    pq.write_table(table_of(rows), name, row_group_size=500)
    return name


def made(source: Any, output: str = "out", **settings: Any) -> list[int]:
    """Convert, and return what is in the rows, in the order of the records."""
    settings = {"shard_size": "128KiB", "shuffle": SHUFFLE} | settings
    if isinstance(source, pa.Table):
        convert(data=source, output=output, **settings)
    else:
        convert(source, output=output, **settings)
    assert verify_dataset(output).ok
    return held(output)


def held(path: str = "out", split: str = "train", column: str = "n") -> list[Any]:
    values: list[Any] = open_dataset(path).to_arrow(split)[column].to_pylist()
    return values


def shards(path: str) -> str:
    return hashlib.sha256(b"".join(one.read_bytes() for one in sorted(Path(path).glob("*.tfrecord*")))).hexdigest()


def csv(name: str = "t.csv") -> str:
    pacsv.write_csv(table_of(), name)
    return name


def jsonl(name: str = "t.jsonl") -> str:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in table_of().to_pylist()))
    return name


def arrow(name: str = "t.arrow") -> str:
    feather.write_feather(table_of(), name, compression="uncompressed", chunksize=500)
    return name


def records() -> str:
    convert(parquet(), output="records")
    return "records/*.tfrecord"


SOURCES = {"parquet": parquet, "csv": csv, "jsonl": jsonl, "arrow": arrow, "tfrecord": records, "memory": table_of}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_a_shuffle_of_any_source_is_a_permutation_in_a_random_order(make: Any) -> None:
    found = np.array(made(make()))
    assert sorted(found) == list(range(ROWS))
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 5 / np.sqrt(ROWS)
    assert (np.diff(found) == 1).sum() < 20
    manifest = open_dataset("out").manifest
    assert (manifest.order, manifest.conversion["shuffle"]) == ("shuffled", SHUFFLE)
    assert len(manifest.splits["train"].shards) > 3


def test_arrays_are_shuffled_too() -> None:
    np.save("x.npy", np.arange(ROWS * 20).reshape(ROWS, 20))
    convert("x.npy", output="out", shard_size="128KiB", shuffle=SHUFFLE, input__rows=True)
    found = np.array([row[0] // 20 for row in open_dataset("out").to_arrow("train").column(0).to_pylist()])
    assert sorted(found) == list(range(ROWS))
    assert (np.diff(found) == 1).sum() < 20


def test_places_are_uniform_by_chi_square_and_every_shard_has_its_share_of_each_part() -> None:
    rows, cells = 40_000, 32
    found = np.array(made(pa.table({"n": range(rows), "text": ["x" * 60] * rows})))
    counts = np.histogram2d(np.arange(rows), found, bins=cells)[0]
    expected = rows / cells**2
    chi_square = ((counts - expected) ** 2 / expected).sum()
    freedom = (cells - 1) ** 2
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)
    start = 0
    for shard in open_dataset("out").manifest.splits["train"].shards:
        of_shard = found[start : start + shard.records]
        share = (of_shard < rows // 4).mean()  # a class that stands first in the source
        assert abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / shard.records)
        start += shard.records


def test_the_same_seed_gives_the_same_bytes_and_another_one_others() -> None:
    for workers, processes in ((1, False), (3, False), (2, True)):
        runner = {"workers": workers, "processes": processes}
        made(parquet(), f"out{workers}", runner=runner)
    made(parquet(), "other", shuffle={"seed": 8})
    prints = [shards(f"out{workers}") for workers in (1, 3, 2)]
    assert len(set(prints)) == 1
    assert shards("other") != prints[0]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_shards_have_the_sizes_that_they_have_without_a_shuffle(compression: str) -> None:
    made(parquet(20_000), "out", compression=compression, shard_size="256KiB")
    sizes = [shard.bytes for shard in open_dataset("out").manifest.splits["train"].shards]
    unit = open_dataset("out").manifest.splits["train"].unit_bytes
    assert max(sizes) <= 256 << 10
    assert all(size > (256 << 10) - unit for size in sizes[:-2])
    assert len(sizes) > 2


@pytest.mark.parametrize("by", ["hash", "exact"])
def test_each_split_is_shuffled_and_holds_the_records_that_it_holds_without(by: str) -> None:
    split = {"fractions": {"train": 0.8, "val": 0.2}, "by": by}
    made(parquet(), "out", split=split)
    convert(parquet(), output="plain", split=split)
    for name in ("train", "val"):
        assert sorted(held("out", name)) == sorted(held("plain", name))
        assert held("out", name) != sorted(held("out", name))


def test_rejects_and_rows_that_are_left_out_stay_accounted_for() -> None:
    text = [None if n % 100 == 5 else "x" * 50 for n in range(ROWS)]
    pq.write_table(table_of().set_column(1, "text", pa.array(text)), "t.parquet", row_group_size=500)
    given = {"max_rejects": 100, "input__where": "n >= 1000 or n < 500", "schema__columns__text__nullable": False}
    found = made("t.parquet", **given)
    counts = open_dataset("out").manifest.counts
    assert (counts.read, counts.rejected, counts.dropped) == (ROWS, 55, 500)
    assert sorted(found) == [n for n in range(ROWS) if n % 100 != 5 and not 500 <= n < 1000]


@pytest.mark.parametrize("action", ["report", "drop"])
def test_duplicates_are_found_between_the_passes_and_left_out_in_the_second(action: str) -> None:
    pq.write_table(pa.concat_tables([table_of(2000), table_of(3000)]), "t.parquet", row_group_size=500)
    found = made("t.parquet", checks={"duplicates": {"action": action}})
    manifest = open_dataset("out").manifest
    assert manifest.details.checks["duplicates"]["records"] == 2000
    if action == "drop":
        assert sorted(found) == list(range(3000))
        assert manifest.counts.dropped == 2000
        sources = [json.loads(line) for line in Path("out/sources/00000001.jsonl").read_text().splitlines()]
        assert sum(source["written"] for source in sources) == 3000
    else:
        assert Counter(found) == Counter([*range(2000), *range(3000)])


def test_a_task_of_which_all_is_left_out_is_no_fault() -> None:
    parquet(3000, "a.parquet")
    parquet(3000, "b.parquet")
    found = made(["a.parquet", "b.parquet"], checks={"duplicates": {"action": "drop"}})
    assert sorted(found) == list(range(3000))


def test_an_append_is_shuffled_within_itself_by_the_seed_of_the_dataset() -> None:
    first = made(parquet())
    parquet(1000, "more.parquet")
    append("more.parquet", output="out")
    assert held()[:ROWS] == first
    added = held()[ROWS:]
    assert sorted(added) == list(range(1000))
    assert added != sorted(added)
    assert verify_dataset("out").ok


def test_an_append_cannot_shuffle_what_is_added_to_a_dataset_in_order() -> None:
    convert(parquet(), output="out")
    parquet(10, "more.parquet")
    with pytest.raises(UsageError, match=r"shuffle: .* is not shuffled; leave the key out"):
        append("more.parquet", output="out", shuffle=SHUFFLE)


def test_an_order_of_the_source_does_not_go_with_a_shuffle() -> None:
    with pytest.raises(UsageError, match=r"output.order: source does not go with shuffle; leave one out"):
        convert(parquet(), output="out", order="source", shuffle=SHUFFLE)


def test_large_records_are_shuffled_each_in_a_shard_of_its_own() -> None:
    table = pa.table({"n": range(20), "data": [bytes([n]) * 200_000 for n in range(20)]})
    found = made(table)
    assert sorted(found) == list(range(20))
    assert len(open_dataset("out").manifest.splits["train"].shards) == 20


def test_info_and_a_dry_run_say_that_records_are_shuffled(shardmill: Shardmill) -> None:
    shown = shardmill("convert", parquet(), "-o", "out", "--shuffle", "7", "--dry-run").out
    assert (
        "Order: records are in a random order within each split; they are spilled to the staging folder first" in shown
    )
    assert shardmill("convert", parquet(), "-o", "out", "--shuffle", "7").code == 0
    assert "Order: random within each split, by seed 7" in shardmill("info", "out").out
    pq.write_table(table_of(10), "more.parquet")
    assert "within what is added, after those that were there" in shardmill("append", "more.parquet", "-o", "out").out
    assert "Order: random within each split of what each generation added" in shardmill("info", "out").out
    assert "it must be at least 0" in shardmill("convert", "t.parquet", "-o", "x", "--shuffle", "-1").err


def test_an_empty_source_has_nothing_to_shuffle() -> None:
    convert(data=table_of(0), output="out", shuffle=SHUFFLE)
    assert open_dataset("out").manifest.counts.read == 0
    assert verify_dataset("out").ok


@pytest.fixture
def two_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shuffle as much data is shuffled: in few large buckets of many runs, which each task spills once more."""
    large = classmethod(lambda cls, seed, _: cls(seed, bits=3, run_bytes=64 << 10, levels=2))
    monkeypatch.setattr(Shuffle, "of", large)
    monkeypatch.setattr(regroup, "_BUCKET_BYTES", 20_000)


@pytest.mark.usefixtures("two_levels")
@pytest.mark.parametrize("duplicates", ["report", "drop"])
def test_two_levels_are_the_same_order_of_the_same_records(duplicates: str) -> None:
    table = table_of(20_000)
    table = pa.concat_tables([table, table.slice(0, 500)])
    checks = {"duplicates": {"columns": ["n"], "action": duplicates}}
    found = np.array(made(table, checks=checks))
    twice = [] if duplicates == "drop" else list(range(500))
    assert sorted(found) == sorted([*range(20_000), *twice])
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 5 / np.sqrt(len(found))
    assert (np.diff(found) == 1).sum() < 20
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Shuffle, "of", classmethod(lambda cls, seed, _: cls(seed, bits=3)))
        made(table, "one", checks=checks)
    assert shards("one") == shards("out")


def test_above_100_gb_there_are_two_levels_and_a_dry_run_says_so(
    shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["convert", parquet(), "-o", "out", "--shuffle", "7", "--dry-run"]
    assert "once more" not in shardmill(*command).out
    monkeypatch.setattr(spiller, "ONE_LEVEL_BYTES", 100_000)
    text = "since they are more than 100 GB each task of the second pass spills its part once more: 2.1 times in all"
    assert text in shardmill(*command).out
