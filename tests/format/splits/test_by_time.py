from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.errors import SchemaError
from shardmill.transforms.format.batches.rows import RowOrigin, Rows
from shardmill.transforms.format.examples.encode_rows import RowEncoder
from shardmill.transforms.format.schema.arrow_types import feature_of
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.splits.by_row import TimeSplits
from shardmill.transforms.format.splits.splitter import Candidates

BOUNDS = (("train", "2024-01-01"), ("val", "2024-02-01"))


def split_of(array: pa.Array, splitter: TimeSplits) -> tuple[list[str], list[tuple[int | None, str, str]]]:
    """Return the split of each row ("" for a reject), and the row, code and value of each reject."""
    batch = pa.record_batch({"day": array, "n": range(len(array))})
    schema = Schema(tuple(feature_of(one)[0] for one in batch.schema))
    encoder = RowEncoder(schema, splitter)
    splits = [""] * len(array)
    for row in range(len(array)):
        block = encoder.encode(Rows(0, 0, 0, batch.slice(row, 1), RowOrigin("a", 1)))
        splits[row] = next(iter(block.splits), "")
    block = encoder.encode(Rows(0, 0, 0, batch, RowOrigin("a", 1)))
    assert {name: frames.records for name, frames in block.splits.items()} == {
        name: splits.count(name) for name in set(splits) if name
    }
    return splits, [(one.place.row, error.code, error.value) for one in block.rejects for error in one.errors]


DAYS = [dt.date(2023, 12, 31), dt.date(2024, 1, 1), dt.date(2024, 1, 31), dt.date(2024, 2, 1), dt.date(1969, 1, 1)]
SPLITS = ["train", "val", "val", "test", "train"]


TIMES = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), *TIMES], ids=str)
def test_a_row_is_strictly_before_its_bound(kind: pa.DataType) -> None:
    assert split_of(pa.array(DAYS).cast(kind), TimeSplits("day", BOUNDS, "test")) == (SPLITS, [])


def test_a_bound_beyond_the_range_of_nanoseconds_is_after_or_before_all_rows() -> None:
    ends = pa.array([-(2**63), 0, 2**63 - 1], pa.timestamp("ns"))
    assert split_of(ends, TimeSplits("day", (("train", "3000-01-01"),), "test"))[0] == ["train"] * 3
    bounds = (("train", "1600-01-01"), ("val", "2000-01-01"))
    assert split_of(ends, TimeSplits("day", bounds, "test"))[0] == ["val", "val", "test"]


def test_text_in_iso_8601_is_compared_as_time() -> None:
    texts = [day.isoformat() for day in DAYS]
    texts += ["2023-12-31T23:59:59.9999999", "2024-01-01 00:00", "2024-01-01T00:30+01:00", "20240201", "2024-01-31T23Z"]
    splits, rejects = split_of(pa.array(texts), TimeSplits("day", BOUNDS, "test"))
    assert (splits, rejects) == ([*SPLITS, "train", "val", "train", "test", "val"], [])


def test_a_bound_is_midnight_in_the_time_zone_of_the_column() -> None:
    moments = pa.array([dt.datetime(2023, 12, 31, 22, 59, 59), dt.datetime(2023, 12, 31, 23)], pa.timestamp("s", "UTC"))
    zoned = moments.cast(pa.timestamp("ns", "Europe/Berlin"))
    assert split_of(zoned, TimeSplits("day", BOUNDS[:1], "test"))[0] == ["train", "test"]
    offset = TimeSplits("day", (("train", "2024-01-01T02:00:00+03:00"),), "test")
    assert split_of(zoned, offset)[0] == ["train", "test"]


def test_a_bound_with_a_clock_cuts_within_a_day() -> None:
    clocks = pa.array([dt.datetime(2024, 1, 1, 11, 59, 59), dt.datetime(2024, 1, 1, 12)], pa.timestamp("s"))
    noon = TimeSplits("day", (("train", "2024-01-01T12:00:00"),), "test")
    assert split_of(clocks, noon)[0] == ["train", "test"]
    assert split_of(pa.array(DAYS[1:3]), noon)[0] == ["train", "test"]
    half = TimeSplits("day", (("train", "2024-01-01T11:59:59.5"),), "test")
    assert split_of(clocks, half)[0] == ["train", "test"]


def test_a_null_a_text_that_is_no_date_and_a_row_after_the_last_bound_are_rejects() -> None:
    array = pa.array(["2023-05-01", None, "1.5.2023", "2024-03-01"])
    splits, rejects = split_of(array, TimeSplits("day", BOUNDS))
    assert splits == ["train", "", "", ""]
    assert rejects == [(2, "NO_SPLIT", "null"), (3, "NO_SPLIT", "1.5.2023"), (4, "NO_SPLIT", "a later time")]
    assert split_of(array, TimeSplits("day", BOUNDS, "test"))[1] == rejects[:2]


def test_one_split_may_have_two_spans() -> None:
    splitter = TimeSplits("day", BOUNDS, "train")
    assert split_of(pa.array(DAYS), splitter)[0] == ["train", "val", "val", "train", "train"]


@given(st.lists(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)), max_size=20), st.data())
def test_rows_go_where_python_compares_them(moments: list[dt.datetime], data: st.DataObject) -> None:
    kind = pa.timestamp(data.draw(st.sampled_from(["s", "ms", "us", "ns"])))
    bounds = sorted(data.draw(st.sets(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)), min_size=1)))
    array = pa.array(moments, pa.timestamp("us")).cast(kind, safe=False)
    splitter = TimeSplits("day", tuple((f"s{i}", bound.isoformat()) for i, bound in enumerate(bounds)), "rest")
    held = [value.to_pydatetime() if hasattr(value, "to_pydatetime") else value for value in array.to_pylist()]
    expected = [next((f"s{i}" for i, bound in enumerate(bounds) if value < bound), "rest") for value in held]
    assert split_of(array, splitter)[0] == expected


@pytest.mark.parametrize(
    ("feature", "bounds", "says"),
    [
        (Feature("day", "int64", "int64"), BOUNDS, "holds int64, which is no date"),
        (Feature("day", "int64", "date"), (("train", "2024-01-01T00:00:00Z"),), "has an offset"),
        (Feature("days", "int64", "date"), BOUNDS, 'did you mean "days"'),
    ],
)
def test_a_column_that_is_no_time_is_refused_by_name(feature: Feature, bounds: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        TimeSplits("day", bounds).check(Schema((feature,)))


def test_rows_of_no_batch_have_no_split() -> None:
    schema = Schema((Feature("day", "int64", "date", nullable=True),))
    batch = pa.record_batch({"day": pa.nulls(0, pa.date32())})
    assert RowEncoder(schema, TimeSplits("day", BOUNDS)).encode(batch).splits == {}
    assert Candidates(schema, {}, 0, lambda row: b"").rows == 0
