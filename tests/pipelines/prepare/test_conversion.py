"""A conversion is a value: made by hand or from a config, pickled, printed and run."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.model import OutputConfig, SplitConfig
from shardmill.pipelines.outcomes.summary import Summary
from shardmill.pipelines.prepare.conversion import Conversion
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.convert import run_convert
from shardmill.transforms.errors import UsageError
from shardmill.transforms.recipe.source import with_steps
from shardmill.transforms.recipe.steps.columns import Constants

from ...command_line import Shardmill
from ...file_sources import made_source


def by_hand(folder: Path, **values: object) -> Conversion:
    (folder / "a.csv").write_text("id,name\n1,Ann\n2,Bob\n3,Cy\n")
    source = with_steps(made_source("csv", ["a.csv"], str(folder)), [Constants.of({"day": "monday"})])
    output = OutputConfig(path=str(folder / "out"))
    return Conversion(name="people", source=source, output=output, **values)  # type: ignore[arg-type]


def test_one_that_is_made_by_hand_runs_without_a_config(tmp_path: Path) -> None:
    split = SplitConfig(fractions={"train": 0.5, "val": 0.5})
    summary = run_convert(pickle.loads(pickle.dumps(by_hand(tmp_path, split=split))))
    assert isinstance(summary, Summary)
    manifest = summary.manifest
    assert (manifest.name, manifest.counts.written, set(manifest.splits)) == ("people", 3, {"train", "val"})
    assert [feature.name for feature in manifest.schema or ()] == ["day", "id", "name"]


def test_it_prints_itself_in_ten_lines(tmp_path: Path) -> None:
    lines = str(by_hand(tmp_path, shuffle=7)).splitlines()
    words = ["dataset", "source", "steps", "observers", "split", "order", "shards", "limits", "rejects", "runner"]
    assert [line.split()[0] for line in lines] == words
    said = dict(line.split(maxsplit=1) for line in lines)
    assert (said["steps"], said["order"], said["runner"]) == ("Constants", "shuffled with seed 7", "local")
    assert said["source"].startswith("CsvSource(options=CsvInput(paths=['a.csv'],")


@pytest.mark.parametrize("command", ["convert", "append"])
def test_a_dry_run_shows_it_where_it_is_asked_for(
    tmp_path: Path, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(f"id,name\n1,{name}\n")
    if command == "append":
        assert shardmill("convert", "a.csv", "-o", "out").code == 0
    dry = (command, "b.csv", "-o", "out", "--dry-run")
    shown, plain = shardmill(*dry, "-v"), shardmill(*dry)
    assert (shown.code, plain.code) == (0, 0)
    words = ["dataset", "source", "steps", "observers", "split", "order", "shards", "limits", "rejects", "runner"]
    assert [line.split()[0] for line in shown.out.splitlines() if re.match("[a-z]+  ", line)][:10] == words
    assert "observers" not in plain.out
    assert "observers" not in shardmill(*dry, "-v", "--json").out


@pytest.mark.parametrize(
    ("sections", "text"),
    [
        ({"shuffle": {"seed": 1}, "output": {"order": "source"}}, "output.order: source does not go with shuffle"),
        ({"split": {"folds": 2, "by": "exact"}, "output": {"order": "source"}}, "split.by: exact deals some records"),
        (
            {"split": {"folds": 2, "by": "exact"}, "checks": {"duplicates": {"action": "drop"}}, "output": {}},
            "drop leaves records out after split.by: exact",
        ),
    ],
)
def test_keys_that_do_not_go_together_are_refused_while_it_is_made(
    tmp_path: Path, sections: dict[str, dict[str, object]], text: str
) -> None:
    """The input is not there: nothing is looked at."""
    given = {**sections, "output": {**sections["output"], "path": str(tmp_path / "out")}}
    config = load_config({"input": {"format": "csv", "paths": ["no.csv"], "delimiter": ","}, **given})
    with pytest.raises(UsageError, match=text):
        conversion_of(config)
