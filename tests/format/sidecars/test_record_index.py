from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.manifest.naming import IndexKind, index_path, index_paths
from shardmill.transforms.format.sidecars.sidecar_files import index_data, offsets_in

KINDS = pytest.mark.parametrize("kind", ["text", "binary"])


def test_text_is_offset_and_framed_length_one_record_a_line() -> None:
    assert index_data(np.array([0, 16, 142, 281], np.int64), "text") == b"0 16\n16 126\n142 139\n"


def test_offsets_are_little_endian_words_of_eight_bytes_and_end_with_the_size_of_the_shard() -> None:
    assert index_data(np.array([0, 16, 1 << 33], np.int64), "binary") == (
        b"\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0"
    )


def test_a_shard_without_records_has_an_empty_text_and_one_offset() -> None:
    none = np.zeros(1, np.int64)
    assert index_data(none, "text") == b""
    assert index_data(none, "binary") == bytes(8)


@KINDS
@given(lengths=st.lists(st.integers(16, 1 << 40), max_size=20))
def test_what_is_written_is_read_back(kind: IndexKind, lengths: list[int]) -> None:
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    assert offsets_in(index_data(offsets, kind), kind).tolist() == offsets.tolist()


@given(st.lists(st.integers(16, 1 << 40), max_size=20))
def test_each_offset_of_the_text_is_the_sum_of_the_lengths_before_it(lengths: list[int]) -> None:
    text = index_data(np.cumsum([0, *lengths], dtype=np.int64), "text")
    lines = [tuple(map(int, line.split())) for line in text.splitlines()]
    assert lines == [(sum(lengths[:i]), length) for i, length in enumerate(lengths)]


@pytest.mark.parametrize(("data", "kind"), [(b"0 16 16", "text"), (b"0 x\n", "text"), (bytes(9), "binary")])
def test_what_is_no_index_is_refused(data: bytes, kind: IndexKind) -> None:
    with pytest.raises(ValueError, match=r"."):
        offsets_in(data, kind)


def test_an_index_is_in_a_folder_of_its_own() -> None:
    assert index_path("train-00000.tfrecord", "text") == "index/train-00000.idx"
    assert index_paths("train-00000.tfrecord") == ["index/train-00000.idx", "index/train-00000.offsets"]
