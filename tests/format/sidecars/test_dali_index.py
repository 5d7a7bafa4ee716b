from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.sidecars.dali_index import index_path, index_text


def test_an_index_is_offset_and_framed_length_one_record_a_line() -> None:
    assert index_text(np.array([16, 142, 281], np.int64)) == b"0 16\n16 126\n142 139\n"


def test_a_shard_without_records_has_an_empty_index() -> None:
    assert index_text(np.array([], np.int64)) == b""


@given(st.lists(st.integers(16, 1 << 40), max_size=20))
def test_each_offset_is_the_sum_of_the_lengths_before_it(lengths: list[int]) -> None:
    lines = [tuple(map(int, line.split())) for line in index_text(np.cumsum(lengths, dtype=np.int64)).splitlines()]
    assert lines == [(sum(lengths[:i]), length) for i, length in enumerate(lengths)]


def test_an_index_lies_in_a_folder_of_its_own() -> None:
    assert index_path("train-00000.tfrecord") == "index/train-00000.idx"
