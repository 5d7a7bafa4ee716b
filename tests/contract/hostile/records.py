"""Hostile arrays, TFRecords, annotations, datasets and configs."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Iterator, Mapping

import google_crc32c

from .hostile_file import SOUND, Holes, Hostile, setting
from .pictures import picture
from .tables import COLUMNS, MANY, RECORD, levels, varint


def npy(shape: str, kind: str = "'<f8'", *, data: bytes = bytes(64), header: str = "") -> bytes:
    """Return an array file that states a shape and a type."""
    text = header or f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}"
    text += "\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text.encode() + data


def npz(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def directory(size: int) -> Holes:
    """Return an archive of arrays that states a directory of so many bytes."""
    return Holes(size + 22, {0: b"PK\x03\x04", size: struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 9, 9, size, 0, 0)})


def numpy_files() -> Iterator[Hostile]:
    rows = setting("input.rows=true")
    yield Hostile("shape.npy", 1, "shape.npy", lambda: npy("(1000000000000, 1000000)"))
    yield Hostile("shape.npy", 1, "shape.npy", lambda: npy("(1000000000000, 1000000)"), rows)
    yield Hostile("none.npy", 2, "rows of shape (0,) hold no values", lambda: npy("(1000000000000, 0)", data=b""), rows)
    yield Hostile("record.npy", 4, "RECORD_TOO_LARGE", lambda: npy("(20000,)", data=bytes(160_000)), RECORD)
    yield Hostile("just.npy", 0, SOUND, lambda: npy("(1000,)", data=bytes(8000)), RECORD)
    yield Hostile("header.npy", 1, "at most 10000 are read", lambda: npy("", header="{" + " " * 10_001))
    yield Hostile("stated.npy", 1, "at most 10000 are read",
                  lambda: b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 30) + b"{" * 20_000)  # fmt: skip
    yield Hostile("deep.npy", 1, "deep.npy", lambda: npy("", header="{'descr': " + "[" * 4000 + "]" * 4000 + "}"))
    yield Hostile("words.npy", 2, "dtype <U2147483647 is not supported", lambda: npy("(2,)", "'<U2147483647'"))
    yield Hostile("sides.npy", 1, "sides.npy", lambda: npy("(" + "1," * 3000 + ")"))
    yield Hostile(
        "objects.npy", 2, "which are never loaded", lambda: npy("(1,)", "'|O'", data=b"cos\nsystem\n(S'touch x'\ntR.")
    )
    wide = npz({f"c{number}.npy": npy("(1,)", "'<i4'", data=bytes(4)) for number in range(501)}, zipfile.ZIP_STORED)
    yield Hostile("wide.npz", 2, "limits.columns (1000)", lambda: wide, COLUMNS)
    yield Hostile("directory.npz", 1, "directory.npz", lambda: directory((64 << 20) + 1))
    member = npy("(37500000,)", data=bytes(300_000_000))
    yield Hostile(
        "member.npz", 4, "RECORD_TOO_LARGE", lambda: npz({"a.npy": member}), setting("limits.record_bytes=1MiB")
    )
    yield Hostile("shape.npz", 1, "shape.npz", lambda: npz({"a.npy": npy("(1000000000000,)")}))


def masked(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes, length: int | None = None) -> bytes:
    """Return a framed record, which may state another length."""
    head = struct.pack("<Q", len(data) if length is None else length)
    return head + masked(head) + data + masked(data)


def example(names: Iterator[bytes] | list[bytes]) -> bytes:
    """Return an Example in which each feature is the integer 1."""
    value = b"\x1a\x03\x0a\x01\x01"
    entries = b""
    for name in names:
        entry = b"\x0a" + varint(len(name)) + name + b"\x12" + varint(len(value)) + value
        entries += b"\x0a" + varint(len(entry)) + entry
    return b"\x0a" + varint(len(entries)) + entries


def tfrecord_files() -> Iterator[Hostile]:
    wide = [b"c%d" % number for number in range(1001)]
    for suffix, pack in (("", bytes), (".gz", gzip.compress)):
        name = f"tfrecord{suffix}"
        yield Hostile(f"length.{name}", 1, "record 0", lambda pack=pack: pack(record(b"x", 1 << 60)))
        yield Hostile(f"crc.{name}", 1, "zeros where it should begin", lambda pack=pack: pack(bytes(100) + b"x"))
        yield Hostile(f"large.{name}", 1, "limits.record_bytes",
                      lambda pack=pack: pack(record(example([b"x" * 66_000]))), RECORD)  # fmt: skip
        yield Hostile(f"just.{name}", 0, SOUND, lambda pack=pack: pack(record(example([b"x" * 64_000]))), RECORD)
        yield Hostile(
            f"wide.{name}", 2, "limits.columns (1000)", lambda pack=pack: pack(record(example(wide))), COLUMNS
        )
    yield Hostile("odd.tfrecord", 0, SOUND, lambda: record(b"\x0a" + varint(1 << 60) + b"x"))
    yield Hostile("groups.tfrecord", 0, SOUND, lambda: record(b"\x0b" * 100_000))
    yield Hostile("bomb.tfrecord.gz", 1, "bomb.tfrecord.gz", lambda: gzip.compress(bytes(1 << 20), 9) * 300)
    yield Hostile(
        "members.tfrecord.gz", 0, SOUND, lambda: gzip.compress(record(example([b"a"]))) + gzip.compress(b"") * 9000
    )


def coco(**document: object) -> dict[str, bytes]:
    found = {"images": [{"id": 1, "file_name": "a.png", "width": 40, "height": 30}], "annotations": [],
             "categories": [{"id": 1, "name": "cat"}], **document}  # fmt: skip
    return {"in/a.png": picture("PNG"), "a.json": json.dumps(found).encode()}


COCO = setting("input.annotations.coco=[a.json]")
MASKS = setting("input.annotations={coco: [a.json], masks: true}")
YOLO = setting("input.annotations.yolo=labels")
VOC = setting("input.annotations.voc=xml")


def box(**more: object) -> dict[str, object]:
    return {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], **more}


def annotations() -> Iterator[Hostile]:
    yield Hostile("in", 0, SOUND, lambda: coco(annotations=[box()]), COCO)
    yield Hostile("in", 1, "a.json", lambda: {**coco(), "a.json": levels(100_000).encode()}, COCO)
    yield Hostile("in", 1, "a.json: has more than 100,000 categories",
                  lambda: coco(categories=[{"id": i, "name": f"c{i}"} for i in range(MANY)]), COCO)  # fmt: skip
    size = {"size": [1 << 30, 1 << 30], "counts": [1 << 60]}
    yield Hostile("in", 4, "a.json", lambda: coco(annotations=[box(segmentation=size)]), MASKS)
    yield Hostile("in", 4, "in", lambda: coco(images=[{"id": 1, "file_name": "../../etc/passwd"}]), COCO)
    yield Hostile("in", 4, "a.json", lambda: coco(annotations=[box(bbox=[1e400, 2, 3, 4])]), COCO)
    yield Hostile("in", 1, "a.json", lambda: {**coco(), "a.json": b'{"images":' + b"9" * 100_000 + b"}"}, COCO)

    def labels(text: bytes, names: bytes = b"names: [cat]\n") -> dict[str, bytes]:
        return {"in/a.png": picture("PNG"), "labels/a.txt": text, "labels/data.yaml": names}

    sound = b"0 0.5 0.5 0.2 0.4\n"
    aliases = b"a0: &a0 [x, x]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 40))
    yield Hostile("in", 0, SOUND, lambda: labels(sound), YOLO)
    yield Hostile("in", 1, "is not the number of a class", lambda: labels(sound, b"names: {100000000: a}\n"), YOLO)
    yield Hostile("in", 1, "it has aliases", lambda: labels(sound, aliases), YOLO)
    yield Hostile("in", 1, "labels/data.yaml", lambda: labels(sound, b"names: " + levels(5000).encode()), YOLO)
    yield Hostile("in", 1, "it is over 4 MiB", lambda: labels(sound, b"#" * ((4 << 20) + 1)), YOLO)
    yield Hostile("in", 1, "labels/a.txt: line 1", lambda: labels(b"99999999999 0.5 0.5 0.2 0.4\n"), YOLO)
    yield Hostile("in", 1, "labels/a.txt: line 1", lambda: labels(b"0 " + b"0.5 " * 200_001 + b"\n"), YOLO)
    yield Hostile("in", 1, "labels/a.txt: line 1", lambda: labels(b"0 1e999 nan inf 0\n"), YOLO)

    def voc(text: bytes) -> dict[str, bytes]:
        return {"in/a.png": picture("PNG"), "xml/a.xml": text}

    laughs = (
        b"<!DOCTYPE a [<!ENTITY a 'x'>"
        + b"".join(b"<!ENTITY a%d '&a;&a;'>" % i for i in range(40))
        + b"]><annotation/>"
    )
    start = b"<annotation><filename>a.png</filename>"
    file = b'<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + start + b"&a;</annotation>"
    yield Hostile("in", 0, SOUND, lambda: voc(start + b"</annotation>"), VOC)
    yield Hostile("in", 1, "declares entities", lambda: voc(laughs), VOC)
    yield Hostile("in", 1, "declares entities", lambda: voc(file), VOC)
    yield Hostile("in", 1, "xml/a.xml", lambda: voc(laughs.decode().encode("utf-16")), VOC)
    yield Hostile("in", 1, "xml/a.xml", lambda: voc(start + b"<a>" * 200_000), VOC)
    yield Hostile("in", 0, SOUND, lambda: voc(start + b"<a>" * 200_000 + b"</a>" * 200_000 + b"</annotation>"), VOC)
    objects = b"<object><name>cat</name></object>" * 20_000
    yield Hostile("in", 4, "BAD_BOX", lambda: voc(start + objects + b"</annotation>"), VOC)
    yield Hostile("in", 1, "xml/a.xml: has 1073741824 bytes, and the most are 16777216",
                  lambda: {"in/a.png": picture("PNG"), "xml/a.xml": Holes(1 << 30, {0: start})}, VOC)  # fmt: skip
    yield Hostile("in", 1, "labels/a.txt: has 1073741824 bytes, and the most are 16777216",
                  lambda: {**labels(b""), "labels/a.txt": Holes(1 << 30, {0: sound})}, YOLO)  # fmt: skip


def config(text: bytes) -> dict[str, bytes]:
    return {"a.csv": b"a,b\n1,2\n", "c.yaml": text}


def configs() -> Iterator[Hostile]:
    sound = b"input: {format: csv, paths: [a.csv]}\noutput: {path: out}\n"
    aliases = b"a0: &a0 [x, x]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 40))
    yield Hostile("c.yaml", 0, SOUND, lambda: config(sound))
    yield Hostile("c.yaml", 2, "is far too large", lambda: config(sound + aliases))
    yield Hostile("c.yaml", 2, "too deep for a config", lambda: config(sound + b"x: " + levels(51).encode()))
    yield Hostile("c.yaml", 2, "too deep for a config", lambda: config(sound + b"x: " + levels(50_000).encode()))
    yield Hostile("c.yaml", 2, "is larger than 16 MiB", lambda: config(sound + b"#" * (16 << 20)))
    yield Hostile("c.yaml", 2, "the tag", lambda: config(sound + b"x: !!python/object/apply:os.system [touch y]\n"))
    yield Hostile("c.yaml", 2, "limits.pixels", lambda: config(sound + b"limits: {pixels: " + b"9" * 100_000 + b"}\n"))


def datasets() -> Iterator[Hostile]:
    options = setting("input.format=tfrecord")
    for name, code, says, text in (
        ("open", 3, "Expecting value", b"["),
        ("deep", 3, "nested too deeply", levels(5000).encode()),
        ("values", 3, "holds too many values", b"[" + b"1," * 20_000_000 + b"1]"),
    ):
        yield Hostile(
            name,
            code,
            says,
            lambda name=name, text=text: {f"{name}/manifests/00000001.json": text, f"{name}/manifest.json": text},
            options,
        )
    yield Hostile(
        "bytes",
        3,
        "over 134217728 bytes",
        lambda: {
            "bytes/manifests/00000001.json": Holes((128 << 20) + 1, {0: b"{"}),
            "bytes/manifest.json": b"{}",
        },
        options,
    )


def hostile_records() -> Iterator[Hostile]:
    """Yield hostile arrays, TFRecords, annotations, datasets and configs."""
    yield from numpy_files()
    yield from tfrecord_files()
    yield from annotations()
    yield from configs()
    yield from datasets()
