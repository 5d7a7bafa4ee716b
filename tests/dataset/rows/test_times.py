"""Times by the numbers that records hold are what Arrow makes of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.dataset.rows.numbered_rows import time_of

DAY = 86_400 * 10**6
LEAST, MOST = -62_135_596_800 * 10**6, 253_402_300_800 * 10**6 - 1
"""The microseconds from 1970 to the year 1, and to the end of 9999."""

KINDS = [
    *(pa.timestamp("us", zone) for zone in (None, "UTC", "Europe/Berlin", "America/New_York", "+05:30")),
    pa.duration("us"),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(number=st.integers(LEAST + DAY, MOST - DAY))
def test_points_of_time_and_durations(kind: pa.DataType, number: int) -> None:
    of = time_of(kind)
    assert of is not None
    expected = pa.array([number]).view(kind)[0].as_py()
    assert (of(number), repr(of(number))) == (expected, repr(expected))


@given(number=st.integers(LEAST // DAY, MOST // DAY))
def test_days(number: int) -> None:
    of = time_of(pa.date32())
    assert of is not None
    assert of(number) == pa.array([number], pa.int32()).view(pa.date32())[0].as_py()


@given(number=st.integers(0, DAY - 1))
def test_times_of_day(number: int) -> None:
    of = time_of(pa.time64("us"))
    assert of is not None
    assert of(number) == pa.array([number]).view(pa.time64("us"))[0].as_py()


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_coarser_units(unit: str) -> None:
    for kind, storage in ((pa.timestamp(unit), np.int64), (pa.duration(unit), np.int64), (pa.time32(unit), np.int32)):
        of = time_of(kind)
        assert of is not None
        assert of(4711) == pa.array(np.array([4711], storage)).view(kind)[0].as_py()


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns"), pa.time64("ns")])
def test_nanoseconds_are_left_to_arrow(kind: pa.DataType) -> None:
    assert time_of(kind) is None


@pytest.mark.parametrize(
    ("kind", "number"),
    [(pa.timestamp("s"), 1 << 62), (pa.timestamp("us"), MOST + 1), (pa.date32(), 1 << 31), (pa.time32("s"), 86_400)],
)
def test_what_python_has_no_value_for_is_an_error(kind: pa.DataType, number: int) -> None:
    of = time_of(kind)
    assert of is not None
    with pytest.raises((ValueError, OverflowError)):
        of(number)
