"""What a dataset remembers of the config that made it, and who decides each key in an append to it.

config ──remembered──▶ `conversion` of the manifest ──lay_below──▶ config of an append, with other inputs
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import BaseModel

from ...transforms.inputs.files.file_names import FORMATS

if TYPE_CHECKING:
    from ...transforms.format.manifest.manifest import Manifest
    from .errors import Document
    from .model import Config


class Decision(NamedTuple):
    """Who decides a key in an append: `dataset`, `append`, or `either`, the append before the dataset.

    `stated` says that the manifest states the value, in `conversion` or in a member of its own.
    """

    key: str
    who: str
    stated: bool
    note: str = ""


_OF_ALL_FORMATS: Final = ("label", "file", "image", "length", "null_item")
"""What a column becomes, whatever the format of its file."""

DECISIONS: Final = (
    Decision("name", "dataset", True),
    Decision("input.paths", "append", False),
    Decision("input.limit", "append", False),
    Decision("input.drop", "append", False),
    Decision("input.drop_where", "append", False),
    Decision("input.images", "append", False, "the folder of the pictures that YOLO's files describe"),
    Decision("input.annotations.masks", "either", True),
    Decision("input.annotations.classes", "either", True),
    Decision("input.annotations", "append", False),
    Decision("input.splits", "either", False, "remembered as `recognised`, also what folders and names of files show"),
    Decision("input.format", "append", True, "the dataset, where files do not show it"),
    Decision("input.delimiter", "append", True, "the dataset, where files do not show it"),
    Decision("input.columns_differ", "append", True),
    Decision("input.labels", "append", True, "without it, new classes come after those of the dataset"),
    Decision("input.label_offset", "dataset", True),
    Decision("input.*", "either", True, "the dataset only for files of its format"),
    Decision("schema.files_root", "append", False),
    Decision("schema.columns.*.null", "dataset", True),
    *(Decision(f"schema.columns.*.{key}", "either", True) for key in _OF_ALL_FORMATS),
    Decision("schema.columns.*", "either", True, "the dataset only for files of its format"),
    Decision("schema.boxes", "dataset", True),
    Decision("schema.*", "either", True),
    Decision("split", "either", True, "another rule than the dataset's is a warning"),
    Decision("shuffle", "either", True, "only a dataset that is shuffled takes a seed"),
    Decision("image", "dataset", True),
    Decision("map", "dataset", True, "`accept_map: true` takes another function from this generation on"),
    Decision("checks", "append", True, "of the new records alone"),
    Decision("output.compression", "dataset", True),
    Decision("output.order", "dataset", True),
    Decision("output.shard_name", "dataset", True),
    Decision("output.sidecars", "dataset", True, "a value of the append is not used"),
    Decision("output.index", "dataset", True, "a value of the append is not used"),
    Decision("output.shard_size", "either", True),
    Decision("output.*", "append", False),
    Decision("stats", "dataset", True),
    Decision("*", "append", False, "`max_rejects`, `limits`, `runner`, `accept_map`"),
)
"""The first row that fits a key holds for it, and for the keys below it."""

_OF_MANIFEST: Final = ("name", "output.compression", "output.order", "output.shard_name", "output.shard_size")
"""What the manifest states in a member of its own."""


def decision_of(key: str) -> Decision:
    """Return who decides a key, given with its dots.

    >>> decision_of("schema.columns.zip.null").who, decision_of("input.quote").who, decision_of("limits.pixels").who
    ('dataset', 'either', 'append')
    """
    return next(one for one in DECISIONS if fnmatchcase(key, one.key) or key.startswith(f"{one.key}."))


def remembered(config: Config, functions: list[dict[str, str]]) -> dict[str, Any]:
    """Return the normal form of what makes a dataset: what was said or detected, and neither inputs nor bounds.

    `functions` are the user's own steps, each a name and a digest. Where a table beside pictures was read in their
    place, the section `input` is that of the pictures.
    """
    document = config.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    given = config.model_dump(mode="json", by_alias=True, exclude_unset=True, include={"input", "schema_"})
    document |= given  # a format may do otherwise where a key is left out
    if config.read_as is not None:
        document["input"] = dict(config.read_as)
    if functions:
        document["map"] = functions
    return _stated(_in_json(document), "")


def _in_json(value: Any) -> Any:
    """Return a value with text for numbers that JSON has not: fills read both alike."""
    if isinstance(value, dict):
        return {key: _in_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_in_json(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _stated(section: Mapping[str, Any], above: str) -> dict[str, Any]:
    """Return the values of a section that a manifest states as its conversion, without empty sections."""
    found = {}
    for key, value in section.items():
        path = f"{above}{key}"
        inner = isinstance(value, Mapping) and path in ("input", "input.annotations", "schema", "output")
        kept = _stated(value, f"{path}.") if inner else value
        nothing = kept == {} or (kept is None and above != "input.")  # no `quote` is null
        if (inner or decision_of(path).stated) and path not in _OF_MANIFEST and not nothing:
            found[key] = kept
    return found


def shared(conversions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is the same in all conversions; of `input` and `schema` each key apart, for one format of files.

    >>> shared([{"input": {"format": "csv", "quote": None}}, {"input": {"format": "csv", "quote": "'"}}])
    {'input': {'format': 'csv'}}
    >>> shared([{"input": {"format": "csv", "columns": None}}])
    {'input': {'format': 'csv', 'columns': None}}
    """
    first, others = conversions[0], conversions[1:]
    found = {}
    for key, value in first.items():
        theirs: list[Any] = [one.get(key) for one in others]
        if key in ("input", "schema", "columns") and all(isinstance(one, Mapping) for one in (value, *theirs)):
            both = shared([value, *theirs])
            if both and (key != "input" or "format" in both):
                found[key] = both
        elif all(one == value for one in theirs):
            found[key] = value
    return found


def lay_below(document: Document, held: Manifest) -> None:
    """Fill in what the config of an append leaves open of `schema`, as the conversion of the dataset has it."""
    known, section = held.conversion.get("schema", {}), document.section("input")
    form = FORMATS[section["format"]].load() if section.get("format") in tuple(FORMATS) else None
    if not known or (form is not None and (not form.has_rows or "schema.columns" in form.refused_keys)):
        return
    schema = document.values.setdefault("schema", {})
    if not isinstance(schema, dict):
        return
    for key, value in known.items():
        if key != "columns":
            schema.setdefault(key, value)
    columns = schema.setdefault("columns", {})
    if isinstance(columns, dict) and all(isinstance(rule, dict) for rule in columns.values()):
        own = (document.read_as or section).get("format") == held.conversion.get("input", {}).get("format")
        _lay_columns(columns, known.get("columns", {}), own=own)


def lay_sections(document: Document, held: Manifest) -> None:
    """Fill in what a config leaves open beside `input` and `schema`, to make another dataset as one was made."""
    output = document.values.setdefault("output", {})
    if not isinstance(output, dict):
        return
    known = {key: value for key, value in held.conversion.items() if key not in ("input", "schema", "output", "map")}
    if "split" in output:
        known.pop("split", None)
    said, section = known.pop("recognised", {}), document.section("input")
    as_said = {"off": "none", "words": "names", "globs": said.get("arguments")}
    if said.get("rule") in as_said and not {"split"} & (output.keys() | document.values.keys()):
        section.setdefault("splits", as_said[said["rule"]])
    own = {key.partition(".")[2]: getattr(held, key.partition(".")[2]) for key in _OF_MANIFEST if key != "name"}
    if held.order == "shuffled":
        del own["order"]
    document.values |= known | document.values
    output |= own | held.conversion.get("output", {}) | output


def _lay_columns(columns: dict[str, Any], known: Mapping[str, Any], *, own: bool) -> None:
    """Fill in rules of columns by the names of their features; for files that are not `own` what any format has."""
    named = {rule.get("name", column): column for column, rule in columns.items()}
    for column, rule in known.items():
        feature = rule.get("name", column)
        kept = rule if own else {key: rule[key] for key in ("null", *_OF_ALL_FORMATS) if key in rule}
        there = named.get(feature)
        if there is not None:
            other = {"name"} | ({"file", "image"} if columns[there].keys() & {"file", "image", "type"} else set())
            columns[there] = {key: value for key, value in kept.items() if key not in other} | columns[there]
        elif kept:
            columns[column if own else feature] = dict(kept)


def lay_input(section: dict[str, Any], held: Manifest, *, like: bool) -> None:
    """Fill in what a config leaves open of `input`, for files of the dataset's format.

    An append takes no key that it decides itself; with `like` all are taken but what the files show.
    """
    known = held.conversion.get("input", {})
    if known.get("format") == section.get("format"):
        for key, value in known.items():
            if key == "annotations":
                if isinstance(section.get(key), dict):
                    section[key] = value | section[key]
            elif decision_of(f"input.{key}").who != "append" or (like and key != "delimiter"):
                section.setdefault(key, value)


def differences(config: Config, conversion: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    """Yield the keys of `input` and `schema` that a dataset decides, and that a config has otherwise.

    Each with the value of the config, and with that of the dataset.

    Raises:
        ValidationError: the conversion is none.
    """
    known = conversion.get("input", {})
    if config.input is not None and known.get("format") == config.input.format:
        before: BaseModel = type(config.input).model_validate(
            {key: value for key, value in known.items() if key != "annotations"} | {"paths": config.input.paths}
        )
        yield from _unlike("input", config.input, before)
    section = type(config.schema_).model_validate(conversion.get("schema", {}))
    yield from _unlike("schema", config.schema_, section)
    rules = {rule.name or name: rule for name, rule in section.columns.items()}
    for name, rule in config.schema_.columns.items():
        yield from _unlike(f"schema.columns.{name}", rule, rules.get(rule.name or name, type(rule)()))


def _unlike(above: str, mine: BaseModel, known: BaseModel) -> Iterator[tuple[str, object, object]]:
    for key in type(mine).model_fields:
        if key in mine.model_fields_set and decision_of(path := f"{above}.{key}").who == "dataset":
            own, other = (one.model_dump(mode="json", include={key})[key] for one in (mine, known))
            if own != other:
                yield path, own, other
