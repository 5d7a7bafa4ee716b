"""Arrow files and streams: nested columns, runs, views, decimals and times, with bytes that are false."""

from __future__ import annotations

import io
import os
import random
from datetime import time
from decimal import Decimal

import pyarrow as pa
from mutate import mutate
from shardmill.transforms.errors import ShardmillError
from shardmill.transforms.format.batches.rejects import CellProblem
from shardmill.transforms.format.columns.flatten import flatten_column, refuse_unsupported
from shardmill.transforms.inputs.contract.selection import exclude_columns
from shardmill.transforms.inputs.contract.source import Task, map_in_turn
from targets import Target, file_of, ours, source_of

_TIMES = 20
_LISTS = pa.table(
    {
        "view": pa.array([[1, 2], None, []] * _TIMES, pa.list_view(pa.int16())),
        "text": pa.array(["é" * 20, None, "b"] * _TIMES, pa.string_view()),
        "word": pa.array(["é", None, "b"] * _TIMES).dictionary_encode(),
        "struct": pa.array([[{"a": 1, "b": "x"}], None, []] * _TIMES),
        "ragged": pa.array([[["a"], []], None, []] * _TIMES, pa.large_list(pa.list_(pa.large_string()))),
        "fixed": pa.array([[1.0, 2.0], None, [3.0, 4.0]] * _TIMES, pa.list_(pa.float32(), 2)),
        "map": pa.array([[("k", 1)], None, []] * _TIMES, pa.map_(pa.string(), pa.int32())),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([20, 60], pa.int32()), pa.array(["a", None])),
    }
)
_NUMBERS = pa.table(
    {
        "d": [Decimal(i) / 4 for i in range(60)],
        "t": [time(i % 24) for i in range(60)],
        "wide": pa.array([Decimal("1.5"), None, Decimal(2)] * _TIMES, pa.decimal256(50, 3)),
        "in_list": [[Decimal(i)] * (i % 3) for i in range(60)],
        "in_struct": [{"t": time(1), "d": Decimal(i)} for i in range(60)],
        "in_map": pa.array([[("a", Decimal(i))] for i in range(60)], pa.map_(pa.string(), pa.decimal128(9, 2))),
        "moment": pa.array([1, None, 3] * _TIMES, pa.timestamp("ns")),
    }
)


def _arrow(table: pa.Table, *, stream: bool) -> bytes:
    sink = io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=40)
    return sink.getvalue()


ARROW = [
    _arrow(_LISTS, stream=False),
    _arrow(_LISTS, stream=True),
    _arrow(_NUMBERS, stream=False),
    _arrow(_NUMBERS, stream=True),
]


def make_arrow(rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return bytes(mutate(rng, ARROW))
    data = bytearray(rng.choice(ARROW))
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(8, len(data))] = rng.choice((0, 255, rng.randrange(256)))
    return bytes(data)


def check_arrow(data: bytes) -> str:
    """Read a file, and flatten its columns; each row is sound, or a problem."""
    source = source_of("arrow", os.path.basename(file_of(data, "a.arrow")))
    problems: list[CellProblem] = []
    try:
        survey = source.survey(source.list_files(), map_in_turn)
        refuse_unsupported(survey.fields, "a.arrow", exclude_columns)
        for rows in source.read(Task(0, survey.pieces), survey.frozen):
            problems += rows.problems
            for name, column in zip(rows.batch.schema.names, rows.batch.columns, strict=True):
                flat = flatten_column(name, column, nullable=True)
                assert all(len(one.values) == rows.batch.num_rows for one in flat.columns), name
                problems += flat.problems
    except ShardmillError as error:
        return ours(error)
    assert all(problem.error.message.isprintable() for problem in problems)
    return "problems" if problems else "read"


TARGETS = {"arrow": Target(make_arrow, check_arrow)}
