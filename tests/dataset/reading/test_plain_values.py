"""Values as JSON lines have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.dataset.reading.exported_tables import plain_list

F32 = pa.float32()


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (F32, 0.1, 0.1),
        (pa.list_(F32), [0.1, None], [0.1, None]),
        (pa.list_(F32, 2), [0.1, 0.7], [0.1, 0.7]),
        (pa.list_(pa.list_(F32)), [[0.1], []], [[0.1], []]),
        (pa.struct([("a", F32), ("b", pa.int64())]), {"a": 0.1, "b": 2}, {"a": 0.1, "b": 2}),
        (pa.list_(pa.struct([("a", F32)])), [{"a": 0.1}], [{"a": 0.1}]),
        (pa.map_(pa.string(), F32), [("k", 0.1)], {"k": 0.1}),
    ],
    ids=str,
)
def test_a_float32_has_the_fewest_digits_wherever_it_is(kind: pa.DataType, value: Any, expected: Any) -> None:
    assert plain_list("x", pa.array([value, None], kind)) == [expected, None]


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=5))
def test_it_is_read_back_as_the_same_float32(values: list[float]) -> None:
    (found,) = plain_list("x", pa.array([[values]], pa.list_(pa.list_(F32))))
    assert np.array(found[0], np.float32).tobytes() == np.array(values, np.float32).tobytes()
