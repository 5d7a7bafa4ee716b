"""The live line: what it reads from a staging folder, and what it says."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest
from rich.console import Console
from shardmill.pipelines.outcomes.summary import Counted
from shardmill.pipelines.screens.progress import ProgressWatcher, RunProgress, StagingReader, Totals, progress_line

TOTALS = {"tasks": 2, "records": 1000, "bytes": 100_000, "shards": 4}


def write_plan(staging: Path) -> None:
    (staging / "plan.json").write_text(json.dumps({"totals": TOTALS}))


def finish_task(staging: Path, task: int, records: int, size: int, kinds: tuple[str, ...]) -> None:
    (staging / "tasks").mkdir(exist_ok=True)
    parts = [{"kind": kind} for kind in kinds]
    document = {"records": records, "bytes": size, "splits": {"train": {"parts": parts}}}
    (staging / f"tasks/{task:06d}.json").write_text(json.dumps(document))


def write_part(staging: Path, task: int, attempt: str, size: int) -> None:
    folder = staging / f"parts/{task:06d}-{attempt}"
    folder.mkdir(parents=True)
    (folder / "train-0000.part").write_bytes(b"x" * size)
    (folder / "rejects.jsonl").write_bytes(b"not a part")


class TestStagingReader:
    def test_before_there_is_a_plan_the_run_plans(self, tmp_path: Path) -> None:
        assert StagingReader(str(tmp_path / "not-yet")).read() == RunProgress("Planning")

    def test_finished_tasks_count_exactly_and_parts_at_work_by_their_size(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        reader = StagingReader(str(tmp_path))
        assert reader.read() == RunProgress("Converting")
        write_part(tmp_path, 0, "aa", 30_000)
        assert reader.read() == RunProgress("Converting", 0, 300, 30_000, 0)  # by the plan's bytes a record
        finish_task(tmp_path, 0, 250, 50_000, ("full", "oversize", "tail"))
        write_part(tmp_path, 1, "bb", 10_000)
        assert reader.read() == RunProgress("Converting", 1, 300, 60_000, 2)  # by the first task's
        finish_task(tmp_path, 1, 260, 52_000, ("full",))
        assert reader.read() == RunProgress("Finishing", 2, 510, 102_000, 3)

    def test_the_second_pass_of_a_shuffle_is_counted_from_nothing(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        finish_task(tmp_path, 0, 250, 50_000, ("tail",))
        finish_task(tmp_path, 1, 260, 52_000, ("tail",))
        (tmp_path / "shuffle").mkdir()
        (tmp_path / "shuffle/train-0123456789abcdef.json").write_text("[]")
        reader = StagingReader(str(tmp_path))
        assert reader.read() == RunProgress("Shuffling", 2, 0, 0, 0)
        finish_task(tmp_path, 2, 300, 60_000, ("full", "tail"))
        assert reader.read() == RunProgress("Shuffling", 2, 300, 60_000, 1)

    def test_of_two_attempts_at_a_task_one_counts(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        write_part(tmp_path, 0, "aa", 30_000)
        write_part(tmp_path, 0, "bb", 20_000)
        assert StagingReader(str(tmp_path)).read().bytes == 30_000

    def test_a_staging_folder_that_was_removed_keeps_the_last_counts(self, tmp_path: Path) -> None:
        staging = tmp_path / "run"
        staging.mkdir()
        write_plan(staging)
        finish_task(staging, 0, 250, 50_000, ("full",))
        reader = StagingReader(str(staging))
        before = reader.read()
        staging.rename(tmp_path / "gone")
        assert reader.read() == before

    def test_an_engine_that_knows_more_is_believed(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        finish_task(tmp_path, 0, 250, 50_000, ("full",))
        counted = Counted()
        reader = StagingReader(str(tmp_path), count=lambda: counted)
        assert reader.read() == RunProgress("Converting", 1, 250, 50_000, 1)
        counted = Counted(600, 70_000)
        assert reader.read() == RunProgress("Converting", 1, 600, 70_000, 1)

    def test_what_an_engine_waits_for_is_the_line(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        finish_task(tmp_path, 0, 250, 50_000, ("full",))
        progress = StagingReader(str(tmp_path), count=lambda: Counted(waiting="for slots: two more")).read()
        assert progress_line(progress, Totals(**TOTALS), 30) == "Waiting  for slots: two more"

    def test_a_job_that_was_told_to_end_is_said_to(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        progress = StagingReader(str(tmp_path), count=lambda: Counted(600, 70_000, ending=True)).read()
        line = "Ending the job, so that it commits nothing later; interrupt again to leave it alone"
        assert progress_line(progress, Totals(**TOTALS), 30) == line


class TestProgressLine:
    @pytest.mark.parametrize(
        ("progress", "seconds", "line"),
        [
            (RunProgress("Planning"), 0, "Planning"),
            (RunProgress("Converting"), 0, "Converting  0 of about 1,000 records · 0 of about 4 shards"),
            (
                RunProgress("Converting", 1, 250, 25_000, 1),
                0.01,
                "Converting  250 of about 1,000 records · 2.5 MB/s · 1 of about 4 shards · 1 s left",
            ),
            (
                RunProgress("Converting", 1, 250, 25_000, 1),
                30,
                "Converting  250 of about 1,000 records · 0.0 MB/s · 1 of about 4 shards · 1 min 31 s left",
            ),
            (
                RunProgress("Converting", 1, 250, 25, 1),
                30,
                "Converting  250 of about 1,000 records · 0.0 MB/s · 1 of about 4 shards",  # over a day
            ),
            (
                RunProgress("Converting", 1, 250, 25, 1),
                21,
                "Converting  250 of about 1,000 records · 0.0 MB/s · 1 of about 4 shards · 23 h 19 min left",
            ),
            (RunProgress("Converting", 1, 250, 25_000, 1, "for slots: two more"), 30, "Waiting  for slots: two more"),
            (
                RunProgress("Finishing", 2, 1000, 100_000, 3),
                1,
                "Finishing  1,000 of about 1,000 records · 0.1 MB/s · 3 of about 4 shards · assembling and publishing",
            ),
        ],
    )
    def test_the_line_says_phase_records_speed_shards_and_what_is_left(
        self, progress: RunProgress, seconds: float, line: str
    ) -> None:
        assert progress_line(progress, Totals(**TOTALS), seconds) == line

    def test_what_the_plan_does_not_know_is_left_out(self) -> None:
        assert progress_line(RunProgress("Converting", 1, 5, 10, 0), Totals(), 1) == (
            "Converting  5 records · 0.0 MB/s · 0 shards"
        )


class _Signalling(io.StringIO):
    """A stream that says when something was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def write(self, text: str) -> int:
        count = super().write(text)
        if "\n" in text or "\r" in text or "Converting" in text:
            self.written.set()
        return count


class TestProgressWatcher:
    def test_where_there_is_no_terminal_it_prints_plain_lines(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        finish_task(tmp_path, 0, 250, 50_000, ("full",))
        stream = _Signalling()
        console = Console(file=stream, width=200)
        with ProgressWatcher(str(tmp_path), console, interval=0.01):
            assert stream.written.wait(300)
        first = stream.getvalue().splitlines()[0]
        assert first == "Converting  250 of about 1,000 records · 1 of about 4 shards"

    def test_a_plain_line_comes_every_ten_seconds_and_not_at_once(self, tmp_path: Path) -> None:
        stream = io.StringIO()
        with ProgressWatcher(str(tmp_path), Console(file=stream)) as watcher:
            assert watcher._interval == 10
        assert stream.getvalue() == ""

    def test_on_a_terminal_the_line_is_live_and_gone_in_the_end(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        stream = _Signalling()
        console = Console(file=stream, force_terminal=True, width=120, _environ={"TERM": "xterm"})
        with ProgressWatcher(str(tmp_path), console, interval=0.01):
            assert stream.written.wait(300)
        text = stream.getvalue()
        assert "Converting  0 of about 1,000 records" in text
        assert text.endswith("\x1b[2K")  # the line is erased

    def test_what_was_there_at_the_first_look_does_not_count_as_speed(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        finish_task(tmp_path, 0, 250, 50_000, ())
        now = [100.0]
        watcher = ProgressWatcher(str(tmp_path), Console(file=io.StringIO()), clock=lambda: now[0])
        assert "MB/s" not in watcher.line()
        now[0] = 101.0
        write_part(tmp_path, 1, "aa", 10_000)
        assert " · 0.0 MB/s · " in watcher.line()  # 10,000 bytes in a second, not 60,000
        now[0] = 102.0
        write_part(tmp_path, 1, "bb", 30_000)
        assert watcher.line().endswith(" · 2 s left")  # 20,000 more at 15,000 a second

    def test_no_rate_and_no_estimate_is_made_of_nothing_written(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        finish_task(tmp_path, 0, 250, 50_000, ())
        now = [100.0]
        watcher = ProgressWatcher(str(tmp_path), Console(file=io.StringIO()), clock=lambda: now[0])
        first = watcher.line()
        now[0] = 399.0
        assert watcher.line() == first == "Converting  250 of about 1,000 records · 0 of about 4 shards"

    def test_a_stall_hides_the_time_left_after_a_minute_and_is_said_after_five(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        now = [100.0]
        watcher = ProgressWatcher(str(tmp_path), Console(file=io.StringIO()), clock=lambda: now[0])
        write_part(tmp_path, 0, "aa", 10_000)
        watcher.line()
        now[0] = 101.0
        write_part(tmp_path, 0, "bb", 20_000)
        assert watcher.line().endswith(" left")
        now[0] = 160.0
        assert watcher.line().endswith(" left")
        now[0] = 161.0
        assert watcher.line().endswith(" shards")
        now[0] = 401.0
        assert watcher.line().endswith(" shards · no progress for 5 min 1 s")
        write_part(tmp_path, 0, "cc", 30_000)
        assert watcher.line().endswith(" left")

    def test_on_a_terminal_what_is_waited_for_is_shown_to_its_end(self, tmp_path: Path) -> None:
        write_plan(tmp_path)
        stream = _Signalling()
        console = Console(file=stream, force_terminal=True, width=40, _environ={"TERM": "xterm"})
        waiting = f"for slots{' and slots' * 10}, the end"
        with ProgressWatcher(str(tmp_path), console, count=lambda: Counted(waiting=waiting), interval=0.01):
            assert stream.written.wait(30)
        assert "the end" in stream.getvalue()

    def test_it_ends_at_once_when_the_run_does(self, tmp_path: Path) -> None:
        watcher = ProgressWatcher(str(tmp_path), Console(file=io.StringIO()), interval=3600)
        with watcher:
            thread = watcher._thread
            assert thread.is_alive()
        assert not thread.is_alive()


def test_one_shard_is_not_said_to_be_several() -> None:
    line = progress_line(RunProgress("Converting"), Totals(1, 300, 7000, 1), 0)
    assert line == "Converting  0 of about 300 records · 0 of about 1 shard"
