"""Files that state more than a bound of docs/guarantees.md."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
from PIL import Image


class Hostile(NamedTuple):
    """A file, and what a conversion of it says; None: it may end in any way that is no fault."""

    name: str
    data: bytes
    says: str | None = None


def _png() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (1, 2, 3)).save(file, "PNG")
    return file.getvalue()


def _zip(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def _tar(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def _arrow(table: pa.Table, codec: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _stated_png(width: int, height: int) -> bytes:
    data = bytearray(_png())
    data[16:24] = struct.pack(">II", width, height)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


def _stated_npy(shape: str) -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(64)


def stating_too_much() -> Iterator[Hostile]:
    """Yield files that state more than a bound of docs/guarantees.md."""
    many = ",".join(f'"k{i}":1' for i in range(100_001))
    yield Hostile("keys.jsonl", f"{{{many}}}\n".encode(), "limits.columns (100000)")
    yield Hostile("nested.jsonl", f'{{"a":{{{many}}}}}\n'.encode(), "limits.columns (100000)")
    yield Hostile("deep.jsonl", b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}\n", "nested more than 64 levels deep")
    yield Hostile("values.jsonl", b'{"a":[' + b"1," * 2_000_000 + b'1]}\n{"a":[1]}\n', "RECORD_TOO_LARGE")
    yield Hostile("pixels.png", _stated_png(30_000, 30_000), "TOO_MANY_PIXELS")
    yield Hostile("widest.png", _stated_png((1 << 31) - 1, (1 << 31) - 1), "TOO_MANY_PIXELS")
    yield Hostile("shape.npy", _stated_npy("(1000000000000, 1000000)"))
    yield Hostile("header.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 30) + b"{" * 20_000)
    yield Hostile("length.tfrecord", struct.pack("<Q", 1 << 60) + bytes(100))
    rows = pa.Array.from_buffers(pa.null(), 1 << 30, [None])
    yield Hostile("rows.arrow", _arrow(pa.table({"a": rows})), "whose values take")
    frames = {f"shot.{i:04}.bin": bytes(10) for i in range(40)}
    yield Hostile("frames.tar", _tar(frames), "differ in a number only")
    yield Hostile("frames.zip", _zip(frames), "differ in a number only")
    kinds = {f"a.{chr(97 + i // 26)}{chr(97 + i % 26)}x.bin": b"1" for i in range(300)}
    yield Hostile("kinds.zip", _zip(kinds), "more than 256 kinds of members")
    yield Hostile(
        "json.zip", _zip({"a.json": b'{"a":[' + b"1," * 2_000_000 + b"1]}", "b.json": b'{"a":[1]}'}), "RECORD"
    )
    yield Hostile("bomb.zip", _zip({"a.png": bytes(300 << 20)}), "FIELD_TOO_LARGE")
    yield Hostile("bomb.csv.gz", gzip.compress(b"a\n" + bytes(300 << 20), 1), None)
    yield Hostile("names.json", json.dumps({"images": [], "annotations": [], "categories": []}).encode())
