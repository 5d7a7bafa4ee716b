"""Many walks in lock-step find what one walk in turn finds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.tfrecord import scan as length_walk
from shardmill.transforms.format.tfrecord.framing import frame_records
from shardmill.transforms.format.tfrecord.scan import walk_records

few_walks = partial(walk_records, walks=7, least_bytes=512)


def framed(records: list[bytes]) -> bytearray:
    frames = frame_records(pa.array(records, pa.large_binary()))
    return bytearray(b"".join(bytes(buffer) for buffer in frames.buffers))


def ends_of(data: bytes) -> list[int]:
    """Return what a slow and obvious walk finds."""
    ends, head = [], 0
    while head + 12 <= len(data):
        head += int.from_bytes(data[head : head + 8], "little") + 16
        if head > len(data):
            break
        ends.append(head)
    return ends


RECORDS = st.lists(
    st.binary(max_size=80) | st.integers(0, 400).map(bytes) | st.binary(max_size=20).map(lambda b: bytes(framed([b]))),
    min_size=20,
    max_size=80,
)


@given(RECORDS, st.integers(0, 200))
def test_sound_records_cut_anywhere(records: list[bytes], cut: int) -> None:
    data = framed(records)
    data = data[: len(data) - cut]
    assert few_walks(np.frombuffer(data, np.uint8)).tolist() == ends_of(data)


@given(RECORDS, st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=5))
def test_damaged_records(records: list[bytes], changes: list[tuple[int, int]]) -> None:
    data = framed(records)
    for place, byte in changes:
        data[place % len(data)] = byte
    assert few_walks(np.frombuffer(data, np.uint8)).tolist() == ends_of(data)


@pytest.mark.parametrize("length", [1 << 63, (1 << 64) - 1, (1 << 64) - 16, 1 << 31])
def test_lengths_that_lie(length: int) -> None:
    data = framed([b"x" * 30] * 40)
    data[46 * 25 : 46 * 25 + 8] = length.to_bytes(8, "little")
    assert few_walks(np.frombuffer(data, np.uint8)).tolist() == ends_of(data)


def test_records_of_the_real_size_are_walked_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    data = framed([rng.bytes(int(size)) for size in rng.integers(170, 290, 9000)])
    joined: list[bool] = []
    together = length_walk._walk_together
    monkeypatch.setattr(length_walk, "_walk_together", lambda d, s: (joined.append(len(s) > 200), together(d, s))[1])
    assert walk_records(np.frombuffer(data, np.uint8)).tolist() == ends_of(data)
    assert joined == [True]
