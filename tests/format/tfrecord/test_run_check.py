"""Many checksums at once: the same answer as one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.tfrecord.framing import Payloads, crc32c, frame_records
from shardmill.transforms.format.tfrecord.scan import checksums_hold, scan_records

RECORDS = st.lists(st.binary(min_size=4, max_size=60), min_size=1, max_size=40)


def framed(records: list[bytes]) -> bytearray:
    frames = frame_records(pa.array(records, pa.large_binary()))
    return bytearray(b"".join(bytes(buffer) for buffer in frames.buffers))


def run_of(data: bytearray) -> tuple[Payloads, np.ndarray]:
    scan = scan_records(np.frombuffer(data, np.uint8), check_crc=False)
    return scan.payloads, scan.crcs


@given(RECORDS)
def test_sound_records_hold(records: list[bytes]) -> None:
    assert checksums_hold(*run_of(framed(records)))


@given(RECORDS, st.data())
def test_one_changed_record_never_holds(records: list[bytes], data: st.DataObject) -> None:
    framing = framed(records)
    payloads, _ = run_of(framing)
    row = data.draw(st.integers(0, len(records) - 1))
    start, end = int(payloads.starts[row]), int(payloads.ends[row])
    for _ in range(data.draw(st.integers(1, 4))):
        framing[data.draw(st.integers(start, end + 3))] ^= data.draw(st.integers(1, 255))
    payloads, crcs = run_of(framing)
    changed = crc32c(payloads[row]) != crcs[row]
    assert checksums_hold(payloads, crcs) is not changed


@given(RECORDS, st.lists(st.tuples(st.integers(0, 39), st.integers(0, 63), st.integers(1, 255)), max_size=6))
def test_a_scan_names_the_damaged_records_and_no_others(
    records: list[bytes], flips: list[tuple[int, int, int]]
) -> None:
    framing = framed(records)
    payloads, _ = run_of(framing)
    for row, place, bits in flips:
        if row < len(records) and place < len(records[row]):
            framing[int(payloads.starts[row]) + place] ^= bits
    payloads, crcs = run_of(framing)
    wrong = tuple(row for row in range(len(records)) if crc32c(payloads[row]) != crcs[row])
    assert scan_records(np.frombuffer(framing, np.uint8)).damaged == wrong


def test_a_run_may_begin_and_end_anywhere_in_its_buffer() -> None:
    data = framed([b"before!", b"first", b"last", b"behind"])
    payloads, crcs = run_of(data)
    assert checksums_hold(payloads.tail(1).head(2), crcs[1:3])


def test_payloads_shorter_than_a_word_are_not_for_it() -> None:
    with pytest.raises(ValueError, match="four bytes"):
        checksums_hold(*run_of(framed([b"four", b"3.."])))
    assert scan_records(np.frombuffer(framed([b"four", b"3..", b""]), np.uint8)).damaged == ()
