"""The fingerprints of a config: by the one a run is resumed, by the other an append knows files that a dataset holds.

config_fingerprint     all that the bytes of the dataset can depend on
options_fingerprint    what decides which records a file becomes, and in which split
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...transforms.format.schema.schema import Schema
from ...transforms.sources.registry.formats import FORMATS
from ..config.model import Config

if TYPE_CHECKING:
    from ...transforms.recipe.step import Step


def config_fingerprint(config: Config, steps: Sequence[Step] = ()) -> str:
    """Return `sha256:` and the digest of what the bytes of the dataset can depend on.

    In it: everything of `to_json` (defaults included, so that an explicit default changes nothing; paths as they
    are relative to `base`, so that a folder may be moved) but `runner`, `max_rejects`, `limits` and
    `output.path`, as JSON with sorted keys; the order of split fractions matters, so they are pairs.
    """
    document = _document(config)
    for key in ("runner", "max_rejects", "limits"):
        del document[key]
    del document["output"]["path"]
    return _digest(document, config, steps)


def options_fingerprint(config: Config, steps: Sequence[Step] = ()) -> str:
    """Return `sha256:` and the digest of the settings that decide which records a file becomes, and in which split.

    Their order and what is merely checked play no part.
    """
    document = _document(config)
    section = document["input"] or {}
    chosen = ("paths", "splits", "detect", *FORMATS[section["format"]].load().choosing_keys) if section else ()
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
    return _digest(wanted, config, steps)


def same_options(config: Config, steps: Sequence[Step], schema: Schema) -> frozenset[str]:
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
    return frozenset(options_fingerprint(_with_columns(config, c, gone), steps) for c in same for gone in excluded)


def _with_columns(config: Config, columns: list[str] | None, excluded: list[str]) -> Config:
    if config.input is None:
        return config
    update = {"columns": columns, "exclude_columns": excluded}
    return config.model_copy(update={"input": config.input.model_copy(update=update)})


def _document(config: Config) -> dict[str, Any]:
    """Return a config's normal form; beside a list of classes nulls that stay absent are said so."""
    document = config.to_json()
    for name, rule in config.schema_.columns.items():
        document["schema"]["columns"][name]["keeps_nulls"] = rule.keeps_nulls
    return document


def _digest(document: dict[str, Any], config: Config, steps: Sequence[Step]) -> str:
    if config.split is not None and config.split.fractions is not None:
        document["split"]["fractions"] = list(config.split.fractions.items())
    if steps:
        document["map"] = [repr(step) for step in steps]
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
