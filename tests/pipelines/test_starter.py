"""`init`: the config that it writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shardmill.pipelines.config import load_config
from shardmill.pipelines.starter import starter_text
from shardmill.transforms.errors import InputError


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("a.csv", "csv"),
        ("a.tsv", "csv"),
        ("a.parquet", "parquet"),
        ("a.npy", "numpy"),
        ("a.jpg", "images"),
        ("a.tfrecord", "tfrecord"),
    ],
)
def test_the_config_loads_and_names_the_sources_from_its_own_folder(
    file: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data/x.npy", np.zeros(1))
    (tmp_path / "data/x.npy").rename(tmp_path / "data" / file)
    (tmp_path / "conf").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("conf/My Pets.yaml").write_text(starter_text([f"data/{file}"], "conf/My Pets.yaml"))
    config = load_config("conf/My Pets.yaml")
    assert config.input is not None
    assert (config.input.format, config.input.paths) == (kind, [str(tmp_path / "data" / file)])
    assert config.output.path == str(tmp_path / "conf/out/my_pets")
    plain = load_config(
        {"input": {"format": kind, "paths": [f"data/{file}"]}, "output": {"path": "o"}, "name": "my_pets"}
    )
    assert {**config.to_json(), "input": None, "output": None} == {**plain.to_json(), "input": None, "output": None}


def test_names_that_yaml_would_misread_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a: b.csv", "[x], 'y'.csv", "#.csv"):
        Path(name).write_text("x\n1\n")
        Path("c.yaml").write_text(starter_text([name], "c.yaml"))
        config = load_config("c.yaml")
        assert config.input is not None
        assert config.input.paths == [name]


def test_sources_that_are_not_there_or_of_no_known_kind_are_input_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.doc").write_text("x")
    with pytest.raises(InputError, match=r"gone\.csv: no such file"):
        starter_text(["gone.csv"], "c.yaml")
    with pytest.raises(InputError, match="the kind of file cannot be told"):
        starter_text(["a.doc"], "c.yaml")
