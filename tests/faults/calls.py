"""The calls by which a process makes, fills, names and removes files: all of them listed, or one of them failed.

    with Calls("/tmp/case") as calls: ...                        calls.made is the list, if none of them fails
    with Calls("/tmp/case", call, "EIO"): ...                    that call fails

A call is known by what it does to which file, and how often it did so: `("fsync", "out/.staging/*/a.part", 1)`. It is
the same one in every run, whatever threads do at the same time; names that are made at random are starred.

    KILL      the process ends, as by `kill -9`; of a write, half is done
    ENOSPC    the disk is full from then on: a write puts half of its bytes, and it and whatever else needs room fails
    EIO       this one call fails

The calls are wrapped where Python makes them; `unseen` finds files that came to be in any other way. `places` says of
each call what line of the product made it, and what lines led there: a disk that fails is met once at each of them.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Literal, Self

Call = tuple[str, str, int]
"""What is done, to which file, and for the how many-th time."""

Fault = Literal["KILL", "ENOSPC", "EIO"]
FAULTS: tuple[Fault, ...] = ("KILL", "ENOSPC", "EIO")

_RANDOM = re.compile(r"[0-9a-f]{32}|[0-9a-f]{16}|[0-9a-f]{12}(?=\.incomplete)")
_NEED_ROOM = {"open", "write", "fsync", "link", "rename", "mkdir"}
_ONE_AT_A_TIME = threading.RLock()


class Calls:
    """Wraps the calls on files below `root` while it is open; `fail` is the one that fails, `told` is told of it."""

    def __init__(
        self, root: str, fail: Call | None = None, fault: Fault | None = None, told: Callable[[], None] = lambda: None
    ) -> None:
        self.root = os.path.realpath(root)
        self.made: list[Call] = []
        self.places: list[str] = []
        self.written: Counter[tuple[int, int]] = Counter()
        self._fail, self._fault, self._told = fail, fault, told
        self._counts: Counter[tuple[str, str]] = Counter()
        self._full = False
        self._real: dict[tuple[Any, str], Any] = {}

    def __enter__(self) -> Self:
        self._before = dict(_files_below(self.root))
        wraps: dict[str, Callable[..., Any]] = {
            "open": self._open,
            "write": self._write,
            "pwritev": self._pwritev,
            "fsync": lambda real, file: self._on_file("fsync", real, file),
            "fdatasync": lambda real, file: self._on_file("fsync", real, file),
            "link": lambda real, a, b, **how: self._on_names("link", real, a, b, **how),
            "rename": lambda real, a, b, **how: self._on_names("rename", real, a, b, **how),
            "replace": lambda real, a, b, **how: self._on_names("rename", real, a, b, **how),
            "unlink": lambda real, path, **how: self._on_name("unlink", real, path, **how),
            "remove": lambda real, path, **how: self._on_name("unlink", real, path, **how),
            "rmdir": lambda real, path, **how: self._on_name("rmdir", real, path, **how),
            "mkdir": lambda real, path, *mode, **how: self._on_name("mkdir", real, path, *mode, **how),
            "truncate": self._never,
            "ftruncate": self._never,
            "writev": self._never,
            "pwrite": self._never,
            "sendfile": self._never,
            "copy_file_range": self._never,
            "symlink": self._never,
        }
        for name, wrapped in wraps.items():
            self._wrap(os, name, wrapped)
        for module in (builtins, io):
            self._wrap(module, "open", self._open_file)
        return self

    def __exit__(self, *_: object) -> None:
        for (module, name), real in self._real.items():
            setattr(module, name, real)

    def _wrap(self, module: Any, name: str, wrapped: Callable[..., Any]) -> None:
        real = getattr(module, name)
        self._real[module, name] = real
        setattr(module, name, lambda *args, **how: wrapped(real, *args, **how))

    def _never(self, real: Callable[..., Any], *args: Any, **how: Any) -> Any:
        raise AssertionError(f"{real} has come into use: tests/faults/calls.py must learn to fail it")

    def _below(self, path: Any, folder: int | None = None) -> str | None:
        """Return a path relative to the root, random names starred; None if it lies elsewhere."""
        if isinstance(path, int):
            full = os.readlink(f"/proc/self/fd/{path}")
        else:
            above = os.getcwd() if folder is None else os.readlink(f"/proc/self/fd/{folder}")
            full = os.path.normpath(os.path.join(above, os.fsdecode(path)))
        if full == self.root:
            return "."
        if not full.startswith(self.root + "/"):
            return None
        return _RANDOM.sub("*", full[len(self.root) + 1 :])

    def _at(self, kind: str, *paths: str) -> bool:
        """Note a call; say whether it is to fail now, and end the process if it is to be killed by it."""
        with _ONE_AT_A_TIME:
            path = " -> ".join(paths)
            self._counts[kind, path] += 1
            call = (kind, path, self._counts[kind, path])
            if self._fail is None:
                self.made.append(call)
                self.places.append(_place())
            if call != self._fail:
                return self._full and kind in _NEED_ROOM
            self._told()
            if self._fault == "ENOSPC":
                self._full = True
            if kind != "write":
                self._die()
            return True

    def _die(self) -> None:
        if self._fault == "KILL":
            os.kill(os.getpid(), signal.SIGKILL)

    def _error(self, *paths: Any) -> OSError:
        number = errno.ENOSPC if self._fault == "ENOSPC" else errno.EIO
        names = [path for path in paths if not isinstance(path, int)]
        if len(names) == 2:
            return OSError(number, os.strerror(number), names[0], None, names[1])
        return OSError(number, os.strerror(number), *names)

    def _open(self, real: Any, path: Any, flags: int, *mode: int, dir_fd: int | None = None) -> int:
        name = self._below(path, dir_fd)
        makes = bool(flags & os.O_CREAT)
        if name is not None and self._at("open" if makes else "look", name):
            raise self._error(path)
        file: int = real(path, flags, *mode, dir_fd=dir_fd)
        if name is not None and makes:
            self._see(file)
        return file

    def _open_file(self, real: Any, file: Any, mode: str = "r", buffering: int = -1, *args: Any, **how: Any) -> Any:
        name = None if isinstance(file, int) and file < 3 else self._below(file)
        if name is None:
            return real(file, mode, buffering, *args, **how)
        makes = not set(mode).isdisjoint("wxa+")
        if not isinstance(file, int) and self._at("open" if makes else "look", name):
            raise self._error(file)
        if not makes:
            return real(file, mode, buffering, *args, **how)
        assert "+" not in mode
        raw = _Raw(file, mode.replace("b", "").replace("t", ""))
        raw.calls = self
        self._see(raw.fileno())
        if buffering == 0:
            return raw
        buffered = io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *args, **how)

    def _see(self, file: int) -> None:
        status = os.fstat(file)
        self.written[status.st_dev, status.st_ino] += 0

    def _write(self, real: Any, file: int, data: Any) -> int:
        return self.put(file, memoryview(data).cast("B"), lambda view: real(file, view))

    def _pwritev(self, real: Any, file: int, views: list[memoryview], offset: int) -> int:
        data = memoryview(b"".join(views))
        return self.put(file, data, lambda part: real(file, _first_of(views, part.nbytes), offset))

    def put(self, file: int, data: memoryview, write: Callable[[memoryview], int]) -> int:
        """Write bytes, all or, if that is the fault, half of them."""
        name = None if file < 3 else self._below(file)
        if name is None:
            return write(data)
        was_full = self._full
        if self._at("write", name):
            half = data[: data.nbytes // 2]
            if self._fault != "EIO" and half.nbytes and not was_full:
                done = write(half)
                self._die()
                return done
            self._die()
            raise self._error(file)
        done = write(data)
        status = os.fstat(file)
        self.written[status.st_dev, status.st_ino] += done
        return done

    def _on_file(self, kind: str, real: Any, file: int) -> None:
        """Sync a file: what a process that is killed wrote is not lost with it, so that nothing waits for the disk."""
        name = self._below(file)
        if name is None:
            real(file)
        elif self._at(kind, name):
            raise self._error(file)

    def _on_names(self, kind: str, real: Any, source: Any, target: Any, **how: Any) -> None:
        names = [name for name in (self._below(source), self._below(target)) if name is not None]
        if names and self._at(kind, *names):
            raise self._error(source, target)
        real(source, target, **how)

    def _on_name(self, kind: str, real: Any, path: Any, *args: Any, dir_fd: int | None = None) -> None:
        name = self._below(path, dir_fd)
        if name is not None and self._at(kind, name):
            raise self._error(path)
        real(path, *args, dir_fd=dir_fd)

    def unseen(self, folder: str) -> list[str]:
        """Return the files in a folder that hold other bytes than those that were seen to be written."""
        return [
            path
            for path, (file, size) in _files_below(folder)
            if self.written.get(file) != size and (file, size) not in self._before.values()
        ]


def _place() -> str:
    """Return the lines of the product by which a call came to be made, the latest first."""
    lines = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("shardmill."):
            lines.append(f"{module}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(lines)


def _files_below(folder: str) -> Iterator[tuple[str, tuple[tuple[int, int], int]]]:
    """Yield the path, the identity and the size of each file."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            status = os.lstat(path)
            yield path, ((status.st_dev, status.st_ino), status.st_size)


class _Raw(io.FileIO):
    """What a buffered file writes to."""

    calls: Calls

    def write(self, data: Any) -> int:
        return self.calls.put(self.fileno(), memoryview(data).cast("B"), super().write)


def _first_of(views: list[memoryview], size: int) -> list[memoryview]:
    """Return the first bytes of some views, where they lie: what bypasses the cache must lie at page borders."""
    first = []
    for view in views:
        first.append(view[:size])
        size -= first[-1].nbytes
    return first
