from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.tfrecord.framing import (
    FRAME_BYTES,
    crc32c,
    frame_records,
    framed_crcs,
    join_frames,
    mask,
    record_digests,
)


def slow_frame(payload: bytes) -> bytes:
    length = len(payload).to_bytes(8, "little")
    return b"".join(
        [length, mask(crc32c(length)).to_bytes(4, "little"), payload, mask(crc32c(payload)).to_bytes(4, "little")]
    )


def test_a_frame_is_these_bytes() -> None:
    frames = frame_records(pa.array([b"123456789"], pa.large_binary()))
    assert b"".join(frames.buffers).hex() == "090000000000000037f97139313233343536373839e5b08ac7"


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=30))
def test_a_framed_records_checksum_follows_from_its_payloads(payloads: list[bytes]) -> None:
    crcs = np.array([crc32c(payload) for payload in payloads], np.uint32)
    found = framed_crcs(np.array([len(payload) for payload in payloads]), crcs)
    assert found.tolist() == [crc32c(slow_frame(payload)) for payload in payloads]


@given(st.lists(st.binary(max_size=30), max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_frames_are_the_slow_frames_of_any_slice(payloads: list[bytes], start: int, length: int) -> None:
    frames = frame_records(pa.array(payloads, pa.large_binary()).slice(start, length))
    expected = payloads[start : start + length]
    assert b"".join(frames.buffers) == b"".join(map(slow_frame, expected))
    assert frames.ends.tolist() == np.cumsum([len(p) + FRAME_BYTES for p in expected], dtype=np.int64).tolist()
    crcs = np.array([crc32c(p) for p in expected], np.uint32)
    assert frames.digest == record_digests(np.array([len(p) for p in expected], np.int64), crcs)


def test_runs_cut_by_count_or_by_reach_join_to_the_same_frames() -> None:
    payloads = [bytes([i]) * (i * 7 % 40) for i in range(200)]
    whole = frame_records(pa.array(payloads, pa.large_binary()))
    cut = frame_records(pa.array(payloads, pa.large_binary()), run_records=7, reach=100)
    assert len(cut.buffers) > 200 // 7
    assert b"".join(cut.buffers) == b"".join(whole.buffers)
    assert cut.ends.tolist() == whole.ends.tolist()
    assert cut.digest == whole.digest


def test_no_records_are_no_bytes() -> None:
    for frames in (frame_records(pa.array([], pa.large_binary())), join_frames([])):
        assert (frames.buffers, frames.records, frames.bytes, frames.digest) == ((), 0, 0, 0)


def test_a_null_payload_is_refused() -> None:
    with pytest.raises(ValueError, match="null"):
        frame_records(pa.array([b"", None], pa.large_binary()))
