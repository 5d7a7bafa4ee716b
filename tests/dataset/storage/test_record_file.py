from __future__ import annotations

import gzip
import os
import random
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import crc32c
import pytest
from shardmill.transforms.dataset.storage.record_file import read_record_batches, read_records, write_records
from shardmill.transforms.errors import DamageError, InputError, UsageError
from shardmill.transforms.format.tfrecord.gzip_members import InflateLimits, compress_member
from shardmill.transforms.format.tfrecord.scan import Damage

MIB = 1 << 20


def masked(data: bytes) -> bytes:
    crc = crc32c.crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


SMALL = [b"", b"one", b"x" * 300, b""]
NOISE = random.Random(2).randbytes(9 * MIB)
LARGE = [b"a", NOISE, b"b" * 1000, NOISE[: 4 * MIB], b""]  # records above, at and below the size of a piece
MANY = [b"%d" % i * (i % 40) for i in range(50_000)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records"


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("records", [[], SMALL, LARGE, MANY], ids=["none", "small", "large", "many"])
def test_records_come_back_as_they_were_written(path: Path, records: list[bytes], compression: str) -> None:
    write_records(path, records, compression)  # type: ignore[arg-type]
    assert list(read_records(path)) == records
    plain = b"".join(map(frame, records))
    content = path.read_bytes()
    assert (gzip.decompress(content) if compression == "gzip" else content) == plain


def test_a_written_file_has_these_bytes(path: Path) -> None:
    write_records(path, [b"abc"])
    assert path.read_bytes().hex() == "0300000000000000b099490e6162636e57f121"


def test_gzip_members_end_at_records_after_a_mebibyte(path: Path) -> None:
    write_records(path, [b"r" * 1000] * 3000, "gzip")
    rest, sizes = path.read_bytes(), []
    while rest:
        member = zlib.decompressobj(31)
        sizes.append(len(member.decompress(rest)))
        rest = member.unused_data
    assert sizes == [1033 * 1016, 1033 * 1016, (3000 - 2 * 1033) * 1016]


@pytest.mark.parametrize("name", ["wrong.gz", "wrong.tfrecord"])
def test_content_and_not_the_name_tells_how_a_file_is_compressed(tmp_path: Path, name: str) -> None:
    write_records(tmp_path / name, SMALL, "none" if name.endswith("gz") else "gzip")
    assert list(read_records(tmp_path / name)) == SMALL


def test_a_zlib_file_is_read(path: Path) -> None:
    path.write_bytes(zlib.compress(b"".join(map(frame, SMALL))))
    assert list(read_records(path)) == SMALL


def test_a_plain_file_may_begin_with_gzip_magic_bytes(path: Path) -> None:
    records = [bytes(0x088B1F), b"x"]
    write_records(path, records)
    assert path.read_bytes()[:3] == b"\x1f\x8b\x08"
    assert list(read_records(path)) == records


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_runs_say_where_their_records_are(path: Path, compression: str) -> None:
    write_records(path, LARGE + MANY, compression)  # type: ignore[arg-type]
    plain = b"".join(map(frame, LARGE + MANY))
    number, offset = 0, 0
    for run in read_record_batches(path):
        assert (run.first_record, run.offset) == (number, offset)
        for at, record in zip(run.offsets.tolist(), run.payloads, strict=True):
            assert plain[at + 12 : at + 12 + len(record)] == record
        assert run.to_arrow().to_pylist() == (LARGE + MANY)[number : number + len(run)]
        assert run.crcs[0] == crc32c.crc32c((LARGE + MANY)[number])
        number, offset = number + len(run), run.end
    assert (number, offset) == (len(LARGE + MANY), len(plain))


def test_reading_can_begin_at_a_record(path: Path) -> None:
    write_records(path, SMALL)
    start = len(frame(SMALL[0]) + frame(SMALL[1]))
    (run,) = read_record_batches(path, start, first_record=3)
    assert (run.first_record, run.offset, list(run.payloads)) == (3, start, SMALL[2:])


def test_reading_can_begin_at_a_gzip_member(path: Path) -> None:
    write_records(path, SMALL, "gzip")
    start = path.stat().st_size
    path.write_bytes(path.read_bytes() * 2)
    (run,) = read_record_batches(path, start, first_record=5)
    assert (run.first_record, run.offset, list(run.payloads)) == (5, 0, SMALL)


def test_damage_names_the_file_the_record_its_offset_and_the_reason(path: Path) -> None:
    content = bytearray(frame(b"good") + frame(b"SECRET payload") + frame(b"good"))
    content[35] ^= 1
    path.write_bytes(content)
    records = read_records(path)
    assert next(records) == b"good"
    with pytest.raises(DamageError) as caught:
        next(records)
    assert str(caught.value) == f"{path}: record 1 at byte 20: the checksum of its data is wrong"
    assert list(read_records(path, check_crc=False))[2] == b"good"


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_every_cut_of_a_file_but_one_between_records_is_damage(path: Path, compression: str) -> None:
    write_records(path, [b"first", b"the second"], compression)  # type: ignore[arg-type]
    content = path.read_bytes()
    for cut in range(1, len(content)):
        path.write_bytes(content[:cut])
        if compression == "none" and cut == len(frame(b"first")):
            assert list(read_records(path)) == [b"first"]
            continue
        with pytest.raises(DamageError, match=r"record [012] at byte (0|21|47): "):
            list(read_records(path))


def test_a_gzip_file_cut_at_a_record_without_its_end_is_damage(path: Path) -> None:
    plain = frame(b"first") + frame(b"second")
    path.write_bytes(gzip.compress(plain)[:-8])
    with pytest.raises(DamageError, match="the gzip stream is cut: its end and its checksum are missing"):
        list(read_records(path))


def test_a_gzip_file_cut_within_a_record_tells_both_places(path: Path) -> None:
    write_records(path, [b"first", NOISE[:5000]], "gzip")
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(DamageError, match=r"record 1 at byte 21: byte 3000 of the compressed file: the gzip stream is"):
        list(read_records(path))


def test_a_bomb_of_one_record_is_refused_in_bounded_memory(path: Path) -> None:
    length = struct.pack("<Q", 900 * MIB)
    path.write_bytes(compress_member(length + masked(length) + bytes(256 * MIB)))
    limits = InflateLimits(ratio=100, ratio_from_bytes=16 * MIB)
    tracemalloc.start()
    with pytest.raises(DamageError, match=r"record 0 at byte 0: .*a decompression bomb"):
        list(read_records(path, inflate_limits=limits))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 96 * MIB


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_length_that_lies_allocates_nothing(path: Path, compression: str) -> None:
    length = struct.pack("<Q", 1 << 29)
    content = frame(b"ok") + length + masked(length) + b"and little more"
    path.write_bytes(gzip.compress(content) if compression == "gzip" else content)
    tracemalloc.start()
    with pytest.raises(DamageError, match=r"record 1 at byte 18: its data is cut: it takes 536870928 bytes, and 27"):
        list(read_records(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * MIB


@pytest.mark.thorough("a record of a gibibyte")
def test_a_record_over_a_gibibyte_is_read_where_its_bytes_are_there(path: Path) -> None:
    length = (1 << 30) + 1
    head = struct.pack("<Q", length)
    with open(path, "wb") as file:
        file.write(head + masked(head))
        file.truncate(length + 16)  # a hole: nothing is on the disk
    (run,) = read_record_batches(path, check_crc=False)
    assert (run.payloads.ends - run.payloads.starts).tolist() == [length]


def test_collected_damage_lets_the_other_records_through(path: Path) -> None:
    content = bytearray(b"".join(map(frame, [b"good", b"bad1", b"good", b"bad2", b"last"])) + b"tail")
    content[20 + 12] ^= 1
    content[60 + 12] ^= 1
    path.write_bytes(content)
    found: list[Damage] = []
    records = {
        run.first_record + row: record
        for run in read_record_batches(path, on_damage=found.append)
        for row, record in enumerate(run.payloads)
        if row not in run.damaged
    }
    assert records == {0: b"good", 2: b"good", 4: b"last"}
    assert [(d.record, d.offset) for d in found] == [(1, 20), (3, 60), (5, 100)]


def test_a_file_that_grew_while_it_was_read_is_read_as_it_was(path: Path) -> None:
    write_records(path, LARGE)
    runs = read_record_batches(path)
    seen = list(next(runs).payloads)
    with open(path, "ab") as file:
        file.write(frame(b"later"))
    seen += [record for run in runs for record in run.payloads]
    assert seen == LARGE


def test_a_file_that_shrank_while_it_was_read_is_damage(path: Path) -> None:
    write_records(path, LARGE)
    runs = read_record_batches(path)
    next(runs)
    os.truncate(path, 8 * MIB)
    with pytest.raises(DamageError, match=r"record 1 at byte 17: its data is cut"):
        list(runs)


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("fifo", "."):
        with pytest.raises(InputError, match="not a regular file"):
            next(read_records(tmp_path / name))
    with pytest.raises(InputError, match=r"gone: cannot be read: No such file"):
        next(read_records(tmp_path / "gone"))


def test_names_of_files_are_made_printable(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\x1b[2J\n"
    with open(path, "wb") as file:
        file.write(b"garbage of some length")
    with pytest.raises(DamageError) as caught:
        list(read_records(path))
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)


def failing(records: list[bytes]) -> Iterator[bytes]:
    yield from records
    raise KeyboardInterrupt


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_an_interrupted_write_leaves_the_old_file(path: Path, compression: str) -> None:
    write_records(path, [b"old"])
    with pytest.raises(KeyboardInterrupt):
        write_records(path, failing(MANY), compression)  # type: ignore[arg-type]
    assert list(read_records(path)) == [b"old"]
    assert os.listdir(path.parent) == ["records"]


def test_only_bytes_are_records(path: Path) -> None:
    with pytest.raises(TypeError, match="record 50000 is str, not bytes"):
        write_records(path, [*MANY, "b"])  # type: ignore[list-item]
    assert not path.exists()


def test_an_unknown_compression_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="compression 'lz4' is not known; choose none or gzip"):
        write_records(path, [], "lz4")  # type: ignore[arg-type]
