"""The rules by which files are recognised stand in one list, and each is asked in its turn."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.recognise import rules
from shardmill.transforms.recognise.beside import files, lists, tables
from shardmill.transforms.recognise.evidence.picture_tables import Resolved
from shardmill.transforms.recognise.kinds import KINDS, Paths
from shardmill.transforms.recognise.splits import find, seen
from shardmill.transforms.recognise.splits.seen import CLEAR, Found, Seen
from shardmill.transforms.recognise.strangers import files as strangers

from ..file_sources import made_source


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_rule_stands_once_in_the_list_and_says_what_it_sees() -> None:
    assert len(set(rules.RULES)) == len(rules.RULES) > 20
    assert [rule for rule in rules.RULES if not inspect.getdoc(rule)] == []
    for module in (files, lists, tables, seen, find):
        makers = (files.Around, seen.Seen)
        there = {
            one
            for name, one in vars(module).items()
            if inspect.isfunction(one) and name[0] != "_" and one.__module__ == module.__name__
            if next(iter(inspect.get_annotations(one, eval_str=True).values()), None) in makers
        }
        assert there - {find.find_splits, seen.said} <= set(rules.RULES)


def test_a_rule_is_a_function_and_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("in").mkdir()
    for name in ("one.csv", "two.csv"):
        Path("in", name).write_text("a\n1\n")

    def lines(paths: Paths) -> str | None:
        return "txt" if len(paths.files) == 2 else None

    def skipping(given: Any, *_: Any) -> Resolved | None:
        return Resolved({**given, "skip_lines": 1}, {}, (), "the first lines say nothing")

    def by_number(seen: Seen) -> Found | None:
        return Found("names", {}, ["train" if "one" in name else "test" for name in seen.names], "numbers")

    monkeypatch.setattr(rules, "KINDS", (lines, *KINDS))
    monkeypatch.setattr(find, "CLEAR", (*CLEAR, by_number))
    assert rules.Look(["in"]).detect() == "txt"
    monkeypatch.setattr(rules, "KINDS", KINDS)
    convert("in", output="out")
    assert [len(open_dataset("out")[split]) for split in ("train", "test")] == [1, 1]
    monkeypatch.setattr(rules, "MEANINGS", (*rules.MEANINGS, skipping))
    convert("in", output="skipped", input__header=False, input__names=["a"])
    assert [open_dataset("skipped")[split].to_pandas()["a"].tolist() for split in ("train", "test")] == [[1], [1]]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> tuple[list[bytes], list[str]]:
    """Note the files whose first bytes are read, and the folders that are asked for the log of a table."""
    opened, asked = list[bytes](), list[str]()
    open_listed, isdir = strangers.open_listed, os.path.isdir

    def opening(entry: Any, *more: Any) -> Any:
        opened.append(entry.path)
        return open_listed(entry, *more)

    def asking(path: Any) -> bool:
        if os.path.basename(path) == "_delta_log":
            asked.append(os.path.dirname(path))
        return isdir(path)

    monkeypatch.setattr(strangers, "open_listed", opening)
    monkeypatch.setattr(os.path, "isdir", asking)
    return opened, asked


def test_at_most_16_files_are_opened_and_each_folder_is_asked_once_for_a_log(
    tmp_path: Path, looked_at: tuple[list[bytes], list[str]]
) -> None:
    for folder in ("a", "b", "c/d"):
        Path("t/u", folder).mkdir(parents=True)
        for number in range(20):
            Path("t/u", folder, f"{number}.parquet").write_bytes(b"PAR1")
    opened, asked = looked_at
    made_source("parquet", ["t/u/*/*.parquet", "t/u/c"], str(tmp_path)).list_files()
    above = [tmp_path / "t/u", tmp_path / "t", tmp_path, tmp_path.parent, tmp_path.parent.parent]
    below = [tmp_path / "t/u" / folder for folder in ("a", "b", "c", "c/d")]
    assert len(opened) == len(set(opened)) == 16
    assert len(asked) == len(set(asked))
    assert set(map(str, below)) <= set(asked) <= set(map(str, [*above, *below]))


def test_of_a_thousand_folders_a_thousand_at_most_are_asked(
    tmp_path: Path, looked_at: tuple[list[bytes], list[str]]
) -> None:
    for number in range(1100):
        Path(f"t/day={number}").mkdir(parents=True)
        Path(f"t/day={number}/a.parquet").write_bytes(b"PAR1")
    opened, asked = looked_at
    made_source("parquet", ["t"], str(tmp_path)).list_files()
    assert (len(opened), len(asked), asked[0]) == (16, 1000, str(tmp_path / "t"))


def test_without_detection_nothing_is_opened_and_no_folder_is_asked(looked_at: tuple[list[bytes], list[str]]) -> None:
    Path("a.csv").write_text("a\n1\n")
    convert("a.csv", output="out", input__detect="none")
    assert looked_at == ([], [])
