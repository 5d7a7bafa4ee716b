from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.tfrecord.framing import (
    add_digests,
    crc32c,
    crc32c_combine,
    crc32c_each,
    crc32c_of_lengths,
    crc32c_range,
    crc32c_shift_each,
    crc32c_through,
    mask,
    mask_each,
    record_digests,
    unmask,
)


def slow_crc32c(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def slow_mix(length: int, crc: int) -> int:
    seed = (length << 32 | crc) % 2**64
    outputs = []
    for step in (1, 2):
        z = (seed + step * 0x9E3779B97F4A7C15) % 2**64
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        outputs.append(z ^ (z >> 31))
    return outputs[0] << 64 | outputs[1]


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0x00000000),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # this one and the next two: RFC 3720, B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_the_checksum_is_castagnolis(data: bytes, crc: int) -> None:
    assert crc32c(data) == crc
    assert slow_crc32c(data) == crc


def test_the_masked_checksum_is_the_formats() -> None:
    assert mask(0) == 0xA282EAD8
    assert mask(0xE3069283) == 0xC78AB0E5


@given(st.integers(0, 2**32 - 1))
def test_unmasking_undoes_masking(crc: int) -> None:
    assert unmask(mask(crc)) == crc
    assert mask_each(np.array([crc], np.uint32)).tolist() == [mask(crc)]


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_checksums_of_parts_combine_to_that_of_the_whole(first: bytes, second: bytes) -> None:
    assert crc32c_combine(crc32c(first), crc32c(second), len(second)) == crc32c(first + second)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_the_checksum_of_a_range_follows_from_two_prefixes(before: bytes, rest: bytes) -> None:
    assert crc32c_range(crc32c(before), crc32c(before + rest), len(rest)) == crc32c(rest)


def test_lengths_beyond_32_bits_combine_in_one_step_as_in_two() -> None:
    half, size = crc32c(bytes(1 << 20)), 1 << 20
    while size < 1 << 33:
        half, size = crc32c_combine(half, half, size), size * 2
    start = crc32c(b"x")
    in_two_steps = crc32c_combine(crc32c_combine(start, half, size), half, size)
    assert in_two_steps == crc32c_combine(start, crc32c_combine(half, half, size), 2 * size)


@given(st.lists(st.integers(0, 2**63 - 1), max_size=20))
def test_the_checksums_of_lengths_are_those_of_their_eight_bytes(lengths: list[int]) -> None:
    expected = [crc32c(length.to_bytes(8, "little")) for length in lengths]
    assert crc32c_of_lengths(np.array(lengths, np.int64)).tolist() == expected


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_every_piece_of_a_buffer_gets_its_own_checksum(pieces: list[bytes]) -> None:
    lengths = np.array([len(piece) for piece in pieces], np.int64)
    assert crc32c_each(b"".join(pieces), lengths).tolist() == [slow_crc32c(piece) for piece in pieces]


@pytest.mark.parametrize("longest", [0, 1, 512, 513, 5000])
def test_pieces_of_any_length_and_number_get_their_checksums(longest: int) -> None:
    lengths = np.arange(1100) * longest // 1099
    data = np.random.default_rng(longest).bytes(int(lengths.sum()))
    ends = np.cumsum(lengths).tolist()
    expected = [crc32c(data[end - length : end]) for length, end in zip(lengths.tolist(), ends, strict=True)]
    assert crc32c_each(data, lengths).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 2**32 - 1)), max_size=20), st.integers(0, 20))
def test_digests_are_a_sum_of_mixes_that_neither_order_nor_cuts_change(
    records: list[tuple[int, int]], cut: int
) -> None:
    def digest(part: list[tuple[int, int]]) -> int:
        lengths = np.array([length for length, _ in part], np.int64)
        return record_digests(lengths, np.array([crc for _, crc in part], np.uint32))

    assert digest(records) == sum(slow_mix(*record) for record in records) % 2**128
    assert digest(records[::-1]) == digest(records)
    assert add_digests([digest(records[:cut]), digest(records[cut:])]) == digest(records)


def test_the_digest_of_a_record_is_frozen() -> None:
    lengths, crcs = np.array([0, 9], np.int64), np.array([0, 0xE3069283], np.uint32)
    assert f"{record_digests(lengths[:1], crcs[:1]):032x}" == "e220a8397b1dcdaf6e789e6aa1b965f4"
    assert f"{record_digests(lengths, crcs):032x}" == "4db82243781ffe96a0073bd61edf22d5"


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 10**10)), min_size=1, max_size=20))
def test_many_checksums_are_shifted_as_one_is_and_back(pieces: list[tuple[bytes, int]]) -> None:
    crcs = np.array([crc32c(data) for data, _ in pieces], np.uint32)
    lengths = np.array([length for _, length in pieces], np.int64)
    shifted = crc32c_shift_each(crcs, lengths)
    assert shifted.tolist() == [crc32c_combine(crc32c(data), 0, length) for data, length in pieces]
    assert crc32c_shift_each(shifted, -lengths).tolist() == crcs.tolist()


@given(st.lists(st.binary(max_size=40)), st.lists(st.binary(max_size=40), min_size=1, max_size=20))
def test_checksums_up_to_some_ends_follow_from_those_of_the_pieces(front: list[bytes], pieces: list[bytes]) -> None:
    crcs = np.array([crc32c(piece) for piece in pieces], np.uint32)
    ends = np.cumsum([len(piece) for piece in pieces])
    through = crc32c_through(crc32c(b"".join(front)), crcs, ends, np.arange(len(pieces)))
    assert through.tolist() == [crc32c(b"".join([*front, *pieces[: i + 1]])) for i in range(len(pieces))]
