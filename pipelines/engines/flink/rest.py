"""The state of a Flink cluster and of its jobs, over its REST interface."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Final

from ....transforms.errors import RunError
from ....transforms.format.wording.hints import Command
from ....transforms.format.wording.printable import printable

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
