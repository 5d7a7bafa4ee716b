from __future__ import annotations

import gzip
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.tfrecord.gzip_members import (
    InflateError,
    InflateLimits,
    compress_member,
    inflate,
    sniff_form,
)


def chunked(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def inflate_all(data: bytes, size: int = 1 << 16, limits: InflateLimits | None = None) -> bytes:
    return b"".join(inflate(chunked(data, size), limits=limits))


NOISE = random.Random(1).randbytes(3000)


@pytest.mark.parametrize("data", [b"", b"x", b"abc" * 1000, NOISE, bytes(3 << 20)], ids=len)
def test_other_gzip_readers_read_a_member(data: bytes) -> None:
    assert gzip.decompress(compress_member(data)) == data


def test_a_member_has_no_time_no_name_and_a_fixed_system() -> None:
    assert compress_member(b"data")[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    assert compress_member(b"data")[-8:] == zlib.crc32(b"data").to_bytes(4, "little") + b"\x04\x00\x00\x00"


@given(st.lists(st.binary(max_size=500), min_size=1))
def test_a_member_does_not_depend_on_how_its_input_is_cut(buffers: list[bytes]) -> None:
    assert compress_member(buffers) == compress_member(b"".join(buffers))


@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=5), st.integers(1, 300))
def test_members_are_read_as_one_stream_whatever_the_chunks(contents: list[bytes], size: int) -> None:
    assert inflate_all(b"".join(map(compress_member, contents)), size) == b"".join(contents)


def test_pieces_stay_small_whatever_a_chunk_becomes() -> None:
    pieces = list(inflate([compress_member(bytes(50 << 20))]))
    assert sum(map(len, pieces)) == 50 << 20
    assert max(map(len, pieces)) <= 1 << 20


TWO = compress_member(b"first member " * 20) + compress_member(NOISE[:200])
FIRST = len(compress_member(b"first member " * 20))


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_a_stream_cut_anywhere_but_between_members_is_refused(size: int) -> None:
    for cut in range(1, len(TWO)):
        if cut == FIRST:
            assert inflate_all(TWO[:cut], size) == b"first member " * 20
            continue
        with pytest.raises(InflateError):
            inflate_all(TWO[:cut], size)


def test_a_member_without_its_trailer_is_refused() -> None:
    with pytest.raises(InflateError, match=r"byte 21 .* the gzip stream is cut: its end and its checksum are missing"):
        inflate_all(compress_member(b"some data")[:-8], 5)


def test_a_flipped_bit_never_gives_other_data() -> None:
    data = b"first member " * 20 + NOISE[:200]
    accepted = 0
    for bit in range(8 * len(TWO)):
        damaged = bytearray(TWO)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            assert inflate_all(bytes(damaged)) == data
        except InflateError:
            continue
        accepted += 1
    # Bits that mean nothing: time, extra flags, system, reserved flags, and the padding of the last deflate byte.
    assert accepted < 2 * (10 + 2) * 8


@pytest.mark.parametrize("garbage", [b"\x00", b"\x1f", b"garbage", bytes(512)])
def test_what_follows_the_last_member_is_refused(garbage: bytes) -> None:
    with pytest.raises(InflateError, match=f"byte {len(TWO)} .*bytes that are not gzip data follow"):
        inflate_all(TWO + garbage)


def test_damage_names_where_its_member_begins() -> None:
    damaged = bytearray(TWO)
    damaged[-6] ^= 1
    with pytest.raises(InflateError, match=rf"byte {FIRST} .*member that begins here is damaged .*checksum"):
        inflate_all(bytes(damaged))


def test_a_wrong_size_in_the_trailer_is_refused() -> None:
    damaged = bytearray(compress_member(b"data"))
    damaged[-1] ^= 1
    with pytest.raises(InflateError):
        inflate_all(bytes(damaged))


def test_a_bomb_is_refused_by_its_ratio() -> None:
    bomb = compress_member(bytes(20 << 20))
    with pytest.raises(InflateError, match="more than 500 times as many: a decompression bomb"):
        inflate_all(bomb, limits=InflateLimits(ratio=500, ratio_from_bytes=1 << 20))
    assert len(inflate_all(bomb)) == 20 << 20


def test_a_bomb_of_half_a_mebibyte_is_refused_by_default() -> None:
    bomb = compress_member(bytes(500 << 20))
    assert len(bomb) < 600_000
    sizes: list[int] = []
    with pytest.raises(InflateError, match="bomb"):
        sizes.extend(len(piece) for piece in inflate(chunked(bomb, 1 << 16)))
    assert sum(sizes) < 300 << 20


def test_output_has_an_absolute_bound_on_request() -> None:
    with pytest.raises(InflateError, match="more than the 1000 bytes of output that are allowed"):
        inflate_all(compress_member(bytes(1001)), limits=InflateLimits(output_bytes=1000))
    assert len(inflate_all(compress_member(bytes(1000)), limits=InflateLimits(output_bytes=1000))) == 1000


def test_our_own_members_never_pass_the_default_ratio() -> None:
    assert (1 << 20) / len(compress_member(bytes(1 << 20))) < InflateLimits().ratio


def test_forms_are_told_by_their_magic_bytes() -> None:
    assert sniff_form(compress_member(b"")) == "gzip"
    assert [sniff_form(zlib.compress(b"", level)[:2]) for level in (0, 1, 6, 9)] == ["zlib"] * 4
    assert [sniff_form(head) for head in (b"", b"\x1f", b"\x78", b"\x78\x00", b"id,name")] == [None] * 5


def test_zlib_streams_are_read_and_must_end_too() -> None:
    data = zlib.compress(b"some data" * 100)
    assert b"".join(inflate([data], form="zlib")) == b"some data" * 100
    for wrong in (data[:-1], data + b"x", data[:-1] + b"?"):
        with pytest.raises(InflateError):
            list(inflate([wrong], form="zlib"))
