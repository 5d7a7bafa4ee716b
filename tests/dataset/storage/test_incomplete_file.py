from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shardmill.transforms.dataset.storage.direct_file import incomplete_file, incomplete_folder


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


WRITER = """
import sys
from shardmill.transforms.dataset.storage.direct_file import incomplete_file, incomplete_folder
with incomplete_file(sys.argv[1]) as file, incomplete_folder(sys.argv[2]) as folder:
    file.write(b"half")
    file.flush()
    open(folder + "/half", "w").close()
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_writer_left_is_removed_by_the_next_one_and_that_of_a_live_one_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "a"), str(tmp_path / "b")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        left = set(os.listdir(tmp_path))
        assert len(left) == 2
        for _ in range(2):  # the writer lives, and then it does not
            with incomplete_file(str(tmp_path / "a")) as file, incomplete_folder(str(tmp_path / "b")):
                file.write(b"whole")
            assert set(os.listdir(tmp_path)) == left | {"a", "b"}
            os.rmdir(tmp_path / "b")
            writer.kill()
            writer.wait()
            left = set()
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_an_error_of_the_disk_names_the_file_that_was_to_be(tmp_path: Path) -> None:
    script = """
import resource, signal, sys
from shardmill.transforms.dataset.storage.direct_file import incomplete_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with incomplete_file(sys.argv[1]) as file:
        for _ in range(100):
            file.write(b"x" * 1000)
except OSError as error:
    print(error.filename)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a")], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == str(tmp_path / "a")
    assert os.listdir(tmp_path) == []
