"""The worker pool answers a task manager when the worker has connected, or when it cannot be started."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc
from shardmill.pipelines.engines.flink.worker_pool import WorkersAsProcesses, served
from shardmill.pipelines.outcomes.disk_errors import lasting_error
from shardmill.transforms.errors import RunError

from ....flink.running import dying_workers

pytestmark = pytest.mark.engine

SECONDS = 300


class TaskManager(beam_fn_api_pb2_grpc.BeamFnControlServicer):
    """The endpoint that a worker connects to, which it keeps until `over`."""

    def __init__(self) -> None:
        self.connected = threading.Event()
        self.over = threading.Event()

    def Control(self, responses: Any, call: Any) -> Iterator[Any]:  # noqa: N802  (Beam's name)
        self.connected.set()
        self.over.wait(SECONDS)
        yield from ()


@contextmanager
def task_manager() -> Iterator[tuple[TaskManager, str]]:
    manager = TaskManager()
    server = grpc.server(ThreadPoolExecutor(4))
    beam_fn_api_pb2_grpc.add_BeamFnControlServicer_to_server(manager, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield manager, f"127.0.0.1:{port}"
    finally:
        manager.over.set()
        server.stop(0).wait()


def ask(pool: int, endpoint: str) -> str:
    """Ask a pool for a worker, as a task manager does, and return the error that it answers with."""
    with grpc.insecure_channel(f"127.0.0.1:{pool}") as channel:
        stub = beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(channel)
        request = beam_fn_api_pb2.StartWorkerRequest(worker_id="1-1")
        request.control_endpoint.url = endpoint
        return str(stub.StartWorker(request, timeout=SECONDS).error)


@pytest.fixture
def pool() -> Iterator[int]:
    workers = WorkersAsProcesses()
    with served(workers) as port:
        yield port
    workers.close()


def test_a_worker_that_dies_while_it_imports_is_started_again(
    pool: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying_workers(tmp_path / "path", 5, "os.kill(os.getpid(), signal.SIGKILL)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    with task_manager() as (manager, endpoint):
        assert ask(pool, endpoint) == ""
        assert manager.connected.wait(SECONDS)
    assert (tmp_path / "path" / "died").read_text() == "5"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "by signal SIGKILL, as when the machine runs out of memory"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "by signal SIGSEGV"),
        ("os._exit(7)", "with exit code 7"),
    ],
)
def test_a_worker_that_dies_six_times_is_an_error_that_says_how_it_ended(
    pool: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, said: str
) -> None:
    dying_workers(tmp_path / "path", 100, how)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    error = ask(pool, "127.0.0.1:1")
    assert (tmp_path / "path" / "died").read_text() == "6"
    assert f"the last time {said};" in error
    lasting = lasting_error(f"Caused by: java.lang.RuntimeException: {error}\n\tat org.apache.beam.Some.java\n")
    assert isinstance(lasting, RunError)
    assert str(lasting) == error
