from __future__ import annotations

import io
import tarfile
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.sources.archives.tar import BLOCK, Damage, Kind, PlainBytes, StreamBytes, TarArchive


def packed(files: list[tuple[str, bytes]], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def plain(data: bytes, window: int = 700) -> TarArchive:
    return TarArchive(PlainBytes(lambda size, at: data[at : at + size], len(data), window))


def streamed(data: bytes, block: int = 700) -> TarArchive:
    return TarArchive(StreamBytes(data[at : at + block] for at in range(0, len(data), block)))


def contents(archive: TarArchive) -> list[tuple[str, bytes]]:
    return [(one.name.decode(), bytes(archive.read(one))) for one in archive.members(0, None) if one.kind is Kind.FILE]


NAMES = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=90)
FILES = st.lists(st.tuples(NAMES, st.binary(max_size=1600)), max_size=5)
FORMS = st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])


@given(files=FILES, form=FORMS, block=st.integers(1, 3000), deep=st.booleans())
def test_members_are_those_that_tarfile_wrote_whatever_the_form_and_the_blocks(
    files: list[tuple[str, bytes]], form: int, block: int, deep: bool
) -> None:
    if deep:
        files = [("a" * 60 + "/" + name, data) for name, data in files]
    try:
        data = packed(files, form)
    except ValueError:  # ustar has no room for the name
        return
    assert contents(plain(data, block)) == files
    assert contents(streamed(data, block)) == files


@given(files=FILES.filter(len), cut=st.floats(0, 1, exclude_max=True), block=st.integers(1, 3000))
def test_an_archive_that_is_cut_anywhere_before_its_end_mark_is_damaged(
    files: list[tuple[str, bytes]], cut: float, block: int
) -> None:
    data = packed(files, tarfile.GNU_FORMAT)
    whole = plain(data)
    list(whole.members(0, None))
    short = data[: int(cut * whole.end)]
    for archive in (plain(short, block), streamed(short, block)):
        with pytest.raises(Damage) as damage:
            contents(archive)
        assert (damage.value.code, damage.value.offset) == ("TRUNCATED", len(short))


@given(files=FILES.filter(len), place=st.integers(0, 10_000), value=st.integers(1, 255))
def test_a_changed_byte_of_a_header_never_makes_an_archive_shorter(
    files: list[tuple[str, bytes]], place: int, value: int
) -> None:
    data = bytearray(packed(files, tarfile.GNU_FORMAT))
    starts = [member.header for member in plain(bytes(data)).members(0, None)]
    at = starts[place % len(starts)] + place % BLOCK
    data[at] ^= value
    try:
        read = len(contents(plain(bytes(data))))
    except Damage:
        return
    assert read == len(files)


def test_archives_one_after_the_other_are_read_as_one() -> None:
    one, other = packed([("a.txt", b"a")]), packed([("b.txt", b"b")])
    assert contents(plain(one + other)) == contents(streamed(one + other)) == [("a.txt", b"a"), ("b.txt", b"b")]


def test_bytes_after_the_end_mark_are_damage_with_their_offset() -> None:
    data = packed([("a.txt", b"a")])
    for archive in (plain(data + b"\0\0junk"), streamed(data + b"\0\0junk")):
        with pytest.raises(Damage, match="follow the end mark, which is at byte 1,024") as damage:
            contents(archive)
        assert (damage.value.offset, damage.value.cuts_sample) == (len(data) + 2, False)


def test_a_tar_header_that_is_damaged_is_named_by_its_offset() -> None:
    data = bytearray(packed([("a.txt", b"a"), ("b.txt", b"b")]))
    data[1024] ^= 1
    with pytest.raises(Damage, match="the header of a member is damaged") as damage:
        contents(plain(bytes(data)))
    assert (damage.value.offset, damage.value.code) == (1024, "CORRUPT")


@pytest.mark.parametrize("text", [b"no archive" * 200, b"id,name\n1,a\n" * 60])
def test_other_files_are_no_tar_archives(text: bytes) -> None:
    with pytest.raises(Damage, match="is no tar archive: its first 512 bytes are no header"):
        contents(plain(text))


@pytest.mark.parametrize(("text", "what"), [(b"", "it is empty"), (b"abc", "it is shorter than one header")])
def test_a_file_that_is_shorter_than_a_header_is_cut(text: bytes, what: str) -> None:
    with pytest.raises(Damage, match=what):
        contents(plain(text))


def test_links_folders_and_pipes_are_known_and_have_no_bytes() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind in (("d", tarfile.DIRTYPE), ("l.jpg", tarfile.SYMTYPE), ("h.jpg", tarfile.LNKTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, "/etc/passwd", 0
            tar.addfile(info)
        pipe = tarfile.TarInfo("p.jpg")
        pipe.type = tarfile.FIFOTYPE
        tar.addfile(pipe)
    kinds = [(one.name, one.kind) for one in plain(out.getvalue()).members(0, None)]
    assert kinds == [(b"d/", Kind.FOLDER), (b"l.jpg", Kind.LINK), (b"h.jpg", Kind.LINK), (b"p.jpg", Kind.OTHER)]


def test_sizes_that_octal_digits_cannot_hold_are_read() -> None:
    info = tarfile.TarInfo("big.jpg")
    info.size = 10 << 30
    header = info.tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(Damage, match=r'the last 10,737,418,240 bytes of its member "big.jpg" are missing'):
        contents(plain(header))


def test_a_pax_header_that_is_damaged_is_named() -> None:
    data = packed([("é" * 80, b"")])
    bad = data.replace(b"path=", b"path:")
    with pytest.raises(Damage, match="the extended header is damaged"):
        contents(plain(bad))


def test_pax_headers_before_a_member_are_kept_only_as_far_as_they_are_used() -> None:
    headers = []
    for number in range(64):
        info = tarfile.TarInfo("a.bin")
        info.pax_headers = {f"comment{number}": "x" * 900_000}
        headers.append(info.tobuf(tarfile.PAX_FORMAT)[:-BLOCK])
    data = b"".join(headers) + packed([("b.bin", b"abc")])
    tracemalloc.start()
    try:
        assert contents(plain(data)) == [("b.bin", b"abc")]
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
