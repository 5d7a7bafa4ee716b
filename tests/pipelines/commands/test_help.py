"""`--help` fits 80 columns, shows an example of each command, and keeps the options of Dataflow apart."""

from __future__ import annotations

import re
import shlex

import pytest
from shardmill.pipelines.cli import app, main
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


@pytest.mark.parametrize("group", [[], ["flink"]])
def test_the_summary_of_each_command_is_one_whole_line(group: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    listed = help_of(group, capsys).partition("Commands:\n")[2].rstrip("\n").splitlines()
    assert len(listed) >= 3
    for line in listed:
        assert re.match(r"  [a-z]+ +[A-Z].*[.]$", line)
        assert not line.endswith("...")
        assert len(line) <= 80


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
