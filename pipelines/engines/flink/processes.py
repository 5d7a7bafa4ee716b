"""Start, recognise and end the Java processes of Flink, and ask Flink over REST.

A process outlives the command that started it only as part of a cluster. To be known again it carries a mark in its
command line: a process of the same number without that mark is somebody else's.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ....transforms.errors import RunError
from ....transforms.format.wording.hints import Command
from ....transforms.format.wording.printable import escaped, printable
from .jars import class_path, java

JOB_SERVER: Final = "org.apache.beam.runners.flink.FlinkJobServerDriver"
JOB_MANAGER: Final = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER: Final = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"

LOOPBACK: Final = "127.0.0.1"

_OPENED: Final = (
    "java.lang", "java.lang.reflect", "java.util", "java.util.concurrent", "java.nio", "java.io", "java.net",
    "java.text", "java.time", "sun.nio.ch",
)  # fmt: skip
"""Packages of java.base that Flink 1.19 reaches into, and Java 17 closes."""

SAID_CHARACTERS: Final = 400
"""So much is shown of what Java says: its exceptions have words of one line or of a thousand."""

_WITH_PARENT: Final = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) and os.execv(sys.argv[2], sys.argv[2:])"
)
"""PR_SET_PDEATHSIG is SIGKILL, and stays so when this becomes another program."""

_POLL_SECONDS: Final = 0.05

_PATIENCE_SECONDS: Final = 10.0


def java_command(main: str, *args: str, heap: str, mark: str, settings: Sequence[str] = ()) -> list[str]:
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    # What runs here passes descriptors on: the quick compiler and the simple collector are enough, and start sooner.
    lean = [f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
    log = ["-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]
    return [java(), *opened, *lean, *log, *settings, f"-Dshardmill={mark}", "-cp", class_path(), main, *args]


def start(command: Sequence[str], log: Path, *, with_us: bool = False) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, out of Ctrl-C's reach, its output in a log file.

    `with_us` lets the system end it when this process ends, however that does; it is to be started by a thread that
    stays until then.
    """
    if with_us and sys.platform.startswith("linux"):
        command = [sys.executable, "-I", "-S", "-c", _WITH_PARENT, str(os.getpid()), *command]
    with log.open("ab") as out:
        return subprocess.Popen(  # noqa: S603  (a list, no shell)
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )


def wait_for(ready: Callable[[], bool], what: str, process: subprocess.Popen[bytes], log: Path, seconds: float) -> None:
    """Wait until a process is ready; a `RunError` has the cause that its log states."""
    until = time.monotonic() + seconds
    while not ready():
        code = process.poll()
        if code is not None:
            raise RunError(f"{what} ended at its start (exit code {code}): {cause_in(log)}; its log: {log}")
        if time.monotonic() > until:
            raise RunError(f"{what} was not ready after {seconds:.0f} s; its log: {log}")
        time.sleep(_POLL_SECONDS)


def cause_in(log: Path) -> str:
    """Return the deepest cause of the last exception in a log of Java's, or its last line."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    thrown = [line for line in lines if line.startswith(("Exception in thread", "Error: ", "Error occurred"))]
    found = causes[-1:] or thrown[-1:] or lines[-1:]
    return escaped(found[0])[:SAID_CHARACTERS] if found else "it says nothing"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        port: int = listener.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class Known:
    """A process that was started before, perhaps by another command: its number and its mark."""

    pid: int
    mark: str

    def is_alive(self) -> bool:
        return self.mark in _command_line(self.pid)

    def end(self) -> None:
        """End the process, if it is still ours: ask first, insist later. Its children are of its session."""
        if not self.is_alive():
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        until = time.monotonic() + _PATIENCE_SECONDS
        while self.is_alive():
            if time.monotonic() > until:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
                return
            time.sleep(_POLL_SECONDS)


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _command_line(pid: int) -> str:
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(  # noqa: S603  (a list, no shell)
        command, capture_output=True, text=True, check=False
    ).stdout


# The state of a Flink cluster and of its jobs, over its REST interface.


_SECONDS: Final = 10.0

_BEAMS: Final = "__metricscontainers"
_COUNTER: Final = "beam:metric:user:sum_int64:v1"

_OVER: Final = frozenset({"FINISHED", "FAILED", "CANCELED"})


@dataclass(frozen=True, slots=True)
class Overview:
    """A cluster: how many task managers it has, and slots in all."""

    task_managers: int
    slots: int


@dataclass(frozen=True, slots=True)
class Job:
    """A job: its id, and its state in Flink's words."""

    id: str
    state: str

    @property
    def is_over(self) -> bool:
        return self.state in _OVER


@dataclass(frozen=True, slots=True)
class Work:
    """A job at one moment: how many slots it wants, and how many of its steps' instances run in some."""

    wanted: int
    running: int


class FlinkRest:
    """The REST interface of a cluster at `host:port`."""

    def __init__(self, master: str) -> None:
        self.master = master

    def overview(self) -> Overview:
        document = self.get("/overview")
        try:
            return Overview(document["taskmanagers"], document["slots-total"])
        except (KeyError, TypeError):
            raise RunError(
                f"what answers at {self.master} is not Flink; runner.master is the address of its REST interface, "
                f"like flink.example:8081"
            ) from None

    def answers(self) -> bool:
        try:
            self.overview()
        except RunError:
            return False
        return True

    def job(self, name: str) -> Job | None:
        jobs = [job for job in self.get("/jobs/overview")["jobs"] if job["name"] == name]
        if not jobs:
            return None
        latest = max(jobs, key=lambda job: int(job["start-time"]))
        return Job(latest["jid"], latest["state"])

    def work(self, job: Job) -> Work:
        """Return what a job wants, and what of it runs. Steps share slots: the widest one decides how many."""
        steps = self.get(f"/jobs/{job.id}")["vertices"]
        wanted = max((step["parallelism"] for step in steps), default=0)
        return Work(wanted, sum(step["tasks"].get("RUNNING", 0) for step in steps))

    def counters(self, job: Job, namespace: str) -> dict[str, int]:
        """Return the sums of a job's Beam metrics of a namespace, as far as they are known.

        Beam keeps them in one of Flink's accumulators, as the JSON of its protocol's `MonitoringInfo`s.
        """
        document = self.get(f"/jobs/{job.id}/accumulators")
        kept = [each["value"] for each in document["user-task-accumulators"] if each["name"] == _BEAMS]
        sums: dict[str, int] = {}
        try:
            infos = [info for text in kept for info in json.loads(text)["metrics"].get("attempted", [])]
            for info in infos:
                labels = info.get("labels", {})
                if info["urn"] == _COUNTER and labels.get("NAMESPACE") == namespace:
                    name = labels["NAME"]
                    sums[name] = sums.get(name, 0) + _varint(base64.b64decode(info["payload"]))
        except (ValueError, LookupError, TypeError) as error:
            raise RunError(f"Flink at {self.master} answered with metrics of another form than Beam 2.62's") from error
        return sums

    def failures(self, job: Job) -> list[str]:
        """Return what made a job fail, or start again: Java's stack traces, with those of Python in them."""
        history = self.get(f"/jobs/{job.id}/exceptions")["exceptionHistory"]
        return [entry["stacktrace"] for entry in history["entries"]]

    def cancel(self, job: Job) -> None:
        """Ask for a job's end; its state shows that it is over."""
        self._ask("PATCH", f"/jobs/{job.id}?mode=cancel")

    def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def _ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(f"http://{self.master}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            raise RunError(f"Flink at {self.master} refused {method} {path}: HTTP {error.code}") from error
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", error)
            raise RunError(
                f"cannot reach Flink at {self.master}: {printable(str(why))}; see that it runs there and that "
                f"runner.master is the address of its REST interface ({Command('flink', 'up')} starts one here)"
            ) from error


def _varint(data: bytes) -> int:
    """Return what Beam's VarInt coder wrote: seven bits a byte, the lowest first."""
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(data))
