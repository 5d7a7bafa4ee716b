"""What a user of the command line meets with the types of Parquet columns: unsupported, declared, differing by file."""

from __future__ import annotations

import shlex
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.errors import SchemaError


def put(desk: Any, name: str = "a.parquet", **columns: Any) -> None:
    pq.write_table(pa.table(columns), desk.root / name)


def test_all_columns_that_are_not_supported_are_told_at_once_with_the_command_that_keeps_the_others(desk: Any) -> None:
    put(desk, id=[1], place=[{"x": 1}], **{"it's": ["a"]}, deep=[[[1]]])
    screen = desk.convert("a.parquet")
    head, place, deep, fix = screen.err.splitlines()
    assert (screen.code, head) == (2, "error: a.parquet: 2 columns are not supported:")
    assert [place, deep] == [
        '  "place": struct<x: int64>, no feature holds it',
        '  "deep": list<element: list<element: int64>>, no feature holds it',
    ]
    start = "convert them before, or leave them out: "
    assert fix.startswith(start)
    assert desk.convert("a.parquet", *shlex.split(fix.removeprefix(start))).code == 0
    assert desk.records() == [{"id": 1, "it's": "a"}]


def test_data_in_memory_names_them_too(desk: Any) -> None:
    table = pa.table({"id": [1], "place": [{"x": 1}], "deep": [[[1]]]})
    with pytest.raises(SchemaError, match=r"2 columns are not supported:(.|\n)*leave them out: keep id alone"):
        convert(data=table, output=desk.root / "out")
