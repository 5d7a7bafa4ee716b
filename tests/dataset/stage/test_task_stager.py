from __future__ import annotations

import itertools
import json
import os
import random
import time
import zlib
from pathlib import Path

import crc32c
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.dataset.stage.split_stager import StageSettings
from shardmill.transforms.dataset.stage.task_stager import TaskResult, TaskStager
from shardmill.transforms.dataset.storage.direct_file import FrameSlices
from shardmill.transforms.dataset.storage.local_storage import LocalStorage
from shardmill.transforms.errors import UsageError
from shardmill.transforms.format.batches.rejects import CellError, Place, Reject
from shardmill.transforms.format.batches.rows import Block, EntryCounts, Frames, Narrowing, TaskEnd
from shardmill.transforms.format.batches.summaries import (
    IMAGE_FORMATS,
    image_formats_in,
    narrowed_summary,
    narrowings_in,
    notes_in,
    notes_summary,
)
from shardmill.transforms.format.tfrecord.framing import frame_records

from ...tiers import examples
from ..open_files import files_open_below

RUN = ".staging/run"


def frames_of(payloads: list[bytes]) -> Frames:
    return frame_records(pa.array(payloads, pa.large_binary()))


def scattered(frames: Frames, dice: random.Random) -> Frames:
    """The same bytes in many buffers, some of them empty."""
    data = b"".join(memoryview(b) for b in frames.buffers)
    cuts = sorted(dice.randint(0, len(data)) for _ in range(dice.randint(0, 2 * frames.records)))
    bounds = [0, *cuts, len(data)]
    buffers = tuple(pa.py_buffer(data[a:b]) for a, b in itertools.pairwise(bounds))
    return Frames(buffers, frames.ends, frames.digest)


def blocks_of(payloads: list[bytes], sizes: list[int], dice: random.Random | None = None) -> list[Block]:
    blocks: list[Block] = []
    rest = payloads
    for size in [*sizes, len(payloads)]:
        batch, rest = rest[:size], rest[size:]
        if batch:
            frames = frames_of(batch)
            frames = scattered(frames, dice) if dice else frames
            counts = (EntryCounts(0, read=len(batch), written=len(batch)),)
            blocks.append(Block(7, len(blocks), {"train": frames}, counts))
    return blocks


def stage(root: Path, blocks: list[Block], settings: StageSettings) -> TaskResult:
    stager = TaskStager(LocalStorage(str(root)), RUN, 7, settings)
    for block in blocks:
        stager.add(block)
    return stager.finish(TaskEnd(7, len(blocks), {0: sum(c.read for b in blocks for c in b.counts)}))


def part_bytes(root: Path, result: TaskResult, split: str = "train") -> list[bytes]:
    return [(root / RUN / part.path).read_bytes() for part in result.splits[split].parts]


def records_in(data: bytes) -> list[bytes]:
    records, at = [], 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 8], "little")
        records.append(data[at + 12 : at + 12 + length])
        at += length + 16
    return records


def gunzipped(data: bytes) -> list[bytes]:
    """The content of each member, by zlib."""
    members = []
    while data:
        unzip = zlib.decompressobj(31)
        members.append(unzip.decompress(data))
        assert unzip.eof
        data = unzip.unused_data
    return members


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[bytes], list[int], int]:
    """Payloads, how they come in blocks, and a shard size."""
    dice = random.Random(draw(st.integers(0, 2**32)))
    top = draw(st.sampled_from([10, 300, 3000, 6000]))
    payloads = [dice.randbytes(dice.randint(0, top)) for _ in range(draw(st.integers(1, 120)))]
    return payloads, draw(st.lists(st.integers(1, 40), max_size=8)), draw(st.sampled_from([512, 1024, 4096]))


@settings(max_examples=examples(60), deadline=None)
@given(streams(), st.sampled_from(["task", "source"]))
def test_parts_roll_at_record_boundaries_and_say_what_they_hold(
    tmp_path_factory: pytest.TempPathFactory, stream: tuple[list[bytes], list[int], int], order: str
) -> None:
    payloads, sizes, shard_size = stream
    root = tmp_path_factory.mktemp("stage")
    blocks = blocks_of(payloads, sizes, random.Random(1))
    result = stage(root, blocks, StageSettings(shard_size, order=order))
    parts, data = result.splits["train"].parts, part_bytes(root, result)
    assert [record for part in data for record in records_in(part)] == payloads
    assert result.splits["train"].digest == frames_of(payloads).digest
    for i, (part, content) in enumerate(zip(parts, data, strict=True)):
        lengths = [len(record) + 16 for record in records_in(content)]
        assert (part.number, part.bytes, part.records) == (i, len(content), len(lengths))
        assert part.crc == crc32c.crc32c(content)
        assert part.unit_bytes == max(lengths)
        assert part.kind == "oversize" if lengths[0] > shard_size else part.bytes <= shard_size
        for cut in part.cuts:
            assert cut.crc == crc32c.crc32c(content[: cut.offset])
            assert sum(lengths[: cut.records]) == cut.offset
        if part.kind == "full":
            following = len(records_in(data[i + 1])[0]) + 16
            assert part.bytes + following > shard_size
            assert part.bytes * 16 >= shard_size * 15
        if part.kind == "tail" or order == "source":
            gaps = np.diff([0, *(cut.offset for cut in part.cuts)])
            assert gaps.max() <= max(shard_size // 256, *lengths)
    assert TaskResult.from_json(result.to_json()) == result
    assert (root / RUN / "tasks/000007.json").read_bytes() == result.to_json()


@settings(max_examples=examples(40), deadline=None)
@given(streams(), st.sampled_from(["none", "gzip"]))
def test_parts_do_not_depend_on_how_records_came_in_blocks(
    tmp_path_factory: pytest.TempPathFactory, stream: tuple[list[bytes], list[int], int], compression: str
) -> None:
    payloads, sizes, shard_size = stream
    settings = StageSettings(shard_size, compression)
    root = tmp_path_factory.mktemp("stage")
    once = stage(root, blocks_of(payloads, []), settings)
    again = stage(root, blocks_of(payloads, sizes, random.Random(2)), settings)
    assert part_bytes(root, once) == part_bytes(root, again)
    assert [part.cuts for part in once.splits["train"].parts] == [part.cuts for part in again.splits["train"].parts]


@settings(max_examples=examples(40), deadline=None)
@given(streams())
def test_gzip_members_end_where_the_bound_is_reached_and_are_the_cut_points(
    tmp_path_factory: pytest.TempPathFactory, stream: tuple[list[bytes], list[int], int]
) -> None:
    payloads, sizes, shard_size = stream
    root = tmp_path_factory.mktemp("stage")
    result = stage(root, blocks_of(payloads, sizes), StageSettings(shard_size, "gzip", "source"))
    data = part_bytes(root, result)
    members = [member for part in data for member in gunzipped(part)]
    bound = shard_size // 8
    # the slow rule: one record after the other
    wanted: list[bytes] = []
    gathered = b""
    for frame in (b"".join(memoryview(b) for b in frames_of([payload]).buffers) for payload in payloads):
        if len(frame) >= bound and gathered:
            wanted.append(gathered)
            gathered = b""
        gathered += frame
        if len(gathered) >= bound:
            wanted.append(gathered)
            gathered = b""
    assert members == wanted + ([gathered] if gathered else [])
    for part, content in zip(result.splits["train"].parts, data, strict=True):
        inside = gunzipped(content)
        assert len(part.cuts) == len(inside)
        assert [cut.records for cut in part.cuts] == list(np.cumsum([len(records_in(member)) for member in inside]))
        assert part.crc == crc32c.crc32c(content)
        assert part.bytes <= shard_size or part.kind == "oversize"


def test_more_buffers_than_one_call_takes_are_all_written(tmp_path: Path) -> None:
    payloads = [bytes([i % 251]) * 5 for i in range(3000)]
    frames = frames_of(payloads)
    data = b"".join(memoryview(b) for b in frames.buffers)
    single = Frames(tuple(pa.py_buffer(data[i : i + 7]) for i in range(0, len(data), 7)), frames.ends, frames.digest)
    result = stage(tmp_path, [Block(7, 0, {"train": single})], StageSettings(1 << 20))
    assert part_bytes(tmp_path, result) == [data]


def test_a_write_that_the_system_cuts_short_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_pwritev = os.pwritev
    calls: list[int] = []

    def short_pwritev(file: int, views: list[memoryview], offset: int) -> int:
        calls.append(offset)
        return real_pwritev(file, [views[0][:9]], offset)

    monkeypatch.setattr(os, "pwritev", short_pwritev)
    payloads = [b"a" * 30, b"b" * 50, b"", b"c"]
    result = stage(tmp_path, blocks_of(payloads, [], random.Random(5)), StageSettings(1 << 16))
    assert len(calls) > 1
    assert records_in(part_bytes(tmp_path, result)[0]) == payloads


def test_splits_are_rolled_apart_and_everything_is_added_up(tmp_path: Path) -> None:
    bad = Reject(1, Place("a.csv", row=3), (CellError("x", "BAD_TYPE", "?", "int", "no"),) * 2, "train")
    stager = TaskStager(LocalStorage(str(tmp_path)), RUN, 0, StageSettings(1 << 16))
    lost = Narrowing("p", "float64", "float32", 2, 1e-8, 1)
    more = Narrowing("p", "float64", "float32", 3, 5e-8, 0)
    for i, narrowing in enumerate((lost, more)):
        frames = {"train": frames_of([b"a"]), "val": frames_of([b"b", b"c"])}
        counts = (EntryCounts(0, 3, 3), EntryCounts(1, 1, 0, 1))
        observed = narrowed_summary([narrowing]) | notes_summary({(1, "odd rows"): i + 1})
        stager.add(Block(0, i, frames, counts, (bad,), observed | {IMAGE_FORMATS: ["jpeg", "png"][i:]}))
    result = stager.finish(TaskEnd(0, 2, {0: 6, 1: 2}, ("a.csv: cut",)))
    assert {name: split.parts[0].records for name, split in result.splits.items()} == {"train": 2, "val": 4}
    assert result.counts == (EntryCounts(0, 6, 6), EntryCounts(1, 2, 0, 2))
    assert narrowings_in(result.observed) == (Narrowing("p", "float64", "float32", 5, 5e-8, 1),)
    assert image_formats_in(result.observed) == ("jpeg", "png")
    assert result.failures == ("a.csv: cut",)
    assert result.rows_read == {0: 6, 1: 2}
    assert notes_in(result.observed) == {(1, "odd rows"): 3}
    assert TaskResult.from_json((tmp_path / RUN / result.path).read_bytes()) == result
    assert result.rejects is not None
    assert (result.rejects.records, result.rejects.by_code) == (2, {"BAD_TYPE": 2})
    lines = (tmp_path / RUN / result.rejects.path).read_text().splitlines()
    assert [json.loads(line)["row"] for line in lines] == [3, 3]


def test_a_task_without_records_leaves_no_part(tmp_path: Path) -> None:
    result = stage(tmp_path, [Block(7, 0, {"train": frames_of([])})], StageSettings(1 << 16))
    assert result.splits == {}
    assert not (tmp_path / RUN / "parts").exists()


def test_two_attempts_at_one_task_share_no_file(tmp_path: Path) -> None:
    first, second = (stage(tmp_path, blocks_of([b"x"], []), StageSettings(1 << 16)) for _ in range(2))
    assert first.splits["train"].parts[0].path != second.splits["train"].parts[0].path
    assert part_bytes(tmp_path, first) == part_bytes(tmp_path, second)


@pytest.mark.parametrize(("task", "ordinal"), [(8, 0), (7, 1)])
def test_a_block_out_of_turn_is_not_fused(tmp_path: Path, task: int, ordinal: int) -> None:
    stager = TaskStager(LocalStorage(str(tmp_path)), RUN, 7, StageSettings(1 << 16))
    with pytest.raises(RuntimeError, match="not fused"):
        stager.add(Block(task, ordinal, {}))


@pytest.mark.parametrize("end", [TaskEnd(7, 2), TaskEnd(8, 1), TaskEnd(7, 0)])
def test_an_end_mark_that_does_not_fit_is_not_fused(tmp_path: Path, end: TaskEnd) -> None:
    stager = TaskStager(LocalStorage(str(tmp_path)), RUN, 7, StageSettings(1 << 16))
    stager.add(Block(7, 0, {}))
    with pytest.raises(RuntimeError, match="not fused"):
        stager.finish(end)


def test_an_attempt_that_failed_lets_go_of_its_files(tmp_path: Path) -> None:
    stager = TaskStager(LocalStorage(str(tmp_path)), RUN, 7, StageSettings(1 << 16))
    bad = Reject(0, Place("a.csv", row=1), (), None)
    stager.add(Block(7, 0, {"train": frames_of([b"a"])}, rejects=(bad,)))
    stager.abandon()
    until = time.monotonic() + 300
    while names := files_open_below(tmp_path):  # a file is closed when its sync is done, on another thread
        assert time.monotonic() < until, names
    assert not (tmp_path / RUN / "tasks" / "000000.json").exists()


def test_a_split_that_cannot_be_part_of_a_file_name_is_refused(tmp_path: Path) -> None:
    stager = TaskStager(LocalStorage(str(tmp_path)), RUN, 7, StageSettings(1 << 16))
    with pytest.raises(UsageError, match="cannot name a split"):
        stager.add(Block(7, 0, {"../x": frames_of([b"a"])}))


def test_slices_of_frames_share_the_memory_of_the_block() -> None:
    frames = frames_of([b"a" * 100, b"b" * 100])
    slices = FrameSlices(frames.buffers)
    views = [*slices.take(116), *slices.take(232)]
    addresses = [np.frombuffer(view, np.uint8).__array_interface__["data"][0] for view in views]
    assert addresses == [frames.buffers[0].address, frames.buffers[0].address + 116]
