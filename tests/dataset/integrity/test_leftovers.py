"""What failed runs leave: it is named, gc finds it, and no hint promises what a rerun cannot do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from shardmill.pipelines.cli import main
from shardmill.transforms.dataset.commit.accounting import Refusal
from shardmill.transforms.dataset.integrity.garbage import staged_by_dead_runs
from shardmill.transforms.dataset.storage.contract import FileStatus
from shardmill.transforms.dataset.storage.local_storage import LocalStorage
from shardmill.transforms.errors import RunError


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert isinstance(ended.value.code, int)
    out, err = capsys.readouterr()
    return ended.value.code, out, err


@pytest.fixture
def failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the staging folder of a first run that failed by a reject."""
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,n\n1,1\n2,x\n")
    code, _, err = run(capsys, "convert", "a.csv", "-o", "out", "--set", "schema.columns.n.type=int64")
    assert code == 4
    (folder,) = (path for path in Path("out/.staging").iterdir() if path.is_dir())
    assert err.endswith(f" in {folder}; the same command with --max-rejects 1 resumes it\n")
    return str(folder)


def test_gc_finds_and_removes_what_a_failed_first_run_left(failed: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "gc", "out", "--older-than", "0s")
    assert (code, err) == (0, "")
    assert out.startswith(failed.removeprefix("out/"))
    assert "No generation was committed in out yet." in out.splitlines()
    assert Path(failed).is_dir()
    code, out, _ = run(capsys, "gc", "out", "--older-than", "0s", "--delete")
    assert (code, list(Path("out").iterdir())) == (0, [])


def test_a_success_names_what_earlier_runs_left_and_the_command_that_shows_it(
    failed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    left = sum(path.stat().st_size for path in Path(failed).rglob("*") if path.is_file())
    code, out, _ = run(capsys, "convert", "a.csv", "-o", "out", "--json")
    assert (code, json.loads(out)["left_behind"] >= left > 0) == (0, True)
    assert Path(failed).is_dir()
    Path("b.csv").write_text("id,n\n3,y\n")
    code, out, _ = run(capsys, "append", "b.csv", "-o", "out")
    (line,) = [line for line in out.splitlines() if line.startswith("Earlier runs that did not finish left ")]
    assert line.endswith(" in out/.staging; to see what may go: shardmill gc out --older-than 0s")
    assert run(capsys, "gc", "out", "--older-than", "0s", "--delete")[0] == 0
    assert not Path(failed).exists()


def test_a_file_that_no_rerun_can_fix_is_no_run_that_goes_on() -> None:
    error = Refusal("failed", "b.parquet: damaged").error()
    assert isinstance(error, RunError)
    assert not error.again
    assert RunError("a worker was killed").again


def test_a_folder_that_another_command_removes_meanwhile_is_not_counted(tmp_path: Path) -> None:
    class Clearing(LocalStorage):
        """A folder of which a command that ends at this moment removes what is listed."""

        def tree(self, path: str) -> Iterator[FileStatus]:
            for status in super().tree(path):
                yield status
                if status.is_file:
                    shutil.rmtree(self.path(path))

    for name, size in (("1" * 16, 10), ("2" * 16, 20)):
        (tmp_path / ".staging" / name).mkdir(parents=True)
        for part in ("part-0", "part-1"):
            (tmp_path / ".staging" / name / part).write_bytes(bytes(size))
    assert staged_by_dead_runs(LocalStorage(str(tmp_path))) > 0
    assert staged_by_dead_runs(Clearing(str(tmp_path))) == 0
