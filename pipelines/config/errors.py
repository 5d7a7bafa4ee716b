"""Put the errors of a config into words: line and column, the key, its value, and what was probably meant."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ...transforms.errors import ConfigError
from ...transforms.format.splits.splitter import DEFAULT_SPLIT
from ...transforms.format.wording.hints import Add, Set, quoted_name
from ...transforms.format.wording.printable import nearest, printable
from ...transforms.inputs.files.file_names import FORMATS
from .model import Config, input_of_any_format, options_by_format
from .runners import RUNNERS
from .sections import Disagreement

if TYPE_CHECKING:
    from ...transforms.format.manifest.manifest import Manifest


# Read YAML without losing where each value was.
#
# A config is plain mappings, lists and scalars. It is read from the composed nodes and not by `yaml.safe_load`, which
# forgets lines, takes the last of two equal keys, and turns the keys `on` and `no` into booleans:
#
#     input:                       values  {"input": {"paths": ["a.csv"]}}
#       paths: [a.csv]             places  ("input",)            -> Place("c.yaml", 1, 1)
#                                          ("input", "paths")    -> Place("c.yaml", 2, 3)   its key
#                                          ("input", "paths", 0) -> Place("c.yaml", 2, 11)


Path: TypeAlias = tuple[str | int, ...]

MAX_NODES: Final = 200_000
"""Aliases can make a short file mean billions of values; a config of 100,000 columns has fewer nodes than this."""

MAX_DEPTH: Final = 50

NOT_YAML: Final = "is not YAML"
"""How the problem of a text begins that YAML cannot read."""

WORDS: Final = frozenset(("null_values", "true_values", "false_values"))
"""Keys of lists whose words are text as they are written: `NO`, `yes` and `-999` too."""

_PLAIN_TAGS: Final = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value of a config came from: a file (line and column count from 1), or something on the command line."""

    source: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}:{self.column}"


COMMAND_LINE: Final = Place("command line")
"""The place of what was typed, in a shell or in Python, and of what is missing where there is no config."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a config."""

    place: Place
    text: str

    def __str__(self) -> str:
        """Return place and text; without a config in the words of the command line, whose user knows no keys."""
        key, _, text = self.text.partition(": ")
        if self.place == COMMAND_LINE and key.startswith(("input.paths", "input.delimiter")):
            return text
        if self.place == COMMAND_LINE and key == "output" and text.startswith("is missing"):
            return 'the folder of the dataset is missing; say where to write: -o out/ (in Python: output="out/")'
        return f"{self.place}: {self.text}"


@dataclass(slots=True)
class Document:
    """The values of a config, the place of each, and what was wrong with the YAML itself.

    `texts` holds what is in the file for values that YAML reads as no text: `no` for False. A document that is
    not `readable` has no values, only problems. `notes` are for the user: what was detected, and set. `picture_folders`
    are the folders of the pictures that rows name, where a table was found beside them, and `read_as` is the section
    `input` of these pictures. `held` is the dataset of an append, or the one that another is made `like`. `named` are
    the columns that the user declares, `given` the options that were typed.
    """

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[Path, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    texts: dict[Path, str] = field(default_factory=dict)
    readable: bool = True
    notes: list[str] = field(default_factory=list)
    picture_folders: tuple[str, ...] = ()
    read_as: dict[str, Any] | None = None
    held: Manifest | None = None
    like: bool = False
    named: frozenset[str] = frozenset()
    given: list[Set] = field(default_factory=list)

    def section(self, name: str) -> dict[str, Any]:
        section = self.values.get(name)
        return section if isinstance(section, dict) else {}

    def place(self, path: Path) -> Place:
        """Return the place of a value, or that of the nearest thing around it."""
        for length in range(len(path), -1, -1):
            known = self.places.get(path[:length])
            if known is not None:
                return known
        return Place("config")

    def typed(self, path: Path) -> str | None:
        """Return the option that set just this value, None where none did."""
        place = self.places.get(path)
        return place.source if place is not None and place.line is None and place.source.startswith("-") else None


class _Limit(Exception):
    """The document is larger or deeper than any config is."""


class _Loader(yaml.SafeLoader):
    """Composes nodes, and stops at the number of them that no config has: each takes a kilobyte."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.nodes += 1
        if self.nodes > 2 * MAX_NODES:  # keys are nodes too
            raise _Limit
        return super().compose_node(parent, index)


def read_document(text: str, source: str) -> Document:
    """Return what a YAML file holds, and in `problems` what is wrong with it; `source` is its printable name."""
    document = Document(places={(): Place(source, 1, 1)})
    try:
        node = yaml.compose(text, Loader=_Loader)
        if node is None:
            return document
        if not isinstance(node, yaml.MappingNode):
            document.problems.append(Problem(Place(source, 1, 1), 'a config is a mapping of keys, like "input: {...}"'))
            document.readable = False
            return document
        value = _Reader(document, source).read(node, ())
    except yaml.YAMLError as error:
        document.problems.append(_yaml_problem(error, source))
    except (_Limit, RecursionError):
        document.problems.append(Problem(Place(source, 1, 1), "is far too large or too deep for a config"))
    else:
        document.values = value
        return document
    document.readable = False
    return document


def read_scalar(text: str, key: str = "") -> Any:
    """Return the value of a piece of YAML, as in `--set a.key=<text>`; raise `ValueError` if it is none."""
    document = Document()
    try:
        node = yaml.compose(text, Loader=_Loader)
        value = None if node is None else _Reader(document, "").read(node, (), words=key in WORDS)
    except yaml.YAMLError as error:
        raise ValueError(str(_yaml_problem(error, "").text)) from error
    except (_Limit, RecursionError) as error:
        raise ValueError("is far too large or too deep for a config") from error
    if document.problems:
        raise ValueError(document.problems[0].text)
    return value


def copy_values(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): copy_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [copy_values(item) for item in value]
    return value


class _Reader:
    """Turns nodes into values, and fills a document's places and problems on the way."""

    def __init__(self, document: Document, source: str) -> None:
        self._document = document
        self._source = source
        self._constructor = yaml.constructor.SafeConstructor()
        self._nodes = 0

    def read(self, node: yaml.Node, path: Path, *, words: bool = False) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES or len(path) > MAX_DEPTH:
            raise _Limit
        self._document.places.setdefault(path, self._place(node))
        if isinstance(node, yaml.CollectionNode) and node.tag not in _PLAIN_TAGS:
            self._document.problems.append(Problem(self._place(node), _tag_problem(node)))
        if isinstance(node, yaml.MappingNode):
            return self._read_mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, index), words=words) for index, item in enumerate(node.value)]
        return str(node.value) if words and path and isinstance(path[-1], int) else self._read_scalar(node, path)

    def _read_mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = self._place(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self._document.problems.append(Problem(place, "a key must be plain text"))
                continue
            key = str(key_node.value)
            if key in values:
                first = self._document.places[(*path, key)]
                text = f"{dotted((*path, key))}: the key appears twice; the first is on line {first.line}"
                self._document.problems.append(Problem(place, text))
                continue
            self._document.places[(*path, key)] = place
            values[key] = self.read(value_node, (*path, key), words=key in WORDS)
        return values

    def _read_scalar(self, node: yaml.Node, path: Path) -> Any:
        try:
            value = self._constructor.construct_object(node)
        except (yaml.YAMLError, ValueError, AttributeError, LookupError):  # `!!timestamp x`, `!!bool x`
            self._document.problems.append(Problem(self._place(node), f'"{node.value}": {_tag_problem(node)}'))
            return None
        if not isinstance(value, str):
            self._document.texts[path] = str(node.value)
        return value

    def _place(self, node: yaml.Node) -> Place:
        mark = node.start_mark
        return Place(self._source, mark.line + 1, mark.column + 1)


def _tag_problem(node: yaml.Node) -> str:
    return f"the tag {node.tag} is not for a config; write plain YAML, and text in quotes"


def dotted(path: Path) -> str:
    """Return a path as it is written after `--set`: `input.paths`; a name that is no plain word is quoted.

    >>> dotted(("schema", "columns", "a.b", "type")), dotted(("input", "paths", 0))
    ('schema.columns."a.b".type', 'input.paths[0]')
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if part.isdecimal() else quoted_name(part)
            text += f".{name}" if text else name
    return text


def _yaml_problem(error: yaml.YAMLError, source: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    place = Place(source, 1, 1) if mark is None else Place(source, mark.line + 1, mark.column + 1)
    hint = "; indent with spaces, not tabs" if r"'\t'" in what else ""
    return Problem(place, f"{NOT_YAML}: {what}{hint}")


# Words for what pydantic found, at those places.


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
