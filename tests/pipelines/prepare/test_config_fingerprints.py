"""The fingerprints of a config: what is in them, and that they are those of the release that wrote a dataset."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.config_fingerprints import config_fingerprint, options_fingerprint


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


def test_it_is_what_it_was_in_the_release_that_wrote_a_dataset(folder: Path) -> None:
    config = load_config({"name": "n", "output": {"path": "o"}}, data_given=True)
    assert config_fingerprint(config) == "sha256:885b1701f086252f55edfc46bf357b5922521e915762183706845f52e2aefb38"


def test_nulls_that_are_kept_beside_given_classes_are_in_both(folder: Path) -> None:
    label = "schema.columns.x.label="
    for value, differs in (("[a, b]", True), ("true", False)):
        plain = load_config("c.yaml", set_values=[f"{label}{value}"])
        kept = load_config("c.yaml", set_values=[f"{label}{value}", "schema.columns.x.null=absent"])
        assert (config_fingerprint(kept) != config_fingerprint(plain)) is differs
        assert (options_fingerprint(kept) != options_fingerprint(plain)) is differs


def test_a_list_of_classes_has_the_fingerprint_that_it_had(folder: Path) -> None:
    config = load_config("c.yaml", set_values=["schema.columns.x.label=[a, b]"])
    assert config_fingerprint(config) == "sha256:6964b77cf35ddc1498acdca4d6fe934063ffef1813bedaa3557fb08004689aae"


@pytest.mark.parametrize(
    ("kind", "whole", "options"),
    [
        (
            "csv",
            "ee1b9cc47efcf5712f5fe9546d12816fb6419b80cfe36c07177f443aea9e4515",
            "59f87abca42c4cd8848885ae171203595538fb47f3890c4d68a0badf180cd727",
        ),
        (
            "parquet",
            "1e8c1d2768906e65ee5516a184efe458dc725e4fa994e47bf8e39342c470f795",
            "f7bd265e61698c4225e3f475daef7c6f01f445a059ba9d5a62c31f8986bbc596",
        ),
        (
            "images",
            "72c8cacbbb0f57a1d5ed601be027bd936306933392d758afa9adec959949384e",
            "d70151f0b1d0df1fd887e43f04494d4a03a7afab58339ed14ee4d677d79b41f7",
        ),
        (
            "numpy",
            "39da8c0aefd5017d8ca2b8a07548ebb01b39360f2548cd422b864a26540ceeb5",
            "bb20c3b9dff34430d7f797777b7df15f6c04aeb388c7c1ffa590ff5583e3ab10",
        ),
        (
            "tfrecord",
            "8adee1332338d008cf2e65daeb72dcb9ccca81d4013345c10f0844c295bab86a",
            "d02b88a93b8dd9fae807c03c66399584f35735ef10e2174eb34d4c1e6e0fb4eb",
        ),
    ],
)
def test_keys_that_came_later_are_in_none_at_their_defaults(folder: Path, kind: str, whole: str, options: str) -> None:
    section = {"format": kind, "paths": ["x"]} | ({"delimiter": ","} if kind == "csv" else {})
    config = load_config({"name": "n", "input": section, "output": {"path": "o"}})
    assert config_fingerprint(config).startswith(f"sha256:{whole}")
    assert options_fingerprint(config).startswith(f"sha256:{options}")
    if kind in ("csv", "parquet"):
        other = load_config({"name": "n", "input": section | {"partitions": "none"}, "output": {"path": "o"}})
        assert config_fingerprint(other) != config_fingerprint(config)
        assert options_fingerprint(other) != options_fingerprint(config)
