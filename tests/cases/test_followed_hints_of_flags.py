"""Options for the command that ran, which its screen proposes, are typed as printed, and do what is said."""

from __future__ import annotations

import os
import re
import shlex
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from shardmill.pipelines import convert
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.first_look import doctor
from shardmill.pipelines.outcomes.summary import order_note
from shardmill.pipelines.workers.worker_processes import WorkerProcesses
from shardmill.transforms.dataset.commit import publish
from shardmill.transforms.dataset.integrity import garbage
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ConfigError, DataError, RunError

from .. import followed_hints
from ..command_line import Shardmill
from .test_followed_hints_of_commands import OF_BOTH, RUNNER, doubled
from .test_followed_hints_of_exports import options_in
from .test_followed_hints_of_text import column
from .test_followed_hints_of_upkeep import command_in
from .test_sets_that_people_bring import counts_of


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(4):
        Path(f"{number}.csv").write_text(f"n\n{number}\n")


def values_of(path: str) -> list[object]:
    return [row["n"] for split in open_dataset(path).splits for row in open_dataset(path)[split]]


def test_an_append_to_splits_of_folders_goes_where_the_options_say(shardmill: Shardmill) -> None:
    for split in ("train", "val"):
        Path("in", split).mkdir(parents=True)
        Path("in", split, "a.csv").write_text("n\n7\n")
    assert shardmill("convert", "in", "-o", "out").code == 0
    refused = shardmill("append", "0.csv", "-o", "out").err
    assert shardmill("append", "0.csv", "-o", "out", *options_in(refused, "where they go: ")).code == 0
    assert counts_of("out") == {"train": 2, "val": 1}
    assert shardmill("append", "1.csv", "-o", "out", *options_in(refused, "a rule, like ")).code == 0
    assert sum(counts_of("out").values()) == 4


def test_rows_of_an_append_go_to_another_split_by_the_option_that_is_said(shardmill: Shardmill) -> None:
    rule = ["--split-fractions", "x=0.5,y=0.5"]
    assert shardmill("convert", "0.csv", "1.csv", "2.csv", "-o", "out", *rule).code == 0
    said = shardmill("append", "3.csv", "-o", "out", "--dry-run").out
    option = [word.replace("NAME", "z") for word in options_in(said, "to say otherwise: ")]
    assert shardmill("append", "3.csv", "-o", "out", *option).code == 0
    assert counts_of("out")["z"] == 1


@pytest.mark.parametrize(("kind", "wanted"), [("append", [0, 0, 9]), ("skip", [0])])
def test_a_file_that_changed_is_appended_or_not_as_its_option_says(
    shardmill: Shardmill, kind: str, wanted: list[int]
) -> None:
    assert shardmill("convert", "0.csv", "-o", "out").code == 0
    Path("0.csv").write_text("n\n0\n9\n")
    refused = shardmill("append", "0.csv", "-o", "out").err
    option = re.search(rf"^  (--changed {kind}) ", refused, re.MULTILINE)
    assert option, refused
    assert shardmill("append", "0.csv", "-o", "out", *option[1].split()).code == 0
    assert values_of("out") == wanted


def test_a_file_that_is_held_is_appended_again_by_force(shardmill: Shardmill) -> None:
    assert shardmill("convert", "0.csv", "-o", "out").code == 0
    time = Path("0.csv").stat().st_mtime + 9
    os.utime("0.csv", (time, time))
    screen = shardmill("append", "0.csv", "-o", "out").out
    option = options_in(screen, "holds the file; ")[:1]
    assert shardmill("append", "0.csv", "-o", "out", *option).code == 0
    assert values_of("out") == [0, 0]


def test_files_of_a_dataset_that_is_appended_in_part_come_all_by_force(shardmill: Shardmill) -> None:
    for folder, files in (("out", ["0.csv"]), ("more", ["0.csv", "1.csv"])):
        assert shardmill("convert", *files, "-o", folder).code == 0
    refused = shardmill("append", "more", "-o", "out").err
    assert shardmill("append", "more", "-o", "out", *options_in(refused, "or all: ")).code == 0
    assert values_of("out") == [0, 0, 1]


def test_rejects_are_left_out_by_the_options_of_a_dry_run_and_of_the_run(shardmill: Shardmill) -> None:
    Path("bad.csv").write_text("n\n1\nx\n")
    for number, (more, before) in enumerate(
        [(["--dry-run"], "to allow them: "), ([], "to leave it out: "), ([], "the same command with ")]
    ):
        command = ["convert", "bad.csv", "-o", f"out{number}", *column("n", "type", "int64")]
        screen = shardmill(*command, *more)
        assert shardmill(*command, *options_in(screen.out + screen.err, before)).code == 0
        assert values_of(f"out{number}") == [1]


def test_what_no_generation_names_goes_by_the_command_of_verify(
    shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shardmill("convert", "0.csv", "-o", "out").code == 0
    part = Path("out/manifests/shards-3b6f0a4c2e119b517c1e4c390b7e6d52.json")
    part.write_text("{}")
    found = shardmill("verify", "out")
    command = command_in(found.out + found.err, "or died: ", " removes it")
    monkeypatch.setattr(garbage, "time", SimpleNamespace(time=lambda: part.stat().st_mtime + garbage.WEEK_SECONDS + 9))
    assert shardmill(*command).code == 0
    assert not part.exists()
    assert shardmill("verify", "out").code == 0


def test_gc_and_index_do_what_their_options_say(shardmill: Shardmill) -> None:
    assert shardmill("convert", "0.csv", "-o", "out").code == 0
    Path("out/train-00099.tfrecord").write_bytes(b"x")
    gc = ["gc", "out", "--older-than", "0s"]
    assert shardmill(*gc, *options_in(shardmill(*gc).out, "nothing was removed: ")[:1]).code == 0
    assert not Path("out/train-00099.tfrecord").exists()
    (index,) = Path("out/index").iterdir()
    whole = index.read_bytes()
    index.write_bytes(b"abc")
    again = options_in(shardmill("index", "out").out, "already; ")[:1]
    assert shardmill("index", "out", *again).code == 0
    assert index.read_bytes() == whole


@pytest.mark.parametrize("key", ["project", "region", "staging", "image"])
def test_a_key_that_dataflow_needs_is_given_by_the_option_that_is_said(key: str) -> None:
    runner = {name: value for name, value in RUNNER.items() if name != key}
    config = {"output": {"path": "gs://my-bucket/out"}}
    with pytest.raises(ConfigError) as refused:
        load_config({**config, "runner": runner}, data_given=True)
    option, value = shlex.split(str(refused.value).rpartition(": ")[2])
    given: Any = load_config({**config, "runner": {**runner, key: value}}, data_given=True)
    assert getattr(given.runner, key) == value
    followed_hints.typed([option, value], "")


def test_files_of_another_format_are_appended_by_the_option_that_is_said(shardmill: Shardmill) -> None:
    assert shardmill("convert", "0.csv", "-o", "out").code == 0
    Path("rows.odd").write_text("n\n8\n")
    screen = shardmill("append", "rows.odd", "-o", "out")
    option = [word.replace("NAME", "csv") for word in options_in(screen.out + screen.err, "if it is not: ")]
    again = shardmill("append", "rows.odd", "-o", "out", "--force", *option)
    assert again.code == 0
    assert values_of("out")[-1] == 8


def test_functions_of_a_dataset_that_another_is_made_like_are_given_in_python(shardmill: Shardmill) -> None:
    convert("1.csv", output="out", map=doubled)
    refused = shardmill("convert", "2.csv", "-o", "new", "--like", "out").err
    line = refused.rstrip().rpartition("can give: ")[2].replace("FILES", "'2.csv'").replace("...", "'new'")
    exec(line, {"convert": convert, "doubled": doubled})
    assert values_of("new") == [4]


def test_fewer_workers_are_asked_for_by_the_options_that_are_said(shardmill: Shardmill) -> None:
    with pytest.raises(RunError) as ended, WorkerProcesses(2)._reporting_deaths():
        raise BrokenProcessPool
    for text in (doctor._memory().fix, str(ended.value)):
        assert shardmill("convert", "0.csv", "-o", "out", "--overwrite", *options_in(text, ": ")).code == 0
        assert values_of("out") == [0]


def test_records_follow_the_source_by_the_option_that_is_said(shardmill: Shardmill) -> None:
    note = order_note(SimpleNamespace(has_order=True), "task", 2, [3])  # type: ignore[arg-type]
    assert shardmill("convert", "0.csv", "1.csv", "-o", "out", *options_in(note, "throughout: ")).code == 0
    assert open_dataset("out").manifest.order == "source"


def test_a_dataset_of_another_source_is_replaced_by_the_option_that_is_said(shardmill: Shardmill) -> None:
    assert shardmill("convert", "0.csv", "-o", "out").code == 0
    refused = shardmill("convert", "1.csv", "-o", "out").err
    assert shardmill("convert", "1.csv", "-o", "out", *options_in(refused, "write over it: ")).code == 0
    assert values_of("out") == [1]
    followed_hints.typed([], publish._AGAIN)
    assert shardmill("convert", "2.csv", "-o", "out", *options_in(publish._AGAIN, "again with ")).code == 0
    assert values_of("out") == [2]


def test_a_split_is_exported_and_a_file_replaced_by_the_options_that_are_said(shardmill: Shardmill) -> None:
    Path("a.csv").write_text(OF_BOTH.replace("split,k", "split,n"))
    rule = ["--split-fractions", "x=0.5,y=0.5"]
    assert shardmill("convert", "a.csv", "-o", "out", *rule).code == 0
    export = ["export", "out", "-o", "rows.csv"]
    export += options_in(shardmill(*export).err, "by itself: ")
    assert shardmill(*export).code == 0
    export += options_in(shardmill(*export).err, "already exists; ")[:1]
    assert shardmill(*export).code == 0
    assert len(Path("rows.csv").read_text().splitlines()) == counts_of("out")["x"] + 1
    both = ["export", "out", "-o", "both.csv"]
    assert shardmill(*both, *options_in(shardmill(*both).err, "the others with ")[:1], "n").code == 0
    assert len(Path("both.csv").read_text().splitlines()) == 81


@pytest.mark.parametrize("target", ["rows.csv", "pictures"])
def test_columns_that_an_export_takes_are_chosen_by_the_option_that_is_said(shardmill: Shardmill, target: str) -> None:
    Path("a.jsonl").write_text('{"n": 1, "file_name": "a", "more": [1]}\n')
    Image.new("RGB", (8, 6)).save("p.png")
    Path("b.csv").write_text("p,n,p_file_name\np.png,1,a\n")
    given = ["a.jsonl"] if target == "rows.csv" else ["b.csv", *column("p", "image", "path")]
    assert shardmill("convert", *given, "-o", "out").code == 0
    names = "n" if target == "rows.csv" else "p/encoded,n"
    export = ["export", "out", "-o", target]
    assert shardmill(*export, *options_in(shardmill(*export).err, "others with ")[:1], names).code == 0
    (lines,) = [Path(target)] if target == "rows.csv" else Path(target).rglob("metadata.jsonl")
    assert "1" in lines.read_text()


def test_data_in_the_place_of_a_path_are_converted_by_the_call_that_is_said() -> None:
    with pytest.raises(DataError) as refused:
        convert({"n": [5]}.items())  # type: ignore[arg-type]
    line = str(refused.value).partition("if it is the data: ")[2]
    exec(line.replace("data=...", "data={'n': [5]}").replace("...", "'out'"), {"convert": convert})
    assert values_of("out") == [5]


def test_values_of_a_column_of_many_are_kept_together_by_the_options_that_are_said(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("k\n" + "".join(f"s{number}\n" for number in range(70)) * 2)
    refused = shardmill("convert", "a.csv", "-o", "out", "--set", "split.column=k").err
    options = [word.replace("COLUMN", "k") for word in options_in(refused, "together instead: ")]
    assert shardmill("convert", "a.csv", "-o", "out", *options).code == 0
    train, val = ({row["k"] for row in open_dataset("out")[split]} for split in ("train", "val"))
    assert (train & val, len(train | val)) == (set(), 70)
