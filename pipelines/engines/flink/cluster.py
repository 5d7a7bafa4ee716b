"""A Flink cluster of this machine: `shardmill flink up` starts it on the loopback, `down` stops it.

job manager   127.0.0.1:8081      plans jobs, has the REST interface, which `runner.master` names
task manager  (several)           run the steps, each in its slots
worker pool   127.0.0.1:50000     starts the Python workers of the task managers (`worker_pool`)

<folder>/
  cluster.json      addresses and processes; it is there while the cluster is up
  flink-conf.yaml   logs/   tmp/
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ....transforms.errors import RunError, UsageError
from ....transforms.format.wording.hints import Command
from .jars import cache_folder
from .processes import (
    JOB_MANAGER,
    LOOPBACK,
    TASK_MANAGER,
    FlinkRest,
    Known,
    end,
    free_port,
    java_command,
    start,
    wait_for,
)

_START_SECONDS: Final = 120.0

_SETTINGS: Final = "flink-conf.yaml"

_MEGABYTES: Final = {"task.heap": 256, "framework.heap": 64, "task.off-heap": 64, "framework.off-heap": 64,
                     "network": 64, "managed": 64, "jvm-metaspace": 192, "jvm-overhead": 128}  # fmt: skip
"""The memory of a task manager: it passes on descriptors, the records stay in its Python workers."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that is up: `master` and `worker_pool` are host and port; `processes` by their roles."""

    master: str
    worker_pool: str
    task_managers: int
    slots: int
    folder: str
    processes: dict[str, Known]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Cluster:
        processes = {role: Known(**known) for role, known in document["processes"].items()}
        return cls(**{**document, "processes": processes})


def default_folder() -> Path:
    return cache_folder() / "flink" / "cluster"


def stopping(folder: Path) -> Command:
    return Command("flink", "down", *([] if folder == default_folder() else ["--folder", str(folder)]))


def cluster_of(folder: Path) -> Cluster | None:
    try:
        return Cluster.from_json(json.loads((folder / "cluster.json").read_text()))
    except FileNotFoundError:
        return None


def up(folder: Path, task_managers: int, slots: int, port: int, pool_port: int) -> Cluster:
    """Start a cluster and wait until it can take jobs; ports that are 0 are free ones.

    If a process does not start, those that did are ended.
    """
    held = cluster_of(folder)
    if held is not None and any(process.is_alive() for process in held.processes.values()):
        raise UsageError(f"a cluster is up already at {held.master}; {stopping(folder)} stops it")
    _check_port("--port", port)
    _check_port("--pool-port", pool_port)
    _clear(folder)
    (folder / "logs").mkdir(parents=True)
    port, pool_port = port or free_port(), pool_port or free_port()
    mark = f"cluster-{uuid.uuid4().hex}"
    _write_settings(folder, port, slots)
    with _started(folder) as processes:
        conf = ["--configDir", str(folder)]
        manager = java_command(JOB_MANAGER, *conf, heap="512m", mark=mark)
        processes["job manager"] = start(manager, _log(folder, "job manager"))
        pool = [sys.executable, "-m", "shardmill.pipelines.engines.flink.worker_pool", "serve", str(pool_port), mark]
        processes["worker pool"] = start(pool, _log(folder, "worker pool"))
        heap = f"{_MEGABYTES['task.heap'] + _MEGABYTES['framework.heap']}m"
        for number in range(task_managers):
            processes[f"task manager {number + 1}"] = start(
                java_command(TASK_MANAGER, *conf, heap=heap, mark=mark), _log(folder, f"task manager {number + 1}")
            )
        cluster = Cluster(
            f"{LOOPBACK}:{port}",
            f"{LOOPBACK}:{pool_port}",
            task_managers,
            slots,
            str(folder),
            {role: Known(process.pid, mark) for role, process in processes.items()},
        )
        (folder / "cluster.json").write_text(json.dumps(cluster.to_json(), indent=1))
        _wait_until_whole(cluster, processes)
    return cluster


def down(folder: Path) -> Cluster | None:
    """Stop the cluster of a folder, if there is one, and return what it was; its logs stay."""
    cluster = cluster_of(folder)
    if cluster is not None:
        for process in reversed(cluster.processes.values()):
            process.end()
        (folder / "cluster.json").unlink()
        shutil.rmtree(folder / "tmp", ignore_errors=True)
    return cluster


def _check_port(option: str, port: int) -> None:
    """Check that no process listens on a port: it would answer in place of the one that is started there."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was closed a moment ago is free
        try:
            listener.bind((LOOPBACK, port))
        except OSError as error:
            raise UsageError(f"port {port} is taken ({error.strerror}); {option} 0 takes a free one") from error


def _clear(folder: Path) -> None:
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    if names and _SETTINGS not in names:
        raise UsageError(f"{folder}: holds {min(names)}, and no cluster; name a folder that is empty, or not there yet")
    for name in ("logs", "tmp"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("cluster.json", _SETTINGS):
        (folder / name).unlink(missing_ok=True)


def _log(folder: Path, role: str) -> Path:
    return folder / "logs" / f"{role.replace(' ', '-')}.log"


@contextmanager
def _started(folder: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Yield a place for processes; if anything fails, end them, and keep only their logs."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        yield processes
    except BaseException:
        for process in processes.values():
            end(process)
        (folder / "cluster.json").unlink(missing_ok=True)
        raise


def _wait_until_whole(cluster: Cluster, processes: Mapping[str, subprocess.Popen[bytes]]) -> None:
    rest = FlinkRest(cluster.master)
    folder = Path(cluster.folder)

    def is_whole() -> bool:
        for role, process in processes.items():
            wait_for(lambda: True, f"Flink's {role}", process, _log(folder, role), 0)
            if process.poll() is not None:
                return False
        try:
            return rest.overview().task_managers == cluster.task_managers
        except RunError:  # it does not answer yet
            return False

    manager = processes["job manager"]
    wait_for(is_whole, "Flink's cluster", manager, _log(folder, "job manager"), _START_SECONDS)
    pool_log = _log(folder, "worker pool")
    wait_for(
        lambda: "listening at" in pool_log.read_text(), "Flink's worker pool", processes["worker pool"], pool_log, 60
    )


def _write_settings(folder: Path, port: int, slots: int) -> None:
    settings: dict[str, object] = {
        "jobmanager.rpc.address": LOOPBACK,
        "jobmanager.rpc.port": free_port(),
        "jobmanager.bind-host": LOOPBACK,
        "taskmanager.host": LOOPBACK,
        "taskmanager.bind-host": LOOPBACK,
        "rest.address": LOOPBACK,
        "rest.bind-address": LOOPBACK,
        "rest.port": port,
        "taskmanager.numberOfTaskSlots": slots,
        "taskmanager.cpu.cores": float(slots),
        "cluster.evenly-spread-out-slots": "true",
        "io.tmp.dirs": folder / "tmp",
        # Beam is on the class path of this cluster: its classes are loaded once, not once for each job
        "classloader.resolve-order": "parent-first",
        # What fails is tried again: without this a job fails with its first worker that dies. Beam keeps a dead
        # one until it forgets those that are idle (`_ENVIRONMENT_MILLIS` in `pipeline`); so long a try has to wait.
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 5,
        "restart-strategy.fixed-delay.delay": "5 s",
        # a task manager that is gone is missed before the tries are used up; a machine may be busy for so long
        "heartbeat.interval": 1000,
        "heartbeat.timeout": 12000,
    }
    for name, megabytes in _MEGABYTES.items():
        bounds = (".min", ".max") if name in ("network", "jvm-overhead") else (".size",)
        settings |= {f"taskmanager.memory.{name}{bound}": f"{megabytes}m" for bound in bounds}
    text = "".join(f"{key}: {value}\n" for key, value in settings.items())
    (folder / _SETTINGS).write_text(text)
    (folder / "tmp").mkdir()
