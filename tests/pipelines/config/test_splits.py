"""The section `split` of a config: what goes together, what is wrong with it in words, and fingerprints."""

from __future__ import annotations

from typing import Any

import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.model import Config
from shardmill.pipelines.prepare.config_fingerprints import config_fingerprint, options_fingerprint
from shardmill.transforms.errors import ConfigError

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
        ({**FRACTIONS, "folds": 5}, "fractions and folds do not go together; leave one out"),
        ({"column": "a", "key": "b"}, "key does not go with column; leave it out"),
        ({"column": "a", "by": "exact"}, "by does not go with column; leave it out"),
        ({**FRACTIONS, "stratify": "a"}, "stratify does not go with by: hash, which counts nothing; set by: exact"),
        (
            {**FRACTIONS, "by": "exact", "stratify": "a", "key": "b"},
            "stratify does not go with key: a group may have rows of several classes; leave one out",
        ),
        ({"folds": 17, "by": "exact", "key": "a"}, "by: exact with a key makes at most 16 splits"),
        ({**FRACTIONS, "names": {"0": "train"}}, "names are those of the values of a column; give it: column: NAME"),
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


def test_new_keys_at_their_defaults_are_in_no_fingerprint() -> None:
    plain = loaded(FRACTIONS)
    stated = loaded({**FRACTIONS, "by": "hash", "folds": None, "of": None, "column": None, "stratify": None})
    assert config_fingerprint(plain) == config_fingerprint(stated)
    assert config_fingerprint(plain) == "sha256:f74209ecab57d0dc01121b2b1418a165ca43811a00969e9f5667aa8e9c6e37a9"
    assert options_fingerprint(plain) == "sha256:06078924b83c31dd165e190be18eaf0c8067dbf38ca6bc8aa5177e25e17651cc"


def test_every_setting_of_a_split_is_in_the_fingerprints() -> None:
    splits: list[Any] = [
        None, FRACTIONS, {"fractions": {"val": 0.1, "train": 0.9}}, {**FRACTIONS, "by": "exact"},
        {**FRACTIONS, "by": "exact", "stratify": "a"}, {**FRACTIONS, "by": "exact", "key": "a"},
        {**FRACTIONS, "key": "a"}, {**FRACTIONS, "of": "train"}, {"folds": 5}, {"folds": 6},
        {"column": "a"}, {"column": "a", "names": {"x": "y"}},
        before(train="2024-01-01"), before(train="2024-01-02"), before(train="2024-01-01", rest="val"),
    ]  # fmt: skip
    for fingerprint in (config_fingerprint, options_fingerprint):
        assert len({fingerprint(loaded(split)) for split in splits}) == len(splits)
