"""Options: those that people reach for first, what an unknown one was meant to be, and shell completion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data.txt").write_text("1;Ada;x\n2;Bob;y\n")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert isinstance(ended.value.code, int)
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def plan(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    code, out, err = run(capsys, *args, "-o", "out", "--dry-run", "--json")
    assert (code, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    return document


def test_what_people_reach_for_first_are_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    csv = ("--format", "csv", "--delimiter", ";", "--no-header", "--columns", "column_2, column_0")
    found = plan(capsys, "convert", "data.txt", *csv, "--split-fractions", "train=0.5,val=0.5")
    assert [feature["name"] for feature in found["schema"]] == ["column_0", "column_2"]
    assert (found["rows"], list(found["splits"])) == (2, ["train", "val"])
    tabs = "".join(f"{i}\t{i}\n" for i in range(3))
    (folder / "tabs.txt").write_text(f"a\tb\n{tabs}")
    assert len(plan(capsys, "convert", "tabs.txt", "--format", "csv", "--delimiter", "tab")["schema"]) == 2


def test_overwrite_replaces_the_dataset_that_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate(("a.csv", "b.csv"), 1):
        Path(name).write_text(f"id\n{number}\n")
        code, out, _ = run(capsys, "convert", name, "-o", "out", "--overwrite", "--json")
        assert (code, json.loads(out)["generation"]) == (0, number)


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--split-fractions", "train", "Invalid value for --split-fractions: 'train' is not NAME=FRACTION"),
        ("--split-fractions", "a=1,a=2", "'a=2' is not NAME=FRACTION, each name once"),
        ("--split-fractions", "a=80,b=20", "'a=80' is more than 1, and fractions add up to 1, like train=0.9,val=0.1"),
        ("--split-fractions", "train=0.9", "--split-fractions: split: fractions: they add up to 0.9, and must add up"),
        ("--format", "jpg", '--format: input.format: "jpg" is not a choice'),
        ("--columns", "nothing", '"nothing"'),
        ("--delimiter", ";;", '--delimiter: input.delimiter: ";;" is not one ASCII character'),
    ],
)
def test_a_wrong_value_is_told_by_its_option(
    folder: Path, capsys: pytest.CaptureFixture[str], flag: str, value: str, message: str
) -> None:
    (folder / "a.csv").write_text("id\n1\n")
    code, _, err = run(capsys, "convert", "a.csv", "-o", "out", flag, value)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("command", "option", "meant"),
    [
        ("convert", "--shard-sise", "did you mean --shard-size?"),
        ("convert", "--num-shards", "shards have a size here, and their number follows: --shard-size 256MiB"),
        ("convert", "--force", "to replace the dataset that is there: --overwrite"),
        ("convert", "-j", "how many work at once: --workers 4"),
        ("convert", "--seed", "a random order of the records: --shuffle 7"),
        ("append", "--overwrite", "an append only adds; to replace the dataset: shardmill convert FILES -o FOLDER"),
        ("merge", "--force", "to replace the dataset that is there: --overwrite"),
        ("verify", "--overwrite", ""),
        ("convert", "--snow-fall", ""),
    ],
)
def test_an_unknown_option_is_mapped_or_a_near_miss_or_nothing(
    capsys: pytest.CaptureFixture[str], command: str, option: str, meant: str
) -> None:
    code, _, err = run(capsys, command, "x", option)
    assert code == 2
    assert f"Error: No such option: {option}{'; ' if meant else ''}{meant}" in err.splitlines()[-1]
    assert meant or err.endswith(f"No such option: {option}\n")


@pytest.mark.parametrize(
    ("command", "args", "said"),
    [
        ("convert", "--shuffle", "--shuffle takes a seed: --shuffle 7"),
        ("convert", "--shuffle --overwrite", "--shuffle takes a seed: --shuffle 7"),
        ("merge", "--shuffle -o out", "--shuffle takes a seed: --shuffle 7"),
        ("convert", "--limit --overwrite", "--limit takes a value: --limit N"),
        ("append", "-o --shuffle 7", "-o takes a value: -o FOLDER"),
        ("convert", "--set --quiet", "--set takes a value: --set KEY=VALUE"),
        (
            "rebuild",
            "--quiet --split-fractions -h",
            "--split-fractions takes the share of each split: --split-fractions train=0.9,val=0.1",
        ),
    ],
)
def test_an_option_without_its_value_says_what_it_takes(
    capsys: pytest.CaptureFixture[str], command: str, args: str, said: str
) -> None:
    code, _, err = run(capsys, command, "x", *args.split())
    assert (code, err.splitlines()[-1]) == (2, f"Error: {said}")


def test_a_value_may_look_like_an_option(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.csv").write_text("-q,--json\n1,2\n")
    assert len(plan(capsys, "convert", "a.csv", "--columns=-q", "--shuffle", "7")["schema"]) == 1
    assert len(plan(capsys, "convert", "a.csv", "--columns", "-q,--json", "--shuffle=7")["schema"]) == 2


def test_a_shell_completes_commands_and_options(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SHARDMILL_COMPLETE", "complete_bash")
    for words, expected in (("shardmill con", "convert"), ("shardmill convert --split-f", "--split-fractions")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        _, out, _ = run(capsys)
        assert out.split() == [expected]
    monkeypatch.delenv("_SHARDMILL_COMPLETE")
    _, out, _ = run(capsys, "--help")
    assert "--install-completion" in out
