from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.sources.parquet.pages import ThriftError, ThriftReader


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_wanted_numbers_are_kept_and_all_else_is_skipped() -> None:
    data = bytes.fromhex(
        "15 02"  # field 1, int32 1
        "18 03 61 62 63"  # field 2, binary "abc"
        "19 25 02 04"  # field 3, list of two int32
        "11 12"  # fields 4 and 5, true and false
        "1c 16 08 00"  # field 6, struct of field 1, int64 4
        "1b 01 58 0e 01 7a"  # field 7, map of int32 7 to binary "z"
        "17 0102030405060708"  # field 8, double
        "13 09"  # field 9, byte
        "16 05"  # field 10, int64 -3
        "06 c801 07"  # field 100 by its number, int64 -4
        "00"
    )
    assert ThriftReader(data).numbers(frozenset({1, 10, 100})) == {1: 1, 10: -3, 100: -4}


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_zigzag_varints(value: int) -> None:
    assert ThriftReader(varint((value << 1) ^ (value >> 63))).number() == value


BROKEN = {
    "no end of the struct": bytes.fromhex("1502"),
    "a binary longer than the data": bytes.fromhex("18ff7f6100"),
    "a list longer than the data": bytes.fromhex("19f5ffffffff0f00"),
    "a type that does not exist": bytes.fromhex("1d00"),
    "a number of eleven bytes": bytes.fromhex("15" + "ff" * 10 + "0100"),
    "structs in structs without end": bytes.fromhex("1c" * 5000),
    "lists in lists without end": bytes.fromhex("19" * 5000),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_data_is_an_error(case: str) -> None:
    with pytest.raises(ThriftError):
        ThriftReader(BROKEN[case]).numbers(frozenset())


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_are_an_error(data: bytes) -> None:
    try:
        found = ThriftReader(data).numbers(frozenset({1}))
    except ThriftError:
        return
    assert set(found) <= {1}
