from __future__ import annotations

import struct

import crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.tfrecord.scan import Damage, Scan, ScanStart, is_record_header, scan_records


def masked(data: bytes) -> bytes:
    crc = crc32c.crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def header(length: int) -> bytes:
    packed = struct.pack("<Q", length)
    return packed + masked(packed)


def scan_whole(data: bytes, **options: int | bool) -> Scan:
    return scan_records(np.frombuffer(data, np.uint8), left=len(data), **options)  # type: ignore[arg-type]


TWO = frame(b"first") + frame(b"the second")


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_whole_records_are_found_with_their_checksums(records: list[bytes]) -> None:
    data = b"".join(map(frame, records))
    scan = scan_whole(data)
    assert list(scan.payloads) == records
    assert scan.crcs.tolist() == [crc32c.crc32c(record) for record in records]
    assert (scan.consumed, scan.damages, scan.damaged, scan.broken) == (len(data), (), (), None)


def test_an_empty_file_has_no_records_and_no_damage() -> None:
    scan = scan_whole(b"")
    assert (len(scan.payloads), scan.consumed, scan.broken) == (0, 0, None)


def test_a_record_of_no_bytes_is_a_record() -> None:
    assert list(scan_whole(frame(b"") + frame(b"x") + frame(b"")).payloads) == [b"", b"x", b""]


@pytest.mark.parametrize("cut", range(1, len(TWO)))
def test_a_file_cut_anywhere_but_between_records_is_damaged_at_the_record_that_is_cut(cut: int) -> None:
    scan = scan_whole(TWO[:cut])
    first = len(frame(b"first"))
    if cut == first:
        assert (list(scan.payloads), scan.broken) == ([b"first"], None)
        return
    record, offset = (1, first) if cut > first else (0, 0)
    assert list(scan.payloads) == [b"first"][:record]
    assert scan.broken is not None
    assert (scan.broken.record, scan.broken.offset) == (record, offset)
    part = "header are there" if cut - offset < 12 else "its data is cut"
    assert part in scan.broken.reason


@pytest.mark.parametrize("bit", range(8 * len(TWO)))
def test_every_flipped_bit_is_found_at_its_record(bit: int) -> None:
    damaged = bytearray(TWO)
    damaged[bit // 8] ^= 1 << bit % 8
    scan = scan_whole(bytes(damaged))
    found = (*scan.damages, *((scan.broken,) if scan.broken else ()))
    first = len(frame(b"first"))
    assert [(d.record, d.offset) for d in found] == [(0, 0) if bit // 8 < first else (1, first)]


def test_damaged_data_do_not_hide_the_records_after_them() -> None:
    scan = scan_whole(frame(b"good") + frame(b"bad!").replace(b"bad!", b"BAD!") + frame(b"good again"))
    assert list(scan.payloads) == [b"good", b"BAD!", b"good again"]
    assert scan.damages == (Damage(1, 20, "the checksum of its data is wrong"),)
    assert scan.damaged == (1,)
    assert scan.broken is None


def test_without_the_check_only_the_framing_is_proven() -> None:
    scan = scan_whole(frame(b"bad!").replace(b"bad!", b"BAD!"), check_crc=False)
    assert (list(scan.payloads), scan.damages) == ([b"BAD!"], ())
    assert scan_whole(b"\x01" + TWO[1:], check_crc=False).broken is not None


@pytest.mark.parametrize("length", [1 << 40, 3 << 30, (1 << 64) - 1, (1 << 63) - 1, (1 << 63) - 16])
def test_a_length_with_a_right_checksum_is_not_believed(length: int) -> None:
    scan = scan_whole(frame(b"ok") + header(length) + bytes(40))
    assert list(scan.payloads) == [b"ok"]
    assert scan.broken == Damage(
        1, 18, f"its length, {length} bytes, is over the limit of 1073741824 (limits.record_bytes)"
    )


def test_a_length_below_the_limit_is_bounded_by_what_is_left() -> None:
    scan = scan_whole(header(1 << 29) + bytes(40))
    assert scan.broken == Damage(0, 0, "its data is cut: it takes 536870928 bytes, and 52 are left in the file")


def test_a_whole_record_over_the_limit_is_refused() -> None:
    scan = scan_whole(frame(b"ok") + frame(b"x" * 11) + frame(b"ok"), record_bytes_limit=10)
    assert list(scan.payloads) == [b"ok"]
    assert scan.broken == Damage(1, 18, "its length, 11 bytes, is over the limit of 10 (limits.record_bytes)")


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (bytes(100), "zeros where it should begin"),
        (b"garbage, and more of it", "the checksum of its length is wrong"),
        (b"short", "only 5 of the 12 bytes of its header are there: the file is cut, or continues wrongly"),
    ],
)
def test_what_follows_the_last_record_is_damage(tail: bytes, reason: str) -> None:
    scan = scan_whole(TWO + tail)
    assert list(scan.payloads) == [b"first", b"the second"]
    assert scan.broken == Damage(2, len(TWO), reason)


def test_bytes_that_begin_with_no_record_are_said_to_be_probably_no_tfrecord_file() -> None:
    reason = (
        "the checksum of its length is wrong; this is probably no TFRecord file, unless its first bytes are damaged"
    )
    assert scan_whole(b"id,price\n1,2.50\n").broken == Damage(0, 0, reason)


def test_damage_is_told_by_number_and_offset_without_the_payload() -> None:
    assert str(Damage(7, 1900, "the checksum of its data is wrong")) == (
        "record 7 at byte 1900: the checksum of its data is wrong"
    )


@pytest.mark.parametrize("stop", range(len(TWO) + 1))
def test_a_piece_of_a_file_ends_where_its_last_whole_record_does_and_says_what_is_wanted(stop: int) -> None:
    first = len(frame(b"first"))
    scan = scan_records(np.frombuffer(TWO, np.uint8), stop, at=ScanStart(5, 1000), left=len(TWO))
    whole = 2 if stop == len(TWO) else int(stop >= first)
    assert len(scan.payloads) == whole
    assert scan.broken is None
    assert scan.consumed == (0, first, len(TWO))[whole]
    rest = stop - scan.consumed
    record = (first, len(TWO) - first, 0)[whole]
    assert scan.wanted == (0 if whole == 2 else 12 if rest < 12 else record)


def test_numbers_and_offsets_of_a_piece_count_from_its_place_in_the_file() -> None:
    data = frame(b"bad!").replace(b"bad!", b"BAD!") + b"?" * 12
    scan = scan_records(np.frombuffer(data, np.uint8), at=ScanStart(5, 1000), left=12 + len(data))
    assert [(d.record, d.offset) for d in scan.damages] == [(5, 1000)]
    assert scan.broken == Damage(6, 1020, "the checksum of its length is wrong")


def test_a_header_is_known_by_its_checksum() -> None:
    assert is_record_header(TWO)
    assert not is_record_header(TWO[:11])
    assert not is_record_header(b"\x1f\x8b\x08" + bytes(20))
