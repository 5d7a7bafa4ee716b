"""Worker processes: who dies of what, and what is left then."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import convert
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.conversion import prepare
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.workers.worker_processes import PROCESSES_FROM_BYTES, WorkerProcesses
from shardmill.transforms.errors import RunError
from shardmill.transforms.inputs.contract.source import Task
from shardmill.transforms.inputs.contract.tasks import TaskStaging

from ..cpu_time import slowness_by_the_clock

pytestmark = pytest.mark.engine

COMMAND = [
    *(sys.executable, "-m", "shardmill.pipelines", "convert", "a.parquet", "-o", "out"),
    *("--workers", "2", "--set", "runner.processes=true"),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Parquet file of 320 MB of records, in many row groups."""
    path = tmp_path_factory.mktemp("source") / "a.parquet"
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(80_000_000, np.float32)), 100_000)
    pq.write_table(pa.table({"x": column}), path, row_group_size=20)
    return path


@pytest.fixture
def running(source: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the command, and wait until its workers write parts."""
    (tmp_path / "a.parquet").symlink_to(source)
    with subprocess.Popen(
        COMMAND, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        wait_for(lambda: any((tmp_path / "out").glob(".staging/*/parts/*/*.part")), process)
        yield process
        process.kill()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        os.sched_yield()


def workers_of(pid: int) -> list[psutil.Process]:
    found = [child for child in psutil.Process(pid).children() if "LokyProcess" in " ".join(child.cmdline())]
    assert len(found) == 2
    return found


def test_a_worker_that_is_killed_ends_the_run_with_an_error(
    running: subprocess.Popen[str], source: Path, tmp_path: Path
) -> None:
    victim, other = workers_of(running.pid)
    victim.kill()
    killed = time.monotonic()
    out, err = running.communicate(timeout=300)
    assert time.monotonic() - killed < 10 * slowness_by_the_clock()  # seconds, where nothing else runs
    assert (running.returncode, out) == (1, "")
    assert "error: a worker process was ended from outside" in err
    assert "--workers 1" in err
    assert "Traceback" not in err
    assert not other.is_running()
    assert not list((tmp_path / "out").glob("[!.]*"))
    summary = convert({"input": {"paths": [str(source)]}}, output=tmp_path / "out", shard_size="1GiB")
    assert summary.manifest.counts.written == 800


def test_a_worker_that_is_killed_while_it_plans_ends_the_run_with_an_error() -> None:
    began = time.monotonic()
    with WorkerProcesses(2, asked=True) as processes:
        plan = processes.planning(0)
        with pytest.raises(RunError, match="ended from outside"):
            plan(signal.raise_signal, [signal.SIGKILL] * 16, heavy=True)
    assert time.monotonic() - began < 10 * slowness_by_the_clock()


@pytest.mark.thorough("a command with workers is started; one whose worker is killed is in the quick tier")
def test_workers_do_not_outlive_their_command(running: subprocess.Popen[str]) -> None:
    workers = workers_of(running.pid)
    running.kill()
    _, err = running.communicate(timeout=300)
    wait_for(lambda: not any(worker.is_running() for worker in workers))
    assert "warn" not in err.lower()  # nor does what removes their semaphores say so


@pytest.mark.thorough("a command with workers is started; one whose worker is killed is in the quick tier")
def test_an_interrupt_of_the_whole_group_is_told_by_the_command_alone(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    workers = workers_of(running.pid)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert (running.returncode, out) == (130, "")
    assert [line for line in err.splitlines() if "records" not in line] == [
        line for line in err.splitlines() if line.startswith("Interrupted: nothing was committed; the staged work is")
    ]
    assert not any(worker.is_running() for worker in workers)
    assert not list((tmp_path / "out").glob("[!.]*"))


def test_no_interrupt_reaches_a_worker_at_any_time_since_it_was_started() -> None:
    with WorkerProcesses(2) as processes:
        processes.start()
        assert all(map(blocks_interrupts, workers_of(os.getpid())))


def blocks_interrupts(process: psutil.Process) -> bool:
    status = Path(f"/proc/{process.pid}/status").read_text()
    (blocked,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigBlk:"))
    return bool(int(blocked, 16) >> (signal.SIGINT - 1) & 1)


def test_a_script_without_a_main_guard_may_convert(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n2\n")
    script = tmp_path / "script.py"
    script.write_text(
        "from shardmill.pipelines import convert\n"
        "config = {'input': {'paths': ['a.csv']}, 'runner': {'workers': 2, 'processes': True}}\n"
        "print(convert(config, output='out').manifest.counts.written)\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


def one_task(folder: Path, out: str) -> tuple[TaskStaging, Task]:
    """Return how to stage the one task of a small CSV file."""
    (folder / "a.csv").write_text("a\n1\n2\n")
    config = load_config({"input": {"paths": [str(folder / "a.csv")]}, "output": {"path": str(folder / out)}})
    prepared = prepare(conversion_of(config), WorkerProcesses(1))
    (task,) = prepared.plan.tasks
    return TaskStaging.of(prepared.spec, prepared.source, prepared.plan.survey.frozen, prepared.encoder), task


def test_a_task_that_is_asked_for_twice_is_attempted_twice(tmp_path: Path) -> None:
    staging, task = one_task(tmp_path, "out")
    with WorkerProcesses(1) as processes:
        processes.begin(staging, [task])
        first, second = processes.stage(task), processes.stage(task)
    assert first.attempt != second.attempt
    assert [split.digest for split in first.splits.values()] == [split.digest for split in second.splits.values()]
    assert len(list((tmp_path / "out").glob(".staging/*/parts/*/*.part"))) == 2


def own_workers() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "LokyProcess" in " ".join(child.cmdline())]


def test_processes_end_behind_the_last_task_and_start_again_for_another_attempt(tmp_path: Path) -> None:
    staging, task = one_task(tmp_path, "out")
    with WorkerProcesses(2) as processes:
        processes.begin(staging, [task, replace(task, ordinal=1)])
        processes.stage(task)
        assert len(own_workers()) == 2
        processes.stage(replace(task, ordinal=1))
        assert own_workers() == []
        assert processes.stage(task).records == 2


def test_what_a_task_raises_reaches_the_caller(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    staging, task = one_task(tmp_path, "file/out")
    with WorkerProcesses(1) as processes:
        processes.begin(staging, [task])
        with pytest.raises(NotADirectoryError):
            processes.stage(task)
        assert processes.broken is None


@pytest.mark.thorough("worker processes are started twice")
def test_a_full_disk_in_a_worker_is_told_in_one_line(source: Path, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").symlink_to(source)
    done = subprocess.run(
        COMMAND,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20 << 20, 20 << 20)),
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: File too large: out/.staging/" in done.stderr
    assert ": nothing was committed; the staged work is in out/.staging/" in done.stderr
    assert "Traceback" not in done.stderr


def test_auto_takes_processes_for_plans_that_repay_their_start() -> None:
    assert not WorkerProcesses(2).wanted(PROCESSES_FROM_BYTES - 1)
    assert WorkerProcesses(2).wanted(PROCESSES_FROM_BYTES)
    assert WorkerProcesses(2, asked=True).wanted(0)
    assert not WorkerProcesses(2, asked=False).wanted(PROCESSES_FROM_BYTES)


def test_a_pool_that_broke_says_so_to_every_task(tmp_path: Path) -> None:
    staging, task = one_task(tmp_path, "out")
    with WorkerProcesses(1) as processes:
        processes.begin(staging, [task, replace(task, ordinal=1)])
        processes.stage(task)
        for child in own_workers():
            child.kill()
        for _ in range(2):
            with pytest.raises(RunError, match="ended from outside"):
                processes.stage(task)
