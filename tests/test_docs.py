"""The docs are tests: every config is run, every command is documented, every command of the README is run.

In the README each line of a fenced block that begins with `shardmill ` or `uv run shardmill ` is run in a copy of
`configs/`, in the order of the page; of those that name the reader's own files (`data/`, `my-`), or what was made of
them, only the `--help` is; and of `flink`, whose commands tests/flink runs.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from shardmill.pipelines import convert
from shardmill.pipelines.cli import app, main

REPO = Path(__file__).parent.parent
README = REPO / "README.md"
YOUR_OWN = ("data/", "my-", "/path/", "s3://", "gs://")


def readme_commands() -> list[list[str]]:
    blocks = re.findall(r"^( *)```\w*\n(.*?)^\1```", README.read_text(), re.DOTALL | re.MULTILINE)
    lines = [line.strip().removeprefix("$ ") for _, block in blocks for line in block.splitlines()]
    commands = [line.split("uv run ")[-1] for line in lines if "shardmill " in line]
    return [shlex.split(line, comments=True)[1:] for line in commands if line.startswith("shardmill ")]


@pytest.mark.parametrize("config", sorted(path.name for path in (REPO / "configs").glob("*.yaml")))
def test_every_config_is_run(config: str, tmp_path: Path) -> None:
    summary = convert(REPO / "configs" / config, output=tmp_path / "out")
    assert summary.manifest.counts.written > 0
    assert summary.manifest.counts.read == summary.manifest.counts.written + summary.manifest.counts.rejected


def test_every_command_is_documented_in_the_readme() -> None:
    text = README.read_text()
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__
        assert f"shardmill {name}" in text


def test_every_command_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(REPO / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    commands = readme_commands()
    assert commands
    own_words = list(YOUR_OWN)
    for args in commands:
        own = args[0] == "flink" or any(word in arg for arg in args for word in own_words)
        if own and "-o" in args:
            own_words.append(args[args.index("-o") + 1])
        with pytest.raises(SystemExit) as ended:
            main([args[0], "--help"] if own else args)
        assert ended.value.code in (0, None), (args, capsys.readouterr())
