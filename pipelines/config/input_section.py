"""Fill in the section `input` of a config: what its files show, and those beside them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ...transforms.errors import InputError
from ...transforms.format.wording.hints import Add
from ...transforms.inputs.contract.call import Call, shown_path, typed_path
from ...transforms.inputs.files.formats import FORMATS
from ...transforms.sources.images.options import ANNOTATION_KINDS
from ...transforms.sources.registry.options import InputOfUnknownFormat
from .errors import problems_of, unknown_format
from .model import input_of_any_format
from .remembered import lay_input
from .yaml_reader import Document, Problem

if TYPE_CHECKING:
    from ...transforms.format.manifest.manifest import Manifest
    from ...transforms.recognise.rules import Look
    from ...transforms.sources.registry.format import Format


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
    """Say of annotations that were found what is asked for, and in an append what its dataset remembers of its own.

    A dataset remembers it as said of the pictures, which the section `read_as` is of.
    """
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
