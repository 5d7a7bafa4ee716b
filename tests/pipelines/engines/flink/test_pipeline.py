"""What is said of a failed job, and who is taken for a process of ours: without a Flink."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shardmill.pipelines.engines.flink.cluster import Cluster, up
from shardmill.pipelines.engines.flink.pipeline import _failure
from shardmill.pipelines.engines.flink.processes import Known, cause_in
from shardmill.transforms.errors import UsageError

pytestmark = pytest.mark.engine

JAVA = """\
Pipeline shardmill-a_1 failed in state FAILED: java.lang.RuntimeException: Error received from SDK harness for \
instruction 5: Traceback (most recent call last):
  File "/x/sdk_worker.py", line 300, in _execute
    response = task()
  File "/x/write.py", line 163, in finish_bundle
    raise RuntimeError("not fused")
{raised}

\tat org.apache.beam.runners.fnexecution.control.FnApiControlClient.handleResponse(FnApiControlClient.java:183)
Caused by: java.util.concurrent.ExecutionException: it failed
"""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with a mark in its command line, which runs until it is ended."""
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", "mark-of-ours"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # a process that the system still loads has no command line yet
        yield process
        process.kill()


@pytest.fixture
def server() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            "RuntimeError: not fused: a bundle ended within a task [while running 'Write/Stage parts']",
            "Flink's job failed in a worker: RuntimeError: not fused: a bundle ended within a task; its log: ",
        ),
        (
            "shardmill.transforms.errors.CommitError: another writer was first",
            "Flink's job failed in a worker: another writer was first; its log: ",
        ),
    ],
)
def test_the_last_error_of_a_workers_traceback_is_the_line(
    server: subprocess.Popen[bytes], tmp_path: Path, raised: str, said: str
) -> None:
    log = tmp_path / "log"
    error = _failure(RuntimeError(JAVA.replace("{raised}", raised)), server, log)
    assert str(error) == said + str(log)


def test_where_no_worker_failed_the_deepest_cause_of_javas_is_the_line(
    server: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    text = (
        "Pipeline a failed: java.lang.E: x\n\tat a.b\nCaused by: c.D: e\n\tat f\nCaused by: g.NoSlots: none is free\n"
    )
    error = _failure(RuntimeError(text), server, tmp_path / "log")
    assert str(error) == f"Flink's job failed: g.NoSlots: none is free; its log: {tmp_path / 'log'}"


def test_a_server_that_died_is_told_with_what_its_log_says(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("12:00 INFO started\nException in thread x: java.lang.OutOfMemoryError: heap\n\tat a.b\n")
    server = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    server.wait()
    error = str(_failure(RuntimeError("<_MultiThreadedRendezvous>\n\tstatus = UNAVAILABLE"), server, log))
    assert error.startswith("Flink's job server died (exit code 3): Exception in thread x: java.lang.OutOfMemoryError")
    assert cause_in(tmp_path / "none") == "it says nothing"


def test_only_the_process_that_was_started_is_ended(sleeper: subprocess.Popen[bytes]) -> None:
    stranger = Known(sleeper.pid, "mark-of-another")
    assert not stranger.is_alive()
    stranger.end()
    assert sleeper.poll() is None
    ours = Known(sleeper.pid, "mark-of-ours")
    assert ours.is_alive()
    ours.end()
    assert sleeper.wait(300) < 0
    assert not ours.is_alive()


def test_a_cluster_is_known_again_from_its_file() -> None:
    cluster = Cluster("127.0.0.1:1", "127.0.0.1:2", 2, 1, "/x", {"job manager": Known(3, "m")})
    assert Cluster.from_json(cluster.to_json()) == cluster


def test_a_folder_that_holds_something_else_is_no_place_for_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(UsageError, match=r"holds thesis\.txt, and no cluster; name a folder that is empty"):
        up(tmp_path, 1, 1, 0, 0)
    assert (tmp_path / "thesis.txt").read_text() == "all of it"


def test_a_port_that_somebody_listens_at_is_refused(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=rf"port {port} is taken .*; --pool-port 0 takes a free one"):
            up(tmp_path / "cluster", 1, 1, 0, port)
    assert not (tmp_path / "cluster").exists()
