"""What commands propose for options, configs, splits and engines is typed as printed, and does what is said."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.engines.dataflow import check_dataflow
from shardmill.pipelines.engines.flink import cluster, jars
from shardmill.pipelines.engines.flink.processes import FlinkRest
from shardmill.pipelines.first_look.doctor import flink_findings
from shardmill.pipelines.outcomes.summary import Submitted
from shardmill.pipelines.runs.python_api import engine_of, require_waiting
from shardmill.pipelines.screens.summary_screen import Screen
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import RunError, UsageError

from .. import followed_hints
from ..command_line import Shardmill
from .test_followed_hints_of_exports import options_in
from .test_followed_hints_of_text import column
from .test_followed_hints_of_upkeep import command_in
from .test_sets_that_people_bring import counts_of


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows_of(path: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in map(dict, open_dataset(path)["train"])]


@dataclass(frozen=True)
class Case:
    """A table, the options that a command does not take, the words before what it proposes, and rows or splits then."""

    table: str | bytes
    given: list[str]
    before: str
    wanted: object
    blank: tuple[str, str] = ("", "")
    kept: list[str] = field(default_factory=list)


FRACTIONS = ["--split-fractions", "train=0.5,val=0.5"]
FOUR = "k,n\na,1\nb,2\na,3\nb,4\n"
MANY = "n\n" + "".join(f"{number}\n" for number in range(99))

CASES = {
    "--encoding": Case("t\ncaf\xe9\n".encode("cp1252"), ["--encoding"], "of text: ", [("caf\xe9",)]),
    "--names": Case("1,2\n3,4\n", ["--names"], "header's: ", [(1, 2), (3, 4)], kept=["--no-header"]),
    "--schema": Case("n\n1\n", ["--schema"], "type of a column: ", [("1",)], ("NAME", "n")),
    "--folds": Case(MANY, ["--folds"], "cross-validation: ", {f"fold_{n}" for n in range(5)}),
    "--stratify": Case(
        FOUR,
        ["--stratify"],
        "in every class: ",
        {"train": 2, "val": 2},
        ("COLUMN", "k"),
        FRACTIONS,
    ),
    "--num-shards": Case("n\n1\n", ["--num-shards"], "number follows: ", [(1,)]),
    "--output-dir": Case("n\n1\n", ["--output-dir"], "of the dataset: ", [(1,)], ("FOLDER", "out")),
    "--jobs": Case("n\n1\n", ["--jobs"], "at once: ", [(1,)]),
    "--sep": Case("a;b\n1;2,5\n", ["--sep"], "the columns: ", [(1, "2,5")]),
    "--header": Case("1,2\n3,4\n", ["--header"], "it is none: ", [(1, 2), (3, 4)]),
    "--fields": Case("a,b,c\n1,2,3\n", ["--fields"], "to keep: ", [(1, 2)]),
    "--gzip": Case("n\n1\n", ["--gzip"], "shards: ", [(1,)]),
    "--val-split": Case(MANY, ["--val-split"], "into splits: ", {"train", "val"}),
    "--group": Case(FOUR, ["--group"], "in one split: ", None, ("COLUMN", "k"), FRACTIONS),
    "--seed": Case("n\n1\n2\n", ["--seed"], "of the records: ", [(1,), (2,)]),
    "--force": Case("n\n1\n", ["--force"], "that is there: ", [(1,)]),
    "--shuffle without a seed": Case("n\n1\n", ["--shuffle"], "takes a seed: ", [(1,)]),
    "a key of splits without shares": Case(FOUR, ["--split-key", "k"], "add ", None, kept=["--split-key", "k"]),
    "folds for a key": Case(FOUR, ["--split-key", "k"], "0.1 or ", None, kept=["--split-key", "k"]),
    "names of splits without a column": Case(
        FOUR,
        ["--set", "split.names={a: x, b: y}"],
        "add ",
        {"x": 2, "y": 2},
        ("NAME", "k"),
        ["--set", "split.names={a: x, b: y}"],
    ),
    "signs of YAML": Case(
        "n,m\n1,2\n@,3\n", ["--set", "input.null_values=[@]"], "quotes inside: ", [(2, 1), (3, None)]
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_convert_proposes_for_an_option_gives_the_right_records(case: str, shardmill: Shardmill) -> None:
    one = CASES[case]
    Path("a.csv").write_bytes(one.table.encode() if isinstance(one.table, str) else one.table)
    refused = shardmill("convert", "a.csv", "-o", "out", *one.given)
    assert refused.code == 2
    options = [word.replace(*one.blank) for word in options_in(refused.err, one.before)]
    assert shardmill("convert", "a.csv", "-o", "out", *one.kept, *options).code == 0
    if isinstance(one.wanted, dict):
        assert counts_of("out") == one.wanted
    elif isinstance(one.wanted, set):
        assert {*open_dataset("out").splits} == one.wanted
    elif isinstance(one.wanted, list):
        assert sorted(tuple(row.values()) for row in map(dict, open_dataset("out")["train"])) == one.wanted


@pytest.mark.parametrize("given", [["append", "a.csv", "-o", "out", "--overwrite"], ["convert", "--input", "a.csv"]])
def test_what_is_no_option_of_a_command_names_the_convert_that_does_it(given: list[str], shardmill: Shardmill) -> None:
    Path("a.csv").write_text("n\n1\n")
    if given[0] == "append":
        assert shardmill("convert", "a.csv", "-o", "out").code == 0
    Path("a.csv").write_text("n\n2\n3\n")
    command = command_in(shardmill(*given).err, "^Error: .*: ")
    assert shardmill(*({"FILES": "a.csv", "FOLDER": "out"}.get(word, word) for word in command)).code == 0
    assert rows_of("out") == [(2,), (3,)]


def test_a_command_without_verbose_proposes_debug(shardmill: Shardmill) -> None:
    convert(data={"n": [1]}, output="out")
    option = options_in(shardmill("info", "out", "--verbose").err, "unexpected error: ")
    assert shardmill("info", "out", *option).out == shardmill("info", "out").out


def test_a_run_starts_over_by_the_option_that_no_resume_means(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("n\n1\nx\n")
    command = ["convert", "a.csv", "-o", "out", *column("n", "type", "int64")]
    assert shardmill(*command).code == 4
    options = options_in(shardmill(*command, "--no-resume").err, "to start over: ")
    done = shardmill(*command, *options, "--max-rejects", "1")
    assert (done.code, "resuming" in done.err) == (0, False)


def test_a_config_is_written_and_run_by_the_commands_of_init(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("n\n1\n2\n")
    example = ["a.csv" if word == "FILES" else word for word in command_in(shardmill("init").err, "to read: ")]
    dry = command_in(shardmill(*example).err, "now: ")
    assert "2 rows" in shardmill(*dry).out
    assert shardmill(*command_in(Path("sales.yaml").read_text(), "")).code == 0
    assert rows_of("out/sales") == [(1,), (2,)]


@pytest.mark.parametrize("how", [["--split-fractions", "train=0.5,val=0.5"], ["--set", "split.folds=2"]])
def test_an_append_to_exact_groups_is_split_by_the_options_that_are_said(shardmill: Shardmill, how: list[str]) -> None:
    Path("a.csv").write_text(FOUR)
    Path("b.csv").write_text("k,n\nc,5\nd,6\n")
    rule = [*how, "--split-key", "k", "--set", "split.by=exact"]
    assert shardmill("convert", "a.csv", "-o", "out", *rule).code == 0
    refused = shardmill("append", "b.csv", "-o", "out").err
    options = options_in(refused, "or say so: ")
    assert shardmill("append", "b.csv", "-o", "out", *options).code == 0
    assert [*counts_of("out").values()] == [3, 3]


OF_BOTH = "split,k\n" + "".join(f"{('train', 'val')[n // 40]},{n % 40}\n" for n in range(80))
LEAKS = {
    "split.column": (
        OF_BOTH,
        ["--set", "split.column=split"],
        "of this rule: ",
    ),
    "another key": (
        "split,k\nc,a\nd,b\ne,a\nf,a\ng,a\nh,a\n",
        ["--split-fractions", "train=0.5,val=0.5", "--split-key", "split"],
        "one split: ",
    ),
}


@pytest.mark.parametrize("case", LEAKS)
def test_values_in_several_splits_are_kept_in_one_by_the_options_that_are_said(case: str, shardmill: Shardmill) -> None:
    text, rule, before = LEAKS[case]
    Path("a.csv").write_text(text)
    check = ["convert", "a.csv", "-o", "out", "--overwrite", "--set", "checks.leaks.columns=[k]"]
    screen = shardmill(*check, *rule).out
    options = options_in(screen, before)
    kept = rule[:2] if case == "another key" else []
    assert "Leaks of k: none" in shardmill(*check, *kept, *options).out


def doubled(batch: pa.RecordBatch) -> dict[str, Any]:
    return {"n": pc.multiply(batch["n"], 2)}


def test_an_append_goes_through_the_function_of_the_dataset_or_not_as_the_message_says(shardmill: Shardmill) -> None:
    for number in (1, 2, 3):
        Path(f"{number}.csv").write_text(f"n\n{number}\n")
    convert("1.csv", output="out", map=doubled)
    refused = shardmill("append", "2.csv", "-o", "out").err
    line = re.search(r"append\(.*\)(?=; or)", refused)
    assert line, refused
    exec(line[0], {"append": append, "doubled": doubled})
    options = options_in(refused, "without it: ")
    assert shardmill("append", "3.csv", "-o", "out", *options).code == 0
    assert rows_of("out") == [(2,), (4,), (3,)]


RUNNER = {
    "name": "dataflow",
    "project": "my-project",
    "region": "europe-west1",
    "staging": "gs://my-bucket/staging/",
    "image": "a.dev/p/i:1",
}


def cloud(**runner: object) -> Any:
    return load_config({"output": {"path": "gs://my-bucket/out"}, "runner": {**RUNNER, **runner}}, data_given=True)


def test_an_option_of_beam_that_is_a_key_is_given_as_the_key() -> None:
    with pytest.raises(UsageError) as refused:
        check_dataflow(cloud().runner, ["--project=other-project"])
    option = [word.replace("...", "other-project") for word in options_in(str(refused.value), "give it there: ")]
    config = {"output": {"path": "gs://my-bucket/out"}, "runner": RUNNER}
    assert load_config(config, data_given=True, set_values=option[1::2]).runner.project == "other-project"
    followed_hints.typed(option, "")


def test_a_call_that_waits_names_the_option_of_the_command_line_that_does_not(shardmill: Shardmill) -> None:
    with pytest.raises(UsageError) as refused:
        require_waiting(engine_of(cloud(wait=False).runner))
    followed_hints.typed([], str(refused.value))
    assert command_in(str(refused.value), "command line: ") == ["convert", "...", "--no-wait"]
    settings = [word for key, value in RUNNER.items() for word in ("--set", f"runner.{key}={value}")]
    Path("a.csv").write_text("n\n1\n")
    command = ["convert", "a.csv", "-o", "out", *settings, "--no-wait"]
    told = shardmill(*command).err.splitlines()  # all that is wrong: places that workers cannot see
    assert told[0] == "error: config: 2 problems"
    assert all("Dataflow's workers cannot see it" in line for line in told[1:])
    followed_hints.typed(command, "")


def test_the_log_of_a_submitted_job_is_shown_by_the_command_that_is_said(
    shardmill: Shardmill, capsys: pytest.CaptureFixture[str]
) -> None:
    convert(data={"n": [1]}, output="out")
    Screen(as_json=False).ended(Submitted("out", "a", "my-project", "europe-west1", "2026-11-21_1"))
    command = command_in(capsys.readouterr().out, "then: +")
    assert "create" in shardmill(*command).out


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a cluster be of processes that wait."""
    wait, started = [sys.executable, "-S", "-c", "input()"], []

    def start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([*wait, command[-1]], stdin=subprocess.PIPE))
        return started[-1]

    monkeypatch.setattr(cluster, "start", start)
    monkeypatch.setattr(cluster, "java_command", lambda *_, mark, **__: [mark])
    monkeypatch.setattr(cluster, "_wait_until_whole", lambda *_: None)
    yield
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("folder", [[], ["--folder", "my cluster"]])
def test_a_cluster_is_used_and_stopped_by_the_commands_of_flink_up(
    shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: list[str]
) -> None:
    monkeypatch.setenv(jars.CACHE_VARIABLE, str(tmp_path / "cache"))
    up = ["flink", "up", "--port", "0", "--pool-port", "0", *folder]
    screen = shardmill(*up).out
    Path("a.csv").write_text("n\n1\n")
    options = options_in(screen, "Convert on it:  ")
    assert shardmill("convert", "a.csv", "-o", "out", "--dry-run", *options).code == 0
    again = shardmill(*up).err
    for shown, before, after in ((again, "; ", " stops it"), (screen, "Stop it: +", "")):
        assert shardmill(*command_in(shown, before, after)).out.startswith(("Stopped", "No cluster"))
    assert not list(tmp_path.rglob("cluster.json"))


def test_a_cluster_that_does_not_answer_is_started_by_the_command_that_is_said(
    shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch, processes: None, tmp_path: Path
) -> None:
    monkeypatch.setenv(jars.CACHE_VARIABLE, str(tmp_path / "cache"))
    with pytest.raises(RunError) as refused:
        FlinkRest("127.0.0.1:1").get("/overview")
    command = command_in(str(refused.value), r"\(", r" starts one")
    assert shardmill(*command, "--port", "0", "--pool-port", "0").code == 0
    assert shardmill("flink", "down").code == 0


def test_flink_is_there_after_the_command_of_doctor(
    flink: None, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(jars.CACHE_VARIABLE, str(tmp_path))
        (fix,) = [one.fix for one in flink_findings() if one.what == "Flink"]
    followed_hints.typed([], fix)
    assert shardmill(*shlex.split(fix)[1:]).code == 0
    assert jars.is_installed()
