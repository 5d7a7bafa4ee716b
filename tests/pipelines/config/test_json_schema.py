"""The JSON Schema of configs: editors refuse what `load_config` refuses, and nothing that it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.model import options_by_format
from shardmill.pipelines.config.runners import RUNNERS
from shardmill.pipelines.first_look.starter import PACKAGED
from shardmill.transforms.errors import ConfigError

from ...readme import PAGES, REPO

SCHEMA = json.loads(PACKAGED.read_text())
VALIDATOR = Draft7Validator(SCHEMA)


def problems(document: Any) -> list[str]:
    """Return where a config is refused, as an editor sees it: without YAML's dates."""
    plain = json.loads(json.dumps(document, default=str))
    return sorted({error.json_path for error in VALIDATOR.iter_errors(plain)})


def test_the_schema_is_one() -> None:
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", sorted((REPO / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_every_config_is_accepted_as_it_is_written_and_with_all_its_defaults(path: Path) -> None:
    assert problems(yaml.safe_load(path.read_text())) == []
    assert problems(load_config(path).to_json()) == []


def test_every_value_of_a_section_with_words_of_its_own_is_accepted() -> None:
    for text in (
        "max_rejects: 1%",
        "max_rejects: 10",
        "name: null",
        "output: {path: s3://bucket/out, shard_size: 1GB, index: none}",
        "output: {shard_size: 1000000}",
        "input: {format: null, paths: [a]}",
        "input: {delimiter: tab}",
        "input: {format: csv, short_rows: null}",
        "input: {format: images, labels: [0, 1]}",
        "input: {format: images, paths: [a], annotations: {coco: a.json}}",
        "input: {format: images, paths: [a], null_values: [NA]}",
        "schema: {columns: {a: {label: true}, b: {label: [x, 2]}, c: {null: {fill: 0.5}}, d: {null: mask}}}",
        "schema: {columns: {a: {type: timestamp, unit: us, timezone: UTC, format: ['%d.%m.%Y']}}}",
        "split: {fractions: {train: 0.9, val: 0.1}, key: id}",
        "split: {before: {column: day, train: 2024-01-01, rest: val}}",
        "split: {column: a, names: {0: train}}",
        "split: null",
        "shuffle: {seed: 7}",
        "checks: {duplicates: {}, leaks: {columns: [user]}}",
        "image: {resize: 256}",
        "image: {resize: {size: {width: 1, height: 2}, mode: exact}}",
        "runner: {name: DirectRunner, workers: 4}",
        "runner: {workers: auto, processes: true}",
        "runner: {name: flink, master: 'localhost:8081'}",
        "runner: {name: DataflowRunner, project: my-project}",
    ):
        assert problems(yaml.safe_load(text)) == [], text


WRONG = {
    "unknown: 1": "$",
    "version: 2": "$.version",
    "name: My Pets": "$.name",
    "max_rejects: [1]": "$.max_rejects",
    "input: {paths: a.csv}": "$.input.paths",
    "input: {paths: []}": "$.input.paths",
    "input: {paths: [a.csv], format: xls}": "$.input.format",
    "input: {paths: [a.csv], separator: ';'}": "$.input",
    "input: {paths: [a.parquet], format: parquet, delimiter: ';'}": "$.input",
    "input: {paths: [a.csv], format: csv, header: 'no'}": "$.input.header",
    "input: {paths: [a.csv], limit: 0}": "$.input.limit",
    "schema: {infer: some}": "$.schema.infer",
    "schema: {columns: {a: {type: integer}}}": "$.schema.columns.a.type",
    "schema: {columns: {a: int64}}": "$.schema.columns.a",
    "schema: {columns: {a: {null: zero}}}": "$.schema.columns.a.null",
    "split: {fractions: {train: 2}}": "$.split.fractions",
    "split: {fractions: {Train: 1.0}}": "$.split.fractions",
    "output: {path: out, shards: 7}": "$.output",
    "output: {path: out, compression: zip}": "$.output.compression",
    "output: {path: out, sidecars: [tf]}": "$.output.sidecars[0]",
    "image: {encode: {quality: 101}}": "$.image.encode.quality",
    "image: {color: red}": "$.image.color",
    "runner: {name: spark}": "$.runner.name",
    "runner: {name: local, master: 'localhost:8081'}": "$.runner",
    "shuffle: {seed: -1}": "$.shuffle.seed",
}


@pytest.mark.parametrize(("text", "path"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_is_refused_at_its_place_and_by_the_command_too(
    text: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "a.parquet"):
        Path(name).write_text("a\n1\n")
    document = yaml.safe_load(text)
    assert problems(document) == [path]
    whole = {"input": {"paths": ["a.csv"]}, "output": {"path": "out"}} | document
    with pytest.raises(ConfigError):
        load_config(whole)


def test_every_key_of_every_format_and_engine_is_known_and_most_have_words() -> None:
    for section, models in (("input", options_by_format()), ("runner", RUNNERS)):
        known = SCHEMA["properties"][section]["properties"]
        fields = [item for model in models.values() for item in model.model_fields.items()]
        assert {field.alias or key for key, field in fields} == set(known)
        silent = {key for key, one in known.items() if "description" not in one}
        assert silent == {"format" if section == "input" else "name"}


def test_the_configs_of_the_pages_are_accepted() -> None:
    found = []
    for page in (*PAGES, *(REPO / "docs").glob("*.md")):
        for block in page.read_text().split("```yaml\n")[1:]:
            document = yaml.safe_load(block.partition("```")[0])
            if isinstance(document, dict):
                found.append((page.name, problems(document)))
    assert len(found) > 1
    assert [one for one in found if one[1]] == []
