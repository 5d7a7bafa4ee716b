"""Record starts in the middle of a file, and cuts of a stream: whole shards but for the last two."""

from __future__ import annotations

import os
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.format.tfrecord.framing import FRAME_BYTES
from shardmill.transforms.sources.tfrecord.pieces import cut_stream, find_record_start


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 300), min_size=1, max_size=60), st.integers(0, 20_000), st.integers(0, 2**32))
def test_the_first_start_at_or_after_a_place_is_found(tmp_path: Path, sizes: list[int], at: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path / "x"
    write_records(path, [rng.bytes(size) for size in sizes])
    starts = list(accumulate((size + FRAME_BYTES for size in sizes), initial=0))
    expected = next((start for start in starts[:-1] if start >= at), None)
    with path.open("rb") as file:
        assert find_record_start(partial(os.pread, file.fileno()), at, starts[-1]) == expected


def test_zeros_and_what_only_looks_like_a_header_are_no_start(tmp_path: Path) -> None:
    write_records(tmp_path / "inner", [b"inner"])
    header = (tmp_path / "inner").read_bytes()[:12]
    write_records(tmp_path / "x", [bytes(100) + header + bytes(100), b"next", b"last"])
    size = (tmp_path / "x").stat().st_size
    with (tmp_path / "x").open("rb") as file:
        assert find_record_start(partial(os.pread, file.fileno()), 5, size) == 212 + FRAME_BYTES


@given(st.integers(0, 1 << 42), st.sampled_from([1 << 16, 1 << 20, 128 << 20, 1 << 50]))
def test_cuts_go_up_to_the_end_and_make_whole_shards(size: int, shard_size: int) -> None:
    if size > 4000 * shard_size:
        size %= 4000 * shard_size
    ends = cut_stream(size, shard_size)
    gap = shard_size // 256
    assert ends == sorted(set(ends))
    assert (ends[-1] if ends else 0) == size
    lengths = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    for length in lengths[:-2]:
        shards = -(-length // shard_size)
        assert 1 <= shards <= 8
        assert shards * shard_size - length == gap // 2
    assert all(length <= 8 * shard_size for length in lengths[-2:])


def test_a_stream_of_less_than_a_shard_is_one_task() -> None:
    assert cut_stream(10**12, 1 << 50) == [10**12]
