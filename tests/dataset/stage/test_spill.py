from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.dataset.stage.spill import (
    Shuffle,
    TaskSpill,
    bucket_of,
    read_buckets,
    read_index,
    row_keys,
    split_record,
)
from shardmill.transforms.dataset.storage.contract import PartFile
from shardmill.transforms.dataset.storage.object_storage import storage_at
from shardmill.transforms.errors import DamageError, RunError
from shardmill.transforms.format.batches.rows import Frames

from ...tiers import examples


def numbers(count: int, first: int = 0) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.uint64)


def frames(records: list[bytes]) -> Frames:
    ends = np.cumsum([len(record) for record in records], dtype=np.int64)
    return Frames((pa.py_buffer(b"".join(records)),), ends, len(records))


@given(seed=st.integers(0, 2**63 - 1), task=st.integers(0, 10**6))
@settings(max_examples=examples(50))
def test_no_two_records_have_the_same_key(seed: int, task: int) -> None:
    keys = np.concatenate([row_keys(seed, task, numbers(500)), row_keys(seed, task + 1, numbers(500))])
    assert len(np.unique(keys)) == 1000


def test_keys_stay_as_they_are_since_bytes_depend_on_them() -> None:
    assert row_keys(7, 3, numbers(3)).tolist() == [3843807640500527574, 8166531254962453959, 18166990405022809478]


def test_a_task_that_keys_have_no_room_for_is_refused() -> None:
    with pytest.raises(RunError, match=r"at most 268,435,456 tasks"):
        row_keys(7, 1 << 28, numbers(1))


@given(bits=st.integers(1, 16))
@settings(max_examples=examples(16))
def test_buckets_follow_each_other_as_keys_do(bits: int) -> None:
    keys = np.sort(row_keys(7, 0, numbers(10_000)))
    buckets = bucket_of(keys, bits).astype(np.int64)
    assert (np.diff(buckets) >= 0).all()
    assert buckets.max() < 1 << bits


@given(
    records=st.lists(st.binary(min_size=17, max_size=60), min_size=1, max_size=80),
    bits=st.integers(0, 4),
    block=st.integers(1, 30),
    run_bytes=st.integers(1, 2000),
    data=st.data(),
)
@settings(max_examples=examples(100))
def test_what_is_spilled_is_read_back_by_bucket(
    records: list[bytes],
    bits: int,
    block: int,
    run_bytes: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    storage = storage_at(str(tmp_path_factory.mktemp("spill")))
    shuffle = Shuffle(seed=5, bits=bits, run_bytes=run_bytes)

    def create(number: int) -> tuple[PartFile, str]:
        return storage.create_part(f"train-{number:04d}.part"), f"train-{number:04d}.part"

    stager = TaskSpill(2, shuffle).split(create)
    for start in range(0, len(records), block):
        stager.add(frames(records[start : start + block]))
    split = stager.finish()
    (part,) = split.parts
    assert (part.records, part.kind) == (len(records), "spilled")
    assert part.unit_bytes == max(map(len, records))
    first = data.draw(st.integers(0, (1 << bits) - 1))
    stop = data.draw(st.integers(first + 1, 1 << bits))
    with storage.open(part.path) as file:
        index = read_index(file, part.bytes, part.path)
        assert index.bucket_bytes.sum() == sum(map(len, records))
        index = read_index(file, part.bytes, part.path, first, stop)
        count, size = index.size_of(0, stop - first)
        held, known = bytearray(size), np.empty(count, "<u8")
        read_buckets(file, index, 0, stop - first, memoryview(held), known.data.cast("B"), part.path)
    lengths, places = split_record(known)
    ends = np.cumsum(lengths).tolist()
    starts = zip(places.tolist(), [0, *ends], ends, strict=False)
    found = {place: bytes(held[start:end]) for place, start, end in starts}
    buckets = bucket_of(row_keys(5, 2, numbers(len(records))), bits).tolist()
    assert found == {i: record for i, record in enumerate(records) if first <= buckets[i] < stop}


@pytest.mark.parametrize("cut", [1, 20, 40, 200])
def test_a_file_that_was_cut_is_damage(tmp_path: Path, cut: int) -> None:
    storage = storage_at(str(tmp_path))
    stager = TaskSpill(0, Shuffle(5, 2)).split(lambda number: (storage.create_part("one"), "one"))
    stager.add(frames([bytes([i]) * 20 for i in range(30)]))
    stager.finish()
    data = (tmp_path / "one").read_bytes()[:-cut]
    with pytest.raises(DamageError, match="one: is not what was spilled"):
        read_index(io.BytesIO(data), len(data), "one")


def test_a_shuffle_has_buckets_of_four_to_eight_mebibytes() -> None:
    for output in (1, 8 << 20, (8 << 20) + 1, 100 << 20, 5 << 30):
        size = output / (1 << Shuffle.of(1, output).bits)
        assert size <= 8 << 20
        assert size > 4 << 20 or output <= 8 << 20


def test_above_100_gb_buckets_are_few_and_are_spilled_twice() -> None:
    assert [Shuffle.of(7, size).levels for size in (0, 10**11, 10**11 + 1, 10**15)] == [1, 1, 2, 2]
    for size in (10**11, 10**13):
        shuffle = Shuffle.of(7, size)
        index = (2 << shuffle.bits) * 4
        assert index <= 0.016 * shuffle.run_bytes
