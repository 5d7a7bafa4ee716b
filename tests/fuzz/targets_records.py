"""TFRecord files, gzip streams, serialized Examples."""

from __future__ import annotations

import gzip
import json
import math
import random
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
from crc32c import crc32c
from mutate import EXTREMES, mutate, varint
from shardmill.pipelines.commands.inspect_records import ShownRecord, record_document
from shardmill.transforms.dataset.integrity.record_walk import DamagedRange, is_compressed, walk_records
from shardmill.transforms.dataset.storage.record_file import read_record_batches
from shardmill.transforms.errors import DamageError, InputError
from shardmill.transforms.format.examples.decode_examples import Example, ExampleDecoder, feature_values, parse_example
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.tfrecord.framing import frame_records
from shardmill.transforms.format.tfrecord.gzip_members import InflateError, InflateLimits, compress_member, inflate
from targets import Target, file_of, ours

SCHEMA = Schema(
    (
        Feature("a/id", "int64", "int64"),
        Feature("blob", "bytes", "binary", nullable=True),
        Feature("emb", "float", "float32", (3,), nullable=True),
        Feature("flag", "int64", "bool", nullable=True),
        Feature("half", "float", "float16", (-1,), nullable=True),
        Feature("name", "bytes", "string", nullable=True),
        Feature("price", "bytes", "float64", dtype="<f8", nullable=True),
        Feature("small", "int64", "int8", (2, 2), nullable=True),
        Feature("stops", "int64", "int64", (-1,), nullable=True),
        Feature("tags", "bytes", "string", (-1,), nullable=True),
        Feature("taken", "int64", "timestamp", nullable=True, unit="us", timezone="UTC"),
    )
)
DECODER = ExampleDecoder(SCHEMA)


def payload(**values: Any) -> bytes:
    example = Example()
    for key, value in values.items():
        feature = example.features.feature[key.replace("__", "/")]
        some = value if isinstance(value, list) else [value]
        items = [item.encode() if isinstance(item, str) else item for item in some]
        lists: dict[type, Any] = {int: feature.int64_list, float: feature.float_list, bytes: feature.bytes_list}
        target = lists[type(items[0]) if items else int]
        target.SetInParent()  # an empty list is a present one
        target.value.extend(items)
    return example.SerializeToString(deterministic=True)


PAYLOADS = [
    payload(a__id=7),
    payload(a__id=-1, name="Ada", price=bytes(8), flag=1, taken=-(2**63)),
    payload(
        a__id=2**63 - 1, name="é" * 200, emb=[0.5, math.inf, -0.0], tags=["x", "", "yy" * 90], small=[1, -128, 3, 4]
    ),
    payload(a__id=0, stops=[], half=[1.0, 2.0], blob=bytes(range(256)), tags=["t"] * 40),
    payload(a__id=3, stops=[2**40, -5, 0] * 30, name=""),
    b"",
    b"\x0a\x00",
]
SOUND = PAYLOADS[:5]


def mask(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frame(payloads: list[bytes]) -> bytes:
    return b"".join(bytes(buffer) for buffer in frame_records(pa.array(payloads, pa.large_binary())).buffers)


PLAIN = [frame(PAYLOADS), frame([b""] * 5), frame([b"x" * 5000, b"y"]), frame(PAYLOADS[:1]), b""]
GZIP = [compress_member(PLAIN[0]), compress_member(PLAIN[1]) + compress_member(PLAIN[0]), gzip.compress(bytes(100_000))]
COMPRESSED = [*GZIP, zlib.compress(PLAIN[0])]


def believable(rng: random.Random, data: bytearray) -> bytearray:
    """Walk the headers, let some lengths lie, and give the lengths (and mostly the payloads) their right CRCs."""
    at = 0
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 8], "little")
        if rng.random() < 0.1:
            length = rng.choice((*EXTREMES, len(data), len(data) - at - 16, 2**30 + 1))
            length = max(length, 0)
            data[at : at + 8] = length.to_bytes(8, "little")
        data[at + 8 : at + 12] = mask(crc32c(bytes(data[at : at + 8]))).to_bytes(4, "little")
        end = at + 12 + length
        if end + 4 > len(data):
            break
        if rng.random() < 0.8:
            data[end : end + 4] = mask(crc32c(bytes(data[at + 12 : end]))).to_bytes(4, "little")
        at = end + 4
    return data


def make_tfrecord(rng: random.Random) -> bytes:
    data = mutate(rng, [*PLAIN, *COMPRESSED] if rng.random() < 0.3 else PLAIN)
    if rng.random() < 0.7:
        data = believable(rng, data)
    shape = rng.random()
    if shape < 0.15:
        return compress_member(bytes(data))
    if shape < 0.2:
        return zlib.compress(bytes(data) + bytes(rng.choice((0, 3_000_000))))
    return bytes(data)


def check_tfrecord(data: bytes) -> str:
    path = file_of(data, "a.tfrecord")
    outcome, size, records = "read", 0, 0
    try:
        for run in read_record_batches(path):
            records += len(run)
            size = run.end
            DECODER.try_decode(run.payloads)
    except (DamageError, InputError) as error:
        outcome = ours(error)
    found: list[Any] = []
    collected = list(read_record_batches(path, on_damage=found.append, check_crc=len(data) % 2 == 0))
    assert sum(map(len, collected)) >= records
    if outcome == "read":
        assert not found
        if data[:2] != b"\x1f\x8b" and not (data[:1] == b"\x78" and len(collected) == 0):
            assert size in (len(data), 0) or data[:1] == b"\x78"
    for damage in found:
        assert 0 <= damage.offset <= max(len(data), 1 << 31)
        assert len(str(damage)) < 400
    return outcome


def make_salvage(rng: random.Random) -> bytes:
    data = make_tfrecord(rng)
    if rng.random() < 0.3:  # compressed first, damaged then
        return bytes(mutate(rng, [*COMPRESSED, compress_member(data)], (GZIP[1], b"\x1f\x8b\x08")))
    return bytes(mutate(rng, [data, PLAIN[0]], (PLAIN[1], frame([frame(PAYLOADS[:2])])[:80])))


def check_salvage(data: bytes) -> str:
    """Every record that is given has its CRC, and records and damages follow each other without a gap."""
    path = file_of(data, "a.tfrecord")
    end, records, damages = 0, 0, 0
    for event in walk_records(path):
        if isinstance(event, DamagedRange):
            assert event.offset == end
            assert event.end >= event.offset
            assert len(str(event)) < 400
            assert str(event).isprintable()
            end = event.offset if event.recovered else event.end
            damages += 1
            continue
        assert int(event.offsets[0]) == end
        for payload, crc in zip(event.payloads, event.crcs.tolist(), strict=True):
            assert crc32c(payload) == crc
        DECODER.try_decode(event.payloads)
        end, records = event.end, records + len(event)
    if not is_compressed(path):
        assert end == len(data)
    return ("damaged, some saved" if records else "nothing saved") if damages else "sound"


def make_gzip(rng: random.Random) -> bytes:
    return bytes(mutate(rng, COMPRESSED, (b"\x1f\x8b\x08", GZIP[1])))


def check_gzip(data: bytes) -> str:
    chunks = [data[i : i + 1000] for i in range(0, len(data), 1000)]
    limits = InflateLimits(ratio=100, ratio_from_bytes=1 << 20, output_bytes=8 << 20)
    made = 0
    try:
        for piece in inflate(chunks, form="zlib" if data[:1] == b"\x78" else "gzip", limits=limits):
            made += len(piece)
    except InflateError as error:
        assert 0 <= error.offset <= len(data)
        return "InflateError"
    finally:
        assert made <= (8 << 20) + (1 << 20)
    return "read"


def make_example(rng: random.Random) -> bytes:
    tokens = [
        b"\x0a",
        b"\x12",
        b"\x1a\x00",
        b"\x0a\x04a/id",
        b"\x12\x05\x1a\x03\x0a\x01\x07",
        b"\x80" * 10,
        b"\xff" * 9,
    ]
    data = mutate(rng, PAYLOADS, tokens)
    if rng.random() < 0.5:  # mend the outermost length, so that what is inside is looked at
        inside = bytes(data[1 + len(varint(max(len(data) - 2, 0))) :])
        return b"\x0a" + varint(len(inside)) + inside
    return bytes(data)


def check_example(data: bytes) -> str:
    found = DECODER.try_decode([SOUND[0], data, SOUND[1]])
    assert [problem.row for problem in found.problems] in ([], [1])
    assert found.batch.column("a/id").to_pylist()[::2] == [7, -1]
    found.batch.validate(full=True)
    example = parse_example(data)
    document = record_document(ShownRecord(1, "f", 0, data), example)
    json.dumps(document, allow_nan=False)
    if found.problems:
        assert len(found.problems[0].reason) < 300
        return "problem"
    assert example is not None, "decoded what protobuf does not read"
    features = example.features.feature
    for name in ("a/id", "name", "emb", "tags", "stops", "small", "blob"):
        kind, values = feature_values(features[name]) if name in features else ("none", ())
        value = found.batch.column(name)[1]
        if kind == "none":
            assert not value.is_valid
            continue
        read = value.as_py() if isinstance(value.as_py(), list) else [value.as_py()]
        expected = [item.decode() if name in ("name", "tags") else item for item in values]
        assert len(read) == len(expected)
        assert read == expected or np.isnan(np.array(expected)).any()
    return "decoded"


TARGETS = {
    "tfrecord": Target(make_tfrecord, check_tfrecord),
    "salvage": Target(make_salvage, check_salvage),
    "gzip": Target(make_gzip, check_gzip),
    "example": Target(make_example, check_example),
}
