"""Run a command in a process that kills itself, by SIGKILL, when its storage has done something for the k-th time."""

from __future__ import annotations

import functools
import multiprocessing
import os
import re
import runpy
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NAME = "killed"

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["shardmill.pipelines.cli", "shardmill.pipelines.runs.merge", "shardmill.transforms.write"]
)

_METHODS = ("replace", "place", "assemble", "publish", "put_if_absent", "remove_tree")


@dataclass(frozen=True)
class Death:
    """When a process dies: behind (or `before`) the `count`-th call of this form, `<method> <path>`."""

    event: str
    count: int = 1
    before: bool = False


def run_until(death: Death, folder: Path, args: Sequence[str]) -> None:
    """Run a command line in a folder, in a process of its own, which must die of its death."""
    job = {"job": (death.event, death.count, death.before, str(folder), list(args))}
    process = _CONTEXT.Process(target=runpy.run_path, args=(__file__, job, _NAME))  # no path leads to the tests there
    process.start()
    process.join(300)
    assert process.exitcode == -signal.SIGKILL, process.exitcode


def on_storage(told: Callable[[str, bool], None]) -> Callable[[], None]:
    """Report every change of a dataset's storage, before and after it; return what undoes this."""
    from shardmill.pipelines.workers.worker_processes import WorkerProcesses
    from shardmill.transforms.dataset.storage.local_storage import LocalStorage

    def wrapped(owner: type, method: str) -> Callable[..., Any]:
        original = getattr(owner, method)

        @functools.wraps(original)
        def call(self: Any, *args: Any) -> Any:
            path = "" if method == "stage" else args[1 if method in ("place", "publish") else 0]
            told(f"{method} {path}", True)
            result = original(self, *args)
            told(f"{method} {path}", False)
            return result

        setattr(owner, method, call)
        return original  # type: ignore[no-any-return]

    places = [*((LocalStorage, method) for method in _METHODS), (WorkerProcesses, "stage")]
    originals = [(owner, method, wrapped(owner, method)) for owner, method in places]

    def undo() -> None:
        for owner, method, original in originals:
            setattr(owner, method, original)

    return undo


def _run(event: str, count: int, before: bool, folder: str, args: list[str]) -> None:
    from shardmill.pipelines.cli import main

    lock, calls = threading.Lock(), 0

    def told(happens: str, is_before: bool) -> None:
        nonlocal calls
        if is_before == before and re.search(event, happens):
            with lock:
                calls += 1
                if calls == count:
                    os.kill(os.getpid(), signal.SIGKILL)

    on_storage(told)
    os.chdir(folder)
    main(args)


if __name__ == _NAME:
    _run(*globals()["job"])
