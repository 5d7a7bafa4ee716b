"""Pick the source of some paths by what they look like, with every option at its default."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...errors import InputError
from ...format.wording.printable import printable_path
from ...inputs.contract.call import Call
from ...inputs.contract.source import Source
from ...inputs.files.formats import FORMATS
from ...recipe.source import with_steps
from ...recipe.steps.boxes import BoxesByType
from ...recipe.steps.label import ClassesOfFiles
from ...recipe.steps.pictures import ExportedPictures
from ...recognise.rules import Look
from .settings import Settings


def pick_source(paths: Sequence[str], base: str | None = None, *, records: bool = False) -> Source:
    """Return the source that reads these files, globs or folders: by their suffixes, and CSV by its delimiter.

    `base` is the folder that relative paths start from, and that names are shown relative to: the working folder. With
    `records` it may be a source of whole records. Raises `InputError` where a path matches nothing, the formats differ,
    or a format is unknown or has a source elsewhere.
    """
    folder = os.getcwd() if base is None else base
    look = Look(paths, folder)
    kind = look.detect()
    found = FORMATS[kind].load()
    if not (found.has_rows or records):
        others = ", ".join(name for name, entry in FORMATS.items() if entry.load().has_rows)
        raise InputError(f"{kind} files have no rows to read; the formats are {others}")
    given: dict[str, Any] = {"format": kind, "paths": list(paths)}
    notes: tuple[str, ...] = ()
    if found.detected_option is not None:
        shown = found.detect(given, paths, folder, Call())
        given[found.detected_option] = shown.value
        notes = (shown.evidence,) if shown.evidence else ()
    if look.meaning_of(given) is not None:
        raise InputError(
            f"{printable_path(paths[0])}: a table beside the pictures names them: `convert` reads it, and this source "
            f"does not; read the folders alone: ImageSource(ImagesInput(paths={list(paths)!r}), Settings({folder!r}))"
        )
    options = found.options.model_construct(**given)  # as they are: a path need not be UTF-8
    source = found.source(options, Settings(folder, detected=notes))
    by_type = (ClassesOfFiles(), ExportedPictures(), BoxesByType(form="xywh"))
    return with_steps(source, found.steps(options), by_type=by_type) if found.has_rows else source
