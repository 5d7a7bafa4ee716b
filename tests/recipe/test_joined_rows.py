"""Rows of small files are encoded together, and each keeps its file, its number, its split and what was said of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.format.batches.rejects import CellError, CellProblem, Place, Reject
from shardmill.transforms.format.batches.rows import RowOrigin, Rows
from shardmill.transforms.recipe.recipe import joined_rows

INTEGER = pa.int64()
BAD = CellError("n", "BAD_TYPE", "x", "an integer", "is no integer")


def batch_of(entry: int, rows: int, first: int, kind: pa.DataType = INTEGER) -> Rows:
    """Return a batch of a file whose numbers go on from `first`, with a bad cell in its last row and a reject."""
    numbers = pa.array(range(first, first + rows), kind)
    name = f"{entry}.csv"
    return Rows(
        3, 0, entry, pa.RecordBatch.from_arrays([numbers], names=["n"]), RowOrigin(name, first + 1),
        (CellProblem(rows - 1, BAD),) if rows else (), (Reject(entry, Place(name, row=first + rows + 1), (BAD,)),),
        split_codes=np.full(rows, entry % 2), notes={(entry, "odd"): rows + 1}, dropped={entry: 2}, warned=(name,),
    )  # fmt: skip


def told(batches: Iterator[Rows]) -> list[object]:
    """Return what is known of each row, then of each file, in order."""
    rows, files, counts = list[object](), list[object](), Counter[object]()
    for one in batches:
        bad = {problem.row for problem in one.problems}
        assert one.split_codes is not None
        for row, value in enumerate(one.batch["n"].to_pylist()):
            rows.append((one.entry_of(row), value, one.origin.place(row), one.origin.number(row), row in bad,
                         int(one.split_codes[row])))  # fmt: skip
        files += [*one.rejects, *one.warned]
        counts.update(one.notes)
        counts.update(one.dropped)
    return [*rows, *sorted(files, key=str), counts]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 7, 1000, 1024, 1025, 3000]), st.booleans()), max_size=40
    )
)
def test_each_row_is_in_its_place_however_batches_are_joined(parts: list[tuple[int, int, bool]]) -> None:
    batches, first = [], 0
    for entry, (_, rows, small) in enumerate(parts):
        batches.append(batch_of(entry, rows, first, pa.int32() if small else pa.int64()))
        first += rows
    joined = list(joined_rows(iter(batches)))
    assert told(iter(joined)) == told(iter(batches))
    assert [one.ordinal for one in joined] == list(range(len(joined)))


def test_hundreds_of_small_batches_become_one_and_a_large_one_stays_as_it_is() -> None:
    batches = [*(batch_of(n, 10, 0) for n in range(500)), batch_of(500, 5000, 0), batch_of(501, 10, 0)]
    joined = list(joined_rows(iter(batches)))
    assert [one.batch.num_rows for one in joined] == [5000, 5000, 10]
    assert joined[1].batch is batches[500].batch
    assert joined[1].entry == 500


def test_some_hundreds_of_batches_wait_at_most_as_each_takes_memory_beside_its_rows() -> None:
    joined = joined_rows(batch_of(n, 1, n) for n in range(1100))
    assert [one.batch.num_rows for one in joined] == [512, 512, 76]


def test_a_batch_is_freed_before_more_is_read() -> None:
    freed = list[int]()

    def reading() -> Iterator[Rows]:
        for entry in range(3):
            before = pa.total_allocated_bytes()
            freed.append(before)
            yield batch_of(entry, 100_000, 0)

    for rows in joined_rows(reading()):
        del rows
    assert max(freed) - min(freed) < 800_000


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_small_files_keep_their_accounts_their_splits_and_the_places_of_their_bad_rows(
    tmp_path: Path, suffix: str
) -> None:
    for number in range(60):
        folder = tmp_path / "data" / ("train" if number % 3 else "test")
        folder.mkdir(parents=True, exist_ok=True)
        cells = ["x" if number in (7, 30) and row == 2 else str(100 * number + row) for row in range(4)]
        if suffix == "csv":
            text = "n\n" + "".join(f"{cell}\n" for cell in cells)
        else:
            text = "".join(f'{{"n": {json.dumps(cell) if cell == "x" else cell}}}\n' for cell in cells)
        (folder / f"{number:02}.{suffix}").write_text(text)
    rules = {"columns": {"n": {"type": "int64"}}}
    convert(str(tmp_path / "data"), output=str(tmp_path / "out"), schema=rules, max_rejects=2)
    dataset = open_dataset(tmp_path / "out")
    wanted = {
        split: sorted(
            100 * number + row
            for number in range(60)
            for row in range(4)
            if (number % 3 == 0) == (split == "test") and not (number in (7, 30) and row == 2)
        )
        for split in ("train", "test")
    }
    assert {name: sorted(dataset[name].to_pandas()["n"].tolist()) for name in ("train", "test")} == wanted
    rejects = [
        json.loads(line)
        for path in sorted((tmp_path / "out" / "rejects").rglob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    found = {(Path(one["source"]).name, one["row"]) for one in rejects}
    assert found == {(f"07.{suffix}", 3), (f"30.{suffix}", 3)}
    sources = [
        json.loads(line)
        for path in sorted((tmp_path / "out" / "sources").iterdir())
        for line in path.read_text().splitlines()
    ]
    counts = {Path(one["source"]).name: (one["read"], one["rejected"]) for one in sources}
    assert counts == {f"{n:02}.{suffix}": (4, int(n in (7, 30))) for n in range(60)}
