"""Where the line of a run is shown: in a real notebook, and in a log at the pace of the work."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from rich.console import Console
from shardmill.pipelines.screens.progress import LogSurface

SECONDS = 300


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class TestLogSurface:
    @pytest.fixture
    def log(self) -> tuple[LogSurface, Clock, io.StringIO]:
        stream, clock = io.StringIO(), Clock()
        return LogSurface(Console(file=stream, width=200), clock), clock, stream

    def test_a_line_is_printed_at_each_tenth_and_else_once_a_minute(
        self, log: tuple[LogSurface, Clock, io.StringIO]
    ) -> None:
        surface, clock, stream = log
        for second in range(0, 3000, 10):
            clock.now = second
            surface.show(f"Converting  {second}", second / 3000)
        seconds = [int(line.split()[1]) for line in stream.getvalue().splitlines()]
        assert {0, 300, 600, 900, 1200, 1500, 1800, 2100, 2400, 2700} <= set(seconds)
        assert len(seconds) < 60
        assert max(later - sooner for sooner, later in itertools.pairwise(seconds)) == 60

    def test_phases_and_what_is_waited_for_are_printed_at_once(
        self, log: tuple[LogSurface, Clock, io.StringIO]
    ) -> None:
        surface, clock, stream = log
        for line in ("Planning", "Planning", "Waiting  for slots", "Waiting  for slots", "Waiting  for a worker"):
            clock.now += 1
            surface.show(line, None)
        surface.show("Converting  1 of 2", 0.5)
        surface.show("Converting  2 of 2", 0.5)
        assert stream.getvalue().splitlines() == [
            "Planning", "Waiting  for slots", "Waiting  for a worker", "Converting  1 of 2",
        ]  # fmt: skip


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingKernelClient]:
    """Start the kernel of a notebook in a folder with a table."""
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "a.csv").write_text("a,b\n" + "1,x\n" * 1000)
    (folder / "bad.jsonl").write_text('{"a": 1, "a": 2}\n{"a": 1}\n')
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder), startup_timeout=SECONDS)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def outputs_of(client: BlockingKernelClient, code: str) -> list[dict[str, Any]]:
    """Run a cell, and return what it sent: the kind of each message, and its content."""
    request = client.execute(code)
    sent = []
    while True:
        message = client.get_iopub_msg(timeout=SECONDS)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return sent
        sent.append({"kind": message["msg_type"], **message["content"]})


def test_a_notebook_shows_the_run_in_one_output_of_its_cell(kernel: BlockingKernelClient) -> None:
    sent = outputs_of(kernel, "from shardmill.pipelines import convert\nsummary = convert('a.csv', output='out')")
    shown = [one for one in sent if one["kind"] in ("display_data", "update_display_data")]
    assert shown[0]["kind"] == "display_data"
    assert {one["kind"] for one in shown[1:]} == {"update_display_data"}
    assert len({one["transient"]["display_id"] for one in shown}) == 1
    assert shown[-1]["data"]["text/plain"].startswith("Done  after ")
    assert not [one for one in sent if one["kind"] in ("stream", "error")]
    assert outputs_of(kernel, "print(summary.manifest.counts.written)")[-1]["text"] == "1000\n"


def test_a_run_that_fails_in_a_notebook_is_said_to_have_stopped(kernel: BlockingKernelClient) -> None:
    sent = outputs_of(kernel, "from shardmill.pipelines import convert\nconvert('bad.jsonl', output='bad')")
    shown = [one for one in sent if one["kind"] == "update_display_data"]
    assert sent[-1]["ename"] == "TooManyRejects"
    assert shown[-1]["data"]["text/plain"].startswith(("Done  after ", "Stopped  after "))


def test_what_was_resumed_is_above_the_line_and_false_shows_nothing(kernel: BlockingKernelClient) -> None:
    call = "from shardmill.pipelines import convert\ns = convert('bad.jsonl', output='bad2', {})"
    outputs_of(kernel, call.format("progress=False"))
    sent = outputs_of(kernel, call.format("max_rejects=1"))
    texts = [one["data"]["text/plain"] for one in sent if one["kind"] == "display_data"]
    assert texts[0].splitlines()[0] == "resuming: 1 of 1 task already done"
    sent = outputs_of(kernel, "s = convert('a.csv', output='out3', progress=False)")
    assert [one["kind"] for one in sent if one["kind"] not in ("execute_input", "status")] == []


@pytest.mark.parametrize(("progress", "shown"), [("None", False), ("True", True), ("False", False)])
def test_outside_of_a_notebook_it_is_shown_where_it_is_asked_for(progress: str, shown: bool, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    code = (
        "import shardmill.pipelines.screens.progress as surfaces\n"
        "surfaces.LogSurface.at_once = True  # the run is shorter than ten seconds\n"
        "from shardmill.pipelines import convert\n"
        f"convert('a.csv', output='out', progress={progress})\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout == ""
    assert (ended.stderr != "") == shown
    assert all(line.split()[0] in ("Planning", "Converting", "Finishing") for line in ended.stderr.splitlines())
