"""`--help` fits 80 columns, shows an example of each command, and keeps the options of Dataflow apart."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import pytest
from shardmill.pipelines.cli import GROUPS, app, main
from shardmill.pipelines.commands import flink_commands

COMMANDS = [[c.name or c.callback.__name__] for c in app.registered_commands if c.callback]
COMMANDS += [["flink", c.callback.__name__] for c in flink_commands.app.registered_commands if c.callback]


def help_of(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*args, "--help"])
    assert ended.value.code in (0, None), capsys.readouterr().err
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")


def test_the_summary_of_each_command_is_one_whole_line_in_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of([], capsys)
    assert "Commands:" not in text
    titles = [f"{title}:" for title in GROUPS]
    assert [line for line in text.splitlines() if line in titles] == titles
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted([*(command for command, *more in COMMANDS if not more), "flink"])
    assert_whole_lines(text.partition(f"{titles[0]}\n")[2], without=titles)


def test_the_summary_of_each_command_of_flink_is_one_whole_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert_whole_lines(help_of(["flink"], capsys).partition("Commands:\n")[2])


def assert_whole_lines(text: str, without: Sequence[str] = ()) -> None:
    listed = [line for line in text.splitlines() if line and line not in without]
    assert len(listed) >= 3
    for line in listed:
        assert re.match(r"  [a-z]+ +[A-Z].*[.]$", line)
        assert not line.endswith("...")
        assert len(line) <= 80


def test_convert_shows_the_ten_flags_that_people_use_first(capsys: pytest.CaptureFixture[str]) -> None:
    first = help_of(["convert"], capsys).partition("\nOptions:\n")[2].partition("\n\n")[0]
    assert len(re.findall(r"^  -", first, re.MULTILINE)) == 10


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_shows_an_example_whose_options_it_has(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = help_of(command, capsys)
    assert max(map(len, text.splitlines())) <= 80
    (example,) = re.findall(r"^  Example: shardmill (.*)$", text, re.MULTILINE)
    words = shlex.split(example)
    assert words[: len(command)] == command
    help_of(words, capsys)  # an option that is not there would be an error


@pytest.mark.parametrize("command", ["convert", "append"])
def test_the_options_of_dataflow_have_a_panel_of_their_own(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    ours, _, dataflow = help_of([command], capsys).partition("Dataflow options:\n")
    assert {"--project", "--region", "--staging", "--image"} <= set(re.findall(r"^  (--\w+)", dataflow, re.MULTILINE))
    assert "--project" not in ours
    assert "--max-rejects" in ours
