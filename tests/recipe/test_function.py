from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import RunError, SchemaError, UsageError


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"n": list(range(10)), "text": [f"t{n}" for n in range(10)]}), "a.parquet")
    return tmp_path


def rows_of(path: str = "out") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = open_dataset(path).to_arrow("train").to_pylist()
    return rows


def squares(batch: pa.RecordBatch) -> dict[str, Any]:
    return {"n": batch["n"], "square": pc.multiply(batch["n"], batch["n"])}


def only_small(batch: pa.RecordBatch) -> Any:
    return batch, pc.less(batch["n"], 3)


def test_a_function_over_batches_makes_the_columns_that_are_written() -> None:
    convert("a.parquet", output="out", map=squares)
    assert rows_of() == [{"n": n, "square": n * n} for n in range(10)]


@pytest.mark.parametrize("processes", [False, True])
def test_a_function_may_drop_rows_and_runs_in_any_worker(processes: bool) -> None:
    limit = 4

    def below(batch: pa.RecordBatch) -> Any:  # a closure, which no worker can import
        return batch, [n < limit for n in batch["n"].to_pylist()]

    summary = convert("a.parquet", output="out", map=below, runner__workers=2, runner__processes=processes)
    assert [row["n"] for row in rows_of()] == [0, 1, 2, 3]
    assert summary.manifest.counts.dropped == 6


def test_functions_run_one_after_the_other_in_their_order() -> None:
    convert("a.parquet", output="out", map=[only_small, squares])
    assert [row["square"] for row in rows_of()] == [0, 1, 4]


def test_a_table_and_python_lists_are_taken_too() -> None:
    convert("a.parquet", output="out", map=lambda batch: pa.table({"n": batch["n"]}))
    assert rows_of()[0] == {"n": 0}
    convert("a.parquet", output="lists", map=lambda b: {"n": pa.array([2 * n for n in b["n"].to_pylist()], pa.int64())})
    assert rows_of("lists")[3] == {"n": 6}


def test_a_function_sees_the_columns_as_they_will_be_named_with_constants() -> None:
    def look(batch: pa.RecordBatch) -> dict[str, Any]:
        return {"names": pa.array([" ".join(sorted(batch.schema.names))] * batch.num_rows, pa.string())}

    schema = {"columns": {"text": {"name": "word"}}, "constants": {"version": 1}}
    convert("a.parquet", output="out", map=look, schema=schema)
    assert rows_of()[0] == {"names": "n version word"}


def test_another_function_is_another_conversion_and_the_same_text_is_the_same() -> None:
    convert("a.parquet", output="out", map=squares)
    assert convert("a.parquet", output="out", map=squares).nothing_to_do
    with pytest.raises(UsageError, match="from another source or config"):
        convert("a.parquet", output="out", map=only_small)


def test_a_function_that_holds_another_value_is_another_conversion() -> None:
    def below(limit: int) -> Any:
        return lambda batch: (batch, pc.less(batch["n"], limit))

    convert("a.parquet", output="out", map=below(3))
    assert convert("a.parquet", output="out", map=below(3)).nothing_to_do
    with pytest.raises(UsageError, match="from another source or config"):
        convert("a.parquet", output="out", map=below(4))


def test_an_append_with_the_function_adds_to_the_dataset_and_without_it_is_refused() -> None:
    convert("a.parquet", output="out", map=squares)
    pq.write_table(pa.table({"n": [11], "text": ["x"]}), "b.parquet")
    append("b.parquet", output="out", map=squares)
    assert rows_of()[-1] == {"n": 11, "square": 121}
    pq.write_table(pa.table({"n": [12], "text": ["x"]}), "c.parquet")
    with pytest.raises(UsageError, match=r"out was made with squares, which its rows go through; append from Python: "):
        append("c.parquet", output="out")


def fails(batch: pa.RecordBatch) -> Any:
    if batch.num_rows:
        raise ValueError("no such thing")
    return batch


def too_few(batch: pa.RecordBatch) -> Any:
    return batch.slice(1)


def fails_at_once(batch: pa.RecordBatch) -> Any:
    return batch["missing"]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (fails, RunError, r"map: fails failed \(rows of a\.parquet\): ValueError: no such thing"),
        (too_few, RunError, r"map: too_few gave 9 rows for 10 \(rows of a\.parquet\); give back as many rows as came"),
        (fails_at_once, SchemaError, r"map: fails_at_once failed for a batch without rows"),
        (lambda batch: batch["n"], SchemaError, r"TypeError: it returned a Int64Array, not a pyarrow\.RecordBatch"),
        (5, UsageError, r"map: int is neither a function over batches nor a step"),
    ],
)
def test_a_function_that_fails_or_loses_rows_ends_the_run_by_its_name(
    function: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        convert("a.parquet", output="out", map=function)
    assert not list(Path(".").glob("out/*.tfrecord"))


def in_rows(rows: Any, empty: Any) -> Any:
    return lambda batch: {"n": batch["n"], "made": rows(batch) if batch.num_rows else empty}


def words(batch: pa.RecordBatch) -> Any:
    return batch["text"].to_pylist()


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (
            lambda b: {"n": b["n"], "length": [len(word) for word in words(b)]},
            SchemaError,
            r"gave column \"length\" without",
        ),
        (
            lambda b: {"n": b["n"], "lists": pa.array([[]] * b.num_rows, pa.list_(pa.null()))},
            SchemaError,
            r"without a type",
        ),
        (lambda b: {}, SchemaError, r"gave no columns for a batch without rows"),
        (
            in_rows(lambda b: b["n"], pa.array([], pa.string())),
            RunError,
            r"\"made\" is int64 in rows of a\.parquet, and string",
        ),
        (
            in_rows(lambda b: [0.5] * 10, pa.array([], pa.int64())),
            RunError,
            r"\"made\" is double in .* int64 was planned",
        ),
        (in_rows(lambda b: [300] * 10, pa.array([], pa.int8())), RunError, r"\"made\" is int64 in .* int8 was planned"),
        (
            lambda b: {"n" if b.num_rows else "m": b["n"]},
            RunError,
            r"the columns are \"n\" in rows of .* and \"m\" were",
        ),
        (lambda b: b.select(["n"]) if b.num_rows else b, RunError, r"are \"n\" in rows of .* and \"n\", \"text\" were"),
        (lambda b: (b, [True] * 3), RunError, r"gave 3 booleans for 10 rows \(rows of a\.parquet\)"),
        (lambda b: (b, b, b), SchemaError, r"it returned a tuple of 3, not the batch and a boolean for each row"),
        (lambda b: b.to_pandas(), SchemaError, r"returned a DataFrame; give back pyarrow\.RecordBatch\.from_pandas"),
        (lambda b: b["missing"], SchemaError, r"KeyError: .* \(line \d+ of test_function\.py\)"),
    ],
)
def test_columns_that_are_not_those_that_were_planned_end_the_run(
    function: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        convert("a.parquet", output="out", map=function)
    assert not list(Path(".").glob("out/*.tfrecord"))


@pytest.mark.parametrize(
    ("rows", "kind", "first"),
    [
        (lambda b: [None] * b.num_rows, pa.int64(), None),
        (lambda b: pa.array([7] * b.num_rows, pa.int8()), pa.int64(), 7),
        (lambda b: b["text"].dictionary_encode(), pa.string(), "t0"),
        (lambda b: [[]] * b.num_rows, pa.list_(pa.int64()), []),
        (lambda b: b.to_pandas()["text"], pa.large_string(), "t0"),
    ],
    ids=["nulls", "narrower", "dictionary", "empty lists", "series"],
)
def test_a_batch_whose_types_the_planned_ones_hold_is_taken(rows: Any, kind: pa.DataType, first: Any) -> None:
    convert("a.parquet", output="out", map=in_rows(rows, pa.array([], kind)))
    assert rows_of()[0]["made"] == first


def test_a_function_that_holds_what_no_worker_can_have_is_refused() -> None:
    import threading

    lock = threading.Lock()

    def locked(batch: pa.RecordBatch) -> pa.RecordBatch:
        with lock:
            return batch

    with pytest.raises(UsageError, match="locked cannot be sent to workers"):
        convert("a.parquet", output="out", map=locked)
