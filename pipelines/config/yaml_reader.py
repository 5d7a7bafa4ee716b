"""Read YAML without losing where each value was.

A config is plain mappings, lists and scalars. It is read from the composed nodes and not by `yaml.safe_load`, which
forgets lines, takes the last of two equal keys, and turns the keys `on` and `no` into booleans:

    input:                       values  {"input": {"paths": ["a.csv"]}}
      paths: [a.csv]             places  ("input",)            -> Place("c.yaml", 1, 1)
                                         ("input", "paths")    -> Place("c.yaml", 2, 3)   its key
                                         ("input", "paths", 0) -> Place("c.yaml", 2, 11)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml

if TYPE_CHECKING:
    from ...transforms.format.manifest.manifest import Manifest
    from ...transforms.format.wording.hints import Set

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
        """Return the value of a node; of a list of `words` each is text, as it is written."""
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
    """Return a path as it is written after `--set`: `input.paths`; a name with a dot in it is quoted.

    >>> dotted(("schema", "columns", "a.b", "type")), dotted(("input", "paths", 0))
    ('schema.columns."a.b".type', 'input.paths[0]')
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = f'"{part}"' if "." in part or not part else part
            text += f".{name}" if text else name
    return text


def _yaml_problem(error: yaml.YAMLError, source: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    place = Place(source, 1, 1) if mark is None else Place(source, mark.line + 1, mark.column + 1)
    hint = "; indent with spaces, not tabs" if r"'\t'" in what else ""
    return Problem(place, f"{NOT_YAML}: {what}{hint}")
