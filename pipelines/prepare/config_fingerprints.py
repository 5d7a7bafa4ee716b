"""The fingerprints of a config: by the one a run is resumed, by the other an append knows files that a dataset holds.

config_fingerprint     all that the bytes of the dataset can depend on
options_fingerprint    what decides which records a file becomes, and in which split
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from ...transforms.format.schema.schema import Schema
from ...transforms.sources.registry.formats import FORMATS
from ..config.model import Config

LATER_KEYS: Final[dict[str, dict[str, Any]]] = {
    "input": {"exclude_columns": [], "limit": None, "where": None, "check": "structure"},
    "schema": {"constants": {}, "files_root": None, "boxes": "reject"},
    "output": {"index": "binary"},
    "split": {"by": "hash", "stratify": None, "folds": None, "of": None, "column": None, "names": None, "before": None},
}
"""Keys that came after the first release, by section, and their defaults: these are in no fingerprint.

Those of one format are its own to name.
"""

_LATER_COLUMN_KEYS: Final[dict[str, Any]] = {
    "name": None, "label": False, "null": "absent", "format": None, "decimal": ".", "thousands": None, "strip": False,
    "negative": None, "file": None, "image": None,
}  # fmt: skip
"""The same of the keys of a column in `schema.columns`."""


def config_fingerprint(config: Config) -> str:
    """Return `sha256:` and the digest of what the bytes of the dataset can depend on.

    In it: everything of `to_json` (defaults included, so that an explicit default changes nothing; paths as they
    are relative to `base`, so that a folder may be moved) but `runner`, `max_rejects`, `limits` and
    `output.path`, as JSON with sorted keys; the order of split fractions matters, so they are pairs.
    """
    document = _without_later_defaults(config)
    for key in ("runner", "max_rejects", "limits"):
        del document[key]
    del document["output"]["path"]
    return _digest(document, config)


def options_fingerprint(config: Config) -> str:
    """Return `sha256:` and the digest of the settings that decide which records a file becomes, and in which split.

    Their order and what is merely checked play no part.
    """
    document = _without_later_defaults(config)
    section = document["input"] or {}
    chosen = ("paths", *FORMATS[section["format"]].load().choosing_keys) if section else ()
    read = {key: value for key, value in section.items() if key not in chosen}
    declared = {key: value for key, value in document["schema"].items() if key != "infer"}
    wanted = {
        "schema": declared,
        "split": document["split"],
        "input": read,
        "output.split": document["output"]["split"],
    } | ({"image": document["image"]} if "image" in document else {})
    duplicates = None if config.checks is None else config.checks.duplicates
    if duplicates is not None and duplicates.action == "drop":
        wanted["checks"] = {"duplicates": document["checks"]["duplicates"]}
    return _digest(wanted, config)


def same_options(config: Config, schema: Schema) -> frozenset[str]:
    """Return the fingerprints of settings that make the same records of a file under a schema.

    An append gives the features of the schema, no more and no fewer. So a list of all their columns says as much as
    none, in whatever order, and so does a list of columns to leave out.
    """
    columns = None if config.input is None else config.input.columns
    names = sorted(feature.name for feature in schema)
    same = [columns]
    if config.input is not None and (columns is None or sorted(columns) == names):
        same += [None, names]
    excluded: list[list[str]] = [[]] if config.input is None else [config.input.exclude_columns, []]
    return frozenset(options_fingerprint(_with_columns(config, c, gone)) for c in same for gone in excluded)


def _with_columns(config: Config, columns: list[str] | None, excluded: list[str]) -> Config:
    if config.input is None:
        return config
    update = {"columns": columns, "exclude_columns": excluded}
    return config.model_copy(update={"input": config.input.model_copy(update=update)})


def _without_later_defaults(config: Config) -> dict[str, Any]:
    """Return a config's document without the keys that came later, where they are at their defaults.

    Nulls beside a list of classes are rejects unless the config says `absent`, which is in it then.
    """
    document = config.to_json()
    kept = dict(document)
    for name, defaults in LATER_KEYS.items():
        section = kept.get(name)
        if isinstance(section, dict):
            own = FORMATS[section["format"]].load().later_keys if name == "input" else {}
            kept[name] = _without({**defaults, **own}, section)
    for name, default in (("checks", None), ("image", None), ("stats", "basic")):
        if kept.get(name) == default:
            kept.pop(name, None)
    columns = {name: _without(_LATER_COLUMN_KEYS, rule) for name, rule in document["schema"]["columns"].items()}
    for name, rule in config.schema_.columns.items():
        columns[name] |= {"null": rule.null} if rule.keeps_nulls else {}
    kept["schema"] = {**kept["schema"], "columns": columns}
    return kept


def _without(defaults: dict[str, Any], section: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key not in defaults or value != defaults[key]}


def _digest(document: dict[str, Any], config: Config) -> str:
    """Return the digest of a document of a config, with its steps and the order of its splits."""
    if config.split is not None and config.split.fractions is not None:
        document["split"]["fractions"] = list(config.split.fractions.items())
    if config.steps:
        document["map"] = [repr(step) for step in config.steps]
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
