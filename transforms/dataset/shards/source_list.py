"""The list of sources: what became of each input file, one line of JSON a file (images: a folder).

    {"source": "pets/cat", "bytes": 93011, "fingerprint": "sha256:…", "files": 12,
     "read": 12, "written": 11, "rejected": 1, "dropped": 0, "notes": {"animated images, of which …": 3},
     "options": "sha256:…"}

`notes` count rows that are in order, and of which the user should know something; the key is there only if there are
any. They are kept here, and not in a log, so that a run can tell them whatever engine it ran on, and each row once,
however often its task was tried. `options`, in the list of an append only, is the fingerprint of what decides which
records a file becomes: a later append knows by it, the path and the fingerprint that the dataset holds the file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import DamageError
from ...format.flow.blocks import EntryCounts
from ...format.manifest.manifest import Manifest
from ..generations.manifest_files import read_json_lines
from ..stage.spec import EntryInfo
from ..storage.storage_at import storage_at
from .accounting import Accounts


def source_lines(entries: Sequence[EntryInfo], accounts: Accounts, options: str | None = None) -> bytes:
    """Return the list of sources, one line an entry."""
    notes: dict[int, dict[str, int]] = {}
    for (entry, text), count in accounts.notes.items():
        notes.setdefault(entry, {})[text] = count
    lines = []
    for index, info in enumerate(entries):
        row = accounts.entries.get(index, EntryCounts(index))
        document: dict[str, Any] = {
            "source": info.name, "bytes": info.bytes, "fingerprint": info.fingerprint, "files": info.files,
            "read": row.read, "written": row.written, "rejected": row.rejected, "dropped": row.dropped,
        }  # fmt: skip
        if index in notes:
            document["notes"] = notes[index]
        if options is not None:
            document["options"] = options
        lines.append(json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
    return b"".join(lines)


def read_notes(root: str, manifest: Manifest) -> dict[str, int]:
    """Return how many rows of a published generation there are of each note, from its list of sources.

    Raises:
        DamageError: the list is missing, or a line of it is not a JSON object.
    """
    notes: Counter[str] = Counter()
    for number, document in _read_list(root, manifest):
        found = document.get("notes", {})
        if not isinstance(found, dict) or any(type(count) is not int for count in found.values()):
            raise DamageError(f"{manifest.source.list}: line {number} has notes that are not counts")
        notes.update(found)
    return dict(sorted(notes.items()))


@dataclass(frozen=True, slots=True)
class HeldSource:
    """An input file (images: a folder) that a generation read; `options` is None in what an append did not write.

    `rejected` says that all that was in it was rejected.
    """

    name: str
    fingerprint: str
    generation: int
    options: str | None = None
    rejected: bool = False


def read_held_sources(root: str, manifest: Manifest) -> Iterator[HeldSource]:
    """Yield the input files of one generation, published or not.

    Raises:
        DamageError: the list is missing, or a line of it is not of the form.
    """
    for number, document in _read_list(root, manifest):
        name, fingerprint, options = (document.get(key) for key in ("source", "fingerprint", "options"))
        if not isinstance(name, str) or not isinstance(fingerprint, str) or not isinstance(options, str | None):
            raise DamageError(f"{manifest.source.list}: line {number} names no file, or no fingerprint")
        rejected = bool(document.get("rejected")) and not document.get("written")
        yield HeldSource(name, fingerprint, manifest.generation, options, rejected)


def _read_list(root: str, manifest: Manifest) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the lines of a generation's list of sources, numbered."""
    yield from _read_lines(root, manifest, manifest.source.list, "sources.jsonl")


def read_rejects(root: str, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the lines of a generation's reject file, published or not.

    Raises:
        DamageError: the file is missing, or a line is not a JSON object.
    """
    for _, document in _read_lines(root, manifest, manifest.rejects.path, "rejects.jsonl"):
        yield document


def _read_lines(root: str, manifest: Manifest, path: str | None, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the lines of a list of a generation, numbered; it is in staging until it is published."""
    if path is None:
        return
    staged = f"{manifest.run.staging}/{name}"
    storage = storage_at(root)
    if not storage.lies_at(path) and storage.lies_at(staged):
        path = staged
    yield from read_json_lines(root, path)
