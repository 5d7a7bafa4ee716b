"""What is said of checks before a run, after it, and by a config that names one and says nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ConfigError

from ..command_line import Shardmill

DROP = ("--set", "checks.duplicates.action=drop")


@pytest.fixture(autouse=True)
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,text\n1,one\n2,two\n3,one\n")
    Path("b.csv").write_text("id,text\n4,one\n5,two\n6,two\n")


def test_a_check_that_a_config_names_and_says_nothing_of_is_refused_with_its_line() -> None:
    Path("c.yaml").write_text("input: {paths: [a.csv]}\noutput: {path: out}\nchecks:\n  duplicates:\n  leaks:\n")
    with pytest.raises(ConfigError) as caught:
        load_config("c.yaml")
    text = "is empty; write duplicates: {} to compare whole records, or leave the key out"
    assert f"c.yaml:4:3: checks.duplicates: {text}" in str(caught.value)
    assert "c.yaml:5:3: checks.leaks: is empty; write leaks: {columns: [user]}" in str(caught.value)


@pytest.mark.parametrize("checks", [{}, {"duplicates": {}}, {"leaks": {"columns": ["id"]}}, None])
def test_a_config_that_is_written_out_can_be_loaded_again_with_any_checks(checks: object) -> None:
    written = load_config({"input": {"paths": ["a.csv"]}, "output": {"path": "out"}, "checks": checks}).to_json()
    assert load_config(written).to_json() == written
    assert written["checks"] is None or None not in written["checks"].values()


def test_a_dry_run_says_what_will_be_checked(shardmill: Shardmill) -> None:
    over = ("--set", "checks.duplicates.columns=[text]")
    plan = ("convert", "a.csv", "-o", "out", "--dry-run")
    assert "\nChecks: duplicate records over text are left out\n" in shardmill(*plan, *over, *DROP).out
    whole = "duplicate records, compared as a whole, are reported"
    assert f"\nChecks: {whole}\n" in shardmill(*plan, "--set", "checks.duplicates={}").out
    assert json.loads(shardmill(*plan, "--json", "--set", "checks.duplicates={}").out)["checks"] == [whole]
    leaks = shardmill(*plan, "--set", "checks.leaks.columns=[text]").out
    assert "\nChecks: values of text that are in several splits are reported\n" in leaks
    assert "Checks" not in shardmill(*plan).out


def test_info_says_what_the_checks_of_the_latest_generation_found(shardmill: Shardmill) -> None:
    over = ("--set", "checks.duplicates.columns=[text]")
    assert shardmill("convert", "a.csv", "-o", "out", *over, *DROP).code == 0
    wanted = "Duplicates in text: 1 record repeats an earlier one in what generation 1 added, left out:"
    screen = shardmill("info", "out").out
    assert wanted in screen
    assert "a.csv row 1 = a.csv row 3" in screen
    checks = open_dataset("out").manifest.details.checks
    assert json.loads(shardmill("info", "out", "--json").out)["checks"] == checks


def test_an_append_without_the_check_that_dropped_says_that_new_records_are_not_looked_at(shardmill: Shardmill) -> None:
    over = ("--set", 'checks.duplicates.columns=["text"]')
    shardmill("convert", "a.csv", "-o", "out", *over, *DROP)
    screen = shardmill("append", "b.csv", "-o", "out", "--dry-run")
    said = "left out duplicate records, and new records are not looked at for them; to compare new records with each "
    said += "other, and with no earlier ones: --set 'checks.duplicates.columns=[\"text\"]' "
    assert f"{said}--set checks.duplicates.action=drop" in screen.out
    screen = shardmill("append", "b.csv", "-o", "out", *over, *DROP)
    assert "not looked at" not in screen.out
    assert sorted(open_dataset("out").to_arrow("train")["id"].to_pylist()) == [1, 2, 4, 5]
