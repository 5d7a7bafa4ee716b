from __future__ import annotations

import io
import os
import struct
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.sources.archives.tar import Damage, Kind, Member, MemberError
from shardmill.transforms.sources.archives.zip import ZipArchive

from ...archives import zip_of


def opened(data: bytes) -> ZipArchive:
    return ZipArchive(lambda size, at: data[at : at + size], len(data))


def contents(data: bytes) -> list[tuple[str, bytes]]:
    archive = opened(data)
    return [
        (one.name.decode(errors="replace"), bytes(archive.read(one)))
        for one in archive.members(0, None)
        if one.kind is Kind.FILE
    ]


NAMES = st.text(st.characters(exclude_characters="\0\\/", exclude_categories=["Cs"]), min_size=1, max_size=40)
FILES = st.lists(st.tuples(NAMES, st.binary(max_size=900)), max_size=5, unique_by=lambda one: one[0])
METHODS = st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])


@given(files=FILES, method=METHODS, before=st.binary(max_size=20), comment=st.binary(max_size=20), wide=st.booleans())
def test_members_are_those_that_zipfile_wrote(
    files: list[tuple[str, bytes]], method: int, before: bytes, comment: bytes, wide: bool
) -> None:
    held = io.BytesIO()
    held.write(before)
    with zipfile.ZipFile(held, "w", method) as file:
        for name, data in files:
            with file.open(name, "w", force_zip64=wide) as member:
                member.write(data)
        file.comment = comment.replace(b"P", b"")
    assert contents(held.getvalue()) == files


@given(files=FILES.filter(len), cut=st.floats(0, 1, exclude_max=True))
def test_an_archive_that_is_cut_anywhere_is_damaged(files: list[tuple[str, bytes]], cut: float) -> None:
    data = zip_of(files)
    with pytest.raises(Damage) as damage:
        contents(data[: int(cut * len(data))])
    assert damage.value.of_all


@given(files=FILES.filter(len), place=st.integers(0, 100_000), value=st.integers(1, 255))
def test_a_changed_byte_never_changes_the_bytes_of_a_member(
    files: list[tuple[str, bytes]], place: int, value: int
) -> None:
    data = bytearray(zip_of(files))
    data[place % len(data)] ^= value
    try:
        found = contents(bytes(data))
    except (Damage, MemberError):
        return
    assert {held for _, held in found} <= {held for _, held in files}


def patched(data: bytes, mark: bytes, at: int, value: bytes) -> bytes:
    """Return an archive with a field of its last structure of a kind changed."""
    place = data.rfind(mark) + at
    return data[:place] + value + data[place + len(value) :]


ENTRY, END, HEADER = b"PK\x01\x02", b"PK\x05\x06", b"PK\x03\x04"
ONE = zip_of([("a.txt", bytes(range(100)))])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "is no zip archive"),
        (b"a text\n" * 30, "is no zip archive"),
        (ONE[:-1], "its central directory, which is at its end, is missing"),
        (ONE + b"x", "its central directory, which is at its end, is missing"),
        (patched(ONE, END, 12, b"\xff\xff\xff\x00"), "its central directory does not fit into it"),
        (patched(ONE, END, 10, b"\x02\x00"), "the central directory has 1 entries, and 2 by its end"),
        (patched(ONE, ENTRY, 0, b"PKxx"), "an entry of the central directory is damaged"),
        (patched(ONE, ENTRY, 28, b"\xff\x00"), "an entry of the central directory is cut"),
        (patched(ONE, ENTRY, 24, b"\xff\xff\xff\xff"), r"lacks its sizes \(zip64\)"),
        (patched(ONE, END, 4, b"\x01\x00"), "it is a part of an archive in several files"),
        (patched(ONE, END, 10, b"\xff\xff"), r"\(zip64\) is damaged"),
    ],
)
def test_a_damaged_directory_is_named(data: bytes, text: str) -> None:
    with pytest.raises(Damage, match=text):
        contents(data)


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        (patched(ONE, HEADER, 0, b"PKxx"), "CORRUPT", "has no header where the central directory says"),
        (patched(ONE, ENTRY, 16, b"1234"), "CORRUPT", "has not the size and checksum that the archive states"),
        (patched(ONE, ENTRY, 24, b"\x01\0\0\0"), "CORRUPT", "has not the size and checksum that the archive states"),
        (patched(ONE, ENTRY, 20, b"\xff\xff\0\0"), "TRUNCATED", "goes beyond the end of the archive"),
        (patched(ONE, ENTRY, 20, b"\x02\0\0\0"), "CORRUPT", "its deflated bytes end too soon"),
        (patched(ONE, ENTRY, 10, b"\x0c\0"), "UNSUPPORTED", "is packed by bzip2, which is not read"),
        (patched(ONE, HEADER, 40, b"\xff\xff\xff"), "CORRUPT", "header at byte 0"),
    ],
)
def test_a_damaged_member_is_named_by_the_offset_of_its_header(data: bytes, code: str, text: str) -> None:
    with pytest.raises(MemberError, match=text) as problem:
        contents(data)
    assert problem.value.code == code


@pytest.mark.parametrize("field", [20, 42])
def test_sizes_and_offsets_of_64_bits_that_no_file_has_are_beyond_the_end(tmp_path: Path, field: int) -> None:
    extra = struct.pack("<HHQ", 1, 8, (1 << 64) - 1)
    entry = ONE.rfind(ENTRY)
    data = patched(ONE, ENTRY, field, b"\xff\xff\xff\xff")
    data = patched(data, ENTRY, 30, struct.pack("<H", len(extra)))
    end = data.rfind(END)
    data = data[:end] + extra + data[end:]
    data = patched(data, END, 12, struct.pack("<L", end + len(extra) - entry))
    (tmp_path / "a.zip").write_bytes(data)
    with (tmp_path / "a.zip").open("rb") as file:
        archive = ZipArchive(partial(os.pread, file.fileno()), len(data))
        with pytest.raises(MemberError, match="goes beyond the end of the archive"):
            archive.read(next(archive.members(0, None)))


def test_a_member_that_unpacks_to_more_than_it_states_is_not_unpacked_further() -> None:
    bomb = patched(zip_of([("a.txt", bytes(50 << 20))]), ENTRY, 24, struct.pack("<L", 10))
    with pytest.raises(MemberError, match="has not the size and checksum"):
        contents(bomb)


def member_of(**changes: Any) -> Member:
    info = zipfile.ZipInfo(changes.pop("name", "a.jpg"))
    for key, value in changes.items():
        setattr(info, key, value)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as file:
        file.writestr(info, b"x")
    return next(opened(held.getvalue()).members(0, None))


def test_links_folders_devices_and_encrypted_members_are_known() -> None:
    assert member_of(create_system=3, external_attr=0o120777 << 16).kind is Kind.LINK
    assert member_of(create_system=3, external_attr=0o010644 << 16).kind is Kind.OTHER
    assert member_of(name="a/").kind is Kind.FOLDER
    encrypted = patched(ONE, ENTRY, 8, b"\x01\x00")
    assert next(opened(encrypted).members(0, None)).kind is Kind.ENCRYPTED


def test_names_are_utf_8_or_of_code_page_437_and_backslashes_of_windows_are_slashes() -> None:
    assert next(opened(zip_of([("é.jpg", b"")])).members(0, None)).name == "é.jpg".encode()
    dos = zip_of([("e.jpg", b"")]).replace(b"e.jpg", b"\x82.jpg")
    assert next(opened(dos).members(0, None)).name == "é.jpg".encode()
    assert member_of(name="a\\b.jpg", create_system=0).name == b"a/b.jpg"


def test_a_part_of_the_directory_is_read_by_its_offsets() -> None:
    data = zip_of([(f"{number}.txt", b"%d" % number) for number in range(9)])
    starts = [one.at for one in opened(data).members(0, None)]
    archive = opened(data)
    part = [bytes(archive.read(one)) for one in archive.members(starts[3], starts[6])]
    assert part == [b"3", b"4", b"5"]


def entry_of(name: bytes, header: int, size: int, packed: int, method: int = 0) -> bytes:
    fixed = (ENTRY, 20, 20, 0, method, 0, 0, 0, packed, size, len(name), 0, 0, 0, 0, 0, header)
    return struct.pack("<4s6H3L5H2L", *fixed) + name


def archive_of(data: bytes, entries: list[bytes]) -> bytes:
    directory = b"".join(entries)
    return (
        data + directory + struct.pack("<4s4H2LH", END, 0, 0, len(entries), len(entries), len(directory), len(data), 0)
    )


@pytest.mark.parametrize(("method", "packed"), [(0, 9), (0, 11), (0, 1 << 20), (8, 1 << 17)])
def test_a_member_whose_packed_size_does_not_fit_its_size_is_not_read(method: int, packed: int) -> None:
    data = archive_of(bytes(2 << 20), [entry_of(b"a.bin", 0, 10, packed, method)])
    read: list[int] = []

    def read_at(size: int, at: int) -> bytes:
        read.append(size)
        return data[at : at + size]

    archive = ZipArchive(read_at, len(data))
    (member,) = archive.members(0, None)
    read.clear()
    with pytest.raises(MemberError, match=f"{packed:,} bytes are packed there, and 10 unpacked") as refused:
        archive.read(member)
    assert (refused.value.code, read) == ("CORRUPT", [])


@pytest.mark.parametrize("headers", [[0, 0, 0], [0, 500, 520], [500, 0, 20], [500, 0, 500]])
def test_members_that_have_the_same_bytes_are_damage_before_they_are_read(headers: list[int]) -> None:
    entries = [entry_of(b"%d.bin" % number, at, 100, 100) for number, at in enumerate(headers)]
    with pytest.raises(Damage, match="two of its members have the same bytes") as refused:
        list(opened(archive_of(bytes(1000), entries)).members(0, None))
    assert refused.value.of_all


@pytest.mark.parametrize("headers", [[0, 200, 400], [400, 0, 200], [200, 400, 0]])
def test_members_may_be_in_any_order(headers: list[int]) -> None:
    entries = [entry_of(b"%d.bin" % number, at, 100, 100) for number, at in enumerate(headers)]
    members = opened(archive_of(bytes(1000), entries)).members(0, None)
    assert [member.header for member in members] == headers


@pytest.mark.parametrize("level", [1, 9])
def test_bytes_that_cannot_be_deflated_are_below_the_greatest_length(level: int) -> None:
    data = os.urandom(300_000)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as file:
        file.writestr("a.bin", data)
    assert contents(held.getvalue()) == [("a.bin", data)]
