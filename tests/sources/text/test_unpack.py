from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from shardmill.transforms.errors import SourceError
from shardmill.transforms.sources.text.open_text import sniff_packing, unpacked

RAW = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(20_000))


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
}

every_packing = pytest.mark.parametrize("packing", PACK)


def in_blocks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def unpack(data: bytes, packing: str, size: int = 4096) -> bytes:
    return b"".join(unpacked(in_blocks(data, size), packing, "a.csv"))


@every_packing
@pytest.mark.parametrize("size", [7, 4096, 1 << 20])
def test_streams_that_follow_each_other_are_one_text_however_they_are_read(packing: str, size: int) -> None:
    data = PACK[packing](RAW) + PACK[packing](b"") + PACK[packing](b"end")
    assert sniff_packing(data[:10]) == packing
    assert unpack(data, packing, size) == RAW + b"end"


@every_packing
def test_a_stream_that_is_cut_anywhere_is_an_error_with_the_name_of_its_file(packing: str) -> None:
    data = PACK[packing](RAW[:2000])
    for size in range(1, len(data), 1 if len(data) < 400 else 7):
        with pytest.raises(SourceError, match=r"^a\.csv: .* stream is cut: its end"):
            unpack(data[:size], packing)
    with pytest.raises(SourceError, match=r"^a\.csv: .* stream is cut: its end"):
        unpack(data + data[:-1], packing)


@every_packing
@pytest.mark.parametrize("extra", [b"garbage", b"\n", b"a,b\n1,2\n" * 10])
def test_bytes_after_the_end_that_are_no_stream_are_an_error(packing: str, extra: bytes) -> None:
    with pytest.raises(SourceError, match=r"^a\.csv: "):
        unpack(PACK[packing](RAW) + extra, packing)


@pytest.mark.parametrize("packing", ["gzip", "bzip2", "xz"])  # frames of zstd that Arrow makes have no checksum
def test_a_bit_that_is_flipped_in_the_data_is_an_error(packing: str) -> None:
    data = bytearray(PACK[packing](RAW))
    data[len(data) // 2] ^= 4
    with pytest.raises(SourceError, match=r"^a\.csv: "):
        unpack(bytes(data), packing)


def test_a_frame_of_zstd_with_a_wrong_checksum_is_an_error() -> None:
    frame = bytes.fromhex("28b52ffd0400190000612c620a")  # "a,b" and a line end, one raw block, its checksum flagged
    with pytest.raises(SourceError, match=r"^a\.csv: the compressed file is damaged, .*checksum"):
        unpack(frame + bytes(4), "zstd")


def test_xz_may_be_filled_up_with_zeros_between_its_streams_and_at_its_end() -> None:
    assert unpack(lzma.compress(b"a") + bytes(8) + lzma.compress(b"b") + bytes(4), "xz", 3) == b"ab"


@every_packing
def test_no_more_than_a_mebibyte_comes_out_at_a_time(packing: str) -> None:
    pieces = [len(piece) for piece in unpacked([PACK[packing](bytes(5 << 20))], packing, "a.csv")]
    assert sum(pieces) == 5 << 20
    assert max(pieces) <= 1 << 20


@every_packing
def test_an_error_of_the_file_comes_through_as_it_is(packing: str) -> None:
    def blocks() -> Iterator[bytes]:
        yield PACK[packing](RAW)[:100]
        raise SourceError("a.csv", "cannot be read: Input/output error")

    with pytest.raises(SourceError, match=r"^a\.csv: cannot be read: Input/output error$"):
        list(unpacked(blocks(), packing, "a.csv"))


def test_text_that_only_begins_like_a_packed_file_is_text() -> None:
    assert [sniff_packing(head) for head in (b"BZh9,name,x\n", b"7zXZ,b\n1,2\n", b"id,name\n1,2", b"")] == [None] * 4
