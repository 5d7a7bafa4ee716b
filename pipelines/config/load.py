"""Load the config of a conversion: lay a file, `--set` values and flags over each other, and check the result.

    configs/csv.yaml        the file, each value with its line and column
      ◀── --set a.b=c       overrides it; the value is read as YAML
            ◀── flags       override both (-o, --shard-size, ...)

Paths are relative to where they were written: in a file to its folder, on the command line to the working folder.
"""

from __future__ import annotations

import json
import os
import re
import string
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from ...transforms.errors import ConfigError, InputError, UsageError
from ...transforms.format.manifest.naming import dataset_name
from ...transforms.format.wording.hints import Add, Python, Set
from ...transforms.format.wording.printable import printable, printable_path
from ...transforms.inputs.contract.selection import Call, shown_path, typed_path
from ...transforms.inputs.files.file_names import FORMATS
from ...transforms.sources.registry.options import ANNOTATION_KINDS, InputOfUnknownFormat
from .errors import (
    COMMAND_LINE,
    NOT_YAML,
    Document,
    Path,
    Place,
    Problem,
    config_error,
    copy_values,
    dotted,
    problems_of,
    read_document,
    read_scalar,
    unknown_format,
    unused_split,
)
from .model import Config, empty_checks, input_of_any_format
from .remembered import lay_below, lay_input, lay_sections
from .runners import RUNNER_ALIASES, RUNNERS, not_a_runner, out_of_reach

if TYPE_CHECKING:
    from ...transforms.format.manifest.manifest import Manifest
    from ...transforms.recognise.rules import Look
    from ...transforms.sources.registry.format import Format


# Fill in the section `input` of a config: what its files show, and those beside them.


def fill_input(document: Document, section: dict[str, Any], base: str, command: str) -> None:
    """Set the format of a section, and what its files show; what is wrong with it is added to the problems."""
    from ...transforms.recognise.rules import Look  # it takes pyarrow

    output = document.section("output").get("path")
    shown = typed_path(output) if isinstance(output, str) and output else Call().output
    call = Call(command, shown, tuple(document.given))
    look = Look([], base, call)
    try:
        known = InputOfUnknownFormat.model_validate(section)
        paths = [below(path, base) for path in known.paths]
        if known.detect is None and any("--" in os.path.abspath(os.path.join(base, path)) for path in paths):
            paths = _snapshots(document, paths, base, call)
    except ValidationError as error:
        document.problems += problems_of(error, document, ("input",))
    else:
        section["paths"] = paths
        look = Look(paths, base, call, known.ignore)
    asked = _of_found_annotations(section)
    if section.get("format") is None:
        section.pop("format", None)
        if section.get("annotations") is not None:
            section["format"] = "images"  # of which alone there are annotations
        elif look.typed:
            section["format"] = _detect_format(document, look)
    elif format_of(section) is None:
        text = f"input.format: {unknown_format(section['format'])}"
        document.problems.append(Problem(document.place(("input", "format")), text))
    found = format_of(section)
    if found is not None and document.held is not None:
        lay_input(section, document.held, like=document.like)
    if found is not None and look.typed:
        found = _resolve(document, section, found, look)
        _lay_annotations(section, found, asked, document.held, document.read_as)
        _fill_detected(document, section, found, section["paths"], look)
    if found is None:  # so that no format's own model will look at the other keys
        try:
            input_of_any_format().model_validate(section)
        except ValidationError as error:
            document.problems += problems_of(error, document, ("input",))


def _of_found_annotations(section: dict[str, Any]) -> dict[str, Any]:
    """Take out what a section says of annotations whose files it does not name: those are found by their places."""
    asked = section.get("annotations")
    if not isinstance(asked, dict) or any(kind in asked for kind in ANNOTATION_KINDS):
        return {}
    del section["annotations"]
    return asked


def _lay_annotations(
    section: dict[str, Any],
    form: Format[Any],
    asked: dict[str, Any],
    held: Manifest | None,
    read_as: dict[str, Any] | None,
) -> None:
    """Say of annotations that were found what is asked for, and in an append what its dataset remembers of its own."""
    keys = form.options.model_fields.keys() if section["format"] in ANNOTATION_KINDS else set[str]()
    by_place = read_as is not None and "annotations" not in read_as
    known = held.conversion.get("input", {}).get("annotations", {}) if by_place and held is not None else {}
    said = {key: value for key, value in known.items() if key in keys} | asked
    section.update(said if asked.keys() <= keys else {"annotations": asked})
    if by_place and said and read_as is not None:
        read_as["annotations"] = said


def _snapshots(document: Document, paths: list[str], base: str, call: Call) -> list[str]:
    """Return paths with the snapshot to read in place of a repository in a cache of Hugging Face's hub."""
    from ...transforms.recognise.evidence.hugging_face import snapshot_of  # it takes pyarrow

    found = []
    for path in paths:
        try:
            chosen = None if is_url(path) else snapshot_of(os.path.abspath(os.path.join(base, path)), call)
        except InputError as error:
            document.problems.append(Problem(document.place(("input", "paths")), f"input.paths: {error}"))
            return paths
        document.notes += [] if chosen is None else [f"a cache of the Hugging Face hub: read is {shown_path(chosen)}"]
        found.append(path if chosen is None else below(chosen, base))
    return found


def _resolve(document: Document, section: dict[str, Any], form: Format[Any], look: Look) -> Format[Any]:
    """Return the format of the files; one beside them may say that it is another, and changes the section then."""
    try:
        found = look.meaning_of(section)
    except InputError as error:
        document.problems.append(Problem(document.place(("input", "paths")), f"input.paths: {error}"))
        return form
    if found is None:
        return form
    document.read_as = dict(section)
    section.clear()
    section.update(found.section)
    schema = document.values.setdefault("schema", {})
    columns = schema.setdefault("columns", {}) if isinstance(schema, dict) else None
    if isinstance(columns, dict):
        for name, rule in found.columns.items():
            known, feature = columns.get(name, {}), rule.get("name", name)
            if feature not in found.known and isinstance(columns.get(feature), dict) and isinstance(known, dict):
                known = columns.pop(feature) | known  # what is said of the picture by the name that records have
            columns[name] = rule | known if isinstance(known, dict) else known
        _name_paths(document.values.get("split"), {name: columns[name] for name in found.columns})
    if isinstance(schema, dict) and found.files_root is not None:
        schema.setdefault("files_root", found.files_root)
    document.notes.append(found.evidence)
    document.picture_folders = found.folders
    return format_of(section) or form


def _name_paths(split: object, columns: Mapping[str, Any]) -> None:
    """Name columns of paths in a section `split` as records do, which have them as the names of pictures."""
    if not isinstance(split, dict):
        return
    for key in ("key", "column"):
        name = split.get(key)
        rule = columns.get(name) if isinstance(name, str) else None
        if isinstance(rule, dict) and rule.get("image") == "path":
            split[key] = f"{rule['name']}/filename"


def _detect_format(document: Document, look: Look) -> str | None:
    from ...transforms.recognise.kinds import UnclearFormat

    try:
        return look.detect()
    except InputError as error:
        held = None if document.held is None else document.held.source.format
        if held in FORMATS and isinstance(error, UnclearFormat):
            document.notes.append(
                f"the format is {held}, as in {look.call.output}; if it is not: {Add('--format', 'NAME')}"
            )
            return held
        place = document.place(("input", "paths"))
        document.problems.append(Problem(place, f"input.paths: {error}"))
        return None


def _fill_detected(
    document: Document, section: dict[str, Any], form: Format[Any], paths: list[str], look: Look
) -> None:
    """Set the option that the files show, so that it is in the config's fingerprint."""
    key = form.detected_option
    if key is None or key in section:
        return
    try:
        found = form.detect(section, paths, look.base, look.call)
    except InputError as error:
        document.problems.append(Problem(document.place(("input", "paths")), f"input.{key}: {error}"))
    except (LookupError, TypeError):  # an option that it needs is none: the model says so
        pass
    else:
        known = {} if document.held is None else document.held.conversion.get("input", {})
        held = known.get(key) if found.evidence is None and known.get("format") == section["format"] else None
        section[key] = held or found.value
        document.notes += [found.evidence] if found.evidence else []


def format_of(section: Mapping[str, Any]) -> Format[Any] | None:
    name = section.get("format")
    return FORMATS[name].load() if isinstance(name, str) and name in FORMATS else None


def below(path: str, base: str) -> str:
    """Return a path relative to the folder `base` where it is below it, else absolute; a URL as it is."""
    if is_url(path):
        return path
    absolute = os.path.abspath(os.path.join(base, path))
    relative = os.path.relpath(absolute, base)
    return absolute if relative == ".." or relative.startswith("../") else relative


def is_url(path: str) -> bool:
    return "://" in path


# The whole config.


CONFIG_SUFFIXES: Final = (".yaml", ".yml")
"""These distinguish a config from a file to convert."""

MAX_CONFIG_BYTES: Final = 16 * 2**20
"""One that declares 100,000 columns has 5 MB."""

_SIGNS: Final = frozenset(string.punctuation) - {"~"}
"""Values of `--set` that are taken as they are typed, as for a delimiter; `~` is YAML's null."""

_BRACKETS_AND_QUOTES: Final = "[]{}\"'"

_SET_PART: Final = re.compile(r'"([^"]*)"|([^".=]+)')


def load_config(
    source: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    set_values: Sequence[str] = (),
    flags: Mapping[str, object] | None = None,
    paths: Sequence[str] = (),
    data_given: bool = False,
    command: str = "convert",
    like: str | None = None,
) -> Config:
    """Return the checked config; a `ConfigError` has every problem of it, each with its place.

    Later `set_values` beat earlier ones. `flags` beat all other values: dotted key to (flag as typed, value), or to the
    value alone. `paths` stand for `input.paths`, and are relative to the working folder. With `data_given` the data
    come from Python, so that `input` may be absent. Errors propose the `command`; an `append` takes from its dataset
    what is left open, any other command from the dataset `like`.
    """
    title, base, document = _open(source)
    if not document.readable:
        raise config_error(document.problems, title)
    cwd = os.getcwd()
    _resolve_output(document, base)
    for text in set_values:
        _apply_set(document, text, cwd)
    if paths:
        _put(document, ("input", "paths"), [_absolute(path, cwd) for path in paths], COMMAND_LINE)
        base = cwd
    for key, flag in (flags or {}).items():
        shown, value = flag if isinstance(flag, tuple) else (key, flag)
        _put(document, tuple(key.split(".")), copy_values(value), Place(str(shown)))
        if str(shown).startswith("-"):
            document.given += _given(key, _as_typed(value))
        if key == "output.path":
            _resolve_output(document, cwd)
    if command == "append":
        document.held = _dataset_in(document)
    elif like is not None:
        document.held, document.like = _made_like(document, like), True
    _fill_defaults(document, base, command, data_given=data_given)
    return _check(document, title, base)


def split_sources(sources: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Return the config and the paths of what a user names to be read: the first may be a config.

    >>> split_sources(["c.yaml", "a.csv"]), split_sources(["a.csv"])
    (('c.yaml', ['a.csv']), (None, ['a.csv']))
    """
    if sources and sources[0].lower().endswith(CONFIG_SUFFIXES):
        return sources[0], sources[1:]
    return None, sources


def _open(source: str | os.PathLike[str] | Mapping[str, Any] | None) -> tuple[str, str, Document]:
    """Return the config's printable name, the folder its paths are relative to, and its values."""
    if source is None or isinstance(source, Mapping):
        values = copy_values(source or {})
        return "config", os.getcwd(), Document(values, {(): COMMAND_LINE if source is None else Place("config")})
    path = os.fspath(source)
    name = printable(path)
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_CONFIG_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{name}: the config cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: the config is not UTF-8 at byte {error.start}") from error
    if len(raw) > MAX_CONFIG_BYTES:
        raise ConfigError(f"{name}: is larger than 16 MiB, which no config is")
    return name, os.path.dirname(os.path.abspath(path)), read_document(text, name)


def _apply_set(document: Document, text: str, cwd: str) -> None:
    place = Place(f"--set {printable(text)}")
    path, value_text = split_set(text)
    if not path:
        document.problems.append(Problem(place, 'is not "key=value", like output.shard_size=256MiB'))
        return
    try:
        value = value_text if value_text in _SIGNS else _read_value(value_text, path[-1])
    except ValueError as error:
        document.problems.append(Problem(place, f"the value {error}{_quotes_hint(path, value_text, str(error))}"))
        return
    _put(document, path, value, place)
    document.given += _given(dotted(path), value_text)
    if path in (("output",), ("output", "path")):
        _resolve_output(document, cwd)
    section = document.section("input")
    if path in (("input",), ("input", "paths")) and isinstance(section.get("paths"), list):
        section["paths"] = [_absolute(one, cwd) for one in section["paths"]]
    if path == ("schema", "files_root"):
        _put(document, path, _absolute(value, cwd), place)


def _given(key: str, text: str) -> list[Set]:
    """Return what a user typed for commands that are proposed: without paths, which these have, and runners."""
    is_other = key in ("input", "output", "output.path") or key.startswith(("input.paths", "runner"))
    return [] if is_other else [Set(key, text)]


def _as_typed(value: object) -> str:
    """Return the text after `--set KEY=` that gives the value of a flag."""
    try:
        is_plain = isinstance(value, str) and (value in _SIGNS or _read_value(value) == value)
    except ValueError:
        is_plain = False
    return str(value) if is_plain else json.dumps(value, ensure_ascii=False)


def _read_value(text: str, key: str = "") -> Any:
    """Return the value of a piece of YAML; what YAML cannot read, and has none of its brackets and quotes, is text."""
    try:
        return read_scalar(text, key)
    except ValueError as error:
        if str(error).startswith(NOT_YAML) and not any(sign in text for sign in _BRACKETS_AND_QUOTES):
            return text
        raise


def _quotes_hint(path: Path, value: str, error: str) -> str:
    """Return how a value that is not YAML is given as text; one that has quotes already may be anything."""
    if not error.startswith(NOT_YAML) or any(sign in value for sign in "\"'\\"):
        return ""
    quoted = f'"{printable(value)}"'
    if value.startswith("[") and value.endswith("]"):
        quoted = "[" + ", ".join(f'"{printable(item.strip())}"' for item in value[1:-1].split(",")) + "]"
    return f"; text with such signs needs quotes inside: {Set(dotted(path), quoted)}"


def split_set(text: str) -> tuple[tuple[str, ...], str]:
    """Return the path and the value of `a."b.c".d=value`; an empty path if it is malformed."""
    parts: list[str] = []
    position = 0
    while True:
        match = _SET_PART.match(text, position)
        if match is None:
            return (), ""
        parts.append(match[1] if match[1] is not None else match[2].strip())
        position = match.end()
        if text[position : position + 1] == "=":
            return tuple(parts), text[position + 1 :]
        if text[position : position + 1] != ".":
            return (), ""
        position += 1


_SHORT: Final[dict[Path, str]] = {("image", "resize"): "size"}
"""Mappings that may be given as one value, and the key of that."""


def _put(document: Document, path: Path, value: object, place: Place) -> None:
    section: dict[str, Any] = document.values
    for depth, part in enumerate(path[:-1]):
        below = section.get(str(part))
        if below is None:
            below = section[str(part)] = {}
            document.places[path[: depth + 1]] = place
        if path[: depth + 1] in _SHORT and not isinstance(below, dict):
            below = section[str(part)] = {_SHORT[path[: depth + 1]]: below}
        if not isinstance(below, dict):
            where = dotted(path[: depth + 1])
            document.problems.append(Problem(place, f"{where}: is not a mapping, so {dotted(path)} cannot be set"))
            return
        section = below
    if path in _SHORT and isinstance(section.get(str(path[-1])), dict) and not isinstance(value, dict | None):
        section, path = section[str(path[-1])], (*path, _SHORT[path])
    section[str(path[-1])] = value
    for known in [known for known in document.places if known[: len(path)] == path]:
        del document.places[known]
        document.texts.pop(known, None)
    document.places[path] = place


def _resolve_output(document: Document, folder: str) -> None:
    output = document.section("output")
    path = output.get("path")
    if isinstance(path, str) and path and not is_url(path):
        output["path"] = os.path.abspath(os.path.join(folder, path))


def _absolute(path: object, folder: str) -> object:
    return os.path.join(folder, path) if isinstance(path, str) and path and not is_url(path) else path


def _fill_defaults(document: Document, base: str, command: str, *, data_given: bool) -> None:
    """Fill in what others decide: format and delimiter by the paths' suffixes, the name by the output folder."""
    _fill_runner(document)
    document.problems += unused_split(document)
    for text in empty_checks(document.section("checks")):
        document.problems.append(Problem(document.place(("checks", text.split(":")[0])), f"checks.{text}"))
    schema = document.section("schema")
    if isinstance(schema.get("files_root"), str) and schema["files_root"]:
        schema["files_root"] = below(schema["files_root"], base)
    if document.values.get("input") is None and not data_given:
        fix = "is missing; say what to read: input: {paths: [data/*.csv]}"
        document.problems.append(Problem(document.place(("input",)), f"input: {fix}"))
    section = document.values.get("input")
    if isinstance(section, dict):
        fill_input(document, section, base, command)
    document.named = frozenset(map(str, schema["columns"] if isinstance(schema.get("columns"), dict) else ()))
    if document.held is not None:
        lay_below(document, document.held)
    if document.values.get("name") is None:
        path = document.section("output").get("path")
        document.values["name"] = dataset_name(path if isinstance(path, str) else "")


def _dataset_in(document: Document) -> Manifest | None:
    """Return the latest generation of the dataset of an append; None where the output is none."""
    from ...transforms.dataset.storage.manifest_files import list_generations, read_manifest

    path = document.section("output").get("path")
    return read_manifest(path) if isinstance(path, str) and path and list_generations(path) else None


def _made_like(document: Document, path: str) -> Manifest:
    from ...transforms.dataset.storage.manifest_files import read_manifest

    held, where = read_manifest(path), printable_path(path)
    if held.is_of_others:
        raise UsageError(f"--like: {where} does not say how it was made, as a dataset of a conversion does")
    if functions := [one["name"] for one in held.conversion.get("map", [])]:
        call = Python(printable(f"convert(FILES, output=..., map=[{', '.join(functions)}])"))
        raise UsageError(f"--like: {where} was made with functions, which only Python can give: {call}")
    lay_sections(document, held)
    return held


def _fill_runner(document: Document) -> None:
    """Name the engine as we do, and hold the paths against what its machines can see."""
    section = document.values.get("runner")
    if not isinstance(section, dict):
        return
    name = section.setdefault("name", "local")
    section["name"] = name = RUNNER_ALIASES.get(name, name) if isinstance(name, str) else name
    if name not in tuple(RUNNERS):
        document.problems.append(Problem(document.place(("runner", "name")), f"runner.name: {not_a_runner(name)}"))
    else:
        _leave_other_runners(document, section, RUNNERS[name])
    paths = document.section("input").get("paths")
    named: dict[Path, object] = {
        ("input", "paths", i): path for i, path in enumerate(paths if isinstance(paths, list) else [])
    }
    named[("schema", "files_root")] = document.section("schema").get("files_root")
    named[("output", "path")] = document.section("output").get("path")
    for key, path in named.items():
        local_only = key == ("schema", "files_root")
        problem = out_of_reach(name, path, local_only=local_only) if isinstance(path, str) else None
        if problem is not None:
            document.problems.append(Problem(document.place(key), f"{dotted(key)}: {problem}"))


def _leave_other_runners(document: Document, section: dict[str, Any], runner: type[BaseModel]) -> None:
    """Drop what the file says of its own engine, where another one was chosen on the command line."""
    file = document.place(("runner",)).source
    if document.place(("runner", "name")).source == file:
        return
    others = {key for model in RUNNERS.values() for key in model.model_fields} - set(runner.model_fields)
    for key in [key for key in section if key in others and document.place(("runner", key)).source == file]:
        del section[key]


def _check(document: Document, title: str, base: str) -> Config:
    values, problems = document.values, list(document.problems)
    section = values.get("input")
    if isinstance(section, dict) and format_of(section) is None:
        values = {key: value for key, value in values.items() if key != "input"}  # what is wrong with it is known
    if document.section("runner").get("name", "local") not in tuple(RUNNERS):
        values = {key: value for key, value in values.items() if key != "runner"}
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        problems += problems_of(error, document)
        raise config_error(problems, title) from None
    if problems:
        raise config_error(problems, title)
    config._base = base
    config._detected = tuple(document.notes)
    config._picture_folders = document.picture_folders
    config._given = tuple(document.given)
    config._read_as = document.read_as
    config._named = document.named
    return config
