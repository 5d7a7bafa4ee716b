"""The local engine's data streams lose nothing: how Beam's own flushing loses elements, and that ours is another."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers
from apache_beam.runners.worker import data_plane
from shardmill.pipelines.engines.beam_pipeline import make_pipeline
from shardmill.transforms import WriteShards
from shardmill.transforms.elements import flush_by_size

pytestmark = pytest.mark.engine

BEAMS_OWN_MS = 1000


@pytest.fixture
def as_beam_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flush by time, as a process that imports Beam does."""
    monkeypatch.setattr(worker_handlers, "DATA_BUFFER_TIME_LIMIT_MS", BEAMS_OWN_MS)


@pytest.mark.usefixtures("as_beam_has_it")
def test_no_stream_of_the_local_engine_is_flushed_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: set[tuple[str, str]] = set()
    create = data_plane.ClosableOutputStream.create

    def noted(*args: Any) -> Any:
        stream = create(*args)
        channel = sys._getframe(1).f_locals["self"]
        made.add((type(channel).__name__, type(stream).__name__))
        return stream

    monkeypatch.setattr(data_plane.ClosableOutputStream, "create", staticmethod(noted))
    with make_pipeline(2) as pipeline:
        _ = pipeline | beam.Create([b"%d" % n for n in range(1000)]) | WriteShards(str(tmp_path / "out"))
    by_size = "SizeBasedBufferingClosableOutputStream"
    assert made == {("_GrpcDataChannel", by_size), ("GrpcClientDataChannel", by_size)}  # the runner's, its workers'


def test_a_stream_that_beam_flushes_by_time_loses_what_is_written_meanwhile() -> None:
    """The reason for all this; a Beam that keeps such an element needs `flush_by_size` no more."""
    taken, written = threading.Event(), threading.Event()
    sent: list[bytes] = []

    def send(data: bytes) -> None:
        """Be called by a flush, between its `get()` and its `_clear()`."""
        sent.append(data)
        taken.set()
        assert written.wait(60)

    an_hour = 3_600_000
    stream = data_plane.ClosableOutputStream.create(sent.append, send, an_hour)
    stream.write(b"one ")
    flusher = threading.Thread(target=stream.flush)  # as Beam's own does each second
    flusher.start()
    assert taken.wait(60)
    stream.write(b"two")
    written.set()
    flusher.join()
    stream.close()
    assert b"".join(sent) == b"one "


def test_a_stream_that_is_flushed_by_size_is_flushed_by_nobody_but_its_writer() -> None:
    sent: list[tuple[threading.Thread, bytes]] = []

    def send(data: bytes) -> None:
        sent.append((threading.current_thread(), data))

    before = threading.active_count()
    stream = data_plane.ClosableOutputStream.create(send, send, 0)
    assert threading.active_count() == before
    for element in (b"one ", b"x" * (11 << 20), b" two"):
        stream.write(element)
        stream.maybe_flush()
    stream.close()
    assert b"".join(data for _, data in sent) == b"one " + b"x" * (11 << 20) + b" two"
    assert {thread for thread, _ in sent} == {threading.current_thread()}


def pipelines(mode: str) -> Iterator[beam.Pipeline]:
    options = PipelineOptions(["--direct_num_workers=2", f"--direct_running_mode={mode}"])
    yield beam.Pipeline(runner=FnApiRunner(), options=options)
    yield beam.Pipeline(runner="DirectRunner", options=options)
    yield beam.Pipeline(options=options)


@pytest.mark.usefixtures("as_beam_has_it")
@pytest.mark.parametrize("mode", ["multi_threading", "multi_processing"])
def test_a_users_own_pipeline_that_may_lose_elements_is_warned_of_with_what_to_do(tmp_path: Path, mode: str) -> None:
    for pipeline in pipelines(mode):
        with pytest.warns(RuntimeWarning, match=f"{mode}: Beam's local engine loses elements") as caught:
            _ = pipeline | beam.Create([b""]) | WriteShards(str(tmp_path / "out"))
        said = str(caught[0].message).partition("set\n")[2]
        exec("\n".join(line.strip() for line in said.splitlines()))
        assert worker_handlers.DATA_BUFFER_TIME_LIMIT_MS == 0
        worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = BEAMS_OWN_MS


@pytest.mark.usefixtures("as_beam_has_it")
def test_one_that_loses_nothing_is_not(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for pipeline in pipelines("in_memory"):
            _ = pipeline | beam.Create([b""]) | WriteShards(str(tmp_path / "out"))
        flush_by_size()
        for pipeline in pipelines("multi_threading"):
            _ = pipeline | beam.Create([b""]) | WriteShards(str(tmp_path / "out"))
