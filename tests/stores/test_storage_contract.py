"""The contract of the place of a dataset, held by a local folder, by S3 and by Google Cloud Storage alike."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from shardmill.transforms.dataset.storage.contract import Storage
from shardmill.transforms.dataset.storage.object_storage import ObjectStorage, storage_at
from shardmill.transforms.format.splits.shard_plan import CutPoint, Part, PartRange
from shardmill.transforms.format.tfrecord.framing import crc32c

from . import servers
from .conftest import S3_TOO
from .faulty_proxy import faulty_proxy

MIB = 1 << 20


@pytest.fixture
def storage(place: str) -> Storage:
    return storage_at(place)


def write(storage: Storage, path: str, data: bytes) -> None:
    part = storage.create_part(path)
    for start in range(0, len(data), 3 * MIB):
        part.write([memoryview(data)[start : start + 3 * MIB]])
    part.close()
    part.wait()


@pytest.mark.parametrize("size", [11, 20 * MIB + 1])
def test_a_part_holds_what_was_written_to_it(storage: Storage, size: int) -> None:
    data = os.urandom(size)
    write(storage, "a/b/part", data)
    assert (storage.size("a/b/part"), storage.crc32c("a/b/part")) == (size, crc32c(data))
    with storage.open("a/b/part") as file:
        assert file.read() == data
        file.seek(size - 5)
        assert file.read(10) == data[-5:]
        file.seek(0)
        assert file.read(3) == data[:3]
    assert storage.list("a/b") == ["part"]


@pytest.mark.parametrize("size", [10, 20 * MIB])
def test_a_part_that_is_abandoned_has_no_name_in_a_store(storage: Storage, size: int) -> None:
    part = storage.create_part("parts/part")
    part.write([memoryview(bytes(size))])
    part.abandon()
    assert storage.has_locks or storage.list("parts") == []


def test_a_killed_writer_leaves_nothing_under_the_name_in_a_store(storage: Storage, tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from shardmill.transforms.dataset.storage.object_storage import storage_at\n"
        "part = storage_at(sys.argv[1]).create_part('parts/part')\n"
        "for _ in range(5): part.write([memoryview(bytes(8 << 20))])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, storage.root], check=False)
    assert done.returncode == -signal.SIGKILL
    assert storage.has_locks or storage.size("parts/part") is None
    assert [name for name in storage.list("parts") if not name.startswith(".")] == ["part"] * storage.has_locks
    until = time.monotonic() + 300
    while storage.list("parts"):  # also what a request brings that was on its way when its sender was killed
        assert time.monotonic() < until
        storage.remove_tree("parts")


def test_ranges_of_parts_are_put_together(storage: Storage) -> None:
    large = os.urandom(9 * MIB)
    write(storage, "run/a", large)
    write(storage, "run/b", b"abcdefghij")
    ranges = [
        PartRange(Part(0, 0, name, "tail", 1, (CutPoint(end, 10, 0),)), CutPoint(start, 0, 0), CutPoint(end, 0, 0))
        for name, start, end in [("a", 2, 9 * MIB - 1), ("b", 0, 4), ("a", 0, 3)]
    ]
    for _ in range(2):
        storage.assemble("run/shards/c", ranges, "run")
        assert storage.read("run/shards/c") == large[2:-1] + b"abcd" + large[:3]
    assert storage.list("run/shards") == ["c"]


def test_files_are_concatenated_in_order(storage: Storage) -> None:
    for name in "ab":
        storage.replace(name, name.encode() * 3)
    storage.replace("empty", b"")
    storage.concatenate("c", ["b", "empty", "a"])
    assert storage.read("c") == b"bbbaaa"


@pytest.mark.parametrize("place", [*S3_TOO, "local"], indirect=True)
def test_of_sixteen_writers_in_four_processes_one_wins_and_its_file_is_whole(storage: Storage) -> None:
    program = (
        "import sys, threading\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from shardmill.transforms.dataset.storage.object_storage import storage_at\n"
        "storage, first = storage_at(sys.argv[1]), int(sys.argv[2])\n"
        "storage.list('')\n"
        "barrier = threading.Barrier(4)\n"
        "def put(number):\n"
        "    barrier.wait()\n"
        "    return storage.put_if_absent('manifests/1', bytes([number]) * 300_000)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    won = [n for n, ours in zip(range(first, first + 4), pool.map(put, range(first, first + 4))) if ours]\n"
        "print(*won, flush=True)\n"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", program, storage.root, str(4 * number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    won = [int(number) for writer in writers for number in writer.communicate()[0].split()]
    assert len(won) == 1
    assert storage.read("manifests/1") == bytes(won) * 300_000
    assert [name for name in storage.list("manifests") if not name.startswith(".")] == ["1"]


def test_publishing_never_overwrites_and_may_be_done_again(storage: Storage) -> None:
    storage.replace("staged", b"new")
    assert storage.publish("staged", "sub/final")
    assert storage.publish("staged", "sub/final")
    assert storage.read("sub/final") == b"new"
    storage.replace("other", b"old")
    assert not storage.publish("staged", "other")
    assert storage.read("other") == b"old"
    with pytest.raises(FileNotFoundError):
        storage.publish("none", "new")


def test_of_several_that_publish_at_once_all_see_the_file(storage: Storage) -> None:
    storage.replace("staged", b"new")
    start = threading.Barrier(4)

    def publish(_: int) -> bool:
        start.wait()
        return storage.publish("staged", "final")

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(publish, range(4))) == [True] * 4
    assert storage.read("final") == b"new"


def test_placing_a_file_replaces_what_was_there_and_may_be_done_again(storage: Storage) -> None:
    storage.replace("staged", b"new")
    storage.replace("final", b"old")
    for _ in range(2):
        storage.place("staged", "final")
        assert storage.read("final") == b"new"
    assert storage.list("") == ["final", "staged"]
    with pytest.raises(FileNotFoundError):
        storage.place("none", "final")


def test_what_is_there_is_listed_described_and_removed(storage: Storage) -> None:
    assert (storage.list(""), storage.size("a"), storage.status("a"), storage.lies_at("a")) == ([], None, None, False)
    storage.replace("a", b"123")
    storage.replace("b/c/d", b"4")
    storage.replace(".staging/run/x", b"")
    assert storage.list("") == [".staging", "a", "b"]
    assert storage.list("b") == ["c"]
    assert [storage.size(name) for name in ("a", "b", "none")] == [3, None, None]
    assert [storage.lies_at(name) for name in ("a", "b", "b/c", "c", "b/c/d")] == [True, True, True, False, True]
    file, folder = storage.status("a"), storage.status("b")
    assert file is not None
    assert folder is not None
    assert (file.is_file, file.size, folder.is_folder) == (True, 3, True)
    assert sorted(storage.files_below("")) == [("a", 3), ("b/c/d", 1)]
    assert sorted(storage.files_below("b")) == [("c/d", 1)]
    assert sum(status.size for status in storage.tree("b") if status.is_file) == 1
    storage.remove("none")
    storage.remove_tree("none")
    storage.remove_if_empty("b")
    storage.remove_any("b")
    storage.remove("a")
    storage.remove_tree(".staging")
    assert storage.list("") == []
    with pytest.raises(FileNotFoundError):
        storage.read("a")
    with pytest.raises(FileNotFoundError):
        storage.open("a")


def test_a_file_that_was_replaced_is_another_one(storage: Storage) -> None:
    storage.replace("a", b"123")
    before = storage.status("a")
    storage.replace("a", b"456")
    after = storage.status("a")
    assert before is not None
    assert after is not None
    assert before.identity != after.identity
    assert storage.read("a") == b"456"


def test_the_entries_of_a_folder_are_what_is_known_of_each(storage: Storage) -> None:
    assert list(storage.entries("none")) == []
    for name in ("a", "b", "sub/c"):
        storage.replace(name, name.encode())
    for folder, names in (("", ["a", "b", "sub"]), ("sub", ["c"])):
        found = dict(storage.entries(folder))
        assert sorted(found) == names
        assert found == {name: storage.status(f"{folder}/{name}" if folder else name) for name in names}


@pytest.fixture
def keeps_conditions(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """The same place, behind a proxy that keeps the conditions on removals which the tests' servers ignore."""
    scheme = storage.root.partition("://")[0]
    if storage.has_locks:
        yield storage
        return
    with faulty_proxy(os.environ[servers.SERVED[scheme].variable]) as proxy:
        proxy.strict = True
        for name, value in servers.environment(scheme, proxy.url).items():
            monkeypatch.setenv(name, value)
        yield storage


def test_what_took_the_place_of_a_file_that_was_seen_stays(keeps_conditions: Storage) -> None:
    storage = keeps_conditions
    for name in "abc":
        storage.replace(name, b"old")
    seen = dict(storage.entries(""))
    storage.replace("b", b"new")
    storage.remove("c")
    assert storage.remove_seen(seen) == {"a", "c"}
    assert storage.list("") == ["b"]
    assert storage.read("b") == b"new"


def test_a_sidecar_is_replaced_only_if_it_is_what_was_seen(storage: Storage) -> None:
    if not isinstance(storage, ObjectStorage):
        return  # a lock serves there
    assert storage.replace_if("a", b"1", None)
    assert not storage.replace_if("a", b"2", None)
    seen = storage.version("a")
    assert storage.replace_if("a", b"2", seen)
    assert not storage.replace_if("a", b"3", seen)
    storage.remove("a")
    assert not storage.replace_if("a", b"3", storage.version("none") or seen)
    assert storage.version("a") is None


def test_the_checksum_is_the_stores_own(storage: Storage) -> None:
    data = os.urandom(17 * MIB)
    write(storage, "part", data)
    storage.replace("small", b"abc")
    storage.place("part", "placed")
    storage.publish("part", "published")
    stated = [storage.stated_crc32c(name) for name in ("part", "placed", "published", "small")]
    known = [crc32c(data)] * 3 + [crc32c(b"abc")]
    assert stated == ([None] * 4 if storage.has_locks else known)
    assert [storage.crc32c(name) for name in ("part", "placed", "published", "small")] == known
