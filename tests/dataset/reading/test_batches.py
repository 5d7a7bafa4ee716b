"""Batches of a chosen size, from any row on, with progress; and labels as the names of their classes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import Dataset, in_batches_of, open_dataset
from shardmill.transforms.errors import DamageError, UsageError
from shardmill.transforms.format.schema.schema import Feature, Schema

from ...examples import example_from_values

ROWS = 12_000


@pytest.fixture(params=["indexed", "without an index", "gzip"], scope="module")
def numbers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    out = tmp_path_factory.mktemp("numbers") / "out"
    table = pa.table({"n": pa.array(range(ROWS)), "text": [f"row {hash((n, 7))}" for n in range(ROWS)]})
    how: dict[str, Any] = {"gzip": {"compression": "gzip"}, "without an index": {"index": "none"}, "indexed": {}}
    convert(data=table, output=out, shard_size="100kB", **how[request.param])
    dataset = open_dataset(out)
    assert len(dataset.shard_paths()) >= 2
    return dataset


@pytest.mark.parametrize("start", [0, 1, 333, ROWS - 1, ROWS, ROWS + 5])
@pytest.mark.parametrize("rows", [None, 97, 256, ROWS, ROWS + 1])
def test_batches_have_the_rows_asked_for_from_any_row_on(numbers: Dataset, start: int, rows: int | None) -> None:
    batches = list(numbers.batches("train", ["n"], rows=rows, start=start))
    assert [n for batch in batches for n in batch["n"].to_pylist()] == list(range(start, ROWS))
    if rows is not None:
        assert [len(batch) for batch in batches[:-1]] == [rows] * (len(batches) - 1)
        assert all(0 < len(batch) <= rows for batch in batches)


def test_an_indexed_shard_is_read_from_the_row_on_and_no_earlier(tmp_path: Path) -> None:
    convert(data={"n": list(range(ROWS))}, output=tmp_path / "out")
    (shard,) = open_dataset(tmp_path / "out").shard_paths()
    content = bytearray(Path(shard).read_bytes())
    content[20] ^= 1  # the first record
    Path(shard).write_bytes(content)
    rows = [n for batch in open_dataset(tmp_path / "out").batches(start=10) for n in batch["n"].to_pylist()]
    assert rows == list(range(10, ROWS))
    with pytest.raises(DamageError, match=r"record 0 at byte 0"):
        list(open_dataset(tmp_path / "out").batches())


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"start": -1}])
def test_a_size_or_a_start_that_cannot_be_is_refused_at_once(numbers: Dataset, wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="1 and 0 at least"):
        numbers.batches("train", **wrong)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 30), max_size=20), st.integers(1, 12))
def test_any_batches_become_batches_of_one_size_with_the_same_rows(sizes: list[int], rows: int) -> None:
    ends = [sum(sizes[:at]) for at in range(len(sizes) + 1)]
    given = [pa.record_batch({"n": pa.array(range(first, last))}) for first, last in pairwise(ends)]
    made = list(in_batches_of(rows, given))
    assert [n for batch in made for n in batch["n"].to_pylist()] == list(range(ends[-1]))
    assert [len(batch) for batch in made] == [rows] * (ends[-1] // rows) + [ends[-1] % rows] * (ends[-1] % rows > 0)


@pytest.mark.parametrize("method", ["batches", "to_arrow", "to_pandas", "numpy", "to_numpy"])
def test_columns_may_stand_where_the_split_does(numbers: Dataset, method: str) -> None:
    ways = [(["n"],), (["n"], "train"), ("train", ["n"]), (None, ["n"])]
    first, *others = (getattr(numbers, method)(*arguments) for arguments in ways)
    of_split = getattr(numbers["train"], method)(["n"])
    if isinstance(first, Iterator):
        first, others, of_split = next(first), [next(other) for other in others], next(of_split)
    assert list(getattr(first, "column_names", first)) == ["n"]
    assert [str(other) for other in [*others, of_split]] == [str(first)] * 4


def test_progress_is_called_with_the_rows_read_and_those_there_are(numbers: Dataset) -> None:
    seen: list[tuple[int, int]] = []
    table = numbers.to_arrow("train", start=400, progress=lambda done, rows: seen.append((done, rows)))
    assert len(table) == ROWS - 400
    assert seen[-1] == (ROWS, ROWS)
    assert seen == sorted(seen)


def test_progress_in_a_log_is_a_line_at_each_tenth(numbers: Dataset, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in numbers.batches("train", ["n"], rows=100, progress=True):
        pass
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("1,200 of 12,000 rows, 10%, ")
    assert [line.split(", ")[1] for line in lines] == [f"{tenth}0%" for tenth in range(1, 11)]
    assert lines[-1].startswith("12,000 of 12,000 rows, 100%, ")


def test_progress_on_a_terminal_is_a_line_that_changes(numbers: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    with open(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        numbers.to_pandas("train", ["n"], progress=True)
        said = ""
        while "\n" not in said:
            said += os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert said.startswith("\r")
    assert said.split("\r12,000")[-1].startswith(" of 12,000 rows, 100%, ")
    assert said.count("\n") == 1


@pytest.fixture
def pets(tmp_path: Path) -> Dataset:
    table = pa.table({"pet": ["dog", "cat", None, "dog"], "n": [1, 2, 3, 4]})
    convert(data=table, output=tmp_path / "out", schema={"columns": {"pet": {"label": True}}})
    return open_dataset(tmp_path / "out")


def test_labels_read_as_the_names_of_their_classes_with_the_numbers_as_indices(pets: Dataset) -> None:
    column = pets.to_arrow("train", ["pet"])["pet"].combine_chunks()
    assert column.type == pa.dictionary(pa.int64(), pa.string())
    assert column.to_pylist() == ["dog", "cat", None, "dog"]
    assert column.indices.to_pylist() == [1, 0, None, 1]
    assert list(pets.to_pandas("train")["pet"].cat.categories) == ["cat", "dog"]
    assert [row["pet"] for row in pets["train"]] == ["dog", "cat", None, "dog"]
    assert pets["train"][3] == {"pet": "dog", "n": 4}
    assert pets["train"].take([1, 0])["pet"].to_pylist() == ["cat", "dog"]


def classes(number: int) -> bytes:
    return example_from_values({"of": [number, 0], "one": number}, {}).SerializeToString(deterministic=True)


CLASSES = Schema((Feature("of", "int64", "label", shape=(-1,)), Feature("one", "int64", "label")))


def test_lists_of_classes_read_as_lists_of_names(tmp_path: Path, build_dataset: Any) -> None:
    names = {"of": ("cat", "dog"), "one": ("no", "yes")}
    build_dataset(tmp_path, {"train": [[classes(1), classes(0)]]}, CLASSES, labels=names)
    dataset = open_dataset(tmp_path)
    assert dataset.to_arrow().to_pylist() == [{"of": ["dog", "cat"], "one": "yes"}, {"of": ["cat", "cat"], "one": "no"}]
    assert dataset["train"][0] == {"of": ["dog", "cat"], "one": "yes"}
    assert [row["of"] for batch in dataset.batches(start=1) for row in batch.to_pylist()] == [["cat", "cat"]]


def test_a_class_without_a_name_is_damage_that_says_where(tmp_path: Path, build_dataset: Any) -> None:
    names = {"of": ("cat", "dog"), "one": ("no", "yes")}
    build_dataset(tmp_path, {"train": [[classes(0), classes(2)]]}, CLASSES, labels=names)
    found = r'train-00000.tfrecord: feature "of" has class 2; the manifest names 2 classes, from 0 on'
    with pytest.raises(DamageError, match=found):
        open_dataset(tmp_path).to_arrow()
    with pytest.raises(DamageError, match="has class 2"):
        open_dataset(tmp_path)["train"][1]


def test_sizes_that_are_no_whole_numbers_and_masks_are_refused(pets: Dataset) -> None:
    with pytest.raises(TypeError):
        pets.batches(rows=2.5)  # type: ignore[arg-type]
    for wrong in ([True, False], [1.5]):
        with pytest.raises(UsageError, match=r"rows are taken by (a list of )?their numbers"):
            pets.take(wrong)
    assert len(pets.take([])) == 0


def test_a_name_in_place_of_a_list_of_names_is_refused_with_the_list(pets: Dataset) -> None:
    for read in (pets.to_arrow, pets.to_numpy):
        with pytest.raises(UsageError, match=r'columns is a list of names: \["pet"\]'):
            read(columns="pet")


@pytest.mark.parametrize("others", [{}, {"nest": [[[0.1]]], "st": [{"a": 0.1}]}], ids=["alone", "beside nested ones"])
def test_float64_reads_as_the_float32_that_records_hold_whatever_is_beside_it(tmp_path: Path, others: Any) -> None:
    convert(data=pa.table({"x": [[0.1]], "s": [0.1], **others}), output=tmp_path / "out")
    table = open_dataset(tmp_path / "out").to_arrow()
    assert table.schema.field("x").type == pa.list_(pa.float32())
    assert table.schema.field("s").type == pa.float32()
    if others:
        assert table.schema.field("nest").type == pa.list_(pa.list_(pa.float32()))
        assert table.schema.field("st").type == pa.struct([("a", pa.float32())])
