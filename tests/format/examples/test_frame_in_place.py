from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.batches.arrow_memory import reference_views
from shardmill.transforms.format.examples.framed_records import NEUTRAL, frame_in_place
from shardmill.transforms.format.tfrecord.framing import crc32c, frame_records


def test_reading_the_neutral_bytes_first_changes_no_checksum() -> None:
    assert (len(NEUTRAL), crc32c(NEUTRAL)) == (16, 0)
    assert crc32c(NEUTRAL + b"123456789") == 0xE3069283


@given(st.lists(st.tuples(st.binary(max_size=30), st.binary(max_size=30)), max_size=30))
def test_records_framed_in_place_are_those_framed_from_their_payloads(rows: list[tuple[bytes, bytes]]) -> None:
    pieces, buffers = [], []
    for index in range(2):
        lengths = np.array([len(row[index]) for row in rows], np.int64)
        buffers.append(pa.py_buffer(b"".join(row[index] for row in rows)))
        pieces.append(reference_views(np.cumsum(lengths) - lengths, lengths, buffers[index], index))
    totals = np.array([len(first) + len(second) for first, second in rows], np.int64)
    frames = frame_in_place(pieces, totals, buffers)
    slow = frame_records(pa.array([first + second for first, second in rows], pa.large_binary()))
    assert b"".join(frames.buffers) == b"".join(slow.buffers)
    assert (frames.ends.tolist(), frames.digest) == (slow.ends.tolist(), slow.digest)


def test_stretches_of_any_size_write_the_same_bytes() -> None:
    lengths = np.arange(50, dtype=np.int64) % 23
    data = pa.py_buffer(bytes(range(200)))
    views = reference_views(lengths, lengths, data, 0)
    whole = frame_in_place([views], lengths, [data])
    cut = frame_in_place([views], lengths, [data], stretch_bytes=70)
    assert (len(whole.buffers), len(cut.buffers)) == (1, 9)
    assert b"".join(cut.buffers) == b"".join(whole.buffers)
    assert (cut.ends.tolist(), cut.digest) == (whole.ends.tolist(), whole.digest)
