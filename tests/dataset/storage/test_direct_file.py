from __future__ import annotations

import errno
import fcntl
import os
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.dataset.storage import direct_file
from shardmill.transforms.dataset.storage.direct_file import (
    BUFFER_BYTES,
    LARGE_BYTES_OUT,
    SMALL_BYTES,
    AlignedBuffer,
    BufferPool,
    DirectFile,
    append_range,
)

from ...tiers import examples
from ..open_files import files_open_below

BYTES = np.random.default_rng(0).bytes(5 * BUFFER_BYTES)
SIZES = st.builds(
    lambda base, more: max(base + more, 0),
    st.sampled_from([0, 4096, SMALL_BYTES, BUFFER_BYTES, 2 * BUFFER_BYTES]),
    st.sampled_from([-4096, -1, 0, 1, 511, 4096]),
)


def create(path: Path | str) -> DirectFile:
    return DirectFile(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), str(path))


def finish(file: DirectFile) -> None:
    file.close()
    file.wait()


def write_and_finish(file: DirectFile, size: int, step: int) -> None:
    for _ in range(0, size, step):
        file.write([memoryview(BYTES)[:step]])
    finish(file)


def refuse_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take from this process's file systems the way past the cache."""
    real = fcntl.fcntl

    def control(file: int, command: int, flags: int = 0) -> int:
        if command == fcntl.F_SETFL and flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(file, command, flags)

    monkeypatch.setattr(fcntl, "fcntl", control)


def refuse_calls(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Make the file system take the flag, and refuse reads and writes that bypass the cache after some."""
    left = [after]

    def is_refused(file: int) -> bool:
        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT:
            left[0] -= 1
            return left[0] < 0
        return False

    real_write, real_read = os.pwritev, os.preadv

    def write(file: int, views: list[memoryview], offset: int) -> int:
        if is_refused(file):
            raise OSError(errno.EINVAL, "Invalid argument")
        return real_write(file, views, offset)

    def read(file: int, buffers: list[memoryview], offset: int) -> int:
        if is_refused(file):
            raise OSError(errno.EINVAL, "Invalid argument")
        return real_read(file, buffers, offset)

    monkeypatch.setattr(os, "pwritev", write)
    monkeypatch.setattr(os, "preadv", read)


@pytest.fixture(params=["past the cache", "no flag", "no call", "one call", "tmpfs"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder on each kind of file system."""
    if request.param == "tmpfs":
        if not os.access("/dev/shm", os.W_OK):
            pytest.skip("no /dev/shm, which is a tmpfs, on this system")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
            yield Path(name)
        return
    if request.param == "no flag":
        refuse_flag(monkeypatch)
    elif request.param != "past the cache":
        refuse_calls(monkeypatch, after=int(request.param == "one call"))
    yield tmp_path


def test_a_file_holds_what_was_written_to_it_in_whatever_pieces(folder: Path) -> None:
    @settings(max_examples=examples(25), deadline=None)
    @given(st.lists(SIZES, max_size=6))
    def check(sizes: list[int]) -> None:
        file = create(folder / "file")
        views = [memoryview(BYTES)[i : i + size] for i, size in enumerate(sizes)]
        file.write(views[:2])
        for view in views[2:]:
            file.write([view])
        finish(file)
        assert (folder / "file").read_bytes() == b"".join(views)

    check()


def laid_like_the_file(sizes: list[int]) -> list[memoryview]:
    """Return so many bytes each, in memory of their own, each at the place in its page that it gets in the file."""
    views, at = [], 0
    for size in sizes:
        memory = np.empty(size + 4096, np.uint8)
        first = (at - memory.ctypes.data) % 4096
        memory[first : first + size] = np.frombuffer(BYTES, np.uint8, size)
        views.append(memory[first : first + size].data)
        at += size
    return views


def test_bytes_that_lie_as_in_the_file_are_written_from_where_they_are(folder: Path) -> None:
    @settings(max_examples=examples(25), deadline=None)
    @given(st.lists(SIZES, max_size=6))
    def check(sizes: list[int]) -> None:
        file = create(folder / "file")
        views = laid_like_the_file(sizes)
        for view in views:
            file.write([view])
        finish(file)
        assert (folder / "file").read_bytes() == b"".join(views)

    check()


def test_of_bytes_that_lie_as_in_the_file_at_most_a_block_is_copied_at_each_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []
    real = AlignedBuffer.append
    monkeypatch.setattr(AlignedBuffer, "append", lambda buffer, view: copied.append(view.nbytes) or real(buffer, view))
    views = laid_like_the_file([2 * BUFFER_BYTES + 5, 2 * BUFFER_BYTES + 4000, 100_000])
    file = create(tmp_path / "file")
    for view in views:
        file.write([view])
    finish(file)
    assert (tmp_path / "file").read_bytes() == b"".join(views)
    assert sum(copied) < len(views) * 2 * 4096


def test_ranges_are_appended_wherever_they_begin_and_end(folder: Path) -> None:
    (folder / "source").write_bytes(BYTES)

    @settings(max_examples=examples(25), deadline=None)
    @given(st.lists(st.tuples(SIZES, SIZES), max_size=3))
    def check(ranges: list[tuple[int, int]]) -> None:
        file = create(folder / "file")
        for start, length in ranges:
            append_range(file, str(folder / "source"), "source", start, start + length)
        append_range(file, str(folder / "source"), "source", len(BYTES) - 4097)
        finish(file)
        wanted = [BYTES[start : start + length] for start, length in ranges]
        assert (folder / "file").read_bytes() == b"".join(wanted) + BYTES[-4097:]

    check()


def test_a_range_of_a_file_that_was_cut_is_an_error_and_not_a_shorter_one(folder: Path) -> None:
    (folder / "source").write_bytes(BYTES[: 2 * BUFFER_BYTES + 3])
    file = create(folder / "file")
    with pytest.raises(OSError, match="source ends 7 bytes early"):
        append_range(file, str(folder / "source"), "source", 5, 2 * BUFFER_BYTES + 10)
    file.abandon()
    file.wait()


def test_the_system_calls_that_write_full_buffers_bypass_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[bool, int, int]] = []
    real = os.pwritev

    def write(file: int, views: list[memoryview], offset: int) -> int:
        calls.append((bool(fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT), offset, sum(map(len, views))))
        return real(file, views, offset)

    monkeypatch.setattr(os, "pwritev", write)
    file = create(tmp_path / "file")
    file.write([memoryview(BYTES)[: BUFFER_BYTES + 5000]])
    finish(file)
    assert calls == [(True, 0, BUFFER_BYTES), (True, BUFFER_BYTES, 4096), (False, BUFFER_BYTES + 4096, 904)]


def test_what_had_to_go_through_the_cache_leaves_it_when_it_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[object, ...]] = []
    refuse_flag(monkeypatch)
    monkeypatch.setattr(os, "fdatasync", lambda _: calls.append(("sync",)))
    monkeypatch.setattr(os, "posix_fadvise", lambda _, *call: calls.append(call))
    file = create(tmp_path / "file")
    file.write([memoryview(bytes(17 << 20))])
    finish(file)
    assert calls == [("sync",), (0, 16 << 20, os.POSIX_FADV_DONTNEED)]


def test_a_file_system_that_takes_no_advice_fails_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    refuse_flag(monkeypatch)
    monkeypatch.setattr(os, "posix_fadvise", refuse)
    file = create(tmp_path / "file")
    file.write([memoryview(bytes(17 << 20))])
    finish(file)
    assert (tmp_path / "file").stat().st_size == 17 << 20


@pytest.mark.parametrize("limit", [100_000, BUFFER_BYTES, 2 * BUFFER_BYTES + 5000])
def test_a_full_disk_is_an_error_with_its_number_and_path(tmp_path: Path, limit: int) -> None:
    """A limit on the size of a file stands for a full disk: the system refuses the write in the same place."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    file = create(tmp_path / "file")
    try:
        with pytest.raises(OSError, match="file") as caught:
            write_and_finish(file, limit + 5000, 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        file.abandon()
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "file"))
    assert direct_file._disk().buffers.bytes_out == 0


def test_a_write_tells_of_an_error_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwritev", full)
    file = create(tmp_path / "file")
    file.write([memoryview(BYTES)[:BUFFER_BYTES]])
    direct_file._disk().writer.submit(int).result()  # what was handed over before is done
    with pytest.raises(OSError, match="No space left on device") as caught:
        file.write([memoryview(b"more")])
    file.abandon()
    file.wait()
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "file"))
    assert direct_file._disk().buffers.bytes_out == 0


def test_abandoning_gives_back_descriptor_and_buffers(tmp_path: Path) -> None:
    files = [create(tmp_path / str(i)) for i in range(3)]
    for i, file in enumerate(files):
        file.write([memoryview(BYTES)[: i * BUFFER_BYTES + 10]])
    for file in files:
        file.abandon()
        file.abandon()
        file.wait()
    assert direct_file._disk().buffers.bytes_out == 0
    assert files_open_below(tmp_path) == []


def test_any_number_of_open_files_takes_bounded_memory(tmp_path: Path) -> None:
    files = [create(tmp_path / str(i)) for i in range(50)]
    pool = direct_file._disk().buffers
    most, step = 0, 200_001
    for start in range(0, 8 * step, step):
        for i, file in enumerate(files):
            file.write([memoryview(BYTES)[start + i : start + i + step]])
            most = max(most, pool.bytes_out)
    for file in files:
        file.close()
    for i, file in enumerate(files):
        file.wait()
        wanted = b"".join(BYTES[start + i : start + i + step] for start in range(0, 8 * step, step))
        assert (tmp_path / str(i)).read_bytes() == wanted
    assert 0 < most <= LARGE_BYTES_OUT
    assert pool.bytes_out == 0


def test_a_buffer_given_back_is_the_next_one_taken() -> None:
    pool = BufferPool()
    buffer = pool.take()
    buffer.append(memoryview(b"old"))
    pool.give(buffer)
    assert pool.take() is buffer
    assert buffer.filled == 0
