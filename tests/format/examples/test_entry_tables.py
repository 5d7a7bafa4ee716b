"""Integers that lie near each other are looked up with their prefix; the bytes are those of the long way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.batches.arrow_memory import concatenate, varint
from shardmill.transforms.format.examples import example as module
from shardmill.transforms.format.examples.example import EntryPrefixes, entry_prefix

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1


def entry(value: int) -> bytes:
    payload = varint(value % (1 << 64))
    return entry_prefix(b"key", "int64", len(payload)) + payload


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, -1, 100, 8191, 1 << 40, LOWEST, LOWEST + 40, HIGHEST - 40, HIGHEST]),
            st.lists(st.integers(-40, 40), min_size=1, max_size=60),
        ),
        max_size=6,
    )
)
def test_entries_that_are_looked_up_are_those_that_are_put_together(batches: list[tuple[int, list[int]]]) -> None:
    prefixes = EntryPrefixes(b"key", "int64", bare=False)
    for center, offsets in batches:
        values = np.array([min(max(center + offset, LOWEST), HIGHEST) for offset in offsets], np.int64)
        if prefixes.knows(values):
            views, buffer = prefixes.entries(values, 1)
            data, ends = concatenate(views, [pa.py_buffer(b"not this one"), buffer])
            expected = [entry(value) for value in values.tolist()]
            assert data.to_pybytes() == b"".join(expected)
            assert ends.tolist() == np.cumsum([len(each) for each in expected]).tolist()


def test_a_range_is_learned_only_where_it_is_small_and_repaid() -> None:
    limit = module._ENTRIES_LIMIT
    prefixes = EntryPrefixes(b"key", "int64", bare=False)
    assert not prefixes.knows(np.array([0, 100]))  # a hundred entries for two values
    assert not prefixes.knows(np.arange(0, 10 * limit, 10))
    assert not prefixes.knows(np.array([LOWEST, HIGHEST]))
    assert prefixes.knows(np.arange(limit))
    assert prefixes.knows(np.array([0, limit - 1]))  # it is known by now
    assert not prefixes.knows(np.array([5 * limit]))
