from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from shardmill.transforms.dataset.storage.local_storage import LocalStorage
from shardmill.transforms.errors import TargetError
from shardmill.transforms.format.splits.shard_plan import CutPoint, Part, PartRange


def storage_in(root: Path) -> LocalStorage:
    return LocalStorage(str(root))


def test_a_part_holds_what_was_written_to_it(tmp_path: Path) -> None:
    part = storage_in(tmp_path / "new").create_part("a/b/part")
    part.write([memoryview(b"one"), memoryview(b""), memoryview(b"two")])
    part.write([memoryview(b"three")])
    part.close()
    part.wait()
    assert (tmp_path / "new/a/b/part").read_bytes() == b"onetwothree"


def test_a_part_is_never_written_over_another(tmp_path: Path) -> None:
    storage_in(tmp_path).create_part("part").abandon()
    with pytest.raises(FileExistsError):
        storage_in(tmp_path).create_part("part")


def test_a_part_that_cannot_be_made_durable_is_an_error_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = storage_in(tmp_path).create_part("part")

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    part.close()
    with pytest.raises(OSError, match=r"No space left on device.*part"):
        part.wait()


def test_ranges_of_parts_are_put_together(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/a").write_bytes(b"0123456789")
    (tmp_path / "run/b").write_bytes(b"abcdefghij")
    ranges = [
        PartRange(Part(0, 0, name, "tail", 1, (CutPoint(10, 10, 0),)), CutPoint(start, 0, 0), CutPoint(end, 0, 0))
        for name, start, end in [("a", 2, 9), ("b", 0, 4)]
    ]
    for _ in range(2):
        storage_in(tmp_path).assemble("run/shards/c", ranges, "run")
        assert (tmp_path / "run/shards/c").read_bytes() == b"2345678abcd"
    assert os.listdir(tmp_path / "run/shards") == ["c"]


def test_a_part_that_was_cut_meanwhile_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123")
    part = Part(0, 0, "a", "tail", 1, (CutPoint(10, 10, 0),))
    with pytest.raises(OSError, match="ends 6 bytes early"):
        storage_in(tmp_path).assemble("x/c", [PartRange(part, CutPoint(0, 0, 0), CutPoint(10, 10, 0))], ".")
    assert os.listdir(tmp_path / "x") == []


def test_files_are_concatenated_in_order(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name * 3)
    storage_in(tmp_path).concatenate("c", ["b", "a"])
    assert (tmp_path / "c").read_text() == "bbbaaa"


def test_of_many_writers_of_one_name_one_wins_and_its_file_is_whole(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    won: list[int] = []
    start = threading.Barrier(8)

    def put(number: int) -> None:
        start.wait()
        if storage.put_if_absent("manifests/1", bytes([number]) * 10_000):
            won.append(number)

    threads = [threading.Thread(target=put, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert storage.read("manifests/1") == bytes(won) * 10_000
    assert storage.list("manifests") == ["1"]


def test_a_writer_that_is_killed_leaves_the_whole_file_or_none(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from shardmill.transforms.dataset.storage.local_storage import LocalStorage\n"
        "storage = LocalStorage(sys.argv[1])\n"
        "print('go', flush=True)\n"
        "n = 0\n"
        "while True:\n"
        "    storage.put_if_absent(f'm/{n}', b'x' * 3_000_000)\n"
        "    n += 1\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"go\n"
    deadline = time.monotonic() + 300
    while len([name for name in storage_in(tmp_path).list("m") if name.isdigit()]) < 5:
        assert time.monotonic() < deadline
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    named = [name for name in storage_in(tmp_path).list("m") if not name.startswith(".")]
    assert len(named) >= 5
    assert all((tmp_path / "m" / name).stat().st_size == 3_000_000 for name in named)


def test_publishing_never_overwrites_and_may_be_done_again(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    (tmp_path / "staged").write_bytes(b"new")
    assert storage.publish("staged", "sub/final")
    assert storage.publish("staged", "sub/final")
    assert storage.read("sub/final") == b"new"
    (tmp_path / "other").write_bytes(b"old")
    assert not storage.publish("staged", "other")
    assert storage.read("other") == b"old"


def test_placing_a_file_replaces_what_was_there_and_may_be_done_again(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    (tmp_path / "staged").write_bytes(b"new")
    (tmp_path / "final").write_bytes(b"old")
    for _ in range(2):
        storage.place("staged", "final")
        assert storage.read("final") == b"new"
    assert storage.list("") == ["final", "staged"]


def test_a_replacement_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = storage_in(tmp_path)
    storage.replace("a", b"old")

    def fail(*args: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        storage.replace("a", b"new")
    assert storage.read("a") == b"old"
    assert storage.list("") == ["a"]


def test_only_regular_files_have_a_size(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    (tmp_path / "file").write_bytes(b"123")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    assert [storage.size(name) for name in ("file", "folder", "link", "none")] == [3, None, None, None]


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    storage = storage_in(tmp_path)
    storage.remove("none")
    storage.remove_tree("none")
    storage.remove_if_empty("none")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_bytes(b"")
    storage.remove_if_empty("kept")
    assert storage.list("kept") == ["file"]
    assert storage.list("none") == []


@pytest.mark.parametrize("folder", ["index", "run/parts"])
@pytest.mark.parametrize(
    "change",
    [
        lambda storage, path: storage.replace(path, b"theirs"),
        lambda storage, path: storage.put_if_absent(path, b"theirs"),
        lambda storage, path: storage.create_part(path).abandon(),
        lambda storage, path: storage.place("file", path),
        lambda storage, path: storage.publish("file", path),
        lambda storage, path: storage.concatenate(path, ["file"]),
        lambda storage, path: storage.remove(path),
        lambda storage, path: storage.remove_tree(path),
        lambda storage, path: storage.remove_any(path),
    ],
    ids=["replace", "put_if_absent", "create_part", "place", "publish", "concatenate", "remove", "remove_tree", "any"],
)
def test_nothing_is_made_or_removed_behind_a_folder_that_is_a_link(
    tmp_path: Path, folder: str, change: Callable[[LocalStorage, str], object]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a").write_text("mine")
    (tmp_path / "out/run").mkdir(parents=True)
    (tmp_path / "out/file").write_text("a file of the dataset")
    (tmp_path / "out" / folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TargetError, match=f"{folder}: a link; a dataset's folders are its own"):
        change(storage_in(tmp_path / "out"), f"{folder}/a")
    assert os.listdir(tmp_path / "elsewhere") == ["a"]
    assert (tmp_path / "elsewhere/a").read_text() == "mine"
