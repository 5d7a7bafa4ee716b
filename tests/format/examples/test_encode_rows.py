from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.format.batches.rejects import CellError, CellProblem, Place, Reject
from shardmill.transforms.format.batches.rows import Block, EntryCounts, Frames, Narrowing, RowOrigin, Rows
from shardmill.transforms.format.batches.summaries import narrowings_in
from shardmill.transforms.format.examples import encode_rows as module
from shardmill.transforms.format.examples.decode_examples import Example
from shardmill.transforms.format.examples.encode_rows import RowEncoder
from shardmill.transforms.format.schema.arrow_types import feature_of
from shardmill.transforms.format.schema.schema import ColumnRule, Feature, Schema
from shardmill.transforms.format.splits.by_row import HashSplits
from shardmill.transforms.observers.tally import CountValues

from ...examples import encode_rows, example_from_values


def schema_of(batch: pa.RecordBatch, **rules: ColumnRule) -> Schema:
    features = [feature_of(field, rules.get(field.name))[0] for field in batch.schema]
    return Schema(tuple(sorted(features, key=lambda feature: feature.name)))


def rows_of(batch: pa.RecordBatch, **options: Any) -> Rows:
    return Rows(3, 1, options.pop("entry", 7), batch, RowOrigin("a.parquet", 101), **options)


def payloads(frames: Frames) -> list[bytes]:
    data = b"".join(frames.buffers)
    starts = [0, *frames.ends.tolist()]
    return [data[start + 12 : end - 4] for start, end in pairwise(starts)]


def values(frames: Frames, name: str) -> list[Any]:
    found = []
    for payload in payloads(frames):
        example = Example()
        example.ParseFromString(payload)
        feature = example.features.feature[name]
        found.append(list(getattr(feature, feature.WhichOneof("kind") or "int64_list").value))
    return found


def codes(block: Block) -> list[tuple[int | None, list[tuple[str | None, str]]]]:
    return [(reject.place.row, [(e.column, e.code) for e in reject.errors]) for reject in block.rejects]


def test_rows_become_records_and_the_block_says_whose_they_are() -> None:
    batch = pa.record_batch({"b": ["x", None], "a": pa.array([1, 2])})
    block = encode_rows(rows_of(batch), schema_of(batch))
    assert (block.task, block.ordinal, block.rejects) == (3, 1, ())
    assert block.counts == (EntryCounts(7, 2, 2, 0, 0),)
    expected = [example_from_values({"a": 1, "b": "x"}), example_from_values({"a": 2})]
    assert payloads(block.splits["train"]) == [e.SerializeToString(deterministic=True) for e in expected]


def test_all_bad_cells_of_a_row_are_one_reject_and_good_rows_are_written() -> None:
    batch = pa.record_batch(
        {
            "big": pa.array([1, 2**64 - 1, 3, 4, 5], pa.uint64()),
            "list": pa.array([[1], [None], [2], [None], [3]]),
            "wide": pa.array([0.1, 1e300, 0.5, 0.1, 0.5]),
        }
    )
    block = encode_rows(rows_of(batch), schema_of(batch))
    assert codes(block) == [
        (102, [("big", "INT_OVERFLOW"), ("list", "NULL_IN_LIST"), ("wide", "FLOAT_OVERFLOW")]),
        (104, [("list", "NULL_IN_LIST")]),
    ]
    assert block.counts == (EntryCounts(7, 5, 3, 2, 0),)
    assert values(block.splits["train"], "big") == [[1], [3], [5]]
    error = abs(float(np.float32(0.1)) - 0.1) / 0.1
    assert narrowings_in(block.observed) == (Narrowing("wide", "float64", "float32", 3, error, 0),)


def test_problems_and_rejects_of_the_source_are_merged_in_row_order() -> None:
    bad = CellError("a", "BAD_TYPE", "x", "int64", '"x" is not an int64')
    width = Reject(7, Place("a.parquet", row=102), (CellError(None, "BAD_WIDTH", "", "3", "short"),))
    batch = pa.record_batch({"a": pa.array([1, 2, None, 4]), "b": pa.array([[1], [None], [None], [1]])})
    rows = rows_of(batch, problems=(CellProblem(2, bad),), rejects=(width,))
    block = encode_rows(rows, schema_of(batch, a=ColumnRule(nullable=False)))
    assert codes(block) == [
        (102, [(None, "BAD_WIDTH")]),
        (102, [("b", "NULL_IN_LIST")]),
        (103, [("a", "BAD_TYPE"), ("b", "NULL_IN_LIST")]),
    ]
    assert block.counts == (EntryCounts(7, 5, 2, 3, 0),)


def test_counts_are_by_entry() -> None:
    batch = pa.record_batch({"a": pa.array([1, 2**63, 3, 4], pa.uint64())})
    gone = Reject(9, Place("c.jpg"), (CellError(None, "MISSING_FILE", "", "", "gone"),))
    rows = rows_of(batch, entry=np.array([2, 2, 5, 2]), rejects=(gone,))
    assert encode_rows(rows, schema_of(batch)).counts == (
        EntryCounts(2, 3, 2, 1, 0),
        EntryCounts(5, 1, 1, 0, 0),
        EntryCounts(9, 1, 0, 1, 0),
    )


def test_a_record_over_the_limit_is_a_reject() -> None:
    batch = pa.record_batch({"s": ["x", "x" * 200, "x" * 90]})
    block = encode_rows(rows_of(batch), schema_of(batch), record_bytes_limit=120)
    assert codes(block) == [(102, [(None, "RECORD_TOO_LARGE")])]
    assert "raise the limit: --set limits.record_bytes=218" in block.rejects[0].errors[0].message
    assert values(block.splits["train"], "s") == [[b"x"], [b"x" * 90]]


def test_a_field_over_the_limit_does_not_hide_what_is_wrong_in_other_rows() -> None:
    held = pa.array([b"x" * 50, b"ok", b"\xff"], pa.binary())
    batch = pa.record_batch({"s": pa.Array.from_buffers(pa.string(), 3, held.buffers())})
    block = encode_rows(rows_of(batch), schema_of(batch), field_bytes_limit=40)
    assert codes(block) == [(101, [("s", "FIELD_TOO_LARGE")]), (103, [("s", "BAD_UTF8")])]
    assert values(block.splits["train"], "s") == [[b"ok"]]


def test_a_batch_of_bad_rows_only_has_no_splits() -> None:
    batch = pa.record_batch({"a": pa.array([2**63], pa.uint64())})
    block = encode_rows(rows_of(batch), schema_of(batch))
    assert (block.splits, len(block.rejects), block.counts) == ({}, 1, (EntryCounts(7, 1, 0, 1, 0),))


def test_a_batch_without_rows_is_an_empty_block() -> None:
    batch = pa.record_batch({"a": pa.array([], pa.int64())})
    block = encode_rows(rows_of(batch), schema_of(batch))
    assert (block.splits, block.rejects, block.counts, narrowings_in(block.observed)) == ({}, (), (), ())


def test_a_missing_column_is_absent_and_an_unknown_one_is_an_error() -> None:
    batch = pa.record_batch({"a": [1]})
    wider = Schema((Feature("a", "int64", "int64"), Feature("b", "float", "float32", nullable=True)))
    assert payloads(encode_rows(batch, wider).splits["train"]) == payloads(
        encode_rows(batch, schema_of(batch)).splits["train"]
    )
    with pytest.raises(SchemaError, match='column "a" is not in the schema'):
        encode_rows(batch, Schema(()))
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(SchemaError, match='column "a" comes twice'):
        encode_rows(twice, wider)


def test_a_bare_batch_has_no_task() -> None:
    batch = pa.record_batch({"a": pa.array([2**63], pa.uint64())})
    block = encode_rows(batch, schema_of(batch))
    assert block.task is None
    assert block.rejects[0].place == Place("batch", row=1)


def test_splits_by_directory_follow_the_codes_and_rejects_name_theirs() -> None:
    batch = pa.record_batch({"a": pa.array([0, 1, 2**63, 3, 4], pa.uint64())})
    rows = rows_of(batch, split_codes=np.array([1, 0, 1, 1, 0]))
    block = encode_rows(rows, schema_of(batch), splits_by_code=("train", "val", "test"))
    assert {name: values(frames, "a") for name, frames in block.splits.items()} == {
        "train": [[1], [4]],
        "val": [[0], [3]],
    }
    assert block.rejects[0].split == "val"


@pytest.mark.parametrize("key", [None, "id"])
def test_fraction_splits_take_every_row_once_whatever_its_neighbours(key: str | None) -> None:
    batch = pa.record_batch({"id": pa.array([None if i % 7 == 0 else f"k{i}" for i in range(300)]), "n": range(300)})
    rule = HashSplits.by_fraction({"train": 0.7, "val": 0.3}, key)
    whole = encode_rows(rows_of(batch), schema_of(batch), split=rule)
    taken = {name: [v for (v,) in values(frames, "n")] for name, frames in whole.splits.items()}
    assert sorted(taken["train"] + taken["val"]) == list(range(300))
    assert 150 < len(taken["train"]) < 270
    part = encode_rows(rows_of(batch.slice(100, 50)), schema_of(batch), split=rule)
    assert values(part.splits["val"], "n") == [[n] for n in taken["val"] if 100 <= n < 150]


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=60), st.integers(1, 9), st.data())
def test_runs_and_bad_rows_change_no_byte_of_the_good_ones(bad: list[bool], run: int, data: st.DataObject) -> None:
    n = len(bad)
    kinds = [pa.string(), pa.string_view(), pa.large_binary(), pa.binary_view(), pa.list_(pa.string_view())]
    arrow = data.draw(st.sampled_from(kinds))
    cells: list[Any] = [("é" * (i % 20)).encode() if "binary" in str(arrow) else "é" * (i % 20) for i in range(n)]
    if pa.types.is_list(arrow):
        cells = [None if i % 3 == 0 else [cell] * (i % 4) for i, cell in enumerate(cells)]
    batch = pa.record_batch(
        {
            "f": pa.array([i / 3 for i in range(n)], pa.float64()),
            "i": pa.array([2**63 if is_bad else i for i, is_bad in enumerate(bad)], pa.uint64()),
            "s": pa.array(cells, arrow),
        }
    )
    schema = schema_of(batch)
    block = encode_rows(rows_of(batch), schema, run_rows=run)
    assert [reject.place.row for reject in block.rejects] == [101 + i for i in range(n) if bad[i]]
    expected = [
        payload
        for i in range(n)
        if not bad[i]
        for payload in payloads(encode_rows(rows_of(batch.slice(i, 1)), schema).splits["train"])
    ]
    assert [p for frames in block.splits.values() for p in payloads(frames)] == expected
    assert sum(narrowing.values for narrowing in narrowings_in(block.observed)) == len(expected)


def test_images_travel_by_reference() -> None:
    files = [bytes([i]) * (20_000 + i) for i in range(5)] + [b"tiny"]
    words = np.zeros((6, 4), np.int32)
    for i, file in enumerate(files[:5]):
        words[i] = [len(file), 0, i, 0]
    words[5, 0], words[5, 1] = 4, int.from_bytes(b"tiny", "little")
    buffers = [pa.py_buffer(file) for file in files[:5]]
    encoded = pa.Array.from_buffers(pa.binary_view(), 6, [None, pa.py_buffer(words), *buffers])
    batch = pa.record_batch({"image/encoded": encoded, "image/height": range(6), "a": ["x"] * 6})
    features = (Feature("a", "bytes", "string"), Feature("image/encoded", "bytes", "image"))
    schema = Schema((*features, Feature("image/height", "int64", "int64")))
    frames = encode_rows(rows_of(batch), schema).splits["train"]
    assert {buffer.address for buffer in buffers} <= {buffer.address for buffer in frames.buffers}
    expected = [
        example_from_values({"a": "x", "image/encoded": file, "image/height": i}) for i, file in enumerate(files)
    ]
    assert payloads(frames) == [e.SerializeToString(deterministic=True) for e in expected]


def test_runs_are_bounded_by_rows_views_and_bytes() -> None:
    narrow = pa.record_batch({"a": range(20_000)})
    wide = pa.record_batch({str(i): range(200) for i in range(10_000)})
    heavy = pa.record_batch({"s": ["x" * (1 << 20)] * 40})
    assert module._run_rows(narrow)[0] == 1 << 14
    assert module._run_rows(wide)[0] == 104
    assert module._run_rows(wide, floats=10_000)[0] == 209
    assert module._run_rows(heavy)[0] == 15
    assert module._run_rows(narrow.slice(0, 0))[0] == 1


def test_an_encoder_is_pickled_and_shared_by_threads() -> None:
    batches = [pa.record_batch({"s": ["x" * (i * j % 50) for j in range(200)], "n": range(200)}) for i in range(16)]
    encoder: RowEncoder = pickle.loads(pickle.dumps(RowEncoder(schema_of(batches[0]))))
    alone = [payloads(encode_rows(batch, encoder.schema).splits["train"]) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        shared = [payloads(block.splits["train"]) for block in pool.map(encoder.encode, batches)]
    assert shared == alone


def test_the_shares_of_splits_are_those_of_the_rule() -> None:
    schema = Schema(())
    assert RowEncoder(schema).split_shares() == {"train": 1.0}
    assert RowEncoder(schema, HashSplits.by_fraction({"a": 0.9, "b": 0.1})).split_shares() == {"a": 0.9, "b": 0.1}
    assert RowEncoder(schema, splits_by_code=("a", "b")).split_shares() == {"a": 0.5, "b": 0.5}


def test_a_split_key_that_is_no_feature_is_an_error() -> None:
    with pytest.raises(SchemaError, match=r"split\.key"):
        RowEncoder(Schema(()), HashSplits.by_fraction({"a": 1.0}, "id"))


def test_encoding_good_and_bad_rows_of_lists_and_views_imports_neither_pandas_nor_beam(tmp_path: Path) -> None:
    values, mask = pa.array([1, 2, None]), pa.array([False, True, False])
    batch = pa.record_batch(
        {
            "b": pa.array([True, None, False]),
            "d": [0.1, None, 0.5],
            "l": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), values, mask=mask),
            "s": ["\u00e9"] * 3,
            "v": pa.array([[1], [2], None], pa.list_view(pa.int64())),
            "w": pa.array(["x", "y", "z"], pa.string_view()),
        }
    )
    with pa.OSFile(str(tmp_path / "batch"), "wb") as file, pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)
    # In a process of its own, which reads the batch from a file: `pa.array` of anything imports pandas.
    program = """
import sys
import pyarrow as pa
from shardmill.transforms.format.schema.arrow_types import feature_of
from shardmill.transforms.format.examples.encode_rows import RowEncoder
from shardmill.transforms.format.schema.schema import Schema
batch = pa.ipc.open_stream(open(sys.argv[1], "rb").read()).read_next_batch()
block = RowEncoder(Schema(tuple(feature_of(field)[0] for field in batch.schema))).encode(batch)
print([reject.place.row for reject in block.rejects], block.splits["train"].records)
print(sorted({"pandas", "apache_beam"} & set(sys.modules)))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "batch")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("[3] 2\n[]\n", "")


def sparse_batch(rows: int, share: float) -> pa.RecordBatch:
    """Return columns of all kinds, in which a share of the rows have values."""
    choose = np.random.default_rng(7)
    arrays: dict[str, pa.Array] = {}
    for number in range(24):
        values: list[Any] = [
            [row - 3, row * 10**9, row / 3, f"text of row {row}" * (row % 4), [row] * (row % 3), ["a", f"{row}" * 9]][
                number % 6
            ]
            for row in range(rows)
        ]
        there = choose.random(rows) < (share if number != 5 else 0)
        arrays[f"c{number}"] = pa.array(
            [value if is_there else None for value, is_there in zip(values, there, strict=True)],
            [pa.int64(), pa.int64(), pa.float64(), pa.string(), pa.list_(pa.int64()), pa.list_(pa.string())][
                number % 6
            ],
        )
    arrays["c05"], arrays["key"] = pa.array(np.arange(rows) / 2), pa.array([f"{row}" for row in range(rows)])
    return pa.RecordBatch.from_pydict(arrays)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.4])
def test_sparse_columns_give_the_records_rejects_and_statistics_of_others(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = sparse_batch(500, share)
    schema = schema_of(batch)
    schema = Schema(tuple(replace(one, nullable=one.name not in ("c05", "key")) for one in schema))
    split = HashSplits(("train", "test"), (0.5, 0.5), "key")
    encoder = RowEncoder(schema, split, field_bytes_limit=40, observers=(CountValues(),))
    dense = encoder.encode(rows_of(batch))
    monkeypatch.setattr(module, "_WIDE", 1)
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    sparse = RowEncoder(schema, split, field_bytes_limit=40, observers=(CountValues(),)).encode(rows_of(batch))
    assert {name: payloads(frames) for name, frames in sparse.splits.items()} == {
        name: payloads(frames) for name, frames in dense.splits.items()
    }
    assert {name: frames.digest for name, frames in sparse.splits.items()} == {
        name: frames.digest for name, frames in dense.splits.items()
    }
    assert sparse.rejects == dense.rejects
    assert sparse.observed["statistics"].to_json() == dense.observed["statistics"].to_json()
    assert narrowings_in(sparse.observed) == narrowings_in(dense.observed)
