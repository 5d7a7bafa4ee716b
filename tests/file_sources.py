"""Sources of files for tests, made as a config makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from shardmill.transforms.inputs.files.file_names import FORMATS
from shardmill.transforms.sources.registry.settings import Limits, Settings

_SETTINGS = frozenset(one.name for one in fields(Settings)) - {"limits"}


def made_source(kind: str, paths: Sequence[str], base: str = "", **given: Any) -> Any:
    """Return the source of a format: `given` are its options, settings of the conversion, or fields of the source."""
    found = FORMATS[kind].load()
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    options = {name: given.pop(name) for name in [*given] if name in found.options.model_fields}
    settings = {name: given.pop(name) for name in [*given] if name in _SETTINGS}
    if isinstance(given.get("limits"), Limits):
        settings["limits"] = given.pop("limits")
    model = found.options.model_validate({"format": kind, "paths": list(paths), **options})
    return replace(found.source(model, Settings(base, **settings)), **given)


def assert_same_source(again: Any, source: Any) -> None:
    """A source that went through a pickle is the one it was; it has the values of its options without their model."""
    assert vars(again.options) == {**dict(source.options), "model_fields_set": source.options.model_fields_set}
    assert replace(again, options=source.options) == source
