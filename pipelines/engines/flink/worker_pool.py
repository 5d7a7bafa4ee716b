"""The Python workers of Flink: who starts and stops them when a task manager asks.

    task manager  ── StartWorker(id, its endpoint) ──▶  pool  ── starts ──▶  worker ──▶ connects to the endpoint

This is Beam's protocol of an external worker pool. Beam's own pool serves anyone on the network, and lets its
workers write into a pipe that nobody reads; this one listens on the loopback, and its workers end with it. On a cluster
the pool is a process and so is each worker; on embedded Flink the workers are threads of the command.

    python -m shardmill.pipelines.engines.flink.worker_pool serve PORT MARK
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, Protocol

from ...workers.allocator import ARROW_ENVIRONMENT, collect_rarely, keep_freed_memory
from ...workers.worker_processes import end_with

_MODULE: Final = "shardmill.pipelines.engines.flink.worker_pool"  # its __name__ is __main__ in the process that serves

_GRPC_OPTIONS: Final = [("grpc.http2.max_pings_without_data", 0), ("grpc.http2.max_ping_strikes", 0),
                        ("grpc.so_reuseport", 0)]  # fmt: skip


class Workers(Protocol):
    """What starts workers.

    They end when their task manager hangs up, and are not stopped by name: two task managers may give theirs the same.
    """

    def start(self, worker: str, endpoint: str) -> None:
        """Start a worker that connects to a task manager."""


class WorkersAsProcesses:
    """Starts worker processes, and ends them with itself; what it prints is its log."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        # A worker ends with the thread that started it (see `end_with`): so one thread starts them all, and stays.
        self._starter = ThreadPoolExecutor(1)

    def start(self, worker: str, endpoint: str) -> None:
        """Start a process."""
        process = self._starter.submit(_start_process, worker, endpoint).result()
        _say(f"worker {worker} started for {endpoint}: process {process.pid}")
        self._running.add(process)
        threading.Thread(target=self._await_end, args=(process,), daemon=True).start()

    def close(self) -> None:
        """End all processes."""
        for process in list(self._running):
            process.kill()

    def _await_end(self, process: subprocess.Popen[bytes]) -> None:
        code = process.wait()
        self._running.discard(process)
        _say(f"process {process.pid} ended with {code}")


class WorkersAsThreads:
    """Starts workers as threads of this process."""

    def start(self, worker: str, endpoint: str) -> None:
        """Start a thread."""
        harness = _harness(worker, endpoint)
        threading.Thread(target=_run_harness, args=(harness,), name=f"worker {worker}", daemon=True).start()


@contextmanager
def served(workers: Workers, port: int = 0) -> Iterator[int]:
    """Serve on a port of the loopback while the context is open, and give the port."""
    import grpc
    from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

    class Servicer(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
        def StartWorker(self, request: Any, _: Any) -> Any:  # noqa: N802  (Beam's name)
            workers.start(request.worker_id, request.control_endpoint.url)
            return beam_fn_api_pb2.StartWorkerResponse()

        def StopWorker(self, _request: Any, _: Any) -> Any:  # noqa: N802  (Beam's name)
            return beam_fn_api_pb2.StopWorkerResponse()  # it ends when its task manager hangs up

    server = grpc.server(ThreadPoolExecutor(8), options=_GRPC_OPTIONS)
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(Servicer(), server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield bound
    finally:
        server.stop(0)


def serve(port: int) -> None:
    """Serve processes until this one is ended."""
    workers = WorkersAsProcesses()
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    with served(workers, port) as bound:
        _say(f"listening at 127.0.0.1:{bound}")
        ended.wait()
    workers.close()


def work(worker: str, endpoint: str, parent: int) -> None:
    """Work until the task manager disconnects; what is half done then is void, and ends too."""
    end_with(parent)
    collect_rarely()
    keep_freed_memory()
    logging.getLogger("apache_beam").setLevel(logging.WARNING)
    try:
        _run_harness(_harness(worker, endpoint, at_end=lambda: os._exit(0)))
    finally:
        os._exit(0)


def _harness(worker: str, endpoint: str, at_end: Callable[[], None] | None = None) -> Any:
    """Return Beam's worker; `at_end` is called when its task manager hangs up, while it may be at a step still."""
    from apache_beam.runners.worker.sdk_worker import SdkHarness

    harness = SdkHarness(endpoint, worker_id=worker, state_cache_size=0, data_buffer_time_limit_ms=0)
    if at_end is not None:
        # what it calls first when there are no more requests, and what would wait for the steps of a cancelled job
        harness._worker_thread_pool = _EndingPool(harness._worker_thread_pool, at_end)
    return harness


class _EndingPool:
    """Beam's pool of threads, but for its end."""

    def __init__(self, pool: Any, at_end: Callable[[], None]) -> None:
        self._pool = pool
        self.shutdown = at_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


def _run_harness(harness: Any) -> None:
    import grpc

    with suppress(grpc.RpcError):  # its task manager is gone
        harness.run()


def _start_process(worker: str, endpoint: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", _MODULE, "work", worker, endpoint, str(os.getpid())]
    return subprocess.Popen(  # noqa: S603  (a list, no shell)
        command, stdin=subprocess.DEVNULL, env={**ARROW_ENVIRONMENT, **os.environ}
    )


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main(args: list[str]) -> None:
    """Run the pool, or one of its workers."""
    if args[0] == "serve":
        serve(int(args[1]))
    else:
        work(args[1], args[2], int(args[3]))


if __name__ == "__main__":
    main(sys.argv[1:])
