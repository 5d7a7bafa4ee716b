"""What a launcher sees of Dataflow: its REST interface on loopback, where jobs run on Beam's own engine instead.

    POST jobs             takes a job, or refuses it as Dataflow does; one name has one job at a time
    GET  jobs/ID          its state
    PUT  jobs/ID          asks for its end
    GET  jobs/ID/metrics  Beam's metrics: those that a test sets, as workers here tell theirs only at the end
    GET  jobs/ID/messages none

A job is the pipeline that the launcher has uploaded; it runs in a process of its own, which the job's end kills. It
begins when `let_go` is set.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_OVER = ("JOB_STATE_DONE", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED")
_CANCELLED = 5
"""How Google's client writes that state."""

_RUN = """
import sys
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
pipeline = beam_runner_api_pb2.Pipeline.FromString(open(sys.argv[1], "rb").read())
for environment in pipeline.components.environments.values():
    environment.urn, environment.payload = "beam:env:embedded_python:v1", b""
FnApiRunner().run_via_runner_api(pipeline, PipelineOptions())
"""


@dataclass
class Job:
    """A job that was taken: the document that asked for it, and its state in Dataflow's words.

    `followed` says that its launcher has asked how it is; one that was told to end has ended after some `looks`.
    """

    id: str
    asked: dict[str, Any]
    state: str = "JOB_STATE_PENDING"
    process: subprocess.Popen[bytes] | None = None
    followed: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    looks: int = 0

    def document(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.asked["name"], "currentState": self.state} | {
            key: self.asked[key] for key in ("clientRequestId",) if key in self.asked
        }


class DataflowService:
    """`metrics` are what workers have counted; `refusal` answers whoever asks for a job, or of one.

    Where it is `too_late` a job that is told to end goes to its end, as one that has come to its commit does.
    """

    def __init__(self, store: str, folder: Path) -> None:
        self.jobs: list[Job] = []
        self.metrics: list[dict[str, Any]] = []
        self.refusal: tuple[int, str] | None = None
        self.too_late = False
        self.let_go = threading.Event()
        self.let_go.set()
        self.endpoint = ""
        self._store = store
        self._folder = folder
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        matched = re.fullmatch(r"/v1b3/projects/my-project/locations/europe-west1/jobs(/[^/]+)?(/\w+)?", path)
        if matched is None:
            return 404, {"error": {"code": 404, "message": f"no {path}"}}
        if self.refusal is not None:
            return self.refusal[0], {"error": {"code": self.refusal[0], "message": self.refusal[1]}}
        if matched[1] is None:
            return self._take(body)
        job = next(job for job in self.jobs if job.id == matched[1][1:])
        if matched[2] == "/metrics":
            return 200, {"metrics": self.metrics}
        if matched[2] == "/messages":
            return 200, {}
        if method == "PUT":
            assert body["requestedState"] in ("JOB_STATE_CANCELLED", _CANCELLED)
            if self.too_late:
                self.let_go.set()
                return 400, {"error": {"code": 400, "message": "the job is ending"}}
            self._end(job)
        elif job.looks > 0:
            job.looks -= 1
            job.state = "JOB_STATE_CANCELLING" if job.looks else "JOB_STATE_CANCELLED"
        job.followed.set()
        return 200, job.document()

    def _take(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            for job in self.jobs:
                if job.asked["name"] == asked["name"] and job.state not in _OVER:
                    return 200, job.document()
            job = Job(f"2026-11-21_08_12_31-{len(self.jobs) + 1}", asked)
            self.jobs.append(job)
        threading.Thread(target=self._work, args=(job,)).start()
        return 200, job.document()

    def _work(self, job: Job) -> None:
        self.let_go.wait()
        with self._lock:
            if job.state == "JOB_STATE_PENDING":
                pipeline = self._folder / f"{job.id}.pb"
                pipeline.write_bytes(self._uploaded(job.asked))
                job.process = subprocess.Popen([sys.executable, "-c", _RUN, str(pipeline)], stderr=subprocess.DEVNULL)
                job.state = "JOB_STATE_RUNNING"
        if job.process is not None:
            code = job.process.wait()
            cancelled = job.state == "JOB_STATE_CANCELLING"
            job.state = "JOB_STATE_CANCELLED" if cancelled else "JOB_STATE_FAILED" if code else "JOB_STATE_DONE"
        job.ended.set()

    def _end(self, job: Job) -> None:
        with self._lock:
            if job.state == "JOB_STATE_PENDING":
                job.state, job.looks = "JOB_STATE_CANCELLING", 3
            elif job.process is not None and job.state == "JOB_STATE_RUNNING":
                job.state = "JOB_STATE_CANCELLING"
                job.process.kill()

    def _uploaded(self, asked: dict[str, Any]) -> bytes:
        url = asked["environment"]["sdkPipelineOptions"]["options"]["pipelineUrl"]
        bucket, _, name = url.removeprefix("gs://").partition("/")
        place = f"{self._store}/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}?alt=media"
        with urllib.request.urlopen(place, timeout=300) as answer:
            return bytes(answer.read())

    @contextlib.contextmanager
    def launched(self, bucket: str, environment: dict[str, str], *settings: str) -> Iterator[subprocess.Popen[str]]:
        """Run the command of a user, with the options by which Beam's own client finds this service."""
        place = ["--project", "my-project", "--region", "europe-west1", "--staging", f"gs://{bucket}/staging"]
        command = ["shardmill", "convert", f"gs://{bucket}/in/*.csv", "-o", f"gs://{bucket}/out", *place, *settings]
        command += ["--runner", "dataflow", "--image", "host.dev/mill:0.1.0", "--max-rejects", "10"]
        command += ["--shard-size", "64KiB", "--", f"--dataflow_endpoint={self.endpoint}", "--no_auth"]
        env = {**environment, "STORAGE_EMULATOR_HOST": self._store}
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=env, text=True, stdout=pipe, stderr=pipe) as process:
            try:
                yield process
            finally:
                process.kill()

    def followed_job(self, process: subprocess.Popen[str]) -> Job:
        """Return the job of a launcher, when that follows it."""
        while not (self.jobs and self.jobs[0].followed.wait(0.1)):
            assert process.poll() is None, process.communicate()
        return self.jobs[0]

    def stop(self) -> None:
        for job in self.jobs:
            self._end(job)
        self.let_go.set()
        for job in self.jobs:
            assert job.ended.wait(300)


@contextlib.contextmanager
def dataflow_service(store: str, folder: Path) -> Iterator[DataflowService]:
    """Yield the service, whose jobs' pipelines are uploaded to a server of a store; its jobs end with the context."""
    service = DataflowService(store, folder)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            status, document = service.answer(self.command, urllib.parse.urlsplit(self.path).path, body)
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.endpoint = f"http://localhost:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield service
        finally:
            service.stop()
            server.shutdown()
            thread.join()


def counted(name: str, value: int, **context: str) -> dict[str, Any]:
    """Return a metric as Dataflow tells it."""
    named = {"origin": "user", "name": name, "context": {"namespace": "shardmill", "step": "s7", **context}}
    return {"name": named, "scalar": value, "updateTime": "2026-11-21T08:12:31Z"}


def lines_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    """Return what a process says on stderr, up to a line that has some words."""
    assert process.stderr is not None
    lines: list[str] = []
    while not (lines and wanted in lines[-1]):
        line = process.stderr.readline()
        assert line, f"it ended without saying {wanted!r}: {lines}"
        lines.append(line)
    return lines
