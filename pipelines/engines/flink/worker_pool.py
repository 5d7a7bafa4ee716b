"""Start a Python worker when a task manager of Flink asks for one, and end all workers with the pool.

    task manager  ── StartWorker(id, its endpoint) ──▶  pool  ── starts ──▶  worker ──▶ connects to the endpoint
                  ◀── once it has connected, or why it cannot ──

A task manager waits for its worker for ever. So the pool answers when the worker has connected, starts one that ended
before that again, and gives up after five times: its answer then fails the job.

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
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import FileIO
from types import FrameType
from typing import Any, Final, Protocol

from ....transforms.errors import RunError
from ...outcomes.disk_errors import NO_WORKER
from ...workers.process_start import ARROW_ENVIRONMENT, collect_rarely, keep_freed_memory
from ...workers.worker_processes import end_with

_MODULE: Final = "shardmill.pipelines.engines.flink.worker_pool"  # its __name__ is __main__ in the process that serves

_GRPC_OPTIONS: Final = [("grpc.http2.max_pings_without_data", 0), ("grpc.http2.max_ping_strikes", 0),
                        ("grpc.so_reuseport", 0)]  # fmt: skip

_STARTS: Final = 6
"""How often a worker is started that ends before it has connected."""

_WAITING_CALLS: Final = 256
"""How many task managers' calls may wait for their workers at a time: each slot has one."""


class Workers(Protocol):
    """What starts workers.

    They end when their task manager hangs up, and are not stopped by name: two task managers may give theirs the same.
    """

    def start(self, worker: str, endpoint: str, is_wanted: Callable[[], bool]) -> None:
        """Start a worker, and wait until it has connected to its task manager, or is not wanted any more.

        Raises:
            RunError: it ended before it had connected, each time it was started.
        """


class WorkersAsProcesses:
    """Starts worker processes, and ends them with itself; what it prints is its log."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False
        # A worker ends with the thread that started it (see `end_with`): so one thread starts them all, and stays.
        self._starter = ThreadPoolExecutor(1)

    def start(self, worker: str, endpoint: str, is_wanted: Callable[[], bool]) -> None:
        code = 0
        for _ in range(_STARTS):
            process, connected = self._starter.submit(_start_process, worker, endpoint).result()
            self._running.add(process)
            _say(f"worker {worker} started for {endpoint}: process {process.pid}")
            with connected:
                has_connected = bool(connected.read(1))  # the end of the pipe, where the process has ended
            if has_connected:
                threading.Thread(target=self._await_end, args=(process,), daemon=True).start()
                return
            code = self._await_end(process)
            if self._closed or not is_wanted():
                return
        raise RunError(
            f"{NO_WORKER}it was started {_STARTS} times, and ended each time before it had connected, the last time "
            f"{_how_it_ended(code)}; the log of the worker pool has what it said"
        )

    def close(self) -> None:
        self._closed = True
        for process in list(self._running):
            process.kill()

    def _await_end(self, process: subprocess.Popen[bytes]) -> int:
        code = process.wait()
        self._running.discard(process)
        _say(f"process {process.pid} ended {_how_it_ended(code)}")
        return code


def _how_it_ended(code: int) -> str:
    """Return how a process ended, by its exit code.

    >>> _how_it_ended(-9), _how_it_ended(1)
    ('by signal SIGKILL, as when the machine runs out of memory', 'with exit code 1')
    """
    if code >= 0:
        return f"with exit code {code}"
    why = ", as when the machine runs out of memory" if code == -signal.SIGKILL else ""
    return f"by signal {signal.Signals(-code).name}{why}"


class WorkersAsThreads:
    """Starts workers as threads of this process."""

    def start(self, worker: str, endpoint: str, is_wanted: Callable[[], bool]) -> None:  # noqa: ARG002
        harness = _harness(worker, endpoint)  # it has connected
        threading.Thread(target=_run_harness, args=(harness,), name=f"worker {worker}", daemon=True).start()


@contextmanager
def served(workers: Workers, port: int = 0) -> Iterator[int]:
    """Serve on a port of the loopback while the context is open, and give the port."""
    import grpc
    from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

    class Servicer(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
        def StartWorker(self, request: Any, call: Any) -> Any:  # noqa: N802  (Beam's name)
            try:
                workers.start(request.worker_id, request.control_endpoint.url, call.is_active)
            except RunError as error:
                return beam_fn_api_pb2.StartWorkerResponse(error=str(error))
            return beam_fn_api_pb2.StartWorkerResponse()

        def StopWorker(self, _request: Any, _: Any) -> Any:  # noqa: N802  (Beam's name)
            return beam_fn_api_pb2.StopWorkerResponse()  # it ends when its task manager hangs up

    server = grpc.server(ThreadPoolExecutor(_WAITING_CALLS), options=_GRPC_OPTIONS)
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(Servicer(), server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield bound
    finally:
        server.stop(0)


def serve(port: int) -> None:
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


def work(worker: str, endpoint: str, parent: int, connected: int) -> None:
    """Work until the task manager disconnects; what is half done then is void, and ends too."""
    end_with(parent)
    collect_rarely()
    keep_freed_memory()
    logging.getLogger("apache_beam").setLevel(logging.WARNING)
    try:
        harness = _harness(worker, endpoint, at_end=lambda: os._exit(0))
        os.write(connected, b"1")
        os.close(connected)
        _run_harness(harness)
    except BaseException:  # noqa: BLE001  (the process ends here, and its log says why)
        traceback.print_exc()
        os._exit(1)
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


def _start_process(worker: str, endpoint: str) -> tuple[subprocess.Popen[bytes], FileIO]:
    """Start a worker; the file has a byte once it has connected, and ends when it has ended."""
    connected, told = os.pipe()
    command = [sys.executable, "-m", _MODULE, "work", worker, endpoint, str(os.getpid()), str(told)]
    process = subprocess.Popen(  # noqa: S603  (a list, no shell)
        command, stdin=subprocess.DEVNULL, env={**ARROW_ENVIRONMENT, **os.environ}, pass_fds=(told,)
    )
    os.close(told)
    return process, FileIO(connected)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main(args: list[str]) -> None:
    if args[0] == "serve":
        serve(int(args[1]))
    else:
        work(args[1], args[2], int(args[3]), int(args[4]))


if __name__ == "__main__":
    main(sys.argv[1:])
