"""A run that died is gone on with by the same command, and ends in the bytes of one that nobody disturbed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.pipelines.cli import main
from shardmill.transforms.dataset.commit import commit_generation
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.manifest_files import list_generations, read_manifest
from shardmill.transforms.errors import TooManyRejects

from ...tiers import but_some_thorough
from ..killed import Death, on_storage, run_until

ROWS = 12_000


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two files of each kind, of 12,000 rows together, and a dataset of each Parquet file."""
    folder, rng = tmp_path_factory.mktemp("sources"), np.random.default_rng(20261121)
    for name, first in (("a", 0), ("b", ROWS // 2)):
        ids = np.arange(first, first + ROWS // 2)
        table = pa.table({"id": ids, "text": [rng.bytes(30).hex() for _ in ids]})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=250)
        pd.DataFrame(table.to_pydict()).to_csv(folder / f"{name}.csv", index=False)
        convert({"input": {"paths": [str(folder / f"{name}.parquet")]}}, output=folder / name, shard_size="64KiB")
    return folder


@dataclass
class Desk:
    """A working folder with the sources, in which commands are run and killed."""

    root: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def out(self) -> Path:
        return self.root / "out"

    def run(self, *args: str) -> tuple[int, str, str]:
        """Run a command in this process; return its exit code, stdout and stderr."""
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        assert isinstance(ended.value.code, int)
        return ended.value.code, *self.capsys.readouterr()

    def killed(self, death: Death, *args: str) -> None:
        run_until(death, self.root, args)

    @property
    def staging(self) -> Path:
        (run,) = (path for path in (self.out / ".staging").iterdir() if path.is_dir())
        return run

    def done(self) -> dict[str, tuple[int, int]]:
        """Return the inode and mtime of the result of each task that is done."""
        return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in self.staging.glob("tasks/*.json")}

    def full_parts(self) -> set[int]:
        """Return the inodes of the full parts of tasks that are done."""
        found = set()
        for path in self.staging.glob("tasks/*.json"):
            for split in json.loads(path.read_text())["splits"].values():
                parts = (part for part in split["parts"] if part["kind"] == "full")
                found.update((self.staging / part["path"]).stat().st_ino for part in parts)
        return found

    def shards(self) -> set[int]:
        return {path.stat().st_ino for path in self.out.glob("*.tfrecord")}


@pytest.fixture
def desk(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    shutil.copytree(sources, tmp_path, dirs_exist_ok=True)  # with their times
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, capsys)


@pytest.fixture
def staged() -> Iterator[list[str]]:
    """Keep the names of the tasks that are staged in this process."""
    names: list[str] = []

    def told(event: str, before: bool) -> None:
        if not before and (found := re.fullmatch(r"replace \.staging/[0-9a-f]{16}/tasks/(.*)", event)):
            names.append(found[1])

    undo = on_storage(told)
    yield names
    undo()


def contents(out: Path) -> dict[str, bytes]:
    """Return every file of a dataset; of the manifests all but how the run came to be."""
    found = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for generation in list_generations(str(out)):
        manifest = read_manifest(str(out), generation)
        anyone = replace(
            manifest.run, created="", commit_id="", runner="", run_id="", staging="", source_fingerprint=""
        )
        found[f"manifests/{generation:08d}.json"] = replace(manifest, run=anyone).to_bytes()
    del found["manifest.json"]
    return found


UNDISTURBED: dict[tuple[str, ...], dict[str, bytes]] = {}
"""What commands make of the sources as they are."""


def assert_like_undisturbed(desk: Desk, *args: str, changed: bool = False) -> None:
    """The dataset is sound, nothing is left over, and has the bytes of one that the command makes undisturbed.

    `changed` says that the sources are others in this test.
    """
    assert not (desk.out / ".staging").exists()
    report = verify_dataset(desk.out)
    assert (report.findings, report.notes) == ((), ())
    resumed = contents(desk.out)
    if changed or args not in UNDISTURBED:
        shutil.rmtree(desk.out)
        if args[0] == "append":
            shutil.copytree(desk.root / "a", desk.out)
        assert desk.run(*args)[0] == 0
        UNDISTURBED[args] = contents(desk.out)
    assert resumed == (UNDISTURBED.pop(args) if changed else UNDISTURBED[args])


SMALL = ("--shard-size", "64KiB", "--workers", "2")
COMMANDS = {
    "convert, threads": ("convert", "a.parquet", "b.parquet", "-o", "out", *SMALL),
    "convert, processes": (
        "convert", "a.parquet", "b.parquet", "-o", "out", *SMALL, "--set", "runner.processes=true",
    ),
    "convert gzip, order source": (
        "convert", "a.parquet", "b.parquet", "-o", "out", *SMALL, "--compression", "gzip", "--order", "source",
    ),
    "append": ("append", "b.parquet", "-o", "out", *SMALL),
    "merge, threads": ("merge", "a", "b", "-o", "out", "--workers", "2", "--shard-size", "100KiB"),
    "merge, processes": (
        "merge", "a", "b", "-o", "out", "--workers", "2", "--shard-size", "100KiB", "--set", "runner.processes=true",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "command",
    but_some_thorough(["convert, threads", "append", "merge, threads"], COMMANDS, "other ways to run the commands"),
)
def test_tasks_that_are_done_are_not_done_again(desk: Desk, staged: list[str], command: str) -> None:
    args = COMMANDS[command]
    if args[0] == "append":
        shutil.copytree(desk.root / "a", desk.out)
    processes = "processes" in command
    desk.killed(Death("stage " if processes else "replace .*/tasks/", count=5), *args)
    done, parts = desk.done(), desk.full_parts()
    assert 5 <= len(done) < 16 or processes
    code, _, err = desk.run(*args)
    assert code == 0, err
    (told,) = re.findall(r"resuming: (\d+) of (\d+) tasks already done", err)
    assert int(told[0]) == len(done)
    assert parts <= desk.shards() or "order source" in command  # they are published as they were staged
    if not processes:
        assert len(staged) == int(told[1]) - len(done) > 0
        assert not set(staged) & set(done)
    assert_like_undisturbed(desk, *args)


DEATHS = {
    "all tasks are done": Death(r"replace .*/sources\.jsonl", before=True),
    "shards are planned": Death(r"replace .*/sources\.jsonl"),
    "some shards are assembled": Death(r"(place|assemble) .*/shards/", count=3),
    "sidecars are staged": Death(r"replace .*/sidecars/", count=2),
    "all is ready": Death("put_if_absent manifests/", before=True),
    "it was committed": Death("put_if_absent manifests/"),
    "some shards are published": Death("publish .*tfrecord", count=3),
    "sidecars are published": Death(r"place features\.json"),
    "all is published": Death("replace manifest.json"),
}


@pytest.mark.parametrize(
    ("command", "moment"),
    [
        *(("convert, threads", moment) for moment in DEATHS),
        *(("append", moment) for moment in DEATHS if moment.startswith(("all", "some"))),
        *(("merge, threads", moment) for moment in DEATHS if moment.startswith("some")),
    ],
)
def test_whatever_was_done_when_it_died_nothing_is_staged_again(
    desk: Desk, staged: list[str], command: str, moment: str
) -> None:
    args = COMMANDS[command]
    if args[0] == "append":
        shutil.copytree(desk.root / "a", desk.out)
    desk.killed(DEATHS[moment], *args)
    committed = len(list_generations(str(desk.out))) == (2 if args[0] == "append" else 1)
    code, out, err = desk.run(*args)
    assert code == 0, err
    assert staged == []
    assert (moment in list(DEATHS)[5:]) == committed == ("Nothing to do" in out)
    assert committed or re.search(r"resuming: (\d+) of \1 tasks already done", err)
    assert_like_undisturbed(desk, *args)


def test_a_run_that_died_twice_goes_on_from_where_the_second_one_came(desk: Desk, staged: list[str]) -> None:
    args = COMMANDS["convert, threads"]
    desk.killed(Death("replace .*/tasks/", count=3), *args)
    first = desk.done()
    desk.killed(Death("replace .*/tasks/", count=4), *args)
    second = desk.done()
    assert first.items() < second.items()  # the very same files
    assert len(second) >= len(first) + 4
    assert desk.run(*args)[0] == 0
    assert not set(staged) & set(second)
    assert_like_undisturbed(desk, *args)


@pytest.mark.thorough("the command is started and killed until it ends; faults/test_kill.py kills it too")
def test_the_real_command_is_killed_from_outside_and_goes_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    column = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(25_000_000, np.float32)), 100_000)
    pq.write_table(pa.table({"x": column}), tmp_path / "a.parquet", row_group_size=10)
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", "a.parquet", "-o", "out", "--workers", "2"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 300
        while not any((tmp_path / "out").glob(".staging/*/tasks/*.json")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            os.sched_yield()
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    ran = subprocess.run([*command, "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    done = int(re.findall(r"resuming: (\d+) of \d+ tasks", ran.stderr)[0])
    assert json.loads(ran.stdout)["done_before"] == done > 0
    assert json.loads(ran.stdout)["counts"]["written"] == 250
    assert verify_dataset(tmp_path / "out").findings == ()


class TestRejects:
    @pytest.mark.parametrize("command", ["convert", "append"])
    def test_too_many_rejects_are_allowed_later_without_reading_the_source_again(
        self, desk: Desk, staged: list[str], command: str
    ) -> None:
        lines = (desk.root / "b.csv").read_text().splitlines(keepends=True)
        for number in (5, 3000, 5999):
            lines[number] = "x" + lines[number]
        bad = desk.root / "bad.csv"
        bad.write_text("".join(lines))
        if command == "append":
            shutil.copytree(desk.root / "a", desk.out)
        args = (command, "bad.csv", "-o", "out", *SMALL, "--set", "schema.columns.id.type=int64")
        code, _, err = desk.run(*args)
        assert code == 4
        assert "kept for resuming: " in err
        assert "; the same command with --max-rejects 3 resumes it\n" in err
        done = desk.done()
        # what is between two places of the fingerprint is changed behind our backs: whoever reads it again would see
        status, data = bad.stat(), bytearray(bad.read_bytes())
        between = len(data) - 2 * 65536 - 4096
        start, stop = 65536 + between * 7 // 15 + 4096, 65536 + between * 8 // 15
        assert stop - start > 1000
        data[start:stop] = b"\n" * (stop - start)
        before = bad.read_bytes()
        bad.write_bytes(data)
        os.utime(bad, ns=(status.st_atime_ns, status.st_mtime_ns))
        staged.clear()

        code, _, err = desk.run(*args, "--max-rejects", "2")
        assert (code, desk.done(), staged) == (4, done, [])
        assert "resuming: 1 of 1 task already done\n" in err
        code, out, err = desk.run(*args, "--max-rejects", "3")
        assert (code, staged) == (0, [])
        assert "x5" not in out
        assert open_dataset(desk.out).manifest.counts.rejected == 3

        bad.write_bytes(before)
        os.utime(bad, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert_like_undisturbed(desk, *args, "--max-rejects", "3", changed=True)

    def test_the_engine_is_not_even_loaded(self, desk: Desk) -> None:
        (desk.root / "bad.csv").write_text("a\n1\nx\n")
        args = ("convert", "bad.csv", "-o", "out", "--set", "schema.columns.a.type=int")
        assert desk.run(*args)[0] == 4
        script = (
            "import sys\nfrom shardmill.pipelines.cli import main\n"
            f"try: main({[*args, '--max-rejects', '1']!r})\n"
            "finally: print('engine', 'apache_beam' in sys.modules)\n"
        )
        ran = subprocess.run([sys.executable, "-c", script], cwd=desk.root, capture_output=True, text=True, check=True)
        assert ran.stdout.endswith("engine False\n")

    def test_a_mended_source_begins_anew_and_says_so(self, desk: Desk) -> None:
        (desk.root / "bad.csv").write_text("a\n1\nx\n")
        args = ("convert", "bad.csv", "-o", "out", "--set", "schema.columns.a.type=int")
        assert desk.run(*args)[0] == 4
        (desk.root / "bad.csv").write_text("a\n1\n22\n")
        code, _, err = desk.run(*args)
        assert (code, err) == (0, "starting over: bad.csv changed (6 to 7 bytes) since the interrupted run\n")
        assert open_dataset(desk.out).to_arrow("train").to_pylist() == [{"a": 1}, {"a": 22}]
        assert not (desk.out / ".staging").exists()

    def test_the_loser_of_two_conversions_into_one_folder_is_not_told_to_repeat_its_command(self, desk: Desk) -> None:
        (desk.root / "a.csv").write_text("a\n1\n2\n")
        real = commit_generation._commit

        def lose(*args: Any) -> Any:
            with pytest.MonkeyPatch.context() as first:
                first.setattr(commit_generation, "_commit", real)
                convert(data={"a": [7]}, output=desk.out)
            return real(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(commit_generation, "_commit", lose)
            code, _, err = desk.run("convert", "a.csv", "-o", "out")
        assert code == 1
        assert (
            "generation 1 was committed by another writer; nothing of this run was; choose another folder (-o)" in err
        )
        assert "resumes" not in err
        assert "left behind: " in err
        code, _, err = desk.run("convert", "a.csv", "-o", "out")
        assert (code, "from another source or config" in err) == (2, True)
        assert desk.run("convert", "a.csv", "-o", "elsewhere")[0] == 0
        assert desk.run("convert", "a.csv", "-o", "out", "--overwrite")[0] == 0
        assert open_dataset(desk.out).to_arrow()["a"].to_pylist() == [1, 2]

    def test_a_file_that_could_not_be_read_is_tried_again(self, desk: Desk) -> None:
        """Permissions leave no trace in a listing: what was rejected for them is no fact of the source."""
        pets = Path(__file__).parents[3] / "configs/samples/pets"
        shutil.copytree(pets, desk.root / "pets")
        args = ("convert", "pets", "-o", "out", "--max-rejects", "1")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("shardmill.transforms.sources.images.source.read_image_bytes", _unreadable)
            assert desk.run(*args)[0] == 4
        code, _, err = desk.run(*args)
        assert (code, err) == (0, "")
        assert open_dataset(desk.out).manifest.rejects.by_code == {"TRUNCATED": 1}


def _unreadable(path: bytes, *_: object) -> memoryview:
    from shardmill.transforms.pictures.facts import ImageProblem

    raise ImageProblem("UNREADABLE", f"{path!r} cannot be read", expected="a readable file")


class TestChangedSources:
    ARGS = COMMANDS["convert, threads"]

    def killed(self, desk: Desk, *args: str, count: int = 4) -> int:
        desk.killed(Death("replace .*/tasks/", count=count), *(args or self.ARGS))
        return len(desk.done())

    def assert_refused(self, desk: Desk, done: int, *said: str, args: tuple[str, ...] = ()) -> None:
        """The command is refused with what is said; with the mend that it names it begins anew."""
        before = desk.done()
        for more in ((), ("--dry-run",)):
            code, out, err = desk.run(*(args or self.ARGS), *more)
            assert (code, out) == (1, "")
            assert err.startswith(f"error: {said[0]} since a run of this command stopped, with {done} of ")
            assert str(desk.staging) in err
            assert err.endswith("\n".join(["or --set runner.resume=false starts over", *said[1:]]) + "\n")
        assert desk.done() == before
        code, _, err = desk.run(*(args or self.ARGS), "--set", "runner.resume=false")
        assert code == 0
        assert "starting over" in err
        assert "continuing" not in err
        assert_like_undisturbed(desk, *(args or self.ARGS), changed=True)

    def test_a_file_that_was_written_to_is_refused_by_its_name(self, desk: Desk) -> None:
        done = self.killed(desk)
        os.utime(desk.root / "b.parquet")
        self.assert_refused(desk, done, "b.parquet: was written to")

    @pytest.mark.thorough("several whole runs; others of its class are in the quick tier")
    def test_a_file_of_another_size_is_refused_by_its_name(self, desk: Desk) -> None:
        done = self.killed(desk)
        path = desk.root / "a.parquet"
        before = path.stat().st_size
        pq.write_table(pq.read_table(path).slice(0, 5_000), path, row_group_size=250)
        now = path.stat().st_size
        self.assert_refused(desk, done, f"a.parquet: changed ({before:,} to {now:,} bytes)")

    @pytest.mark.thorough("several whole runs; others of its class are in the quick tier")
    def test_files_that_came_and_went_are_refused_by_their_names(self, desk: Desk) -> None:
        args = ("convert", "*.parquet", "-o", "out", *SMALL)
        done = self.killed(desk, *args)
        (desk.root / "b.parquet").rename(desk.root / "c.parquet")
        self.assert_refused(desk, done, "b.parquet: is gone", "c.parquet: was added", args=args)

    def test_a_source_that_is_put_back_is_gone_on_with(self, desk: Desk) -> None:
        self.killed(desk)
        (desk.root / "a.parquet").rename(desk.root / "elsewhere")
        shutil.copy(desk.root / "elsewhere", desk.root / "a.parquet")  # of another time
        assert desk.run(*self.ARGS)[0] == 1
        (desk.root / "elsewhere").replace(desk.root / "a.parquet")
        code, _, err = desk.run(*self.ARGS)
        assert code == 0
        assert "resuming: " in err
        assert_like_undisturbed(desk, *self.ARGS)

    def test_an_image_is_refused_by_its_name_even_if_its_size_and_time_are_what_the_latest_are(
        self, desk: Desk
    ) -> None:
        rng = np.random.default_rng(3)
        from PIL import Image

        for i in range(40):
            path = desk.root / f"pets/{'cat' if i % 2 else 'dog'}/{i:02d}.bmp"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (150, 150, 3), np.uint8)).save(path)
        args = ("convert", "pets", "-o", "out", "--shard-size", "256KiB", "--workers", "1")
        done = self.killed(desk, *args, count=1)
        victim = desk.root / "pets/cat/07.bmp"
        status, data = victim.stat(), bytearray(victim.read_bytes())
        data[-1] ^= 255
        victim.write_bytes(data)
        os.utime(victim, ns=(0, status.st_mtime_ns - 5))  # not the latest of its folder
        self.assert_refused(desk, done, "pets/cat/07.bmp: was written to, or added,", args=args)

    def test_data_in_memory_that_changed_are_begun_anew(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        data = {"a": np.arange(10), "b": np.arange(10.0)}
        with monkeypatch.context() as patch:
            patch.setattr("shardmill.transforms.dataset.commit.publish.commit_generation", _fail)
            for rows in (data, {**data, "b": data["b"] + 1}):
                with pytest.raises(OSError, match="the power went"):
                    convert(data=rows, output=tmp_path / "out")
        assert convert(data=rows, output=tmp_path / "out").done_before == 1
        assert open_dataset(tmp_path / "out").to_arrow("train")["b"].to_pylist() == rows["b"].tolist()
        assert not (tmp_path / "out/.staging").exists()

    @pytest.mark.thorough("several whole runs; others of its class are in the quick tier")
    def test_an_append_whose_source_changed_is_refused(self, desk: Desk) -> None:
        shutil.copytree(desk.root / "a", desk.out)
        args = COMMANDS["append"]
        done = self.killed(desk, *args)
        os.utime(desk.root / "b.parquet")
        self.assert_refused(desk, done, "b.parquet: was written to", args=args)

    def test_a_merge_whose_source_changed_is_refused(self, desk: Desk) -> None:
        args = COMMANDS["merge, threads"]
        done = self.killed(desk, *args)
        os.utime(desk.root / "b/train-00001.tfrecord")
        self.assert_refused(desk, done, "b/train-00001.tfrecord: was written to", args=args)


def _fail(*_: object) -> None:
    raise OSError("the power went")


class TestOtherOptions:
    ARGS = COMMANDS["convert, threads"]

    def test_a_run_that_was_refused_for_its_rejects_is_not_called_unfinished(self, desk: Desk) -> None:
        (desk.root / "a.csv").write_text("a\n1\nx\n")
        args = ("convert", str(desk.root / "a.csv"), "-o", "out")
        assert desk.run(*args, "--set", "schema.columns.a.type=int64")[0] == 4
        assert desk.staging.is_dir()
        assert desk.run(*args)[::2] == (0, "")

    @pytest.mark.parametrize(
        "option",
        but_some_thorough(
            [("--compression", "gzip")],
            [
                ("--shard-size", "80KiB"),
                ("--compression", "gzip"),
                ("--order", "source"),
                ("--set", "schema.columns.text.type=bytes"),
                ("--set", "split.fractions.train=0.5", "--set", "split.fractions.val=0.5"),
                ("--set", "output.sidecars=[index]"),
            ],
            "three conversions for each option; one option is in the quick tier",
            [("--order", "source"), ("--set", "output.sidecars=[index]")],
        ),
        ids=" ".join,
    )
    def test_of_another_config_nothing_is_used(self, desk: Desk, option: tuple[str, ...]) -> None:
        desk.killed(Death("replace .*/tasks/", count=4), *self.ARGS)
        left = desk.staging
        code, _, err = desk.run(*self.ARGS, *option)
        assert code == 0
        assert err == "an earlier run with other settings stopped here; its unfinished work is not used\n"
        assert left.is_dir()  # its own command may still go on with it
        shutil.rmtree(desk.out / ".staging")
        assert_like_undisturbed(desk, *self.ARGS, *option)

    def test_of_other_limits_nothing_is_used(self, desk: Desk, staged: list[str]) -> None:
        """Limits are no part of what names a run, but rows are rejected by them."""
        desk.killed(Death("replace .*/tasks/", count=4), *self.ARGS)
        total = len(json.loads((desk.staging / "plan.json").read_text())["tasks"])
        code, _, err = desk.run(*self.ARGS, "--set", "limits.field_bytes=1MiB")
        assert (code, len(staged)) == (0, total)
        assert err == ("starting over: limits and options of reading changed since the interrupted run\n")
        assert_like_undisturbed(desk, *self.ARGS, "--set", "limits.field_bytes=1MiB")

    @pytest.mark.thorough("several whole runs; others of its class are in the quick tier")
    def test_workers_and_processes_may_be_others(self, desk: Desk) -> None:
        desk.killed(Death("replace .*/tasks/", count=4), *self.ARGS)
        done = len(desk.done())
        code, _, err = desk.run(*self.ARGS, "--workers", "1", "--set", "runner.processes=true")
        assert code == 0
        assert f"resuming: {done} of " in err
        assert_like_undisturbed(desk, *self.ARGS)

    def test_of_another_release_nothing_is_used(self, desk: Desk) -> None:
        desk.killed(Death("replace .*/tasks/", count=4), *self.ARGS)
        plan = desk.staging / "plan.json"
        document = json.loads(plan.read_text())
        document["mark"]["conditions"]["pyarrow (its release)"] = "1.0"
        plan.write_text(json.dumps(document))
        code, _, err = desk.run(*self.ARGS)
        assert (code, err) == (0, "starting over: pyarrow (its release) changed since the interrupted run\n")

    @pytest.mark.parametrize(
        "data",
        but_some_thorough(
            [b"{}", None], [b"", b"[]", b"{}", b"\xff", b'{"mark": 1}', None], "two are in the quick tier", [b"\xff"]
        ),
    )
    def test_a_plan_that_nobody_can_read_is_of_no_use(self, desk: Desk, data: bytes | None) -> None:
        desk.killed(Death("replace .*/tasks/", count=4), *self.ARGS)
        if data is None:
            (desk.staging / "plan.json").unlink()
        else:
            (desk.staging / "plan.json").write_bytes(data)
        code, _, err = desk.run(*self.ARGS)
        assert (code, err) == (0, "starting over: the plan of the interrupted run cannot be read\n")


class TestDamagedWork:
    ARGS = COMMANDS["convert, threads"]

    def test_a_task_whose_work_is_damaged_is_done_again(self, desk: Desk, staged: list[str]) -> None:
        desk.killed(Death("replace .*/tasks/", count=8), *self.ARGS)
        names = sorted(desk.done())
        documents = [json.loads((desk.staging / "tasks" / name).read_text()) for name in names]
        parts = [document["splits"]["train"]["parts"][0]["path"] for document in documents]
        (desk.staging / parts[0]).unlink()
        os.truncate(desk.staging / parts[1], 100)
        (desk.staging / "tasks" / names[2]).write_bytes(b"{")
        documents[3]["splits"]["train"]["parts"][0]["path"] = "../../../a.parquet"
        (desk.staging / "tasks" / names[3]).write_text(json.dumps(documents[3]))
        documents[4]["failures"] = ["a.csv: is damaged"]
        (desk.staging / "tasks" / names[4]).write_text(json.dumps(documents[4]))
        (desk.staging / "tasks/999999.json").write_bytes((desk.staging / "tasks" / names[5]).read_bytes())
        code, _, err = desk.run(*self.ARGS)
        assert code == 0
        assert f"resuming: {len(names) - 5} of " in err
        assert set(names[:5]) <= set(staged)
        assert not set(names[5:]) & set(staged)
        assert_like_undisturbed(desk, *self.ARGS)

    def test_attempts_that_were_killed_are_removed(self, desk: Desk) -> None:
        desk.killed(Death("replace .*/tasks/", count=4, before=True), *self.ARGS)
        done = desk.done()
        assert len(list(desk.staging.glob("parts/*"))) > len(done)
        desk.killed(Death("replace .*/tasks/", before=True), *self.ARGS, "--workers", "1")
        assert len(list(desk.staging.glob("parts/*"))) == len(done) + 1


class TestAppends:
    ARGS = COMMANDS["append"]

    def test_one_that_died_goes_on_behind_one_that_landed_meanwhile(self, desk: Desk, staged: list[str]) -> None:
        shutil.copytree(desk.root / "a", desk.out)
        desk.killed(Death("replace .*/tasks/", count=4), *self.ARGS)
        done = desk.done()
        pq.write_table(pa.table({"id": [7], "text": ["seven"]}), desk.root / "c.parquet")
        append({"input": {"paths": ["c.parquet"]}}, output=desk.out)
        staged.clear()
        code, _, err = desk.run(*self.ARGS)
        assert code == 0
        assert f"resuming: {len(done)} of " in err
        assert not set(done) & set(staged)
        rows = open_dataset(desk.out).to_arrow("train")["id"].to_pylist()
        assert len(rows) == ROWS + 1
        assert sorted(rows) == sorted([*range(ROWS), 7])
        assert verify_dataset(desk.out).findings == ()

    @pytest.mark.thorough("several whole runs; others of its class are in the quick tier")
    def test_one_whose_file_another_has_appended_meanwhile_begins_anew(self, desk: Desk) -> None:
        shutil.copytree(desk.root / "a", desk.out)
        args = ("append", "b.parquet", "c.parquet", "-o", "out", *SMALL)
        pq.write_table(pa.table({"id": [7], "text": ["seven"]}), desk.root / "c.parquet")
        desk.killed(Death("replace .*/tasks/", count=4), *args)
        append({"input": {"paths": ["c.parquet"]}}, output=desk.out)
        code, _, err = desk.run(*args)
        assert code == 0
        assert err == "starting over: the dataset changed since the interrupted run\n"
        assert len(open_dataset(desk.out).to_arrow("train")) == ROWS + 1
        assert not (desk.out / ".staging").exists()

    @pytest.mark.thorough("several whole runs; others of its class are in the quick tier")
    def test_one_that_was_forced_and_died_behind_its_commit_is_not_doubled(self, desk: Desk) -> None:
        shutil.copytree(desk.root / "a", desk.out)
        args = ("append", "a.parquet", "-o", "out", "--force", *SMALL)
        desk.killed(Death("put_if_absent manifests/"), *args)
        assert desk.run(*args)[0] == 0
        assert open_dataset(desk.out).manifest.generation == 2
        assert len(open_dataset(desk.out).to_arrow("train")) == ROWS
        assert desk.run(*args)[0] == 0  # now it was done, and force repeats
        assert open_dataset(desk.out).manifest.generation == 3


class TestScreens:
    ARGS = COMMANDS["convert, threads"]

    def test_a_dry_run_says_what_would_be_gone_on_with_and_changes_nothing(self, desk: Desk) -> None:
        desk.killed(Death("replace .*/tasks/", count=4), *self.ARGS)
        done = desk.done()
        files = {path: path.stat().st_mtime_ns for path in desk.out.rglob("*")}
        code, out, err = desk.run(*self.ARGS, "--dry-run", "--json")
        document = json.loads(out)
        assert (code, err, document["done_before"]) == (0, "", len(done))
        warning = f"resuming: {len(done)} of {document['tasks']} tasks already done"
        assert document["warnings"][0] == warning
        code, out, err = desk.run(*self.ARGS, "--dry-run")
        assert (code, err) == (0, "")
        assert f"Tasks:  {document['tasks']} ({len(done)} already done); shards of 64.0 KiB" in out
        assert {path: path.stat().st_mtime_ns for path in desk.out.rglob("*")} == files

    def test_a_quiet_run_says_nothing(self, desk: Desk) -> None:
        desk.killed(Death("replace .*/tasks/", count=4), *self.ARGS)
        assert desk.run(*self.ARGS, "--quiet") == (0, "", "")

    def test_an_undisturbed_run_says_nothing_of_it(self, desk: Desk) -> None:
        code, out, err = desk.run(*self.ARGS, "--json")
        assert (code, err) == (0, "")
        assert "done_before" not in json.loads(out)


def test_from_python_too(desk: Desk) -> None:
    config: dict[str, Any] = {"input": {"paths": ["bad.csv"]}, "schema": {"columns": {"a": {"type": "int"}}}}
    (desk.root / "bad.csv").write_text("a\n1\nx\n")
    with pytest.raises(TooManyRejects):
        convert(config, output=desk.out)
    summary = convert(config, output=desk.out, max_rejects=1)
    assert (summary.done_before, summary.manifest.counts.rejected) == (1, 1)
