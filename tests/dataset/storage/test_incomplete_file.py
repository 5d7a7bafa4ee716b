from __future__ import annotations

import os
from pathlib import Path

import pytest
from shardmill.transforms.dataset.storage.incomplete_file import incomplete_file


def write_then_fail(path: Path) -> None:
    with incomplete_file(str(path)) as file:
        file.write(b"new")
        file.flush()
        assert len(os.listdir(path.parent)) >= 1
        raise KeyboardInterrupt


def test_a_file_takes_its_place_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with incomplete_file(str(path)) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("old", [None, b"old"])
def test_an_interrupted_file_leaves_what_was_there_and_nothing_else(tmp_path: Path, old: bytes | None) -> None:
    path = tmp_path / "a"
    if old is not None:
        path.write_bytes(old)
    with pytest.raises(KeyboardInterrupt):
        write_then_fail(path)
    assert os.listdir(tmp_path) == ([] if old is None else ["a"])
    assert old is None or path.read_bytes() == old


def test_a_name_of_the_greatest_length_has_room_for_its_hidden_twin(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    with incomplete_file(os.fsencode(path)) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
