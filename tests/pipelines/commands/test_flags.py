from __future__ import annotations

import json
from typing import Any

import pytest
import typer
from shardmill.pipelines.commands import flags
from shardmill.pipelines.commands.flags import FLAGS, Flag, flags_of, with_flags
from shardmill.pipelines.config.load import load_config
from typer.testing import CliRunner


def test_a_flag_is_one_line_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Flag("seed", "shuffle.seed", "N", "Shuffle images by this seed.", read=int)
    monkeypatch.setattr(flags, "FLAGS", (*FLAGS, line))
    app = typer.Typer()

    @app.command()
    @with_flags("convert")
    def convert(sources: list[str], **given: object) -> None:
        typer.echo(json.dumps([sources, flags_of(given)]))

    ran = CliRunner().invoke(app, ["a.csv", "--seed", "7", "-o", "out", "--no-header", "--no-wait"])
    assert json.loads(ran.stdout) == [
        ["a.csv"],
        {
            "output.path": ["-o", "out"],
            "input.header": ["--no-header", False],
            "runner.wait": ["--no-wait", False],
            "shuffle.seed": ["--seed", 7],
        },
    ]
    assert "Shuffle images by this seed." in CliRunner().invoke(app, ["--help"]).stdout


VALUES = {
    "format": "csv", "columns": "a", "exclude_columns": "b", "limit": "3", "split_fractions": "train=0.9,val=0.1",
    "max_rejects": "1", "workers": "2", "runner": "local", "compression": "gzip", "order": "source", "split": "train",
    "name": "x", "shard_size": "1MiB", "delimiter": ";", "output": "out", "shuffle": "7",
}  # fmt: skip


@pytest.mark.parametrize(
    "flag", [one for one in FLAGS if one.panel is None and one.name != "records"], ids=lambda flag: flag.name
)
def test_every_flag_sets_a_key_that_the_config_has(flag: Flag) -> None:
    given: Any = flag.given(VALUES.get(flag.name, True))
    config: dict[str, Any] = {
        "input": {"paths": ["a.csv"], "format": "csv", "delimiter": ","},
        "output": {"path": "out"},
    }
    if flag.key == "split.key":  # it needs fractions
        config["split"] = {"fractions": {"a": 1.0}}
    load_config(config, flags={flag.key: given})
