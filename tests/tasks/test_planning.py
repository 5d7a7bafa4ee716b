from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.batches.rows import RowOrigin, Rows
from shardmill.transforms.format.examples.encode_rows import RowEncoder
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.splits.shard_plan import plan_tasks
from shardmill.transforms.format.splits.splitter import OneSplit
from shardmill.transforms.inputs.contract.source import (
    Frozen,
    Listing,
    Piece,
    Source,
    SourceEntry,
    Survey,
    Task,
    map_in_turn,
)
from shardmill.transforms.inputs.contract.tasks import Plan, make_plan

from ..file_sources import made_source

MIB = 1 << 20
S = 64 * MIB


@given(st.lists(st.integers(0, 80 * MIB), max_size=300), st.sampled_from([64 << 10, MIB, S, 1 << 30]))
def test_every_piece_is_in_one_task_in_order_and_no_task_is_empty(outputs: list[int], shard_size: int) -> None:
    tasks = plan_tasks(outputs, shard_size)
    assert [piece for task in tasks for piece in task] == list(range(len(outputs)))
    assert all(len(task) for task in tasks)


@given(st.lists(st.integers(0, 80 * MIB), max_size=300), st.sampled_from([64 << 10, MIB, S]))
def test_a_piece_is_in_the_task_of_the_share_of_output_before_it(outputs: list[int], shard_size: int) -> None:
    tasks = plan_tasks(outputs, shard_size)
    total = sum(outputs)
    if total >= 8 * shard_size:
        goal = shard_size * min(max(round(total / (128 * shard_size)), 1), 8) * 103 // 100
    else:
        goal = max(total // 16, 8 * MIB)
    count = max(total // goal, 1)
    shares = [sum(outputs[:i]) * count // max(total, 1) for i in range(len(outputs))]
    assert [{shares[i] for i in task} for task in tasks] == [{share} for share in sorted(set(shares))]


@pytest.mark.parametrize(
    ("shards", "shards_a_task"),
    [(8, 1), (100, 1), (128, 1), (191, 1), (193, 2), (600, 5), (1024, 8), (4096, 8)],
)
def test_a_task_of_much_output_ends_just_over_whole_shards(shards: int, shards_a_task: int) -> None:
    tasks = plan_tasks([MIB] * (64 * shards), S)
    goal = 1.03 * shards_a_task * 64  # pieces: each has 1 MiB of output
    assert len(tasks) == int(64 * shards // goal)  # rounded down, so that a task is rather over than under
    assert all(len(task) >= shards_a_task * 64 for task in tasks)
    assert max(map(len, tasks)) - min(map(len, tasks)) <= 1


@pytest.mark.parametrize(
    ("output_mib", "tasks"),
    [(1, 1), (8, 1), (15, 1), (16, 2), (127, 15), (128, 16), (300, 16), (511, 16)],
)
def test_little_output_is_cut_into_16_tasks_at_most_of_8_mebibytes_at_least(output_mib: int, tasks: int) -> None:
    assert len(plan_tasks([MIB] * output_mib, S)) == tasks


def test_nothing_to_read_is_no_task_and_no_output_is_one() -> None:
    assert plan_tasks([], S) == []
    assert plan_tasks([0, 0, 0], S) == [range(3)]


class _Numbers:
    """A source of one file a piece, whose rows hold so many bytes of text each; only the first batch is sampled."""

    def __init__(self, *files: tuple[int, int]) -> None:
        self.files = files
        self.sampled: list[int] = []

    def plan(self, shard_size: int = S, compression: str = "none") -> Plan:
        entries = tuple(SourceEntry(b"f", f"f{i}", 1000, 0, "") for i in range(len(self.files)))
        pieces = tuple(
            Piece(entry=i, path=b"f", name=f"f{i}", stamp=(0, 0), rows=rows, first_row=0, bytes=1000)
            for i, (rows, _) in enumerate(self.files)
        )
        schema = Schema((Feature("t", "bytes", "string"),))
        survey = Survey(Frozen(schema), (), pieces)
        encoder = RowEncoder(schema, OneSplit("train"))
        listing = Listing("test", entries, len(entries), 0)
        source: Source = self  # type: ignore[assignment]
        return make_plan(source, listing, survey, shard_size, encoder.encode, compression)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        entry = task.pieces[0].entry
        self.sampled.append(entry)
        texts = pa.array(["x" * self.files[entry][1]] * min(self.files[entry][0], 50), pa.string())
        yield Rows(0, 0, entry, pa.record_batch([texts], ["t"]), RowOrigin(f"f{entry}", 1))
        raise AssertionError("more than the first batch was read")


def test_output_is_told_from_the_first_batch_of_up_to_8_files() -> None:
    source = _Numbers(*[(100, 200)] * 20)
    plan = source.plan()
    assert source.sampled == list(range(8))
    framed = 16 + 216  # the text, and 16 bytes around it for each of: the Example, the frame
    assert plan.estimate.rows == 2000
    assert abs(plan.estimate.bytes / 2000 - framed) < 16
    assert sum(plan.outputs) == plan.estimate.bytes


def test_a_file_without_rows_is_not_sampled() -> None:
    source = _Numbers((0, 1), (10, 5), (0, 1))
    assert source.plan().estimate.rows == 10
    assert source.sampled == [1]


def test_compressed_output_is_told_from_compressed_samples() -> None:
    plain, packed = (_Numbers((1000, 500)).plan(compression=kind).estimate for kind in ("none", "gzip"))
    assert packed.rows == plain.rows
    assert packed.bytes < plain.bytes / 5  # 500 times the same letter


def test_a_task_may_span_files_and_large_files_are_cut(tmp_path: Path) -> None:
    for i in range(30):
        (tmp_path / f"{i:02}.csv").write_text("a,b\n" + f"{i},x\n" * 10)
    (tmp_path / "z.csv").write_text("a,b\n" + '7,"yyyyyyyy\nyyyyyyyy"\n' * 200_000)
    source = made_source("csv", ("*.csv",), str(tmp_path))
    listing = source.list_files()
    survey = source.survey(listing, map_in_turn)
    encoder = RowEncoder(survey.frozen.schema, OneSplit("train"))
    plan = make_plan(source, listing, survey, 1 * MIB, encoder.encode)
    assert len(plan.tasks) > 3
    assert len({piece.entry for piece in plan.tasks[0].pieces}) == 31
    assert [task.ordinal for task in plan.tasks] == list(range(len(plan.tasks)))
    assert plan.expected_rows() == {**dict.fromkeys(range(30), 10), 30: 200_000}
