"""What is asked of a cluster while it works for a run; a small server answers as Flink's REST interface did."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from shardmill.pipelines.engines.flink.pipeline import JobWatch, counted, is_of_this_machine
from shardmill.pipelines.engines.flink.processes import FlinkRest, free_port
from shardmill.pipelines.outcomes.disk_errors import disk_error, lasting_error
from shardmill.pipelines.outcomes.summary import Counted
from shardmill.transforms.errors import RunError, UnseenError

pytestmark = pytest.mark.engine

NAME = "shardmill-table-1"


@dataclass
class Answers:
    """What a cluster answers, by path: a job of 4 workers on 4 slots that runs, until a test changes it."""

    documents: dict[str, Any] = field(default_factory=dict)
    master: str = ""

    def __post_init__(self) -> None:
        self.documents["/jobs/overview"] = {
            "jobs": [{"jid": "7", "name": NAME, "state": "RUNNING", "start-time": 1}]
        }  # fmt: skip
        self.documents["/jobs/7/accumulators"] = {"user-task-accumulators": []}
        self.steps({"RUNNING": 4})
        self.slots(4)

    def steps(self, tasks: dict[str, int]) -> None:
        """Give the job two steps, one of which is done."""
        done = {"parallelism": 4, "tasks": {"FINISHED": 4, "RUNNING": 0}}
        self.documents["/jobs/7"] = {"vertices": [done, {"parallelism": 4, "tasks": {"RUNNING": 0, **tasks}}]}

    def slots(self, count: int) -> None:
        self.documents["/overview"] = {"taskmanagers": count // 2, "slots-total": count, "slots-available": 0}


@contextmanager
def serving(answers: Answers) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = answers.documents.get(self.path.partition("?")[0])
            data = json.dumps(document).encode()
            self.send_response(200 if document is not None else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        answers.master = f"127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.fixture
def cluster() -> Iterator[Answers]:
    answers = Answers()
    with serving(answers):
        yield answers


def test_a_job_whose_slots_died_says_how_many_it_wants_how_many_there_are_and_what_to_do(cluster: Answers) -> None:
    rest = FlinkRest(cluster.master)
    assert counted(rest, NAME) == Counted()
    cluster.steps({"SCHEDULED": 4})
    assert counted(rest, NAME) == Counted(), "there are slots: it is about to start"
    cluster.slots(2)
    found = counted(rest, NAME)
    assert found is not None
    assert found.waiting == (
        f"for slots: the job wants 4, and Flink at {cluster.master} has 2; start a task manager; or interrupt, and "
        f"run the same command again: it resumes with the slots that are there"
    )
    cluster.steps({"RUNNING": 2, "SCHEDULED": 2})
    assert counted(rest, NAME) == Counted(), "a part of it goes on"


FAILED = """\
java.lang.RuntimeException: Error received from SDK harness for instruction 5: Traceback (most recent call last):
  File "/x/write.py", line 163, in process
    raise it
{raised}

\tat org.apache.beam.runners.fnexecution.control.FnApiControlClient.handleResponse(FnApiControlClient.java:183)
"""


def verdict_on(cluster: Answers, *raised: str) -> Exception | None:
    """Return what a watch says of a job after it looked at failures of it at least once, with one that ends it last."""
    entries = [{"stacktrace": FAILED.replace("{raised}", text)} for text in raised]
    cluster.documents["/jobs/7/exceptions"] = {"exceptionHistory": {"entries": entries}}
    ended = threading.Event()
    with JobWatch(cluster.master, NAME, ended.set, seconds=0.01) as watch:
        assert ended.wait(30)
    return watch.verdict


LASTING = "shardmill.transforms.errors.UnseenError: /out: not here [while running 'Write/Stage parts']"


def test_a_folder_that_a_worker_does_not_see_ends_the_run_at_once(cluster: Answers) -> None:
    found = verdict_on(cluster, "ValueError: another one", LASTING)
    assert isinstance(found, UnseenError)
    assert str(found) == "/out: not here"


def test_a_full_disk_ends_the_run_at_once(cluster: Answers) -> None:
    found = verdict_on(cluster, "OSError: [Errno 28] No space left on device: '/out/.staging/1/parts/0/a.part'")
    assert found is not None
    told = disk_error(found)
    assert told is not None
    assert (told.words, told.path) == ("No space left on device", "/out/.staging/1/parts/0/a.part")


@pytest.mark.parametrize(
    "raised",
    [
        "ValueError: no",
        "shardmill.transforms.errors.StoreError: the store failed",
        "OSError: [Errno 5] Input/output error: '/out/a'",
    ],
)
def test_what_a_retry_may_fix_is_left_to_flink(raised: str) -> None:
    assert lasting_error(FAILED.replace("{raised}", raised)) is None


def test_a_cluster_of_this_machine_that_was_stopped_ends_the_run() -> None:
    ended = threading.Event()
    with JobWatch(f"127.0.0.1:{free_port()}", NAME, ended.set, seconds=0.01, gone_seconds=0) as watch:
        assert ended.wait(30)
    assert isinstance(watch.verdict, RunError)
    assert "does not answer any more: it was stopped, or cannot be reached. Start it, and run" in str(watch.verdict)
    assert is_of_this_machine("localhost:8081")
    assert not is_of_this_machine("flink.example:8081")


def test_a_job_of_before_says_nothing(cluster: Answers) -> None:
    cluster.slots(0)
    cluster.documents["/jobs/overview"]["jobs"][0]["state"] = "CANCELED"
    assert counted(FlinkRest(cluster.master), NAME) is None
    assert counted(FlinkRest(cluster.master), "another") is None
