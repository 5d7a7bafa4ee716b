"""Cuts of a stream: whole shards but for the last two."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.sources.tfrecord.pieces import cut_stream


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
