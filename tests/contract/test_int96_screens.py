"""What the user of the command line sees of INT96 timestamps, which Spark, Hive and Impala wrote: one screen a case."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines.cli import main

FOREVER = 253_402_300_799_999_999
"""9999-12-31T23:59:59.999999, which stands for "no end" in many tables, in microseconds."""


def parquet(values: Any, kind: pa.DataType, **more: Any) -> bytes:
    """Return a file whose column `x` has these times, as INT96."""
    sink = pa.BufferOutputStream()
    table = pa.table({"x": pa.array(values, kind), **more})
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True, write_page_checksum=True, row_group_size=3)
    return bytes(sink.getvalue())


US, NS = pa.timestamp("us"), pa.timestamp("ns")
UNIT_NS = ["--set", "schema.columns.x.unit=ns"]

ACCEPTED: dict[str, tuple[bytes, Sequence[str], list[dict[str, list[int]]]]] = {
    "in the range of nanoseconds": (parquet([0, None, -1], US), [], [{"x": [0]}, {}, {"x": [-1]}]),
    "in the range of nanoseconds, which are declared": (
        parquet([1500, -1], NS),
        UNIT_NS,
        [{"x": [1500]}, {"x": [-1]}],
    ),
    "beyond it": (
        parquet([FOREVER, None, 1, -62_135_596_800_000_000], US),
        [],
        [{"x": [FOREVER]}, {}, {"x": [1]}, {"x": [-62_135_596_800_000_000]}],
    ),
    "beyond it, in a list": (parquet([[1, FOREVER], []], pa.list_(US)), [], [{"x": [1, FOREVER]}, {"x": []}]),
    "beyond it, in milliseconds, which are declared": (
        parquet([253_402_300_799_999], pa.timestamp("ms")),
        ["--set", "schema.columns.x.unit=ms"],
        [{"x": [253_402_300_799_999]}],
    ),
    "beyond it, after a row group of nulls": (parquet([None] * 3 + [FOREVER], US), [], [{}, {}, {}, {"x": [FOREVER]}]),
    "beyond it, in a column that is left out": (
        parquet([FOREVER], US, id=[7]),
        ["--set", "input.columns=[id]"],
        [{"id": [7]}],
    ),
}


def features(desk: Any) -> list[dict[str, list[int]]]:
    """Return the features of all records as they are stored."""
    with pytest.raises(SystemExit):
        main(["inspect", "out", "--json", "-n", "9"])
    return [json.loads(line)["features"] for line in desk.capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("case", ACCEPTED)
def test_an_int96_timestamp_is_exact(desk: Any, case: str) -> None:
    data, args, records = ACCEPTED[case]
    desk.put({"a.parquet": data})
    desk.assert_accepted(["a.parquet", *args], [], lambda _: None)
    assert features(desk) == records


REJECTED: dict[str, tuple[bytes, Sequence[str], str, str, list[dict[str, list[int]]]]] = {
    "finer than microseconds": (
        parquet([1500, 2000], NS),
        [],
        "1 of 2 rows was rejected (PRECISION_LOSS 1)",
        'a.parquet row group 0 row 1: column "x": PRECISION_LOSS: 1500 ns is not a whole number of us; keep it exact: '
        "--set schema.columns.x.unit=ns",
        [{"x": [2]}],
    ),
    "beyond nanoseconds, which are declared": (
        parquet([1, None, 2, FOREVER, 3], US),
        UNIT_NS,
        "1 of 5 rows was rejected (INT_OVERFLOW 1)",
        'a.parquet row group 1 row 4: column "x": INT_OVERFLOW: 253402300799999999000 ns is beyond the int64 range in '
        "ns; keep it exact: --set schema.columns.x.unit=us",
        [{"x": [1000]}, {}, {"x": [2000]}, {"x": [3000]}],
    ),
    "beyond nanoseconds, in a list": (
        parquet([[1, FOREVER], [2]], pa.list_(US)),
        UNIT_NS,
        "1 of 2 rows was rejected (INT_OVERFLOW 1)",
        'a.parquet row group 0 row 1: column "x": INT_OVERFLOW: 253402300799999999000 ns is beyond the int64 range in '
        "ns; keep it exact: --set schema.columns.x.unit=us",
        [{"x": [2000]}],
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_an_int96_timestamp_that_is_not_exact_is_named_and_the_other_rows_are_kept(desk: Any, case: str) -> None:
    data, args, counts, line, records = REJECTED[case]
    desk.put({"a.parquet": data})
    desk.assert_rejected(["a.parquet", *args], counts, [line], lambda _: None)
    assert features(desk) == records


def test_an_append_has_the_unit_of_the_dataset(desk: Any) -> None:
    desk.put({"a.parquet": parquet([1], NS), "b.parquet": parquet([FOREVER, 5], US), "c.parquet": parquet([7], NS)})
    assert desk.convert("a.parquet", *UNIT_NS).code == 0
    with pytest.raises(SystemExit) as ended:
        main(["append", "b.parquet", "c.parquet", "-o", "out", "--workers", "1"])
    assert ended.value.code == 4
    assert (
        'b.parquet row group 0 row 1: column "x": INT_OVERFLOW: 253402300799999999000 ns is beyond the int64 range in '
        "ns; the unit is the dataset's: fix the file, or convert all files to a new dataset (shardmill convert ... "
        "-o FOLDER)"
    ) in desk.capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["append", "b.parquet", "c.parquet", "-o", "out", "--workers", "1", "--max-rejects", "1"])
    assert ended.value.code == 0
    desk.capsys.readouterr()
    assert features(desk) == [{"x": [1]}, {"x": [5000]}, {"x": [7]}]


def test_far_times_are_appended_to_a_dataset_of_microseconds(desk: Any) -> None:
    desk.put({"a.parquet": parquet([1], US), "b.parquet": parquet([FOREVER], US)})
    assert desk.convert("a.parquet").code == 0
    with pytest.raises(SystemExit) as ended:
        main(["append", "b.parquet", "-o", "out", "--workers", "1"])
    assert ended.value.code == 0
    desk.capsys.readouterr()
    assert features(desk) == [{"x": [1]}, {"x": [FOREVER]}]
