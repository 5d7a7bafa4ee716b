from __future__ import annotations

import gzip
import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.dataset.integrity.record_walk import DamagedRange, RecordWalk, walk_records
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.format.tfrecord.framing import frame_records
from shardmill.transforms.format.tfrecord.gzip_members import compress_member
from shardmill.transforms.format.tfrecord.scan import ScanStart

from ...tiers import examples


class Bytes:
    """Bytes that are read forward, their number known or not."""

    def __init__(self, data: bytes, *, known: bool) -> None:
        self.data, self.offset = data, 0
        self.left = len(data) if known else None

    def read_into(self, target: memoryview) -> int:
        piece = self.data[self.offset : self.offset + len(target)]
        target[: len(piece)] = piece
        self.offset += len(piece)
        if self.left is not None:
            self.left -= len(piece)
        return len(piece)


def framed(records: list[bytes]) -> bytes:
    return b"".join(map(bytes, frame_records(pa.array(records, pa.large_binary())).buffers))


def walk(data: bytes, *, known: bool = True) -> tuple[list[tuple[int, bytes]], list[DamagedRange]]:
    """Return the records that are found, each with its offset, and the damages."""
    records, damages = [], []
    for event in RecordWalk(Bytes(data, known=known), ScanStart()).events():
        if isinstance(event, DamagedRange):
            damages.append(event)
        else:
            records += list(zip(event.offsets.tolist(), event.payloads, strict=True))
    return records, damages


def found_in(path: Path) -> tuple[list[bytes], list[DamagedRange]]:
    records, damages = [], []
    for event in walk_records(path):
        if isinstance(event, DamagedRange):
            damages.append(event)
        else:
            records += list(event.payloads)
    return records, damages


@dataclass(frozen=True)
class Damaged:
    """Records, where each begins in the damaged bytes that were made of them, and whether it is untouched there."""

    records: list[bytes]
    data: bytes
    places: list[int]
    untouched: list[bool]


@st.composite
def damaged_files(draw: st.DrawFn) -> Damaged:
    """Draw records and damages: bytes flipped, set to zero, put in; and the file cut."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.sampled_from([0, 1, 20, 100, 230, 1000, 5000]), min_size=1, max_size=40))
    records = [rng.randbytes(size) for size in sizes]
    data = bytearray(framed(records))
    origin = list(range(len(data)))  # where each byte stood; -1: it is damaged, or new
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["flip", "zero", "insert"]))
        at, size = rng.randrange(len(data)), rng.choice([1, 1, 2, 12, 60, 700])
        if kind == "insert":
            data[at:at] = rng.randbytes(size)
            origin[at:at] = [-1] * size
            continue
        for place in range(at, min(at + size, len(data))):
            before = data[place]
            data[place] = 0 if kind == "zero" else before ^ rng.randrange(1, 256)
            if data[place] != before:
                origin[place] = -1
    if draw(st.booleans()):
        stop = rng.randrange(len(data))
        del data[stop:], origin[stop:]
    where = {place: now for now, place in enumerate(origin) if place >= 0}
    places, untouched, start = [], [], 0
    for record in records:
        end = start + len(record) + 16
        now = where.get(start, -1)
        places.append(now)
        untouched.append(now >= 0 and all(where.get(place) == now + place - start for place in range(start, end)))
        start = end
    return Damaged(records, bytes(data), places, untouched)


@settings(max_examples=examples(300))
@given(damaged_files(), st.booleans())
def test_every_record_that_no_damage_touches_is_found_byte_for_byte_and_no_other_bytes_are(
    damaged: Damaged, known: bool
) -> None:
    found, damages = walk(damaged.data, known=known)
    offsets = [offset for offset, _ in found]
    assert offsets == sorted(set(offsets))
    wanted = {
        place: r for place, r, whole in zip(damaged.places, damaged.records, damaged.untouched, strict=True) if whole
    }
    assert wanted.items() <= dict(found).items()
    rest = iter(damaged.records)
    assert all(payload in rest for _, payload in found), "a record that was never there, or not in its order"
    covered = sorted([(o, o + len(p) + 16) for o, p in found] + [(d.offset, d.end) for d in damages if not d.recovered])
    assert [start for start, _ in covered] == [0, *(end for _, end in covered)][: len(covered)]
    assert (covered[-1][1] if covered else 0) == len(damaged.data)
    lost = len(damaged.records) - len(found)
    assert sum(damage.records for damage in damages) <= lost


RECORDS = [bytes([65 + number]) * 50 for number in range(10)]
FRAME = 66


def test_what_is_wrong_with_each_record_is_told_with_its_place() -> None:
    data = bytearray(framed(RECORDS))
    data[2 * FRAME + 30] ^= 1
    data[4 * FRAME : 4 * FRAME + 40] = bytes(40)
    data[7 * FRAME + 3] ^= 1
    found, damages = walk(bytes(data))
    assert [payload for _, payload in found] == [r for i, r in enumerate(RECORDS) if i not in (2, 4)]
    assert damages == [
        DamagedRange(2, 2 * FRAME, 3 * FRAME, "the checksum of its data is wrong", 1),
        DamagedRange(4, 4 * FRAME, 5 * FRAME, "zeros where it should begin", 0),
        DamagedRange(
            7, 7 * FRAME, 8 * FRAME, "the checksum of its length is wrong; its data are whole", recovered=True
        ),
    ]


@pytest.mark.parametrize("byte", range(12))
def test_a_record_is_found_whatever_becomes_of_its_header(byte: int) -> None:
    for wrong in (bytes([0xFF]), bytes(12 - byte), bytes(range(200, 212 - byte))):
        data = bytearray(framed(RECORDS))
        data[3 * FRAME + byte : 3 * FRAME + byte + len(wrong)] = wrong
        found, (damage,) = walk(bytes(data))
        assert [payload for _, payload in found] == RECORDS
        assert (damage.record, damage.offset, damage.end, damage.recovered) == (3, 3 * FRAME, 4 * FRAME, True)


def test_records_after_bytes_that_were_cut_out_of_one_are_found() -> None:
    rng = random.Random(1)
    records = [rng.randbytes(rng.randrange(20, 400)) for _ in range(50)]
    ends = np.cumsum([len(record) + 16 for record in records])
    data = framed(records)
    start = int(ends[19]) + 14
    found, damages = walk(data[:start] + data[start + 15 :])
    assert [payload for _, payload in found] == records[:20] + records[21:]
    assert [(damage.record, damage.records) for damage in damages] == [(20, 1)]


INNER = framed([b"inner %d" % number for number in range(20)])
OUTER = [b"a" * 40, b"\n\x99" + INNER + b"end", b"c" * 50, INNER, b"e" * 60]


@pytest.mark.parametrize("outer", [1, 3])
@pytest.mark.parametrize("kind", ["header", "length", "data", "footer", "data and next header", "cut"])
def test_records_inside_of_a_record_are_never_taken_for_those_of_the_file(outer: int, kind: str) -> None:
    data = bytearray(framed(OUTER))
    start = sum(len(record) + 16 for record in OUTER[:outer])
    end = start + len(OUTER[outer]) + 16
    if kind == "header":
        data[start : start + 12] = b"\xaa" * 12
    elif kind == "length":
        data[start : start + 8] = b"\xaa" * 8
    elif kind == "footer":
        data[end - 1] ^= 1
    elif kind == "cut":
        del data[end - 100 :]
    else:
        data[start + 40] ^= 1
    if kind == "data and next header":
        data[end : end + 12] = b"\xaa" * 12
    found, _ = walk(bytes(data))
    payloads = [payload for _, payload in found]
    whole = {"header", "length"}
    assert payloads == [
        r for i, r in enumerate(OUTER) if (i < outer or kind != "cut") and (i != outer or kind in whole)
    ]


def test_a_length_that_is_a_lie_takes_no_memory_and_no_record() -> None:
    from shardmill.transforms.format.tfrecord.framing import header_words

    for length in (1 << 29, 1 << 40, (1 << 62) - 1):
        lie = header_words(np.array([length], np.int64)).tobytes()
        data = framed(RECORDS[:3]) + lie + b"x" * 30 + framed(RECORDS[3:])
        found, damages = walk(data)
        # Within what the length claims, nothing is believed; beyond the limit it is no length.
        assert [payload for _, payload in found] == (RECORDS[:3] if length == 1 << 29 else RECORDS)
        assert damages[0].offset == 3 * FRAME


@pytest.mark.parametrize("data", [bytes(3 << 20), b"\xff" * (3 << 20), b"x" * 11, b"\0"])
def test_bytes_without_a_record_are_one_damage(data: bytes) -> None:
    found, (damage,) = walk(data)
    assert (found, damage.offset, damage.end) == ([], 0, len(data))


def test_records_behind_much_garbage_are_found() -> None:
    data = random.Random(2).randbytes(40 << 20)
    found, (damage,) = walk(data + framed(RECORDS))
    assert [payload for _, payload in found] == RECORDS
    assert (damage.offset, damage.end) == (0, 40 << 20)


@pytest.mark.parametrize("length", [1 << 20, 1 << 22, 1 << 29])
def test_a_hundred_thousand_headers_of_long_records_are_passed_in_time(length: int) -> None:
    from shardmill.transforms.format.tfrecord.framing import header_words

    lies = header_words(np.array([length], np.int64)).tobytes() * (1 << 17)
    began = time.process_time()
    found, damages = walk(framed(RECORDS) + lies + bytes(1 << 20))
    assert [payload for _, payload in found] == RECORDS
    assert damages
    assert time.process_time() - began < 10  # 2 s; without a bound, minutes


MEMBER = [random.Random(number).randbytes(300) + bytes(500) for number in range(50)]


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_records_of_the_gzip_members_before_the_first_damage_are_all_found(
    tmp_path_factory: pytest.TempPathFactory, seed: int, damages: int
) -> None:
    rng = random.Random(seed)
    groups = [[rng.randbytes(rng.randrange(10, 400)) for _ in range(rng.randrange(1, 30))] for _ in range(8)]
    members = [compress_member(framed(group)) for group in groups]
    touched = {rng.randrange(8) for _ in range(damages)}
    changed = list(members)
    for number in touched:
        member = bytearray(members[number])
        size = rng.choice([1, 1, 5, 60])
        at = rng.randrange(len(member))
        member[at : at + size] = rng.randbytes(len(member[at : at + size]))
        changed[number] = bytes(member)
    path = tmp_path_factory.mktemp("gz") / "x.tfrecord.gz"
    path.write_bytes(b"".join(changed))
    found, _ = found_in(path)
    rest = iter([record for group in groups for record in group])
    assert all(record in rest for record in found)
    first = next((n for n in range(8) if changed[n] != members[n]), 8)
    kept = [record for group in groups[:first] for record in group]
    rest = iter(found)
    assert all(record in rest for record in kept)


def test_members_of_many_megabytes_follow_each_other_without_a_damage(tmp_path: Path) -> None:
    records = [bytes([number]) * (3 << 20) for number in range(3)]
    path = tmp_path / "large.tfrecord.gz"
    path.write_bytes(b"".join(gzip.compress(framed([record])) for record in records))
    assert found_in(path) == (records, [])


def test_a_cut_gzip_file_gives_all_records_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord.gz"
    write_records(path, MEMBER, "gzip")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    found, (damage,) = found_in(path)
    assert found == MEMBER[: len(found)]
    assert 20 <= len(found) < 50
    place = f"byte {len(whole) // 2} of the compressed file"
    assert damage.reason == f"{place}: the gzip stream is cut: its end and its checksum are missing"
    assert damage.record == len(found)


@pytest.mark.parametrize(("wrong", "intact"), [(slice(0, 10), 20), (slice(0, 1), 20), (slice(-8, None), 30)])
def test_a_gzip_member_without_its_header_or_checksum_ends_the_records(
    tmp_path: Path, wrong: slice, intact: int
) -> None:
    path = tmp_path / "x.tfrecord.gz"
    members = [compress_member(framed(MEMBER[start : start + 10])) for start in range(0, 50, 10)]
    changed = bytearray(members[2])
    changed[wrong] = b"\xaa" * len(changed[wrong])
    path.write_bytes(b"".join([*members[:2], changed, *members[3:]]))
    found, damages = found_in(path)
    assert found == MEMBER[:intact]
    assert len(damages) == 1


def test_a_gzip_file_inside_of_a_record_is_never_taken_for_a_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord.gz"
    noise = random.Random(3).randbytes(100_000)
    inner = compress_member(framed([noise[:50_000]]))
    groups = [[b"a" * 100], [noise, inner, noise], [b"c" * 100]]
    members = [compress_member(framed(group)) for group in groups]
    changed = bytearray(members[1])
    changed[60_000] ^= 0x10
    path.write_bytes(b"".join([members[0], changed, members[2]]))
    found, _ = found_in(path)
    assert [record for record in found if record not in (noise, inner)] == [b"a" * 100]


def test_a_plain_file_whose_first_length_looks_like_compression_is_read_as_plain(tmp_path: Path) -> None:
    records = [b"y" * 376, *RECORDS]  # 376 is 78 01, as a zlib stream begins
    path = tmp_path / "x.tfrecord"
    data = bytearray(framed(records))
    data[9] ^= 0xFF
    path.write_bytes(data)
    found, (damage,) = found_in(path)
    assert found == records
    assert damage.recovered
