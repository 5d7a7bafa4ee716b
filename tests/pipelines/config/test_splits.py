"""The section `split` of a config: what goes together, what is wrong with it in words, and fingerprints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.model import Config
from shardmill.pipelines.config.remembered import remembered
from shardmill.pipelines.prepare.from_config import config_fingerprint
from shardmill.transforms.errors import ConfigError

from ...command_line import Shardmill

FRACTIONS = {"fractions": {"train": 0.9, "val": 0.1}}


def loaded(split: Any, **section: Any) -> Config:
    paths = {"paths": ["a.csv"], "format": "csv", "delimiter": ","}
    return load_config({"name": "x", "input": paths, "output": {"path": "/out"}, "split": split, **section})


def before(**more: Any) -> dict[str, Any]:
    return {"before": {"column": "day", **more}}


@pytest.mark.parametrize(
    ("split", "says"),
    [
        ({}, "says no splits; give one of fractions"),
        ("val", "like {fractions: {train: 0.9, val: 0.1}}; the name of one split for all rows is output.split"),
        ({"fractions": 0.9}, "split.fractions: 0.9 is not a mapping, like {train: 0.9, val: 0.1}"),
        ({"key": "a"}, "split.key: says no splits; add fractions: {train: 0.9, val: 0.1} or folds: 5"),
        ({**FRACTIONS, "folds": 5}, "split.fractions: does not go with folds; leave one out"),
        ({"column": "a", "key": "b"}, "split.key: does not go with column; leave it out"),
        ({"column": "a", "by": "exact"}, "split.by: does not go with column; leave it out"),
        (
            {**FRACTIONS, "stratify": "a"},
            "split.stratify: does not go with by: hash, which counts nothing; set by: exact",
        ),
        (
            {**FRACTIONS, "by": "exact", "stratify": "a", "key": "b"},
            "split.stratify: does not go with key: a group may have rows of several classes; leave one out",
        ),
        ({"folds": 17, "by": "exact", "key": "a"}, "by: exact with a key makes at most 16 splits"),
        ({**FRACTIONS, "names": {"0": "train"}}, "split.names: says no splits; add column: NAME"),
        ({"folds": 1}, "split.folds: 1 is out of bounds; it must be at least 2"),
        ({"folds": 65}, "split.folds: 65 is out of bounds; it must be at most 64"),
        ({"fractions": {f"s{i}": 1 / 65 for i in range(65)}}, "65 splits are more than 64"),
        ({"column": "a", "names": {}}, 'split.names: is empty; name at least one value, like {"0": train}'),
        ({"column": "a", "names": {str(i): f"s{i}" for i in range(65)}}, "names more than 64 splits"),
        ({"column": "a", "names": {"0": "Train"}}, 'split.names.0: "Train" is not a name'),
        ({"by": "exactly", **FRACTIONS}, '"exactly" is not a choice; did you mean "exact"?'),
        ({"before": {"train": "2024-01-01"}}, "split.before: names no column; give one"),
        (before(), "split.before: needs a bound, like train: 2024-01-01"),
        (before(train="1.1.2024"), 'split.before: train: "1.1.2024" is no date or time, like 2024-01-31'),
        (before(train=7), "split.before: train: 7 is no date or time"),
        (before(train="2024-02-01", val="2024-01-01"), "val ends at 2024-01-01, which is not after 2024-02-01"),
        (before(train="2024-02-01", val="2024-02-01T00:00Z"), "give bounds in their order"),
        (before(train="2024-02-01", rest="Test"), '"Test" cannot name a split: lowercase letters, digits and _'),
    ],
)
def test_what_is_wrong_is_said_with_its_fix(split: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(split)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (
            ["--split-key", "a"],
            "--split-key: says no splits; add --split-fractions train=0.9,val=0.1 or --set split.folds=5",
        ),
        (["--set", "split.by=exact"], "--set split.by=exact: says no splits; add --split-fractions train=0.9,val=0.1"),
        (["--set", "split.names={a: b}"], "--set split.names={a: b}: says no splits; add --set split.column=NAME"),
        (
            ["--split-fractions", "a=0.5,b=0.5", "--set", "split.folds=3"],
            "--split-fractions: does not go with --set split.folds=3; leave one out",
        ),
        (
            ["--split-key", "a", "--set", "split.column=b"],
            "--split-key: does not go with --set split.column=b; leave it out",
        ),
        (
            ["--split-fractions", "a=0.5,b=0.5", "--set", "split.stratify=b"],
            "--set split.stratify=b: needs splits that are counted; add --set split.by=exact",
        ),
        (
            ["--set", "split={column: b, key: a}"],
            "--set split={column: b, key: a}: split.key: does not go with column; leave it out",
        ),
    ],
)
def test_what_is_wrong_is_said_of_the_options_that_were_typed(
    shardmill: Shardmill, tmp_path: Path, typed: list[str], says: str
) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    shown = shardmill("convert", "a.csv", "-o", "out", *typed)
    assert (shown.code, shown.err.strip().split("error: ")[1].startswith(says)) == (2, True), shown.err


def test_one_split_for_all_rows_beside_a_rule_is_refused_and_the_rule_of_a_file_can_be_left_out(
    shardmill: Shardmill, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "c.yaml").write_text("input: {paths: [a.csv]}\noutput: {path: out}\nsplit: {column: b}\n")
    said = "does not go with split, which says the split of every row; leave it out, or the rule (--set split=null)"
    assert f"error: --split: {said}" in shardmill("convert", "c.yaml", "--split", "train").err
    assert shardmill("convert", "c.yaml", "--split", "val", "--set", "split=null").code == 0
    with pytest.raises(ConfigError, match=re.escape(f"output.split: {said}")):
        loaded(FRACTIONS, output={"path": "/out", "split": "val"})
    whole = loaded(FRACTIONS)
    assert load_config(whole.to_json()) == whole, "a config that is written out has all defaults"


def test_an_option_that_does_not_go_with_a_key_of_a_file_is_named_with_that_key(
    shardmill: Shardmill, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "c.yaml").write_text("input: {paths: [a.csv]}\noutput: {path: out}\nsplit: {column: b}\n")
    shown = shardmill("convert", "c.yaml", "--split-key", "a")
    assert "error: --split-key: does not go with column; leave it out" in shown.err
    (tmp_path / "c.yaml").write_text("input: {paths: [a.csv]}\noutput: {path: out}\nsplit: {key: b}\n")
    shown = shardmill("convert", "c.yaml", "--set", "split.column=a")
    assert "c.yaml:3:9: split.key: does not go with --set split.column=a; leave it out" in shown.err


def test_numbers_and_bools_of_a_config_name_the_text_that_they_are(tmp_path: Any) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(
        "input: {paths: [a.csv], format: csv, delimiter: ','}\noutput: {path: out}\n"
        "split: {column: a, names: {0: train, true: val, x: test}}\n"
    )
    split = load_config(config).split
    assert split is not None
    assert split.names == {"0": "train", "true": "val", "x": "test"}


def test_dates_of_yaml_are_bounds(tmp_path: Any) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(
        "input: {paths: [a.csv], format: csv, delimiter: ','}\noutput: {path: out}\n"
        "split: {before: {column: day, train: 2024-01-01, val: 2024-02-01 12:00:00, rest: test}}\n"
    )
    split = load_config(config).split
    assert split is not None
    assert split.before == {"column": "day", "train": "2024-01-01", "val": "2024-02-01T12:00:00", "rest": "test"}


def test_a_default_that_is_stated_changes_no_fingerprint() -> None:
    plain = loaded(FRACTIONS)
    stated = loaded({**FRACTIONS, "by": "hash", "folds": None, "of": None, "column": None, "stratify": None})
    assert config_fingerprint(plain) == config_fingerprint(stated)
    assert remembered(plain, []) == remembered(stated, [])


def test_every_setting_of_a_split_is_in_the_fingerprints() -> None:
    splits: list[Any] = [
        None, FRACTIONS, {"fractions": {"val": 0.1, "train": 0.9}}, {**FRACTIONS, "by": "exact"},
        {**FRACTIONS, "by": "exact", "stratify": "a"}, {**FRACTIONS, "by": "exact", "key": "a"},
        {**FRACTIONS, "key": "a"}, {**FRACTIONS, "of": "train"}, {"folds": 5}, {"folds": 6},
        {"column": "a"}, {"column": "a", "names": {"x": "y"}},
        before(train="2024-01-01"), before(train="2024-01-02"), before(train="2024-01-01", rest="val"),
    ]  # fmt: skip
    assert len({config_fingerprint(loaded(split)) for split in splits}) == len(splits)
    assert len({json.dumps(remembered(loaded(split), [])) for split in splits}) == len(splits)
