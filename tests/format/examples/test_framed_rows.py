"""Existing records on their way to a new dataset: the same bytes, and all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.batches.rows import RowOrigin
from shardmill.transforms.format.examples.encode_rows import FramedRows, empty_batch, frames_in_place
from shardmill.transforms.format.tfrecord.framing import frame_records
from shardmill.transforms.format.tfrecord.scan import scan_records

RECORDS = st.lists(st.binary(max_size=60), min_size=1, max_size=20)


def framed(records: list[bytes]) -> bytes:
    return b"".join(bytes(buffer) for buffer in frame_records(pa.array(records, pa.large_binary())).buffers)


@given(RECORDS, st.data())
def test_frames_in_place_are_the_bytes_of_what_is_kept(records: list[bytes], data: st.DataObject) -> None:
    left_out = data.draw(st.sets(st.integers(0, len(records) - 1)))
    scan = scan_records(np.frombuffer(framed(records), np.uint8))
    frames = frames_in_place(scan.payloads, scan.crcs, left_out)
    kept = [record for row, record in enumerate(records) if row not in left_out]
    assert b"".join(bytes(buffer) for buffer in frames.buffers) == (framed(kept) if kept else b"")
    assert frames.ends.tolist() == np.cumsum([len(record) + 16 for record in kept]).tolist()
    if kept:
        assert frames.digest == frame_records(pa.array(kept, pa.large_binary())).digest


def test_rows_that_are_taken_out_of_the_batch_are_not_passed_on_in_silence() -> None:
    scan = scan_records(np.frombuffer(framed([b"a", b"b"]), np.uint8))
    rows = FramedRows(0, 0, 0, empty_batch(2), RowOrigin("x", 1), split="train", payloads=scan.payloads, crcs=scan.crcs)
    found = rows.to_block().splits["train"]
    assert b"".join(map(bytes, found.buffers)) == framed([b"a", b"b"])
    with pytest.raises(ValueError, match="2 existing records are passed on as they are, and their batch was cut to 1"):
        replace(rows, batch=rows.batch.slice(0, 1)).to_block()
