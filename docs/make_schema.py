"""Make the JSON Schema of configs, which editors check and complete them with, from the models and their words.

    uv run python docs/make_tables.py

It refuses what no config has: unknown keys, values of another type, words that are none of the choices. What it accepts
may still be wrong, since `--set` and flags may add what is missing, and since keys depend on each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from shardmill.pipelines.config.model import Config, options_by_format
from shardmill.pipelines.config.runners import RUNNER_ALIASES, RUNNERS
from shardmill.transforms.format.wording.printable import parse_size
from table_words import CONFIG_WORDS

SCHEMA_FILE: Final = Path(__file__).parent.parent / "pipelines/config/config.schema.json"

TITLE: Final = "Shardmill config"

_TABLES: Final = ("csv", "jsonl", "parquet", "coco", "voc", "yolo")
"""What a folder of pictures is read as where a table or annotations are beside them: it takes their keys too."""

_FILLED_IN: Final = ("Config", "OutputConfig")
"""Models whose required keys may be given on the command line."""


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of configs."""
    formats, runners = options_by_format(), RUNNERS
    models: list[type[BaseModel]] = [Config, *formats.values(), *runners.values()]
    names, document = models_json_schema([(model, "validation") for model in models], by_alias=True)
    parts: dict[str, Any] = document["$defs"]

    def part(model: type[BaseModel]) -> dict[str, Any]:
        return parts[names[(model, "validation")]["$ref"].rpartition("/")[2]]  # type: ignore[no-any-return]

    keys = {name: part(model)["properties"] for name, model in formats.items()}
    keys["images"] = {key: one for name in reversed(("images", *_TABLES)) for key, one in keys[name].items()}
    by_runner = {name: part(model)["properties"] for name, model in runners.items()}
    root = part(Config)
    for name in _FILLED_IN:
        parts[name].pop("required", None)
    _any_null(root["properties"]["name"])
    parts["SchemaConfig"]["properties"]["columns"]["type"] = ["object", "null"]  # all lines below may be comments
    aliases = {name: [alias for alias, meant in RUNNER_ALIASES.items() if meant == name] for name in runners}
    root["properties"]["input"] = _by_word("format", keys, may_be_null=True)
    root["properties"]["runner"] = _by_word("name", by_runner, aliases)
    others = {names[(model, "validation")]["$ref"].rpartition("/")[2] for model in models}
    kept = {name: one for name, one in sorted(parts.items()) if name not in others and name != "Options"}
    for one in (root, *kept.values()):
        one.pop("description", None)
        for key, inner in one["properties"].items():
            one["properties"][key] = _with_names_of_its_own(_or_null(inner, kept))
    _describe(root["properties"], "", kept)
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "title": TITLE, **root, "$defs": kept}
    made: dict[str, Any] = _without_titles(schema) | {"title": TITLE}
    for name in [name for name in kept if json.dumps(made).count(f'"#/$defs/{name}"') == 0]:
        del made["$defs"][name]
    return made


def schema_text() -> str:
    """Return the file."""
    return json.dumps(config_schema(), indent=1, ensure_ascii=False) + "\n"


def _or_null(schema: dict[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section that may be null as one schema, so that what is wrong in it is shown at its place."""
    kinds = schema.get("anyOf", ())
    refs = [one["$ref"] for one in kinds if "$ref" in one]
    if len(kinds) != 2 or len(refs) != 1 or {"type": "null"} not in kinds:
        return schema
    return {**parts[refs[0].rpartition("/")[2]], "type": ["object", "null"]}


def _with_names_of_its_own(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose maps refuse names that are not of their pattern."""
    for one in (schema, *schema.get("anyOf", ())):
        if "patternProperties" in one:
            one["additionalProperties"] = False
    return schema


def _any_null(schema: dict[str, Any]) -> None:
    """Let a value be null too."""
    inner = {key: schema.pop(key) for key in list(schema) if key not in ("default", "title")}
    schema["anyOf"] = [inner, {"type": "null"}]


def _by_word(
    key: str,
    keys: Mapping[str, Mapping[str, Any]],
    aliases: Mapping[str, list[str]] | None = None,
    *,
    may_be_null: bool = False,
) -> dict[str, Any]:
    """Return the schema of a section whose keys depend on the word that it has at `key`."""
    words = {name: [name, *(aliases or {}).get(name, [])] for name in keys}
    found: dict[str, list[Any]] = {}
    for properties in keys.values():
        for name, one in properties.items():
            if name != key and one not in found.setdefault(name, []):
                found[name].append(one)
    choices = [word for known in words.values() for word in known] + ([None] if may_be_null else [])
    properties = {key: {"enum": choices}}
    properties |= {name: kinds[0] if len(kinds) == 1 else {"anyOf": kinds} for name, kinds in found.items()}
    rules = [
        {
            "if": {"properties": {key: {"enum": words[name]}}, "required": [key]},
            "then": {
                "propertyNames": {"enum": [key, *(one for one in known if one != key)]},
                "properties": {one: kind for one, kind in known.items() if one != key and len(found[one]) > 1},
            },
        }
        for name, known in keys.items()
    ]
    return {"type": "object", "additionalProperties": False, "properties": properties, "allOf": rules}


def _describe(properties: dict[str, Any], section: str, parts: Mapping[str, Any]) -> None:
    """Add the words of each key, where there are some, in the sections below too."""
    for name, schema in properties.items():
        path = f"{section}.{name}" if section else name
        if path in CONFIG_WORDS:
            schema["description"] = re.sub(r"\s*\(\[[^]]*\]\([^)]*\)\)|\[([^]]*)\]\([^)]*\)", r"\1", CONFIG_WORDS[path])
        if isinstance(schema.get("default"), int) and {"type": "string"} in schema.get("anyOf", ()):
            schema["default"] = _size_text(schema["default"]) if path != "max_rejects" else schema["default"]
        for inner, where in _below(schema, path):
            if "$ref" in inner:
                inner = parts[inner["$ref"].rpartition("/")[2]]
            if "properties" in inner:
                _describe(inner["properties"], where, parts)


def _below(schema: Mapping[str, Any], path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    yield schema, path
    for one in schema.get("anyOf", ()):
        yield one, path
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        yield more, f"{path}.<name>"


def _size_text(size: int) -> str:
    """Return a size as a config has it."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        text = f"{size >> power}{unit}"
        if size >> power and parse_size(text) == size:
            return text
    return str(size)


def _without_titles(schema: Any) -> Any:
    """Return a schema without what pydantic makes of names and docstrings; a key that is called `title` stays."""
    if isinstance(schema, list):
        return [_without_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _without_titles(inner) for name, inner in one.items()}
        if key in ("properties", "$defs")
        else _without_titles(one)
        for key, one in schema.items()
        if key != "title"
    }
