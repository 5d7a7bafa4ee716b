"""Run the command on Flink, see what is at work on a cluster, and compare what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from shardmill.pipelines.engines.flink.cluster import Cluster
from shardmill.transforms.dataset.storage.object_storage import ObjectStorage

CONFIGS = Path(__file__).parents[2] / "configs"


@dataclass(frozen=True, slots=True)
class BlindPool:
    """A worker pool whose workers do not see what is in a folder; `inside` is that folder as they see it."""

    address: str
    hidden: Path
    inside: Path


def dying_workers(folder: Path, deaths: int, how: str = "os.kill(os.getpid(), signal.SIGKILL)") -> None:
    """Make a folder which, in a worker pool's PYTHONPATH, lets its first workers die while they import."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        textwrap.dedent(f"""
        import os, pathlib, signal, sys
        died = pathlib.Path({str(folder)!r}, "died")
        if "work" in sys.orig_argv:
            number = int(died.read_text()) if died.exists() else 0
            if number < {deaths}:
                died.write_text(str(number + 1))
                {how}
        """)
    )


@contextlib.contextmanager
def worker_pool(log: Path, *before: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start a worker pool, and give its address and its process; the words `before` are of what starts it."""
    command = [*before, sys.executable, "-m", "shardmill.pipelines.engines.flink.worker_pool", "serve", "0", "test"]
    with (
        log.open("w") as said,
        subprocess.Popen(command, stderr=said, text=True, env={**os.environ, **environment}) as process,
    ):
        try:
            found = wait_for(lambda: re.search(r"listening at (\S+)\n", log.read_text()), process)
            yield found[1], process
        finally:
            process.terminate()


def shardmill(*args: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shardmill.pipelines", *args]
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert not check or ended.returncode == 0, ended.stderr
    return ended


def same_bytes(one: Path, other: Path) -> None:
    """Assert that two datasets are the same file by file; of the manifests all but the `run` block."""
    names = {path.relative_to(one).as_posix() for path in one.rglob("*") if path.is_file()}
    assert names == {path.relative_to(other).as_posix() for path in other.rglob("*") if path.is_file()}
    assert any(".tfrecord" in name for name in names)
    for name in names:
        if "manifest" in name:
            assert without_run(one / name) == without_run(other / name)
        else:
            assert (one / name).read_bytes() == (other / name).read_bytes(), name


def fetched(url: str, folder: Path) -> Path:
    """Copy a dataset in a store, and what may be left in its staging folder, to a folder."""
    storage = ObjectStorage(url)
    for below in ("", ".staging"):
        for name, _ in storage.files_below(below):
            path = folder / below / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(storage.read(f"{below}/{name}" if below else name))
    return folder


def without_run(manifest: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(manifest.read_text())
    del document["run"]
    return document


def write_table(path: Path, groups: int) -> None:
    """Write a Parquet file whose output is some 5 MB for each row group; one row in 5,000 is a reject."""
    rows = 5_000
    floats = np.random.default_rng(1).random(rows * 256, dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(floats), 256)
    schema = pa.schema({"x": column.type, "id": pa.uint64(), "text": pa.string()})
    with pq.ParquetWriter(path, schema) as writer:
        for group in range(groups):
            ids = np.arange(group * rows, (group + 1) * rows, dtype=np.uint64)
            ids[7] = 2**63 + 7
            text = pa.array([f"row {number}" for number in ids.tolist()])
            writer.write_table(pa.table({"x": column, "id": ids, "text": text}, schema))


def on(cluster: Cluster, *, workers: int | str = 2, pool: str | None = None) -> Sequence[str]:
    """Return the options of a run on a cluster, with its own worker pool or another one."""
    settings = (f"runner.master={cluster.master}", f"runner.worker_pool={pool or cluster.worker_pool}")
    return (
        "--runner", "flink", "--workers", str(workers), *(word for setting in settings for word in ("--set", setting))
    )  # fmt: skip


def wait_for(found: Callable[[], Any], process: subprocess.Popen[str], seconds: float = 300) -> Any:
    """Wait until something is found, while the command runs."""
    until = time.monotonic() + seconds
    while not (result := found()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.005)
    return result


def wait_until_ended(process: psutil.Process, seconds: float = 300) -> None:
    """Wait until a process is gone, or only waits for whoever is to hear of its end."""
    until = time.monotonic() + seconds
    with contextlib.suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < until, f"{process} runs on"
            time.sleep(0.02)


def worker_at_work(cluster: Cluster, out: Path) -> psutil.Process | None:
    """Return a worker process of a cluster that writes a part at this moment, stopped in the middle of its task."""
    for worker in psutil.Process(cluster.processes["worker pool"].pid).children():
        if is_at_a_task(worker, out):
            worker.suspend()
            if is_at_a_task(worker, out):
                return worker
            worker.resume()
    return None


def is_at_a_task(worker: psutil.Process, out: Path) -> bool:
    """Return whether a process has a part open, of a task that is not done."""
    try:
        links = [os.readlink(link) for link in Path(f"/proc/{worker.pid}/fd").iterdir()]
    except FileNotFoundError:  # it closed a file, or ended, just then
        return False
    parts = [Path(link) for link in links if link.startswith(str(out)) and link.endswith(".part")]
    tasks = {part.parent.name.partition("-")[0] for part in parts}
    done = {path.stem for path in out.glob(".staging/*/tasks/*.json")}
    return bool(tasks - done)


def task_manager_of(cluster: Cluster, worker: psutil.Process) -> psutil.Process:
    """Return the task manager that a worker works for: the one that listens where it was told to connect."""
    log = (Path(cluster.folder) / "logs" / "worker-pool.log").read_text()
    port = int(re.findall(rf"started for \S+:(\d+): process {worker.pid}$", log, re.MULTILINE)[-1])
    managers = [psutil.Process(known.pid) for role, known in cluster.processes.items()
                if role.startswith("task") and known.is_alive()]  # fmt: skip
    return next(
        manager
        for manager in managers
        if manager.is_running() and any(c.laddr.port == port for c in manager.net_connections() if c.status == "LISTEN")
    )
