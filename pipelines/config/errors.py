"""Put what the config model found into words: where, what is wrong, what was meant."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ...transforms.errors import ConfigError
from ...transforms.format.splits.splitter import DEFAULT_SPLIT
from ...transforms.format.wording.hints import Add, Set
from ...transforms.format.wording.printable import nearest, printable
from ...transforms.inputs.files.formats import FORMATS
from .model import Config, input_of_any_format, options_by_format
from .runners import RUNNERS
from .splits import Disagreement
from .yaml_reader import Document, Path, Place, Problem, dotted

_TYPES: Final = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "list_type": "a list, like [a, b]",
    "dict_type": "a mapping, like {a: b}",
    "model_type": "a mapping, like {a: b}",
    "model_attributes_type": "a mapping, like {a: b}",
}
_MAPPINGS: Final[dict[Path, str]] = {
    ("split",): "{fractions: {train: 0.9, val: 0.1}}; the name of one split for all rows is output.split",
    ("split", "fractions"): "{train: 0.9, val: 0.1}",
    ("shuffle",): "{seed: 7}",
    ("checks", "duplicates"): "{columns: [text]}",
    ("image", "resize"): "{size: 256}",
    ("checks", "leaks"): "{columns: [user]}",
}
_MAIN_KEYS: Final[dict[Path, str]] = {("input",): "paths", ("output",): "path", ("runner",): "name"}
"""The key of a mapping for which its value alone is often given."""

_TAGS: Final = {"input": ("format", "this input"), "runner": ("name", "local")}
_SAY: Final = {True: "true", False: "false", None: "null"}


def problems_of(error: ValidationError, document: Document, below: Path = ()) -> list[Problem]:
    """Return what pydantic found in a document (or in its part `below` a path), each with its place, in words."""
    return [_problem(detail, below, document) for detail in error.errors(include_url=False)]


def unknown_format(value: object) -> str:
    return _not_a_choice(value, {"expected": ", ".join(FORMATS)})


def config_error(problems: Iterable[Problem], title: str) -> ConfigError:
    ordered = sorted(
        dict.fromkeys(problems), key=lambda p: (p.place.line is None, p.place.line or 0, p.place.column or 0)
    )
    if len(ordered) == 1:
        return ConfigError(str(ordered[0]))
    return ConfigError("\n".join([f"{title}: {len(ordered)} problems", *(f"  {problem}" for problem in ordered)]))


def _problem(detail: ErrorDetails, below: Path, document: Document) -> Problem:
    path = below + tuple(part for part in detail["loc"] if part != "[key]")
    if len(path) > 1 and path[0] == "runner" and path[1] in RUNNERS:
        path = (path[0], *path[2:])  # the tag that pydantic puts in for a union
    path = tuple("as" if part == "as_" else part for part in path)
    if path[:2] == ("schema", "constants") and len(path) > 3:  # pydantic names each type that a constant may have
        path = path[:3]
        text = _no_constant(detail["input"], document.texts.get(path))
    elif isinstance(error := detail.get("ctx", {}).get("error"), Disagreement):
        return _disagreement(error, path, document)
    else:
        text = _words(detail, path, document)
    return Problem(document.place(path), f"{dotted(path)}: {text}" if path else text)


def _disagreement(error: Disagreement, section: Path, document: Document) -> Problem:
    """Return what is wrong with a key, named as it was typed where it was, as are those that it does not go with."""
    typed = {key: document.typed((*section, key)) for key in (error.key, *error.others)}
    place = typed[error.key]
    text = (error.says if place is None else error.typed).format(*(typed[key] or key for key in error.others))
    if place is not None:
        return Problem(Place(place), text)
    return Problem(document.place((*section, error.key)), f"{dotted((*section, error.key))}: {text}")


def unused_split(document: Document) -> list[Problem]:
    """Return that one split was named for all rows beside a rule, which says the split of each."""
    output, rule, path = document.section("output"), document.section("split"), ("output", "split")
    split, typed = output.get("split"), document.typed(path)
    says = {key for key, value in rule.items() if value is not None}
    if split is None or not says or "of" in says or (split == DEFAULT_SPLIT and typed is None):
        return []  # a config that was written out has the default
    text = (
        f"does not go with split, which says the split of every row; leave it out, or the rule ({Set('split', None)})"
    )
    return [Problem(document.place(path), text if typed else f"{dotted(path)}: {text}")]


def _words(detail: ErrorDetails, path: Path, document: Document) -> str:
    kind, value = detail["type"], detail["input"]
    context: Mapping[str, Any] = detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(path, document)
    if kind == "missing":
        return _missing(path)
    if kind == "literal_error":
        return _not_a_choice(value, context)
    if kind in _TYPES:
        if _TYPES[kind].startswith("a mapping") and (meant := _mapping_meant(path, value)):
            return f"{_say(value)} is not a mapping: write {meant}"
        example = _MAPPINGS.get(path) if _TYPES[kind].startswith("a mapping") else None
        return _wrong_type(value, f"a mapping, like {example}" if example else _TYPES[kind], document.texts.get(path))
    if kind == "string_pattern_mismatch":
        return f'"{printable(value)}" is not a name: lowercase letters, digits and _, starting with a letter'
    if kind == "too_short":
        return "is an empty list; name at least one, or leave the key out"
    bounds = {"greater_than_equal": "at least {ge}", "greater_than": "more than {gt}", "less_than": "less than {lt}",
              "less_than_equal": "at most {le}"}  # fmt: skip
    if kind in bounds:
        return f"{value} is out of bounds; it must be {bounds[kind].format(**context)}"
    if kind == "value_error":
        return str(context["error"])
    return f"{_say(value)}: {detail['msg']}"


def _missing(path: Path) -> str:
    fixes: dict[Path, str] = {
        ("output",): "say where to write: output: {path: out/} (or -o out/)",
        ("output", "path"): "say where to write: -o out/",
        ("input", "paths"): "name files, globs or folders to read",
        ("runner", "project"): f"name the Google Cloud project of the job: {Add('--project', 'my-project')}",
        ("runner", "region"): f"say where the job runs, near the data: {Add('--region', 'europe-west1')}",
        ("runner", "staging"): f"name a folder for the job's files: {Add('--staging', 'gs://my-bucket/staging')}",
        ("runner", "image"): f"name the image of the workers (docs/image.md): {Add('--image', 'host/name:0.1.0')}",
        ("shuffle", "seed"): "give a number, like {seed: 7}",
    }
    return f"is missing; {fixes[path]}" if path in fixes else "is missing"


def _not_a_choice(value: object, context: Mapping[str, Any]) -> str:
    choices = [choice.strip("'") for choice in str(context["expected"]).replace(" or ", ", ").split(", ")]
    near = nearest(value, choices) if isinstance(value, str) else None
    hint = f'; did you mean "{near}"?' if near else ";"
    return f"{_say(value)} is not a choice{hint} choices: {', '.join(choices)}"


def _wrong_type(value: object, wanted: str, written: str | None) -> str:
    if wanted == "text" and isinstance(value, (bool, int, float, dt.date)):
        kind = {bool: "true or false", int: "a number", float: "a number"}.get(type(value), "a date")
        return f"{printable(written or _say(value))} is read as {kind}, and text is wanted; put it in quotes"
    hint = f": write [{_list_item(value)}]" if wanted.startswith("a list") and isinstance(value, str) else ""
    return f"{_say(value)} is not {wanted.split(',')[0] if hint else wanted}{hint}"


def _mapping_meant(path: Path, value: object) -> str | None:
    """Return the mapping that was meant where only the value of its main key is given.

    >>> _mapping_meant(("runner",), "flink"), _mapping_meant(("input",), ["a.csv", "b/*.csv"])
    ('runner: {name: flink}', 'input: {paths: [a.csv, "b/*.csv"]}')
    """
    key = "type" if path[:2] == ("schema", "columns") and len(path) == 3 else _MAIN_KEYS.get(path)
    texts = value if isinstance(value, list) and key == "paths" else [value]
    items = [_list_item(text) for text in texts if isinstance(text, str)]
    if key is None or len(items) != len(texts):
        return None
    shown = ", ".join(items)
    return f"{_list_item(str(path[-1]))}: {{{key}: {f'[{shown}]' if key == 'paths' else shown}}}"


def _no_constant(value: object, written: str | None) -> str:
    if isinstance(value, dt.date):
        return _wrong_type(value, "text", written)
    return f"{_say(value)} is not text, a number, true or false"


def _list_item(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z_][\w/.-]*", text) else f'"{printable(text)}"'


def _unknown_key(path: Path, document: Document) -> str:
    key = str(path[-1])
    siblings = _keys_at(path[:-1], document)
    kinds, words = _kinds_of(str(path[0]))
    others = " and ".join(name for name, model in kinds.items() if key in model.model_fields)
    if others:
        return words.format(_kind_of(document, str(path[0])), others)
    near = nearest(key, siblings)
    if near:
        return f'unknown key; did you mean "{near}"?'
    elsewhere = [where for where in _all_paths() if where[-1] == key]
    if elsewhere:
        return f"unknown key; did you mean {' or '.join(dotted(where) for where in elsewhere)}?"
    return f"unknown key; keys here: {', '.join(siblings)}"


def _kinds_of(section: str) -> tuple[Mapping[str, type[BaseModel]], str]:
    """Return the models of a section of several kinds, and what to say of a key of another one."""
    if section == "input":
        return options_by_format(), "unknown key for {}; it is a key of {} input"
    if section == "runner":
        return RUNNERS, "unknown key for the {} runner; it is a key of {}"
    return {}, ""


def _kind_of(document: Document, section: str) -> str:
    values, (tag, default) = document.values.get(section), _TAGS[section]
    return str(values.get(tag)) if isinstance(values, dict) else default


def _keys_at(path: Path, document: Document) -> list[str]:
    model: type[BaseModel] = Config
    for part in path:
        if str(part) in _TAGS:
            kind = _kinds_of(str(part))[0].get(_kind_of(document, str(part)))
            model = kind or (input_of_any_format() if part == "input" else BaseModel)
        else:
            model = _field(model, str(part)) or model
    return _names(model)


def _field(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """Return the model below a key, also where it is optional or a mapping's values; None if it holds none."""
    for field_name, info in model.model_fields.items():
        if name == (info.alias or field_name):
            return next(_models_in(info.annotation), None)
    return None


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _names(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _all_paths() -> list[tuple[str, ...]]:
    paths: list[tuple[str, ...]] = [(name,) for name in _names(Config)]
    for section in _names(Config):
        below = _field(Config, section)
        if section != "input" and below is not None:
            paths += [(section, name) for name in _names(below)]
    inputs = dict.fromkeys(name for model in options_by_format().values() for name in _names(model))
    return paths + [("input", name) for name in inputs]


def _say(value: object) -> str:
    if isinstance(value, str):
        return f'"{printable(value)}"'
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    return _SAY.get(value, printable(value)) if value is None or isinstance(value, bool) else printable(value)
