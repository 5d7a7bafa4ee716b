from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.format.batches.rows import FeatureColumn
from shardmill.transforms.format.columns.feature_column import feature_column
from shardmill.transforms.format.examples import example
from shardmill.transforms.format.examples.example import EntryPrefixes, ExampleEncoder, entry_prefix
from shardmill.transforms.format.schema.arrow_types import feature_of
from shardmill.transforms.format.tfrecord.framing import crc32c, frame_records

from ...examples import encode_examples, example_from_values
from ...tiers import examples


@dataclass(frozen=True)
class Sort:
    """A scalar Arrow type: how to draw its values, and what protobuf is to be given for one."""

    arrow: pa.DataType
    values: st.SearchStrategy[Any]
    kind: str
    feature: Callable[[Any], Any] = lambda value: value


LENGTHS = st.sampled_from([0, 1, 7, 8, 11, 12, 13, 126, 127, 128, 129]) | st.integers(0, 40)
INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [s * 2**k + d for k in range(62) for s in (1, -1) for d in (-1, 0)]
)
FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)
TEXT = st.text(max_size=20) | LENGTHS.map(lambda n: "x" * n)
BYTES = st.binary(max_size=20) | LENGTHS.map(lambda n: b"\xff" * n)

SORTS = [
    Sort(pa.bool_(), st.booleans(), "int64", int),
    Sort(pa.int8(), st.integers(-128, 127), "int64"),
    Sort(pa.uint16(), st.integers(0, 2**16 - 1), "int64"),
    Sort(pa.int32(), st.integers(-(2**31), 2**31 - 1), "int64"),
    Sort(pa.int64(), INTEGERS, "int64"),
    Sort(pa.uint64(), st.integers(0, 2**63 - 1), "int64"),
    Sort(pa.date32(), st.dates(), "int64", lambda d: d.toordinal() - 719163),
    Sort(pa.timestamp("us"), st.datetimes().map(lambda t: pa.scalar(t, pa.timestamp("us")).value), "int64"),
    Sort(pa.timestamp("ms"), st.integers(-(10**12), 10**12), "int64", lambda v: v * 1000),
    Sort(pa.timestamp("ns"), st.integers(-(10**18), 10**18), "int64", int),
    Sort(pa.time32("s"), st.integers(0, 86399), "int64", lambda v: v * 10**6),
    Sort(pa.duration("us"), st.integers(-(2**62), 2**62), "int64"),
    Sort(pa.float16(), st.floats(width=16, allow_nan=False).map(np.float16), "float", float),
    Sort(pa.float32(), FLOATS, "float"),
    Sort(pa.float64(), FLOATS, "float"),
    Sort(pa.string(), TEXT, "bytes"),
    Sort(pa.large_string(), TEXT, "bytes"),
    Sort(pa.string_view(), TEXT, "bytes"),
    Sort(pa.binary(), BYTES, "bytes"),
    Sort(pa.large_binary(), BYTES, "bytes"),
    Sort(pa.binary_view(), BYTES, "bytes"),
    Sort(pa.binary(5), st.binary(min_size=5, max_size=5), "bytes"),
    Sort(pa.binary(20), st.binary(min_size=20, max_size=20), "bytes"),
    Sort(pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "bb", "x" * 30]), "bytes"),
]
KEYS = st.text(max_size=6) | st.sampled_from(["k" * n for n in (100, 117, 118, 119, 127, 128)])
LISTS: list[Callable[[pa.DataType], pa.DataType] | None] = [
    None,
    None,
    pa.list_,
    pa.large_list,
    pa.list_view,
    lambda value: pa.list_(value, 3),
]


@dataclass(frozen=True)
class Drawn:
    """A column as Arrow holds it, and its values row by row as protobuf takes them."""

    array: pa.Array
    kind: str
    rows: list[Any]


@st.composite
def columns(draw: st.DrawFn, rows: int) -> Drawn:
    before, after = draw(st.integers(0, 9)), draw(st.integers(0, 3))
    sort, listed = draw(st.sampled_from(SORTS)), draw(st.sampled_from(LISTS))
    total = before + rows + after
    cell, arrow = sort.values, sort.arrow
    if listed is not None:
        arrow = listed(arrow)
        bounds = (3, 3) if pa.types.is_fixed_size_list(arrow) else (0, 5)
        cell = st.lists(cell, min_size=bounds[0], max_size=bounds[1])
    nullable = draw(st.booleans())
    cells = draw(st.lists(st.none() | cell if nullable else cell, min_size=total, max_size=total))
    array = build(cells, arrow).slice(before, rows)
    shown = cells[before : before + rows]
    features = [
        None if v is None else [sort.feature(x) for x in v] if listed is not None else sort.feature(v) for v in shown
    ]
    return Drawn(array, sort.kind, features)


def build(cells: list[Any], arrow: pa.DataType) -> pa.Array:
    if pa.types.is_list_view(arrow):
        # From offsets in falling order, so that views are neither adjacent nor sorted.
        flat = [x for cell in reversed(cells) for x in cell or []]
        sizes = [len(cell or []) for cell in cells]
        offsets = [sum(sizes[i + 1 :]) for i in range(len(cells))]
        mask = pa.array([cell is None for cell in cells], pa.bool_())
        return pa.ListViewArray.from_arrays(
            pa.array(offsets, pa.int32()), pa.array(sizes, pa.int32()), build(flat, arrow.value_type), mask=mask
        )
    if pa.types.is_dictionary(arrow):
        return pa.array(cells, pa.string()).dictionary_encode()
    if pa.types.is_list(arrow) and pa.types.is_dictionary(arrow.value_type):
        flat_list = pa.array(cells, pa.list_(pa.string()))
        values = flat_list.values.dictionary_encode()
        return pa.ListArray.from_arrays(flat_list.offsets, values, mask=flat_list.is_null())
    if pa.types.is_nested(arrow) and pa.types.is_dictionary(arrow.value_type):
        plain = pa.list_(pa.string(), 3) if pa.types.is_fixed_size_list(arrow) else pa.large_list(pa.string())
        return pa.array(cells, plain)
    return pa.array(cells, arrow)


def encoded(name: str, drawn: Drawn) -> FeatureColumn:
    feature, _ = feature_of(pa.field(name, drawn.array.type))
    assert feature.kind == drawn.kind
    conversion = feature_column(drawn.array, feature)
    assert conversion.problems == ()
    return conversion.column


def by_protobuf(table: dict[str, Drawn], row: int) -> bytes:
    present = {name: drawn.rows[row] for name, drawn in table.items() if drawn.rows[row] is not None}
    example = example_from_values(present, {name: drawn.kind for name, drawn in table.items()})
    example.features.SetInParent()  # type: ignore[attr-defined]  # the map is there even if it is empty
    return example.SerializeToString(deterministic=True)


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, dict[str, Drawn]]:
    rows = draw(st.integers(0, 6))
    names = draw(st.lists(KEYS, max_size=6, unique=True))
    return rows, {name: draw(columns(rows)) for name in names}


@settings(max_examples=examples(400), deadline=None)
@given(tables(), st.sampled_from([0, 1 << 10]), st.sampled_from([4, 1 << 16]))
def test_records_are_byte_for_byte_those_of_protobufs_deterministic_mode_however_many_integers_are_encoded_at_once(
    table: tuple[int, dict[str, Drawn]], few_rows: int, at_once: int
) -> None:
    rows, drawn = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(example, "_FEW_ROWS", few_rows)
        patch.setattr(example, "_NUMBERS_AT_ONCE", at_once)
        fast = encode_examples([encoded(name, column) for name, column in drawn.items()], rows)
    fast.validate(full=True)
    assert fast.to_pylist() == [by_protobuf(drawn, row) for row in range(rows)]


@settings(max_examples=examples(200), deadline=None)
@given(tables(), st.integers(0, 30), st.randoms())
def test_spliced_records_have_the_bytes_the_sums_and_the_frames_of_copied_ones(
    table: tuple[int, dict[str, Drawn]], splice_bytes: int, random: Any
) -> None:
    rows, drawn = table
    features = [encoded(name, column) for name, column in drawn.items()]
    copied = encode_examples(features, rows)
    layout = ExampleEncoder().lay_out(features, rows, splice_bytes=splice_bytes)
    spliced = layout.write()
    assert list(spliced.payloads(np.arange(rows))) == copied.to_pylist()
    assert layout.lengths.tolist() == spliced.lengths.tolist() == [len(p) for p in copied.to_pylist()]
    crcs = spliced.checksums()
    assert crcs.tolist() == [crc32c(payload) for payload in copied.to_pylist()]
    chosen = sorted(random.sample(range(rows), random.randint(0, rows)))
    assert list(spliced.payloads(np.array(chosen, np.int64))) == [copied[row].as_py() for row in chosen]
    for frames, expected in (
        (spliced.frame(crcs), copied),
        (spliced.frame(crcs, np.array(chosen, np.int64)), copied.take(pa.array(chosen, pa.int64()))),
    ):
        slow = frame_records(expected)
        assert b"".join(frames.buffers) == b"".join(slow.buffers)
        assert (frames.ends.tolist(), frames.digest) == (slow.ends.tolist(), slow.digest)
        if frames.crcs is not None:
            data = b"".join(frames.buffers)
            bounds = zip([0, *frames.ends.tolist()], frames.ends.tolist(), strict=False)
            assert frames.crcs.tolist() == [crc32c(data[start:end]) for start, end in bounds]


@pytest.mark.parametrize("length", [11, 12, 13, 126, 127, 128, 16382, 16383, 16384, 16385, 2097151, 2097152])
def test_sizes_at_the_edges_of_views_and_varints_are_those_of_protobuf(length: int) -> None:
    drawn = {
        "bytes": Drawn(pa.array([b"x" * length]), "bytes", [b"x" * length]),
        "floats": Drawn(pa.array([[0.5] * (length // 4)], pa.list_(pa.float32())), "float", [[0.5] * (length // 4)]),
        "ints": Drawn(pa.array([[-1] * (length // 10)]), "int64", [[-1] * (length // 10)]),
        "parts": Drawn(pa.array([[b"x" * length, b""]]), "bytes", [[b"x" * length, b""]]),
    }
    fast = encode_examples([encoded(name, column) for name, column in drawn.items()], 1)
    assert fast.to_pylist() == [by_protobuf(drawn, 0)]


def test_the_bits_of_a_float32_nan_are_kept() -> None:
    bits = [0x7FC00000, 0x7F800001, 0xFFC12345, 0x80000000]
    array = pa.Array.from_buffers(pa.float32(), 4, [None, pa.py_buffer(np.array(bits, np.uint32))])
    fast = encode_examples([encoded("x", Drawn(array, "float", []))], 4)
    assert [struct.unpack("<I", record[-4:])[0] for record in fast.to_pylist()] == bits


def test_keys_stand_in_the_order_of_protobufs_deterministic_mode() -> None:
    names = ["é", "z", "Z", "\U0001f600", "\uffff", "", "zz", "f1", "f10", "f2"]
    drawn = {name: Drawn(pa.array([1]), "int64", [1]) for name in names}
    fast = encode_examples([encoded(name, column) for name, column in drawn.items()], 1)
    assert fast.to_pylist() == [by_protobuf(drawn, 0)]


def test_a_record_is_these_bytes() -> None:
    drawn = {
        "b": Drawn(pa.array(["hi"]), "bytes", ["hi"]),
        "f": Drawn(pa.array([1.5], pa.float32()), "float", [1.5]),
        "i": Drawn(pa.array([[300, -1]]), "int64", [[300, -1]]),
    }
    fast = encode_examples([encoded(name, column) for name, column in drawn.items()], 1)
    assert fast[0].as_py().hex() == (
        "0a33"  # 51 bytes of features
        "0a0b0a0162"
        "12060a040a026869"
        "0a0d0a0166"
        "120812060a040000c03f"
        "0a150a0169"
        "12101a0e0a0cac02ffffffffffffffffff01"
    )


def test_a_row_without_features_is_an_example_whose_map_is_empty() -> None:
    assert encode_examples([], 2).to_pylist() == [b"\x0a\x00", b"\x0a\x00"]
    assert encode_examples([encoded("x", Drawn(pa.nulls(1), "bytes", []))], 1).to_pylist() == [b"\x0a\x00"]


def test_prefixes_looked_up_in_any_order_are_those_built_one_by_one() -> None:
    prefixes = EntryPrefixes(b"key", "int64", bare=False)
    for sizes in ([5, 1, 5], [3], [0, 700, 2], [1, 2], [1 << 20, 4, 0]):
        views, buffer = prefixes.views(np.array(sizes, np.int64), 1)
        array = pa.Array.from_buffers(
            pa.binary_view(), len(sizes), [None, pa.py_buffer(views), pa.py_buffer(b""), buffer]
        )
        assert array.to_pylist() == [entry_prefix(b"key", "int64", size, bare=size == 0) for size in sizes]
