"""Hostile archives: zip, tar, tar.gz, and what is in them."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from .hostile_file import SOUND, Holes, Hostile, setting
from .tables import ABOVE, FIELD, RECORD, keys, levels

Members = Mapping[str, bytes]


def zip_of(members: Members) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def tar_of(members: Members, *, packed: bool = False) -> bytes:
    file = io.BytesIO()
    with (
        tarfile.open(fileobj=file, mode="w:gz" if packed else "w", compresslevel=1)
        if packed
        else tarfile.open(fileobj=file, mode="w") as archive
    ):
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


ARCHIVES: Mapping[str, Callable[[Members], bytes]] = {
    "zip": zip_of, "tar": tar_of, "tar.gz": partial(tar_of, packed=True),
}  # fmt: skip


def zip_entry(name: bytes, *, packed: int, size: int, at: int = 0, method: int = 8, flags: int = 0) -> bytes:
    """Return an entry of a zip directory."""
    return struct.pack(
        "<4s6H3L5H2L", b"PK\x01\x02", 20, 20, flags, method, 0, 0, 0, packed, size, len(name), 0, 0, 0, 0, 0, at
    ) + name  # fmt: skip


def zip_end(entries: int, size: int, at: int) -> bytes:
    return struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, entries, entries, size, at, 0)


def packed_hole() -> Holes:
    """Return a zip archive with a member of ten bytes, which states that it has 3 GB packed."""
    size = 3 << 30
    entry = zip_entry(b"a.bin", packed=size, size=10)
    end = entry + zip_end(1, len(entry), size + 100)
    return Holes(size + 100 + len(end), {size + 100: end})


def shared() -> bytes:
    """Return a zip archive whose 300 members are the same bytes."""
    data = zlib.compress(bytes(1 << 20), 1, -15)
    header = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 8, 0, 0, 0, len(data), 1 << 20, 7, 0) + b"000.jpg"
    entries = b"".join(zip_entry(b"%03d.jpg" % i, packed=len(data), size=1 << 20) for i in range(300))
    return header + data + entries + zip_end(300, len(entries), len(header) + len(data))


def holes(members: int, size: int) -> Holes:
    """Return a tar archive of one sample, whose members are holes of the file."""
    parts, at = {}, 0
    for number in range(members):
        info = tarfile.TarInfo(f"1.{chr(97 + number // 26)}{chr(97 + number % 26)}.jpg")
        info.size = size
        parts[at] = info.tobuf()
        at += 512 + -(-size // 512) * 512
    return Holes(at + 1024, parts)


def tar_entry(name: bytes, kind: bytes, size: int, *, link: bytes = b"") -> bytes:
    head = bytearray(512)
    head[: len(name)] = name
    head[100:108], head[156:157], head[157 : 157 + len(link)] = b"0000644\0", kind, link
    head[124:136] = b"%011o\0" % size if size < 1 << 33 else b"\x80" + size.to_bytes(11, "big")
    head[257:265] = b"ustar\x0000"
    head[148:156] = b"        "
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def pax(size: int) -> bytes:
    """Return a tar archive whose one member has an extended header of so many bytes."""
    text = b"x" * (size - 20)
    record = b"%d comment=%b\n" % (len(text) + len(str(size)) + 10, text)
    padded = record + bytes(-len(record) % 512)
    return tar_entry(b"x", b"x", len(record)) + padded + tar_entry(b"a.txt", b"0", 1) + b"1" + bytes(511 + 1024)


def many_pax(count: int) -> bytes:
    one = b"19 comment=aaaaaaa\n"
    head = tar_entry(b"x", b"x", len(one)) + one + bytes(512 - len(one))
    return gzip.compress(head * count + tar_entry(b"a.txt", b"0", 1) + b"1" + bytes(511 + 1024), 1)


def archive_files() -> Iterator[Hostile]:
    for suffix, pack in ARCHIVES.items():
        yield from every_archive(suffix, pack)
    yield Hostile("hole.zip", 4, "bytes are packed there, and 10 unpacked", packed_hole)
    yield Hostile("shared.zip", 1, "two of its members have the same bytes", shared)
    yield Hostile("sample.tar", 4, "RECORD_TOO_LARGE", lambda: holes(12, 250 << 20))
    yield Hostile("pax.tar", 1, "a header of 1,048,", lambda: pax((1 << 20) + 100))
    yield Hostile("just.tar", 0, SOUND, lambda: pax(1 << 19))
    yield Hostile("pax.tar.gz", 0, SOUND, lambda: many_pax(20_000))
    yield Hostile(
        "name.tar", 1, "a header of 1,073,741,824 bytes", lambda: Holes(2 << 30, {0: tar_entry(b"x", b"L", 1 << 30)})
    )
    yield Hostile("size.tar", 1, "the archive is cut", lambda: tar_entry(b"a.txt", b"0", 1 << 60) + bytes(9999))
    yield Hostile(
        "link.tar",
        4,
        "is a link, which is not followed",
        lambda: tar_entry(b"a.txt", b"2", 0, link=b"/etc/passwd") + bytes(1024),
    )
    yield Hostile("device.tar", 4, "is no regular file", lambda: tar_entry(b"a.txt", b"3", 0) + bytes(1024))
    directory = zip_entry(b"a.txt", packed=3, size=3)
    yield Hostile("count.zip", 1, "count.zip", lambda: directory + zip_end(65_535, len(directory), 0))
    yield Hostile("size.zip", 1, "size.zip", lambda: directory + zip_end(1, (1 << 32) - 2, 0))
    yield Hostile("sealed.zip", 4, "is encrypted", lambda: sealed(flags=1, method=8))
    yield Hostile("method.zip", 4, "UNSUPPORTED", lambda: sealed(flags=0, method=12))


def sealed(*, flags: int, method: int) -> bytes:
    header = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, flags, method, 0, 0, 0, 3, 3, 5, 0) + b"a.txtabc"
    entry = zip_entry(b"a.txt", packed=3, size=3, method=method, flags=flags)
    return header + entry + zip_end(1, len(entry), len(header))


def every_archive(suffix: str, pack: Callable[[Members], bytes]) -> Iterator[Hostile]:
    """Yield what any archive may hold."""

    def hostile(name: str, code: int, says: str, members: Callable[[], Members], *options: str) -> Hostile:
        return Hostile(f"{name}.{suffix}", code, says, lambda: pack(members()), options)

    letters = [f"{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(300)]
    yield hostile("frames", 2, "differ in a number only", lambda: {f"shot.{i:04}.bin": bytes(9) for i in range(17)})
    yield hostile("kinds", 2, "more than 256 kinds of members", lambda: {f"a.{x}x.bin": b"1" for x in letters[:257]})
    yield hostile("keys", 2, "limits.columns (1000)", lambda: {"a.json": keys(1001).encode()},
                  *setting("limits.columns=1000"))  # fmt: skip
    if suffix == "tar.gz":
        return
    yield hostile("most", 0, SOUND, lambda: {f"a.{x}x.bin": b"1" for x in letters[:200]})
    yield hostile("deep", 4, "UNSUPPORTED",
                  lambda: {"a.json": b'{"a":[1]}', "b.json": f'{{"a":{levels(65)}}}'.encode()})  # fmt: skip
    yield hostile("text", 4, "FIELD_TOO_LARGE", lambda: {"a.txt": bytes(65_537), "b.txt": b"b"}, *FIELD)
    yield hostile("just", 0, SOUND, lambda: {"a.txt": b"x" * 65_536, "b.txt": b"b"}, *FIELD)
    yield hostile("record", 4, "FIELD_TOO_LARGE", lambda: {"a.json": b'{"a":"' + b"x" * 65_537 + b'"}'}, *RECORD)
    if suffix == "tar":
        return
    yield hostile("sample", 4, "RECORD_TOO_LARGE", lambda: {f"1.{x}": bytes(40_000) for x in letters[:2]}, *RECORD)
    yield hostile("picture", 4, "FIELD_TOO_LARGE", lambda: {"a.png": bytes(70_000)},
                  *setting("limits.image_bytes=64KiB"))  # fmt: skip
    yield hostile("above", 0, SOUND, lambda: {"../../above.txt": b"x"})
    yield hostile("within", 0, SOUND, lambda: {f"a.{suffix}": pack({"a.txt": b"x"})})


def hostile_archives() -> Iterator[Hostile]:
    """Yield hostile archives."""
    yield from archive_files()
    yield Hostile("zeros.zip", 4, "FIELD_TOO_LARGE", lambda: zip_of({"a.txt": bytes(ABOVE)}))
