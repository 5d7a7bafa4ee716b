"""On a standalone cluster: the same bytes as on one machine, also when processes of it are killed in the middle.

The tests of this module share a cluster, and the last ones kill a part of it, and then the rest.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines.engines.flink.cluster import Cluster
from shardmill.pipelines.engines.flink.processes import FlinkRest
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.write import METRICS

from ..stores import servers
from .running import (
    CONFIGS,
    BlindPool,
    dying_workers,
    fetched,
    on,
    same_bytes,
    shardmill,
    task_manager_of,
    wait_for,
    wait_until_ended,
    worker_at_work,
    worker_pool,
    write_table,
)

pytestmark = [
    pytest.mark.engine,
    pytest.mark.thorough("a cluster is started, and killed in part; embedded Flink is in the quick tier"),
]

GROUPS = 8
TABLE = (
    "convert",
    "a.parquet",
    "--name",
    "table",
    "--max-rejects",
    "1%",
    "--shard-size",
    "4MiB",
    "--compression",
    "gzip",
    "-o",
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table of 40,000 rows, and what the local runner makes of it."""
    folder = tmp_path_factory.mktemp("table")
    write_table(folder / "a.parquet", GROUPS)
    shardmill(*TABLE, "local", cwd=folder)
    return folder


@pytest.fixture
def running(cluster: Cluster, table: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Start the conversion of the table on the cluster, to the folder of the test's name."""
    with started(table, *TABLE, request.node.name, *on(cluster)) as process:
        yield process


@contextmanager
def started(folder: Path, *args: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command; whatever a test makes of it, it ends."""
    command = [sys.executable, "-m", "shardmill.pipelines", *args]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def latest(cluster: Cluster) -> dict[str, Any]:
    """Return what a cluster says of the job that came last."""
    jobs: list[dict[str, Any]] = FlinkRest(cluster.master).get("/jobs/overview")["jobs"]
    return max(jobs, key=lambda job: int(job["start-time"]))


def vertices(cluster: Cluster) -> list[dict[str, object]]:
    """Return the vertices of the latest job, when all are finished: fused steps, each with what it read and wrote.

    Flink answers with what it knew some seconds ago.
    """
    until = time.monotonic() + 300
    while True:
        found: list[dict[str, object]] = FlinkRest(cluster.master).get(f"/jobs/{latest(cluster)['jid']}")["vertices"]
        if all(step["status"] == "FINISHED" for step in found):
            return found
        assert time.monotonic() < until, found
        time.sleep(0.2)


def restarts(cluster: Cluster) -> int:
    """Return how many failures the latest job went through."""
    history = FlinkRest(cluster.master).get(f"/jobs/{latest(cluster)['jid']}/exceptions")["exceptionHistory"]
    return len(history["entries"])


def nothing_doubled(dataset: Path) -> None:
    manifest = read_manifest(str(dataset))
    counts = manifest.counts
    assert (counts.read, counts.written, counts.rejected) == (GROUPS * 5000, GROUPS * 4999, GROUPS)
    assert sum(split.records for split in manifest.splits.values()) == counts.written
    assert not (dataset / ".staging").exists()


def comes_to_the_same_after_a_restart(running: subprocess.Popen[str], cluster: Cluster, local: Path, out: Path) -> None:
    _, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    assert restarts(cluster) > 0
    same_bytes(local, out)
    nothing_doubled(out)


def test_tables_have_the_bytes_of_the_local_runner_and_no_record_crosses_an_edge(cluster: Cluster, table: Path) -> None:
    shardmill(*TABLE, "cluster", *on(cluster), cwd=table)
    same_bytes(table / "local", table / "cluster")
    nothing_doubled(table / "cluster")
    steps = vertices(cluster)
    assert len([step for step in steps if "{Read, Encode, Write}" in str(step["name"])]) == 1, "one vertex, no edges"
    train = read_manifest(str(table / "cluster")).splits["train"]
    sent = sum(step["metrics"]["write-bytes"] for step in steps)  # type: ignore[index]
    assert sent < train.bytes / 100
    rest = FlinkRest(cluster.master)
    job = rest.job(latest(cluster)["name"])
    assert job is not None
    staged = rest.counters(job, METRICS)
    assert staged["records"] == train.records, "Beam's metrics, from which the line of progress is told too"
    assert staged["bytes"] == pytest.approx(train.bytes, rel=0.01)


def test_images_have_the_bytes_of_the_local_runner_in_a_store(
    cluster: Cluster, gcs_endpoint: str, tmp_path: Path
) -> None:
    url = f"gs://{servers.make_bucket('gs', gcs_endpoint)}/pets"
    args = ("convert", str(CONFIGS / "images.yaml"), "--name", "pets", "-o")
    shardmill(*args, "local", cwd=tmp_path)
    shardmill(*args, url, *on(cluster, workers=1), cwd=tmp_path)
    same_bytes(tmp_path / "local", fetched(url, tmp_path / "cluster"))


def test_an_interrupt_cancels_the_job_and_leaves_the_old_generation(cluster: Cluster, table: Path) -> None:
    out = table / "appended"
    shutil.copytree(table / "local", out)
    shutil.copy(table / "a.parquet", table / "b.parquet")
    with started(
        table, "append", "b.parquet", "-o", out.name, "--force", "--max-rejects", "1%", *on(cluster)
    ) as running:
        worker = wait_for(lambda: worker_at_work(cluster, out), running)
        running.send_signal(signal.SIGINT)
        worker.resume()
        _, err = running.communicate(timeout=300)
    assert running.returncode == 130
    assert "Interrupted: nothing was committed; the staged work is in" in err
    assert "Traceback" not in err
    assert latest(cluster)["state"] == "CANCELED"
    wait_until_ended(worker)  # and does not go on with the tasks of a job that was cancelled
    shutil.rmtree(out / ".staging")
    same_bytes(table / "local", out)


def test_an_output_that_workers_do_not_see_ends_the_run_with_its_name_and_nothing_is_made_there(
    cluster: Cluster, blind_pool: BlindPool
) -> None:
    (blind_pool.hidden.parent / "a.csv").write_text("a\n1\n")
    out = blind_pool.hidden / "out"
    args = ("convert", "a.csv", "-o", str(out), *on(cluster, pool=blind_pool.address))
    ended = shardmill(*args, cwd=blind_pool.hidden.parent, check=False)
    assert ended.returncode == 1
    error, kept = [line for line in ended.stderr.splitlines() if not line.startswith(("Converting", "Planning"))]
    assert error.startswith(f"error: {out}: the worker on ")
    assert error.endswith("Write to a folder that all workers have under this path, on a file system that they share, "
                          "or to s3:// or gs://")  # fmt: skip
    assert kept.startswith("kept for resuming: ")
    assert list(blind_pool.inside.iterdir()) == []
    assert latest(cluster)["state"] == "CANCELED", "it is tried no more"


def test_python_workers_that_die_while_they_import_are_started_again(
    cluster: Cluster, table: Path, tmp_path: Path
) -> None:
    dying_workers(tmp_path / "path", 3)
    with worker_pool(tmp_path / "pool.log", PYTHONPATH=str(tmp_path / "path")) as (address, _):
        shardmill(*TABLE, "dying", *on(cluster, pool=address), cwd=table)
    assert (tmp_path / "path" / "died").read_text() == "3"
    same_bytes(table / "local", table / "dying")
    assert restarts(cluster) == 0


def test_python_workers_that_always_die_end_the_run_with_how_they_ended(
    cluster: Cluster, table: Path, tmp_path: Path
) -> None:
    dying_workers(tmp_path / "path", 1000)
    with worker_pool(tmp_path / "pool.log", PYTHONPATH=str(tmp_path / "path")) as (address, _):
        ended = shardmill(*TABLE, "dead", *on(cluster, pool=address), cwd=table, check=False)
    assert ended.returncode == 1
    assert "no Python worker could be started: it was started 6 times" in ended.stderr
    assert "by signal SIGKILL, as when the machine runs out of memory" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_python_worker_that_is_killed_at_its_task_changes_nothing(
    cluster: Cluster, table: Path, running: subprocess.Popen[str], request: pytest.FixtureRequest
) -> None:
    out = table / request.node.name
    worker = wait_for(lambda: worker_at_work(cluster, out), running)
    worker.kill()
    comes_to_the_same_after_a_restart(running, cluster, table / "local", out)


def test_a_task_manager_that_is_killed_at_its_task_changes_nothing(
    cluster: Cluster, table: Path, running: subprocess.Popen[str], request: pytest.FixtureRequest
) -> None:
    out = table / request.node.name
    worker = wait_for(lambda: worker_at_work(cluster, out), running)
    task_manager_of(cluster, worker).kill()
    worker.resume()
    comes_to_the_same_after_a_restart(running, cluster, table / "local", out)


def test_a_job_that_lost_its_slots_says_so_at_once_and_a_cluster_that_is_stopped_ends_the_run(
    cluster: Cluster, table: Path
) -> None:
    slots = FlinkRest(cluster.master).overview().slots  # of all task managers that the tests before have left
    with started(table, *TABLE, "waiting", *on(cluster, workers="auto")) as running:
        worker = wait_for(lambda: worker_at_work(cluster, table / "waiting"), running)
        task_manager_of(cluster, worker).kill()
        worker.resume()
        assert running.stderr is not None
        line = next(line for line in running.stderr if line.startswith("Waiting"))
        assert line.startswith(
            f"Waiting  for slots: the job wants {slots}, and Flink at {cluster.master} has {slots - 2}; start a task "
        )
        began = time.monotonic()
        shardmill("flink", "down", "--folder", cluster.folder, cwd=table)
        _, err = running.communicate(timeout=120)
    assert running.returncode == 1
    assert time.monotonic() - began < 45, "sooner than the job server gives up"
    (error,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert error.startswith(f"error: Flink at {cluster.master} does not answer any more: it was stopped, or cannot be ")
    assert "the same command resumes it" in err
