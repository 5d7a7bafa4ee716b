"""The section `input`: the keys of its format, which the registry knows; of an unknown one those of all."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, SerializeAsAny, create_model

from ...transforms.sources.files.formats import FORMATS
from ...transforms.sources.registry.options import Options


def _options_of(value: object) -> object:
    """Return a section as the options of its format; what is wrong with them is raised as pydantic does."""
    if isinstance(value, Options):
        return value
    name = value.get("format") if isinstance(value, dict) else None
    model = FORMATS[name].load().options if name in FORMATS else Options
    return model.model_validate(value)


InputSection: TypeAlias = Annotated[SerializeAsAny[Options], BeforeValidator(_options_of)]


def options_by_format() -> dict[str, type[Options]]:
    return {name: entry.load().options for name, entry in FORMATS.items()}


def input_keys() -> frozenset[str]:
    return frozenset(key for model in options_by_format().values() for key in model.model_fields)


def input_of_any_format() -> type[BaseModel]:
    """Return the model of an input whose format is wrong or unknown: the keys of all formats, each with its bounds."""
    return create_model("InputOfAnyFormat", __base__=tuple(options_by_format().values()), format=(Any, None))
