"""The JSON Schema beside a config: where it is, and what it does not replace."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
import yaml
from jsonschema import Draft7Validator
from shardmill.pipelines.first_look.starter import PACKAGED, SCHEMA_NAME

from ...command_line import Shardmill


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,x\n1,2\n2,3\n")
    return tmp_path


def schema_of(text: str, folder: Path) -> Path:
    """Return the file that the first line of a config names, as an editor finds it."""
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", text.splitlines()[0])
    assert found is not None
    return Path(unquote(urlparse(found[1]).path)) if "://" in found[1] else folder / found[1]


def test_the_schema_is_beside_the_config_which_is_valid_by_it(shardmill: Shardmill, folder: Path) -> None:
    Path("conf").mkdir()
    assert shardmill("init", "a.csv", "-o", "conf/my.yaml").code == 0
    text = Path("conf/my.yaml").read_text()
    path = schema_of(text, folder / "conf")
    assert path == folder / "conf" / SCHEMA_NAME
    validator = Draft7Validator(json.loads(path.read_text()))
    assert list(validator.iter_errors(yaml.safe_load(text))) == []
    assert list(validator.iter_errors(yaml.safe_load(text.replace("  compression:", "  shards:")))) != []


def test_on_stdout_the_line_names_the_file_of_the_package(shardmill: Shardmill, folder: Path) -> None:
    ended = shardmill("init", "a.csv", "-o", "-")
    assert schema_of(ended.out, folder) == PACKAGED
    assert not Path(SCHEMA_NAME).exists()


def test_the_schema_alone_is_written_and_its_line_is_said(shardmill: Shardmill, folder: Path) -> None:
    ended = shardmill("init", "--schema")
    assert ended.code == 0
    assert ended.err == (
        f"Wrote {SCHEMA_NAME}; the first line of a config beside it: # yaml-language-server: $schema={SCHEMA_NAME}\n"
    )
    assert Path(SCHEMA_NAME).read_text() == PACKAGED.read_text()
    assert shardmill("init", "--schema").err.startswith("Nothing to do:")
    assert shardmill("init", "--schema", "-o", "-").out == PACKAGED.read_text()
    assert json.loads(shardmill("init", "--schema", "-o", "x.json", "--json").out)["written"] is True


def test_the_schema_of_another_release_is_replaced_and_nothing_else(shardmill: Shardmill) -> None:
    older = json.loads(PACKAGED.read_text())
    del older["properties"]["checks"]
    Path(SCHEMA_NAME).write_text(json.dumps(older))
    assert shardmill("init", "a.csv", "-o", "a.yaml").code == 0
    assert Path(SCHEMA_NAME).read_text() == PACKAGED.read_text()
    for text in ('{"title": "mine"}', "notes", "[]"):
        Path(SCHEMA_NAME).write_text(text)
        ended = shardmill("init", "--schema")
        assert (ended.code, Path(SCHEMA_NAME).read_text()) == (2, text)
        assert "already exists, and is no schema of Shardmill" in ended.err


def test_without_sources_one_line_says_what_to_name(shardmill: Shardmill) -> None:
    ended = shardmill("init")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: init: name the files, folders or globs to read: shardmill init ")
