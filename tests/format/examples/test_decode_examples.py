from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.format.examples.decode_examples import Example, ExampleDecoder, ExampleError
from shardmill.transforms.format.schema.arrow_types import arrow_type_of
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.tfrecord.framing import Payloads

from ...examples import decode_examples, example_from_values
from ...tiers import examples

# --- the slow obvious serializer: any order, packed or not, keys as often as one likes

Entry = tuple[str, str, Sequence[Any]]
TAGS = {"bytes": b"\x0a", "float": b"\x12", "int64": b"\x1a"}


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def serialize(entries: Sequence[Entry], packed: bool = True, unknown: bytes = b"") -> bytes:
    features = b""
    for name, kind, values in entries:
        if kind == "bytes":
            listed = b"".join(field(b"\x0a", v.encode() if isinstance(v, str) else v) for v in values)
        elif kind == "none":
            listed = b""
        else:
            numbers = [struct.pack("<f", v) if kind == "float" else varint(v) for v in values]
            unpacked = b"\x0d" if kind == "float" else b"\x08"
            listed = field(b"\x0a", b"".join(numbers)) if packed else b"".join(unpacked + n for n in numbers)
            listed = listed if numbers else b""
        feature = b"" if kind == "none" else field(TAGS[kind], listed) + unknown
        features += field(b"\x0a", field(b"\x0a", name.encode()) + field(b"\x12", feature))
    return field(b"\x0a", features) if features else b""


def as_written(entries: Sequence[Entry]) -> bytes:
    values = {name: list(values) for name, _, values in entries}
    kinds = {name: kind for name, kind, _ in entries}
    return example_from_values(values, kinds).SerializeToString(deterministic=True)


# --- random schemas and rows


def integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << min(bits, 63)) - 1)
    edges = [v for b in range(0, 64, 7) for v in ((1 << b) - 1, 1 << b, -(1 << b)) if low <= v <= high]
    return st.one_of(st.sampled_from([*edges, low, high]), st.integers(low, high))


FLOATS = st.floats(width=32)
TEXT = st.one_of(st.text(max_size=5), st.text("ab", min_size=9, max_size=15), st.integers(90, 140).map("é".__mul__))
BYTES = st.one_of(st.binary(max_size=14), st.sampled_from([b"x" * n for n in (125, 126, 127, 128, 16383, 16384)]))

TYPES: dict[str, tuple[str, st.SearchStrategy[Any], dict[str, Any]]] = {
    **{f"int{b}": ("int64", integers(b, signed=True), {}) for b in (8, 16, 32, 64)},
    **{f"uint{b}": ("int64", integers(b, signed=False), {}) for b in (8, 16, 32, 64)},
    "bool": ("int64", st.integers(0, 1), {}),
    "label": ("int64", integers(64, signed=True), {}),
    "array_shape": ("int64", integers(64, signed=False), {}),
    "date": ("int64", integers(32, signed=True), {}),
    "time": ("int64", st.integers(0, 86_399_999_999), {"unit": "us"}),
    "timestamp": ("int64", integers(64, signed=True), {"unit": "ns", "timezone": "Europe/Berlin"}),
    "duration": ("int64", integers(64, signed=True), {"unit": "s"}),
    "float32": ("float", FLOATS, {}),
    "float64": ("float", FLOATS, {}),
    "float16": ("float", st.floats(width=16), {}),
    "string": ("bytes", TEXT, {}),
    "binary": ("bytes", BYTES, {}),
    "image": ("bytes", BYTES, {}),
    "array_data": ("bytes", BYTES, {"dtype": "<f4", "rank": 2}),
}


@st.composite
def features(draw: st.DrawFn, name: str) -> tuple[Feature, st.SearchStrategy[Any]]:
    type_ = draw(st.sampled_from(sorted(TYPES)))
    kind, values, rest = TYPES[type_]
    shape = draw(st.sampled_from([(), (), (-1,), (1,), (2, 2)]))
    nullable = draw(st.booleans())
    lengths = {(): (1, 1), (-1,): (0, 4), (1,): (1, 1), (2, 2): (4, 4)}[shape]
    lists = st.lists(values, min_size=lengths[0], max_size=lengths[1])
    if shape == (-1,):
        lists = st.one_of(lists, values.flatmap(lambda v: st.just([v] * 40)))
    feature = Feature(name, kind, type_, shape, nullable, **rest)  # type: ignore[arg-type]
    return feature, st.one_of(st.none(), lists) if nullable else lists


NAMES = st.one_of(st.text("abc/é\U0001f600", max_size=6), st.sampled_from(["k" * n for n in (117, 118, 127, 128, 300)]))


@st.composite
def datasets(draw: st.DrawFn) -> tuple[Schema, list[list[Entry]]]:
    names = sorted(draw(st.lists(NAMES, unique=True, max_size=5)))
    drawn = [draw(features(name)) for name in names]
    rows: list[list[Entry]] = []
    for _ in range(draw(st.integers(0, 8))):
        values = [(feature, draw(value)) for feature, value in drawn]
        rows.append([(f.name, f.kind, v) for f, v in values if v is not None])
    return Schema(tuple(feature for feature, _ in drawn)), rows * draw(st.sampled_from([1, 1, 5]))


def stored_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_list(type_):
        return pa.list_(stored_type(type_.value_type))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(stored_type(type_.value_type), type_.list_size)
    if pa.types.is_temporal(type_):
        return pa.int32() if type_.bit_width == 32 else pa.int64()
    return type_


def comparable(value: Any) -> Any:
    if isinstance(value, list):
        return [comparable(v) for v in value]
    if isinstance(value, (float, np.floating)):
        return struct.pack("<f", value)
    return value.encode() if isinstance(value, str) else value


def check(batch: pa.RecordBatch, schema: Schema, rows: list[list[Entry]]) -> None:
    batch.validate(full=True)
    assert batch.num_rows == len(rows)
    assert [(f.name, f.type) for f in batch.schema] == [(f.name, arrow_type_of(f)) for f in schema]
    for feature, column in zip(schema, batch.columns, strict=True):
        expected = []
        for row in rows:
            values = next((list(v) for name, kind, v in row if name == feature.name and kind != "none"), None)
            scalar = values[0] if values is not None and feature.shape == () else values
            expected.append(bool(scalar) if feature.type == "bool" and scalar in (0, 1) else scalar)
        found = column.cast(stored_type(column.type)).to_pylist()
        assert list(map(comparable, found)) == list(map(comparable, expected)), feature


# --- records that we wrote


@settings(max_examples=examples(150), deadline=None)
@given(datasets())
def test_canonical_records_decode_to_the_values_they_were_made_from(dataset: tuple[Schema, list[list[Entry]]]) -> None:
    schema, rows = dataset
    check(decode_examples([as_written(row) for row in rows], schema), schema, rows)


@settings(max_examples=examples(150), deadline=None)
@given(datasets(), st.randoms(use_true_random=False), st.booleans())
def test_records_of_others_decode_to_the_same_values(
    dataset: tuple[Schema, list[list[Entry]]], order: random.Random, packed: bool
) -> None:
    schema, rows = dataset
    payloads = []
    for row in rows:
        entries = list(row)
        order.shuffle(entries)
        # The last entry of a key wins; keys and fields that nobody knows mean nothing.
        entries = [(name, "int64", [7]) for name, _, _ in entries[:1]] + [("~strange~", "float", [1.5])] + entries
        payloads.append(as_written(row) if order.random() < 0.3 else serialize(entries, packed, unknown=b"\x7a\x01x"))
    check(decode_examples(payloads, schema), schema, rows)


def test_serializing_slowly_gives_the_bytes_of_protobuf() -> None:
    entries: list[Entry] = [
        ("a", "int64", [1, -1]),
        ("b", "float", [1.5]),
        ("c", "bytes", ["x", ""]),
        ("d", "float", []),
    ]
    assert serialize(entries) == as_written(entries)


def test_canonical_records_do_not_need_protobuf(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema(
        (
            Feature("a", "int64", "int64", nullable=True),
            Feature("b", "bytes", "string", (-1,)),
            Feature("c" * 200, "bytes", "binary"),
            Feature("d", "float", "float32", (2,), nullable=True),
        )
    )
    rows: list[list[Entry]] = []
    for i in range(-3, 3):
        here: list[Entry] = [("a", "int64", [i << 40])] if i % 2 else []
        here += [("b", "bytes", ["x" * 200] * (i + 3)), ("c" * 200, "bytes", [b"y" * (1 << 2 * (i + 5))])]
        rows.append(here + ([("d", "float", [float(i), float(-i)])] if i % 3 else []))
    payloads = [as_written(row) for row in rows]

    def refuse(payload: bytes) -> None:
        raise AssertionError(f"asked protobuf for {payload[:40]!r}")

    monkeypatch.setattr("shardmill.transforms.format.examples.decode_examples.parse_example", refuse)
    check(decode_examples(payloads, schema), schema, rows)


def test_an_absent_feature_is_null_and_an_empty_list_is_empty() -> None:
    schema = Schema((Feature("n", "int64", "int64", (-1,), nullable=True), Feature("s", "bytes", "string", (-1,))))
    payloads = [
        example_from_values({"n": [], "s": []}, {"n": "int64", "s": "bytes"}).SerializeToString(deterministic=True),
        example_from_values({"s": ["a", ""]}).SerializeToString(deterministic=True),
    ]
    assert decode_examples(payloads, schema).to_pylist() == [{"n": [], "s": []}, {"n": None, "s": ["a", ""]}]


def test_a_feature_without_a_kind_is_absent() -> None:
    schema = Schema((Feature("a", "int64", "int64", nullable=True), Feature("b", "int64", "int64")))
    payload = example_from_values({"a": 0, "b": 2}, {"a": "none"}).SerializeToString(deterministic=True)
    assert decode_examples([payload], schema).to_pylist() == [{"a": None, "b": 2}]


def test_a_record_of_no_bytes_is_an_example_of_no_features() -> None:
    schema = Schema((Feature("a", "int64", "int64", nullable=True),))
    assert decode_examples([b"", b"\x0a\x00"], schema).to_pylist() == [{"a": None}] * 2
    assert decode_examples([b"", b"\x0a\x00"], Schema(())).num_rows == 2
    foreign = serialize([("strange", "int64", [1])])
    assert decode_examples([b"", foreign], Schema(())).num_rows == 2


def test_no_records_are_a_batch_of_no_rows() -> None:
    schema = Schema((Feature("a", "int64", "int64"), Feature("b", "bytes", "string", (3,))))
    batch = decode_examples([], schema)
    assert (batch.num_rows, batch.schema.names) == (0, ["a", "b"])
    assert batch.schema.field("b").type == pa.list_(pa.string(), 3)


def test_exact_float64_comes_back_from_its_bytes() -> None:
    schema = Schema(
        (Feature("x", "bytes", "float64", dtype="<f8"), Feature("y", "bytes", "float64", (-1,), dtype="<f8"))
    )
    numbers = [0.1, -1e300, float("inf")]
    raw = [struct.pack("<d", x) for x in numbers]
    payloads = [example_from_values({"x": r, "y": raw}).SerializeToString(deterministic=True) for r in raw]
    assert decode_examples(payloads, schema).to_pylist() == [{"x": x, "y": numbers} for x in numbers]
    with pytest.raises(ExampleError, match='feature "x": short does not fit the type float64'):
        decode_examples([example_from_values({"x": b"short", "y": raw}).SerializeToString()], schema)


def test_long_lists_of_a_few_records_are_split_exactly() -> None:
    schema = Schema((Feature("s", "bytes", "binary", (-1,)),))
    rows: list[list[Entry]] = [[("s", "bytes", [b"v" * (j % 300) for j in range(i * 100)])] for i in range(6)]
    check(decode_examples([as_written(row) for row in rows], schema), schema, rows)


def test_many_blocks_are_one_batch_in_order() -> None:
    schema = Schema((Feature("a", "int64", "int64"), Feature("b", "bytes", "string", nullable=True)))
    rows: list[list[Entry]] = [
        [("a", "int64", [i]), *([("b", "bytes", [str(i)])] if i % 3 else [])] for i in range(10_000)
    ]
    payloads = [as_written(row) if i % 1000 else serialize(row[::-1]) for i, row in enumerate(rows)]
    check(decode_examples(payloads, schema), schema, rows)


def test_payloads_may_come_in_any_form() -> None:
    schema = Schema((Feature("a", "int64", "int64"),))
    records = [as_written([("a", "int64", [i])]) for i in (1, 300, -5)]
    for form in (
        records,
        Payloads.from_bytes(records),
        pa.array([b"?", *records], pa.large_binary())[1:],
        pa.array(records, pa.binary_view()),
    ):
        assert decode_examples(form, schema).column(0).to_pylist() == [1, 300, -5]


def test_chosen_columns_come_in_the_order_they_are_asked_for() -> None:
    schema = Schema(tuple(Feature(name, "int64", "int64") for name in "abc"))
    payloads = [as_written([(name, "int64", [i]) for i, name in enumerate("abc")])]
    assert decode_examples(payloads, schema, ["c", "a"]).to_pylist() == [{"c": 2, "a": 0}]
    assert decode_examples(payloads, schema, []).num_rows == 1
    with pytest.raises(KeyError, match=r"column .{1,2}d.{1,2} is not a feature of the schema; it has: a, b, c"):
        decode_examples(payloads, schema, ["d"])


# --- whatever a record becomes

MIXED = Schema(
    (
        Feature("f", "float", "float32", (-1,), nullable=True),
        Feature("i", "int64", "int64", (-1,), nullable=True),
        Feature("s", "bytes", "binary", (-1,), nullable=True),
        Feature("t", "int64", "int64", nullable=True),
        Feature("u", "bytes", "binary", nullable=True),
    )
)
MIXED_ROW: list[Entry] = [
    ("f", "float", [1.5, 2.5]),
    ("i", "int64", [1, 300, -1]),
    ("s", "bytes", [b"ab", b""]),
    ("t", "int64", [-2]),
    ("u", "bytes", [b"xyz"]),
]


def oracle(payload: bytes) -> list[Entry] | None:
    message = Example()
    try:
        message.ParseFromString(payload)
    except DecodeError:
        return None
    kinds = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int64", None: "none"}
    found: list[Entry] = []
    for name, feature in message.features.feature.items():
        which = feature.WhichOneof("kind")
        found.append((name, kinds[which], list(getattr(feature, which).value) if which else []))
    return found


def fits(entries: list[Entry]) -> bool:
    schema = {feature.name: feature for feature in MIXED}
    return all(
        kind == "none" or (kind == schema[name].kind and (schema[name].shape != () or len(values) == 1))
        for name, kind, values in entries
        if name in schema
    )


@pytest.mark.parametrize("byte", range(len(as_written(MIXED_ROW))))
def test_whatever_a_byte_becomes_we_read_what_protobuf_reads(byte: int) -> None:
    payload = as_written(MIXED_ROW)
    changed = [payload[:byte] + bytes([value]) + payload[byte + 1 :] for value in range(256)]
    cut = [payload[:byte], payload[:byte] + payload[byte + 1 :], payload[:byte] + b"\x80" + payload[byte:]]
    decoded = ExampleDecoder(MIXED).try_decode(changed + cut)
    decoded.batch.validate(full=True)
    wrong = {problem.row for problem in decoded.problems}
    rows: list[list[Entry]] = []
    for row, candidate in enumerate(changed + cut):
        entries = oracle(candidate)
        assert (entries is None or not fits(entries)) == (row in wrong)
        rows.append([] if row in wrong or entries is None else entries)
    check(decoded.batch, MIXED, rows)


def mangle(payload: bytes, others: list[bytes], chance: random.Random) -> bytes:
    mangled = bytearray(payload)
    for _ in range(chance.randint(0, 3)):
        at, kind = chance.randint(0, min(len(mangled), 80)), chance.randrange(4)
        if kind == 0:
            mangled[at : at + 1] = bytes([chance.choice([0, 0x80, 0xFF, chance.randrange(256)])])
        elif kind == 1:
            mangled[at:at] = chance.choice([b"\x80", b"\x0a", b"\x12\x00", b"\x0a\x00", b"\xff" * 9 + b"\x01"])
        elif kind == 2:
            del mangled[at : at + chance.randint(1, 4)]
        else:
            other = chance.choice(others)
            mangled[at:] = other[chance.randint(0, min(len(other), 80)) :]
    return bytes(mangled)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_records_become_we_read_what_protobuf_reads(seed: int) -> None:
    chance = random.Random(seed)
    whole = [
        as_written(MIXED_ROW),
        serialize(MIXED_ROW[::-1]),
        serialize(MIXED_ROW, packed=False),
        as_written([("i", "int64", []), ("t", "int64", [1 << 62])]),
        as_written([("s", "bytes", [b"x" * 200] * 20), ("u", "bytes", [b"y" * 70_000])]),
        b"",
    ]
    payloads = [mangle(chance.choice(whole), whole, chance) for _ in range(400)]
    decoded = ExampleDecoder(MIXED).try_decode(payloads)
    decoded.batch.validate(full=True)
    wrong = {problem.row for problem in decoded.problems}
    rows: list[list[Entry]] = []
    for row, payload in enumerate(payloads):
        entries = oracle(payload)
        assert (entries is None or not fits(entries)) == (row in wrong)
        rows.append([] if row in wrong or entries is None else entries)
    check(decoded.batch, MIXED, rows)
    assert len(wrong) > 50 < len(payloads) - len(wrong)
