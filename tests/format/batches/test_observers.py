"""Observers that somebody wrote who knows the contract alone: one adds up a column, one spills a file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.convert import run_convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.format.batches.observers import Observation, Observer, Seen
from shardmill.transforms.format.batches.rows import Narrowing
from shardmill.transforms.format.batches.summaries import (
    IMAGE_FORMATS,
    merged,
    narrowed_summary,
    narrowings_in,
    notes_in,
    notes_summary,
)


def summing(column: str, into: Path) -> Observer:
    """Return an observer as a user writes it, in a function: the sum of a column, by split."""

    @dataclass(frozen=True)
    class Summing(Observer):
        column: str
        into: str
        name: str = "sum"

        def observe(self, seen: Seen) -> Observation:
            values = np.array(seen.batch[self.column].fill_null(0))
            return Observation({split: int(values[seen.written(split)].sum()) for split in seen.names})

        def merge(self, one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
            return {split: one[split] + other[split] for split in one}

        def finish(self, summary: Any, spilled: Iterable[bytes]) -> None:
            Path(self.into).write_text(json.dumps(summary))

    return Summing(column, str(into))


def spilling(column: str, into: Path) -> Observer:
    """Return an observer that keeps the values of the rows that became records, in their order."""

    @dataclass(frozen=True)
    class Spilling(Observer):
        column: str
        into: str
        name: str = "values"

        def observe(self, seen: Seen) -> Observation:
            values = seen.batch[self.column].take(pa.array(seen.written())).to_pylist()
            return Observation(len(values), "".join(f"{value}\n" for value in values).encode())

        def merge(self, one: int, other: int) -> int:
            return one + other

        def finish(self, summary: Any, spilled: Iterable[bytes]) -> None:
            Path(self.into).write_bytes(b"".join(spilled) + f"{summary} in all\n".encode())

    return Spilling(column, str(into))


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(rows: int = 12_000) -> list[int | None]:
    """Write a table, and return its column: every 50th value is a null, which its schema does not allow."""
    values = [None if n % 50 == 7 else n for n in range(rows)]
    pq.write_table(pa.table({"n": pa.array(values, pa.int64()), "text": ["x" * 800] * rows}), "a.parquet")
    return values


@pytest.mark.parametrize(("workers", "processes"), [(1, False), (4, False), (2, True)])
def test_what_is_observed_is_the_same_with_any_number_and_kind_of_workers(
    workers: int, processes: bool, work: Path
) -> None:
    values = table()
    settings = {
        "input": {"paths": ["a.parquet"]},
        "output": {"path": "out", "shard_size": "1MiB"},
        "split": {"fractions": {"train": 0.8, "val": 0.2}, "key": "n"},
        "schema": {"columns": {"n": {"nullable": False}}},
        "max_rejects": "5%",
        "runner": {"workers": workers, "processes": processes},
    }
    observers = (summing("n", work / "sum"), spilling("n", work / "values"))
    run_convert(conversion_of(load_config(settings), observers=observers))
    dataset = open_dataset("out")
    sums = {split: sum(dataset.to_arrow(split)["n"].to_pylist()) for split in ("train", "val")}
    assert json.loads((work / "sum").read_text()) == sums
    kept = [value for value in values if value is not None]
    assert (work / "values").read_text() == "".join(f"{value}\n" for value in kept) + f"{len(kept)} in all\n"


def test_a_run_that_is_resumed_observes_all_rows_once(work: Path) -> None:
    table()
    settings: dict[str, Any] = {
        "input": {"paths": ["a.parquet"]},
        "output": {"path": "out", "shard_size": "1MiB"},
        "schema": {"columns": {"n": {"nullable": False}}},
    }
    observers = (summing("n", work / "sum"), spilling("n", work / "values"))
    with pytest.raises(Exception, match="240 of 12000 rows were rejected"):
        run_convert(conversion_of(load_config(settings), observers=observers))
    assert not (work / "sum").exists()
    summary = run_convert(conversion_of(load_config({**settings, "max_rejects": 240}), observers=observers))
    assert getattr(summary, "done_before", 0) > 0
    assert json.loads((work / "sum").read_text()) == {"train": sum(n for n in range(12_000) if n % 50 != 7)}
    assert (work / "values").read_text().endswith("\n11760 in all\n")


def test_images_are_observed_by_split(work: Path) -> None:
    for split, widths in (("train", (1, 2, 3)), ("val", (40,))):
        for width in widths:
            (work / "pets" / split / "cat").mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (width, 2)).save(work / "pets" / split / "cat" / f"{width}.png")
    config = load_config(paths=["pets"], flags={"output.path": "out"})
    run_convert(conversion_of(config, observers=(summing("image/width", work / "sum"),)))
    assert json.loads((work / "sum").read_text()) == {"train": 6, "val": 40}


NARROWINGS = st.lists(
    st.builds(
        Narrowing,
        st.sampled_from("ab"),
        st.just("float64"),
        st.just("float32"),
        st.integers(1, 9),
        st.floats(0, 1),
        st.integers(0, 9),
    ),
    max_size=4,
)
NOTED = st.dictionaries(st.tuples(st.integers(0, 3), st.sampled_from(["odd", "even"])), st.integers(1, 9))
OBSERVED = st.builds(
    lambda narrowings, notes, formats: (
        narrowed_summary(narrowings) | notes_summary(notes) | ({IMAGE_FORMATS: sorted(formats)} if formats else {})
    ),
    NARROWINGS,
    NOTED,
    st.sets(st.sampled_from(["png", "jpeg"])),
)


@given(one=OBSERVED, two=OBSERVED, three=OBSERVED)
def test_it_does_not_matter_how_rows_are_grouped(one: Any, two: Any, three: Any) -> None:
    assert merged(merged(one, two), three) == merged(one, merged(two, three))
    both = merged(one, two)
    assert sum(n.values for n in narrowings_in(both)) == sum(n.values for o in (one, two) for n in narrowings_in(o))
    assert sum(notes_in(both).values()) == sum(count for o in (one, two) for count in notes_in(o).values())
    assert json.loads(json.dumps(both)) == both
