"""A step that somebody wrote who knows the contract alone runs for every source, on threads, processes and engines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.convert import dry_run
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.format.batches.rejects import CellError, CellProblem
from shardmill.transforms.format.batches.rows import RowOrigin, Rows
from shardmill.transforms.recipe.function import steps_of
from shardmill.transforms.recipe.recipe import Recipe
from shardmill.transforms.recipe.step import Column, Step, Stepped, with_column

from ..label_numbers import in_numbers


def double_and_drop_odd(column: str) -> Any:
    """Return a step as a user writes it, in a function, as a notebook has it."""

    @dataclass(frozen=True)
    class DoubleAndDropOdd:
        column: str

        def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
            return [one.computed() if one.name == self.column else one for one in columns]

        def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:
            values = batch[self.column]
            even = pc.equal(pc.bit_wise_and(values, 1), 0)
            return Stepped(with_column(batch, self.column, pc.multiply_checked(values, 2)), even)

    return DoubleAndDropOdd(column)


NUMBERS = list(range(-7, 293))
KEPT = [2 * number for number in NUMBERS if number % 2 == 0]


def as_csv(folder: Path) -> Any:
    for i in (0, 100, 200):
        (folder / f"{i}.csv").write_text("n,text\n" + "".join(f"{n},t{n}\n" for n in NUMBERS[i : i + 100]))
    return "*.csv"


def as_parquet(folder: Path) -> Any:
    table = pa.table({"n": NUMBERS, "text": [f"t{n}" for n in NUMBERS]})
    pq.write_table(table, folder / "a.parquet", row_group_size=70)
    return "a.parquet"


def as_numpy(folder: Path) -> Any:
    np.savez(folder / "a.npz", n=np.array(NUMBERS), x=np.arange(len(NUMBERS)) / 3)
    return {"input": {"paths": ["a.npz"], "rows": True}}


def as_images(folder: Path) -> Any:
    for width in range(1, 31):
        for kind in ("cat", "dog"):
            (folder / "pets" / kind).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (width, 2), (width, 0, 0)).save(folder / "pets" / kind / f"{width:02d}.png")
    return "pets"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values_of(path: Path | str, column: str = "n") -> list[int]:
    dataset = open_dataset(path)
    return sorted(
        value for split in dataset.splits for value in in_numbers(dataset.to_arrow(split))[column].to_pylist()
    )


def shards_of(path: Path | str) -> list[str]:
    return [shard.crc32c for split in open_dataset(path).manifest.splits.values() for shard in split.shards]


@pytest.mark.parametrize("data", [as_csv, as_parquet, as_numpy])
@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_a_users_step_runs_over_tables_and_its_dropped_rows_balance(data: Any, runner: str, work: Path) -> None:
    what = data(work)
    summary = convert(
        what, output="out", map=double_and_drop_odd("n"), runner__workers=2, runner__processes=runner == "processes"
    )
    assert values_of("out") == KEPT
    counts = summary.manifest.counts
    assert (counts.read, counts.written, counts.rejected, counts.dropped) == (300, 150, 0, 150)
    assert verify_dataset("out").ok
    convert(what, output="one", map=double_and_drop_odd("n"), runner__workers=1)
    assert shards_of("one") == shards_of("out")


def test_a_users_step_runs_over_the_columns_of_images(work: Path) -> None:
    summary = convert(as_images(work), output="out", map=double_and_drop_odd("image/width"))
    assert values_of("out", "image/width") == sorted([2 * width for width in range(2, 31, 2)] * 2)
    assert (summary.manifest.counts.written, summary.manifest.counts.dropped) == (30, 30)
    labels = Counter(in_numbers(open_dataset("out").to_arrow("train"))["image/class/label"].to_pylist())
    assert labels == {0: 15, 1: 15}


@pytest.mark.parametrize("kind", [pa.table, dict])
def test_a_users_step_runs_over_data_in_memory(kind: Any) -> None:
    data = pa.table({"n": NUMBERS}) if kind is pa.table else {"n": np.array(NUMBERS)}
    convert(data=data, output="out", map=double_and_drop_odd("n"))
    assert values_of("out") == KEPT


def test_a_plan_shows_what_a_step_makes_and_how_many_rows_it_leaves(work: Path) -> None:
    config = load_config(paths=[as_parquet(work)], flags={"output.path": "out"})
    plan = dry_run(conversion_of(config, steps=steps_of(double_and_drop_odd("n"))))
    assert {choice.column: choice.reason for choice in plan.choices}["n"] == "int64; made by a step"
    assert 120 <= sum(split.records for split in plan.splits) <= 180
    assert not Path("out").exists()


def test_an_append_with_the_same_steps_adds_to_the_dataset_and_one_without_them_does_not_take_its_files_as_held(
    work: Path,
) -> None:
    as_csv(work)
    step = double_and_drop_odd("n")
    convert(["0.csv", "100.csv"], output="out", map=step)
    assert append(["100.csv", "200.csv"], output="out", map=step).manifest.counts.dropped == 50
    assert values_of("out") == KEPT
    assert append("*.csv", output="out", map=step).nothing_to_do


def test_a_run_that_is_repeated_with_another_step_is_another_run(work: Path) -> None:
    as_csv(work)
    convert("*.csv", output="out", map=double_and_drop_odd("n"))
    assert convert("*.csv", output="out", map=double_and_drop_odd("n")).nothing_to_do
    with pytest.raises(Exception, match="from another source or config"):
        convert("*.csv", output="out")


def test_rows_with_bad_cells_are_rejects_whatever_a_step_would_do_with_them(work: Path) -> None:
    (work / "a.csv").write_text("n\n1\n2\nx\n4\ny\n")
    summary = convert(
        "a.csv", output="out", map=double_and_drop_odd("n"), schema={"columns": {"n": {"type": "int64"}}}, max_rejects=2
    )
    counts = summary.manifest.counts
    assert (counts.read, counts.written, counts.rejected, counts.dropped) == (5, 2, 2, 1)
    lines = [json.loads(line) for line in Path("out/rejects/00000001.jsonl").read_text().splitlines()]
    assert [(line["row"], line["errors"][0]["column"], line["errors"][0]["value"]) for line in lines] == [
        (3, "n", "x"),
        (5, "n", "y"),
    ]


def test_projection_reads_only_the_wanted_columns_of_parquet(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"n": NUMBERS, "big": ["x" * 100] * 300}), "a.parquet")
    asked: list[list[int]] = []
    real = pq.ParquetFile

    class Noting(real):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            reader = self.reader
            self.reader = type(
                "Reader", (), {
                    "__getattr__": lambda _, name: getattr(reader, name),
                    "iter_batches": lambda _, rows, **how: (
                        asked.append(how["column_indices"]), reader.iter_batches(rows, **how)
                    )[1],
                },
            )()  # fmt: skip

    monkeypatch.setattr(pq, "ParquetFile", Noting)
    convert("a.parquet", output="out", columns=["n"], map=double_and_drop_odd("n"), runner__workers=1)
    assert values_of("out") == KEPT
    assert asked
    assert all(columns == [0] for columns in asked)


@dataclass(frozen=True)
class Every(Step):
    """Keeps the rows whose value leaves no rest, and finds one value bad."""

    divisor: int
    bad: int

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        return columns

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:
        values = batch["n"].to_pylist()
        error = CellError("n", "BAD_TYPE", str(self.bad), "another number", "choose another number")
        problems = tuple(CellProblem(row, error) for row, value in enumerate(values) if value == self.bad)
        return Stepped(batch, pa.array([value % self.divisor == 0 for value in values], pa.bool_()), problems)


@given(
    values=st.lists(st.integers(0, 60), max_size=40),
    divisors=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    bad=st.integers(0, 60),
    many=st.booleans(),
)
def test_what_steps_drop_is_counted_by_entry_and_every_place_stays_that_of_its_row(
    values: list[int], divisors: list[int], bad: int, many: bool
) -> None:
    entries = np.arange(len(values)) % 3
    rows = Rows(0, 0, entries if many else 5, pa.record_batch({"n": pa.array(values, pa.int64())}), RowOrigin("a", 1))
    after = Recipe(tuple(Every(divisor, bad) for divisor in divisors)).apply(rows, "a", {"n": "n"})
    left = [row for row, value in enumerate(values) if value == bad or all(value % d == 0 for d in divisors)]
    gone_early = [row for row in left if values[row] == bad]  # a bad row stays, to be rejected
    assert [after.origin.place(row).row for row in range(after.batch.num_rows)] == [row + 1 for row in left]
    assert after.batch["n"].to_pylist() == [values[row] for row in left]
    assert {after.origin.place(problem.row).row for problem in after.problems} == {row + 1 for row in gone_early}
    counted: dict[int, int] = {}
    after.count_into(counted)
    before: dict[int, int] = {}
    rows.count_into(before)
    assert {entry: count for entry, count in counted.items() if count} == {e: n for e, n in before.items() if n}


def test_two_columns_of_one_name_are_refused(work: Path) -> None:
    (work / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SchemaError, match='two columns would be named "b"'):
        convert("a.csv", output="out", schema={"columns": {"a": {"name": "b"}}})
