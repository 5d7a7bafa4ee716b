from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.tfrecord.framing import Payloads, gather_pieces

RECORDS = [b"", b"a", b"x" * 12, b"y" * 13, b"z" * 300]


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_a_slice_of_any_binary_array_gives_its_own_payloads(type_: pa.DataType) -> None:
    array = pa.array([b"before", *RECORDS, b"after"], type_)
    assert list(Payloads.from_arrow(array[1:-1])) == RECORDS
    assert list(Payloads.from_arrow(array[:0])) == []


def test_payloads_are_the_bytes_they_were_made_from() -> None:
    payloads = Payloads.from_bytes(RECORDS)
    assert list(payloads) == RECORDS
    assert [payloads[i] for i in range(len(payloads))] == RECORDS
    assert payloads.to_arrow().to_pylist() == RECORDS
    assert list(payloads.take(np.array([4, 1]))) == [RECORDS[4], RECORDS[1]]
    assert list(payloads.head(2)) + list(payloads.tail(2)) == RECORDS


def test_no_payloads_are_an_empty_array() -> None:
    assert list(Payloads.from_bytes([])) == []
    assert Payloads.from_bytes([]).to_arrow().to_pylist() == []


def test_a_null_is_refused() -> None:
    with pytest.raises(ValueError, match="a payload is null"):
        Payloads.from_arrow(pa.array([b"", None], pa.binary()))


@given(st.binary(min_size=1, max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=20))
def test_gathered_pieces_are_those_that_slicing_gives(data: bytes, pairs: list[tuple[int, int]]) -> None:
    cut = [(min(a, b, len(data)), min(max(a, b), len(data))) for a, b in pairs]
    starts = np.array([a for a, _ in cut], np.int64)
    sizes = np.array([b - a for a, b in cut], np.int64)
    assert gather_pieces(np.frombuffer(data, np.uint8), starts, sizes).tobytes() == b"".join(data[a:b] for a, b in cut)
