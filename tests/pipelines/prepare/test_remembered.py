"""The fingerprint of a config and its normal form, which a dataset remembers: what is in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.remembered import remembered
from shardmill.pipelines.prepare.from_config import config_fingerprint


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "c.yaml").write_text("name: n\ninput: {format: csv, paths: [a.csv]}\noutput: {path: out}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_only_what_the_bytes_can_depend_on_is_in_it(folder: Path) -> None:
    first = config_fingerprint(load_config("c.yaml"))
    for same in (
        "runner.workers=7",
        "max_rejects=5%",
        "limits.pixels=9",
        "output.path=x",
        "output.shard_size=128MiB",
    ):
        assert config_fingerprint(load_config("c.yaml", set_values=[same])) == first
    others = ("output.shard_size=1GB", "input.header=false", "schema.infer=none", "output.order=source", "name=m")
    prints = {config_fingerprint(load_config("c.yaml", set_values=[other])) for other in others}
    assert len(prints | {first}) == 1 + len(others)


def test_the_order_of_the_fractions_is_in_it_since_the_splits_depend_on_it(folder: Path) -> None:
    orders = ("{train: 0.9, val: 0.1}", "{val: 0.1, train: 0.9}")
    prints = {config_fingerprint(load_config("c.yaml", set_values=[f"split.fractions={order}"])) for order in orders}
    assert len(prints) == 2


def test_it_does_not_depend_on_where_the_folder_lies(tmp_path: Path) -> None:
    prints = set()
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "x.csv").write_text("x\n1\n")
        (tmp_path / place / "c.yaml").write_text("input: {paths: [x.csv]}\noutput: {path: out}")
        prints.add(config_fingerprint(load_config(tmp_path / place / "c.yaml")))
    assert len(prints) == 1


def test_nulls_that_are_kept_beside_given_classes_are_in_both(folder: Path) -> None:
    label = "schema.columns.x.label="
    for value, differs in (("[a, b]", True), ("true", False)):
        plain = load_config("c.yaml", set_values=[f"{label}{value}"])
        kept = load_config("c.yaml", set_values=[f"{label}{value}", "schema.columns.x.null=absent"])
        assert (config_fingerprint(kept) != config_fingerprint(plain)) is differs
        assert remembered(kept, []) != remembered(plain, []), "what is said is remembered"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_options_of_a_format_are_in_both(folder: Path, kind: str) -> None:
    section = {"format": kind, "paths": ["x"]} | ({"delimiter": ","} if kind == "csv" else {})
    config = load_config({"name": "n", "input": section, "output": {"path": "o"}})
    other = load_config({"name": "n", "input": section | {"partitions": "none"}, "output": {"path": "o"}})
    assert config_fingerprint(other) != config_fingerprint(config)
    assert remembered(other, []) != remembered(config, [])


def test_neither_inputs_nor_bounds_are_remembered_nor_what_the_manifest_states_elsewhere(folder: Path) -> None:
    given = [
        "input.limit=5", "input.header=true", "input.quote=null",
        "schema.infer=full", "output.sidecars=[tfx]", "output.if_exists=replace",
        "output.shard_size=1MiB", "output.split=val", "max_rejects=3", "limits.columns=9", "runner.workers=2",
        "shuffle.seed=4", "checks.leaks.columns=[x]", "image.encode.quality=95", "split=null",
    ]  # fmt: skip
    assert remembered(load_config("c.yaml", set_values=given), [{"name": "f", "digest": "d"}]) == {
        "input": {"format": "csv", "delimiter": ",", "header": True, "quote": None},
        "schema": {"infer": "full"},
        "output": {"sidecars": ["tfx"]},
        "shuffle": {"seed": 4},
        "checks": {"leaks": {"columns": ["x"]}},
        "map": [{"name": "f", "digest": "d"}],
    }
