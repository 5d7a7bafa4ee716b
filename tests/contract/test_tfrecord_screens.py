"""What the user of the command line sees of bad and odd TFRecord files: four commands a case, word for word."""

from __future__ import annotations

import gzip
import shlex
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from crc32c import crc32c
from shardmill.transforms.dataset.storage.record_file import read_records
from shardmill.transforms.format.tfrecord.framing import FRAME_BYTES
from shardmill.transforms.format.tfrecord.gzip_members import compress_member

from ..command_line import Shardmill
from ..examples import example_from_values

SECRET = "payload that nobody is to see"
RECORDS = [
    example_from_values({"id": n, "name": f"{SECRET} {n}"}).SerializeToString(deterministic=True) for n in range(10)
]
FRAME = len(RECORDS[0]) + FRAME_BYTES

UNPROVEN = "Note: no manifest: that it is complete cannot be proven, as a file cut between two records looks whole"
BEHIND = "; nothing behind it can be read in turn; shardmill salvage copies the intact records of a file"
MAYBE_CUT = (
    "Nothing is lost, unless the file was cut between two records: no manifest that can be read states its number."
)


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def header(length: int) -> bytes:
    head = struct.pack("<Q", length)
    return head + masked(head)


def frame(payload: bytes) -> bytes:
    return header(len(payload)) + payload + masked(payload)


def flipped(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 0x40
    return bytes(changed)


FILE = b"".join(map(frame, RECORDS))


def cut_at_a_record() -> bytes:
    """Return a gzip stream that was flushed behind record 7, and goes no further."""
    packer = zlib.compressobj(wbits=31)
    return packer.compress(FILE[: 7 * FRAME]) + packer.flush(zlib.Z_FULL_FLUSH)


@dataclass(frozen=True)
class Case:
    """A damaged file: what is wrong with it, how many records are intact, and what `merge` does with it.

    `place` begins the finding of `verify`; `told` is what `merge` says after its place (None: it rejects records).
    """

    data: bytes
    record: int
    offset: int
    reason: str
    intact: int
    lost: str
    merge_told: str | None = None
    more: str = ""


LONG = "its length, {} bytes, is over that of any Example"
LONG_FOR_MERGE = "its length, {} bytes, is over the limit of 1073741824 (limits.record_bytes)"
NO_END = "the gzip stream is cut: its end and its checksum are missing"
CUT = f"its data is cut: it takes {FRAME} bytes, and 20 are left in the file"
PART = "only 7 of the 12 bytes of its header are there: the file is cut, or continues wrongly"


def unreadable(end: int) -> str:
    return f"; no record can be read up to byte {end}"


PACKED, PACKED_PART = gzip.compress(FILE)[:-8], cut_at_a_record()
END = 10 * FRAME

DAMAGED: dict[str, Case] = {
    "cut in a header": Case(
        FILE[: 5 * FRAME + 7], 5, 5 * FRAME, PART, 5,
        "what lay in 1 range that cannot be read (7 B)", PART, unreadable(5 * FRAME + 7),
    ),
    "cut in the data": Case(
        FILE[: 5 * FRAME + 20], 5, 5 * FRAME, CUT, 5,
        "at least 1 record (20 B)", CUT,
    ),
    "a wrong checksum of a length": Case(
        flipped(FILE, 3 * FRAME + 9), 3, 3 * FRAME, "the checksum of its length is wrong; its data are whole", 10, "",
        "the checksum of its length is wrong",
    ),
    "wrong data": Case(
        flipped(FILE, 3 * FRAME + 30), 3, 3 * FRAME, "the checksum of its data is wrong", 9,
        f"at least 1 record ({FRAME} B)",
    ),
    "garbage after the end": Case(
        FILE + b"garbage", 10, END, PART, 10, "what lay in 1 range that cannot be read (7 B)", PART,
        unreadable(END + 7),
    ),
    "zeros after the end": Case(
        FILE + bytes(100), 10, END, "zeros where it should begin", 10,
        "what lay in 1 range that cannot be read (100 B)", "zeros where it should begin", unreadable(END + 100),
    ),
    "a length of 1 TiB": Case(
        FILE + header(1 << 40) + bytes(50), 10, END, LONG.format(1 << 40), 10, "at least 1 record (62 B)",
        LONG_FOR_MERGE.format(1 << 40),
    ),
    "a length of 3 GiB": Case(
        FILE + header(3 << 30) + bytes(50), 10, END, LONG.format(3 << 30), 10, "at least 1 record (62 B)",
        LONG_FOR_MERGE.format(3 << 30),
    ),
    "a length of 2**64 - 1": Case(
        FILE + header(2**64 - 1) + bytes(50), 10, END, LONG.format(2**64 - 1), 10, "at least 1 record (62 B)",
        LONG_FOR_MERGE.format(2**64 - 1),
    ),
    "gzip without its trailer": Case(
        PACKED, 10, END, f"byte {len(PACKED)} of the compressed file: {NO_END}", 10,
        "what lay in 1 range that cannot be read", f"byte {len(PACKED)} of the compressed file: {NO_END}",
    ),
    "gzip cut behind a record": Case(
        PACKED_PART, 7, 7 * FRAME, f"byte {len(PACKED_PART)} of the compressed file: {NO_END}", 7,
        "what lay in 1 range that cannot be read", f"byte {len(PACKED_PART)} of the compressed file: {NO_END}",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Lines:
    code: int
    out: list[str]
    err: list[str]


@pytest.fixture
def shardmill(shardmill: Shardmill) -> Callable[..., Lines]:
    def run(*args: str) -> Lines:
        screen = shardmill(*args)
        assert SECRET not in screen.err
        assert SECRET.encode().hex() not in screen.out + screen.err
        return Lines(screen.code, screen.out.splitlines(), screen.err.splitlines())

    return run


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_is_told_by_file_record_and_byte_and_what_is_intact_is_saved(
    case: str, shardmill: Callable[..., Lines]
) -> None:
    file = DAMAGED[case]
    Path("x.tfrecord").write_bytes(file.data)
    place = f"x.tfrecord record {file.record} at byte {file.offset}"

    verified = shardmill("verify", "x.tfrecord")
    assert (verified.code, verified.err) == (3, [])
    assert verified.out[:2] == [f"{place}: {file.reason}{file.more}", UNPROVEN]
    assert verified.out[2].startswith("Damaged, 1 finding: x.tfrecord: 1 shard, ")

    saved = shardmill("salvage", "x.tfrecord", "-o", "saved")
    assert (saved.code, saved.err) == (3, [])
    assert saved.out[0].startswith(f"record {file.record}, byte")
    assert saved.out[0].endswith(f": {file.reason} ({saved.out[0].rpartition('(')[2]}")
    assert saved.out[1].startswith(f"Wrote saved/x.tfrecord: {file.intact} records, ")
    assert saved.out[2:] == [f"Lost: {file.lost}." if file.lost else MAYBE_CUT]
    rest = iter(RECORDS)
    assert all(record in rest for record in read_records("saved/x.tfrecord"))

    merged = shardmill("merge", "x.tfrecord", "-o", "out")
    if file.merge_told is not None:
        assert (merged.code, merged.out) == (1, [])
        assert merged.err[0] == f"error: {place}: {file.merge_told}{BEHIND}".replace(" record", ": record", 1)
    else:
        assert (merged.code, merged.out) == (4, [])
        assert merged.err[1] == f"  {place}: CORRUPT: {file.reason}; copy the file again"
    assert not Path("out/manifest.json").exists()


ACCEPTED: dict[str, tuple[str, bytes, list[bytes]]] = {
    "cut between two records": ("x.tfrecord", FILE[: 7 * FRAME], RECORDS[:7]),
    "gzip without its suffix": ("x.tfrecord", gzip.compress(FILE), RECORDS),
    "plain with the suffix of gzip": ("x.tfrecord.gz", FILE, RECORDS),
    "zlib": ("x.tfrecord", zlib.compress(FILE), RECORDS),
    "records of no bytes": ("x.tfrecord", frame(b"") + FILE[:FRAME] + frame(b""), [b"", RECORDS[0], b""]),
    "no record": ("x.tfrecord", b"", []),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_an_odd_file_is_read_by_its_content_and_that_it_is_whole_cannot_be_proven(
    case: str, shardmill: Callable[..., Lines]
) -> None:
    name, data, records = ACCEPTED[case]
    Path(name).write_bytes(data)
    verified = shardmill("verify", name)
    assert (verified.code, verified.err, verified.out[0]) == (0, [], UNPROVEN)
    merged = shardmill("merge", name, "-o", "out")
    assert (merged.code, merged.err) == (0, [])
    assert (
        f"Warning: {name}: no manifest states the number of records: a file that was cut between two records "
        "looks whole"
    ) in merged.out
    assert [record for shard in sorted(Path("out").glob("*.tfrecord")) for record in read_records(shard)] == records
    assert shardmill("verify", "out").code == 0


def test_a_shard_that_was_cut_between_two_records_is_seen_by_its_manifest(shardmill: Callable[..., Lines]) -> None:
    Path("x.tfrecord").write_bytes(FILE)
    assert shardmill("merge", "x.tfrecord", "-o", "out").code == 0
    Path("out/train-00000.tfrecord").write_bytes(FILE[: 7 * FRAME])
    size = f"train-00000.tfrecord: {7 * FRAME} bytes, the manifest states {10 * FRAME}"
    assert shardmill("verify", "out").out[:2] == [size, "train-00000.tfrecord: 7 whole records, the manifest states 10"]
    assert shardmill("verify", "out", "--quick").out[0] == size
    shown = shardmill("inspect", "out", "-n", "10")
    assert (shown.code, shown.err) == (
        3,
        [
            "error: out/train-00000.tfrecord: 7 records, the manifest states 10: the file was cut between two records, "
            "or replaced; shardmill verify out finds the place"
        ],
    )
    again = shardmill("merge", "out", "-o", "again")
    assert (again.code, again.err) == (
        2,
        [
            f"error: out/train-00000.tfrecord: {7 * FRAME} bytes, the manifest states {10 * FRAME}; it was cut or "
            f"replaced: shardmill verify {Path.cwd()}/out"
        ],
    )
    assert shardmill(*shlex.split(again.err[0].partition(": shardmill ")[2])).out[0] == size
    saved = shardmill("salvage", "out/train-00000.tfrecord", "-o", "saved")
    assert saved.out[-1] == "Lost: 3 records of the 10 that the manifest states."


def test_a_record_that_is_no_example_is_named_and_kept_where_it_is_asked_for(shardmill: Callable[..., Lines]) -> None:
    payloads = [RECORDS[0], b"\xff\xfe " + SECRET.encode(), RECORDS[1]]
    Path("x.tfrecord").write_bytes(b"".join(map(frame, payloads)))
    merged = shardmill("merge", "x.tfrecord", "-o", "out")
    assert merged.code == 4
    assert merged.err[1] == (
        f"  x.tfrecord record 1 at byte {FRAME}: CORRUPT: it is not a tf.train.Example; to keep such records as "
        "they are: --set input.records=opaque"
    )
    assert shardmill("merge", "x.tfrecord", "-o", "kept", "--set", "input.records=opaque").code == 0
    assert list(read_records("kept/train-00000.tfrecord")) == payloads


@pytest.mark.thorough("hundreds of megabytes are inflated; dataset/storage/test_record_file.py has a smaller one")
def test_a_decompression_bomb_is_refused_and_little_of_it_is_inflated(shardmill: Callable[..., Lines]) -> None:
    Path("x.tfrecord").write_bytes(compress_member(header(1 << 29) + bytes(300 << 20)))
    verified = shardmill("verify", "x.tfrecord")
    assert verified.code == 3
    assert "a decompression bomb?" in verified.out[0]
    merged = shardmill("merge", "x.tfrecord", "-o", "out")
    assert merged.code == 1
    assert merged.err[0].startswith("error: x.tfrecord: record 0 at byte 0: ")
    assert "a decompression bomb?" in merged.err[0]


def test_limits_are_those_of_the_config(shardmill: Callable[..., Lines]) -> None:
    Path("x.tfrecord").write_bytes(FILE)
    merged = shardmill("merge", "x.tfrecord", "-o", "out", "--set", "limits.record_bytes=20")
    assert merged.code == 1
    assert merged.err[0] == (
        f"error: x.tfrecord: record 0 at byte 0: its length, {FRAME - 16} bytes, is over the limit of 20 "
        f"(limits.record_bytes){BEHIND}"
    )
