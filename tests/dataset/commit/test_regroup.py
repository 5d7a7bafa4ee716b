"""The second level of a shuffle: what was spilled once more is read by buckets, whole and in no bucket but its own."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.dataset.commit import second_pass as regroup
from shardmill.transforms.dataset.commit.second_pass import Regrouped, SpilledRecords

from ...tiers import examples

LOW, HIGH = 1 << 62, 3 << 61
RECORDS = st.lists(st.tuples(st.integers(LOW, HIGH - 1), st.binary(min_size=1, max_size=40)), min_size=1, max_size=60)


def run_of(records: list[tuple[int, bytes]]) -> SpilledRecords:
    keys = np.array([key for key, _ in records], np.uint64)
    lengths = np.array([len(record) for _, record in records], np.int64)
    return SpilledRecords(keys, lengths, pa.py_buffer(b"".join(record for _, record in records)))


def records_of(run: SpilledRecords) -> list[tuple[int, bytes]]:
    ends = np.cumsum(run.lengths).tolist()
    frames = bytes(run.frames)
    return [
        (key, frames[end - length : end])
        for key, length, end in zip(run.keys.tolist(), run.lengths.tolist(), ends, strict=True)
    ]


@given(runs=st.lists(RECORDS, min_size=1, max_size=6), run_bytes=st.integers(1, 1000), buckets=st.integers(1, 9))
@settings(max_examples=examples(80))
def test_buckets_one_after_the_other_hold_every_record_once_by_its_key(
    runs: list[list[tuple[int, bytes]]], run_bytes: int, buckets: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regroup, "_BUCKET_BYTES", 10)
        found = Regrouped(io.BytesIO(), range(LOW, HIGH), 10 * buckets, run_bytes)
    found.add(run_of(records) for records in runs)
    sizes = found.sizes.tolist()
    assert len(sizes) == buckets
    read = [records_of(found.read(bucket, bucket + 1)) for bucket in range(buckets)]
    assert sorted(one for bucket in read for one in bucket) == sorted(one for records in runs for one in records)
    assert [sum(len(record) for _, record in bucket) for bucket in read] == sizes
    edges = [LOW + (HIGH - LOW) * number // buckets for number in range(buckets + 1)]
    for bucket, low, high in zip(read, edges, edges[1:], strict=False):
        assert all(low <= key < high for key, _ in bucket)
    together = records_of(found.read(0, buckets))
    assert sorted(together) == sorted(one for bucket in read for one in bucket)


def test_a_split_that_one_task_sorts_whole_is_cut_in_buckets_over_all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regroup, "_BUCKET_BYTES", 10)
    found = Regrouped(io.BytesIO(), range(1 << 64), 40, 1000)
    found.add([run_of([(number << 61, b"x") for number in range(8)])])
    assert found.sizes.tolist() == [2, 2, 2, 2]
