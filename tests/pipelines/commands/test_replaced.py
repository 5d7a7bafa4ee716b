"""Generations that were replaced: they are marked, refused by name, and noticed by commands that read meanwhile."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.pipelines.commands import stats
from shardmill.pipelines.runs import merge
from shardmill.transforms.dataset.integrity import verify
from shardmill.transforms.dataset.reading import compare_records
from shardmill.transforms.errors import InputError
from shardmill.transforms.sources.tfrecord import schema

from ...dataset.reading.test_replaced import overwritten, removed_and_made, version
from .test_log_and_gc import run


def make(path: Path, number: int, **output: Any) -> None:
    convert(data=version(number), output=path, output__shard_size="64KiB", **output)


@pytest.fixture
def replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset whose generation 2 has replaced 1, and to which 3 was appended."""
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "q", 1)
    make(tmp_path / "q", 2, if_exists="replace")
    append(data=version(2, rows=5), output=tmp_path / "q")
    return tmp_path / "q"


@pytest.mark.parametrize(
    "command",
    [
        ("export", "q", "-o", "x.jsonl", "--generation", "1"),
        ("export", "q", "-o", "croissant.json", "--generation", "1"),
        ("report", "q", "-o", "x.html", "--generation", "1"),
        ("diff", "q@1", "q@2", "--records"),
        ("diff", "q", "q@1"),
    ],
    ids=" ".join,
)
def test_a_replaced_generation_is_refused_by_name(
    replaced: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed, err = run(*command, capsys=capsys)
    assert code == 2, (printed, err)
    assert "q: generation 1 was replaced by generation 2: its rows are no longer there" in " ".join(err.split())
    assert "which is 3" in " ".join(err.split())


def test_an_older_generation_that_was_appended_to_is_still_read(
    replaced: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(open_dataset(replaced, 2)) == 1500
    with pytest.raises(InputError, match="generation 1 was replaced by generation 2"):
        open_dataset(replaced, 1)
    assert run("diff", "q@2", "q@3", "--records", capsys=capsys)[0] == 1
    assert run("export", "q", "-o", "x.jsonl", "--generation", "2", capsys=capsys)[0] == 0


def test_log_and_gc_mark_it(replaced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, printed, _ = run("log", "q", capsys=capsys)
    assert [("replaced by 2" in line) for line in printed.splitlines()[1:]] == [True, False, False]
    _, printed, _ = run("log", "q", "--json", capsys=capsys)
    assert [one["replaced_by"] for one in json.loads(printed)["generations"]] == [2, None, None]
    _, printed, _ = run("gc", "q", capsys=capsys)
    assert "Kept: generations 2 to 3 of q" in printed
    assert "Replaced, its shards are gone: generation 1" in printed
    _, printed, _ = run("gc", "q", "--json", capsys=capsys)
    assert json.loads(printed)["replaced"] == [1]


def test_overwrite_says_what_it_means_for_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = "Replaced the dataset in place: TFDS, tf.data and globs"
    for number, is_said in ((1, False), (2, True)):
        Path("a.csv").write_text(f"id\n{number}\n")
        code, printed, err = run("convert", "a.csv", "-o", "q", "--overwrite", capsys=capsys)
        assert (code, said in printed + err) == (0, is_said)


@pytest.mark.parametrize("replace", [overwritten, removed_and_made])
@pytest.mark.parametrize(
    ("command", "where", "step"),
    [
        (("stats", "q", "--full"), stats, "counts_of"),
        (("stats", "q", "--full"), stats, "count_records"),
        (("stats", "q", "--full", "--write"), stats, "write_statistics"),
        (("report", "q", "-o", "x.html"), stats, "count_records"),
        (("verify", "q"), verify, "_shard_checks"),
        (("verify", "q", "--quick"), verify, "_shard_checks"),
        (("diff", "q", "other", "--records"), compare_records, "_digests"),
        (("merge", "q", "-o", "merged"), schema, "locate_shard"),
        (("merge", "q", "-o", "merged"), schema, "list_file"),
        (("merge", "q", "-o", "merged"), merge, "read_tally"),
        (("rebuild", "q", "-o", "rebuilt"), schema, "list_file"),
        (("export", "q", "-o", "x.jsonl"), None, "open_dataset"),
    ],
    ids=str,
)
def test_a_command_whose_dataset_is_replaced_meanwhile_ends_with_an_error_that_says_so(
    tmp_path: Path,
    command: tuple[str, ...],
    where: Any,
    step: str,
    replace: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from shardmill.transforms.dataset.reading import open_dataset as opening

    monkeypatch.chdir(tmp_path)
    make(tmp_path / "q", 1)
    shutil.copytree(tmp_path / "q", tmp_path / "other")
    convert(data=version(3), output=tmp_path / "other", output__shard_size="64KiB", if_exists="replace")
    where = where or opening
    real, left = getattr(where, step), [1]

    def at_step(*args: Any, **options: Any) -> Any:
        if left and where is not opening:
            left.pop()
            replace(tmp_path / "q")
        result = real(*args, **options)
        if left:
            left.pop()
            replace(tmp_path / "q")
        return result

    monkeypatch.setattr(where, step, at_step)
    code, printed, err = run(*command, capsys=capsys)
    assert not left
    assert code == 1, (printed, err)
    assert "q: generation 1 was " in " ".join(err.split())
    assert "run the command again" in " ".join(err.split())
    assert not any((tmp_path / name).exists() for name in ("x.jsonl", "x.html", "merged/manifest.json"))
