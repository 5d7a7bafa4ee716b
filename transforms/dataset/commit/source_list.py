"""The list of sources: what became of each input file, one line of JSON a file (images: a folder).

    {"source": "pets/cat", "bytes": 93011, "fingerprint": "sha256:…", "files": 12,
     "read": 12, "written": 11, "rejected": 1, "dropped": 0, "notes": {"animated images, of which …": 3},
     "constants": "…"}

`notes` count rows that are in order, and of which the user should know something; the key is there only if there are
any. They are kept here, and not in a log, so that a run can tell them whatever engine it ran on, and each row once,
however often its task was tried. `constants`, in the list of an append only, are the columns
of one value that its rows have, as JSON, where the dataset's rows have others: with other constants a file is other
rows.

A dataset that is made of datasets carries their lists on: after its own lines come theirs, with `"carried": true`.
Their counts are those of the run that read the file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...format.batches.rows import EntryCounts
from ...format.manifest.manifest import Manifest
from ...format.wording.printable import printable_path
from ..stage.spec import EntryInfo
from ..storage.manifest_files import lineage, read_manifest, read_reject_lines, read_source_lines
from ..storage.object_storage import storage_at
from .accounting import Accounts


def source_lines(entries: Sequence[EntryInfo], accounts: Accounts, constants: str | None = None) -> bytes:
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
        if constants is not None:
            document["constants"] = constants
        lines.append(_line(document))
    return b"".join(lines)


def carried_lines(datasets: Iterable[tuple[str, int]]) -> Iterator[bytes]:
    """Yield the lines of the lists of sources of some datasets, each a folder and a generation, as those carried on.

    Equal files are listed once, without their constants. The shards that a dataset
    had before it was rebuilt in its place are left out: their sources are listed, and each rebuild would add more.
    """
    seen: set[tuple[str, str]] = set()
    for root, generation in datasets:
        for manifest in lineage(root, read_manifest(root, generation)):
            for _, document in _read_list(root, manifest):
                held = _held(manifest, document)
                key = held.name, held.fingerprint
                folder = os.path.dirname(held.name)
                rebuilt = manifest.operation == "merge" and "carried" not in document
                if key in seen or (rebuilt and is_path_of(folder, "", os.fsencode(root))):
                    continue
                seen.add(key)
                kept = {name: value for name, value in document.items() if name not in ("notes", "constants")}
                yield _line(kept | {"carried": True})


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def read_notes(root: str, manifest: Manifest) -> dict[str, int]:
    notes: Counter[str] = Counter()
    for _, document in _read_list(root, manifest):
        notes.update(document.get("notes", {}))
    return dict(sorted(notes.items()))


@dataclass(frozen=True, slots=True)
class HeldSource:
    """An input file (images: a folder) that a generation read; `constants` are None where they are the dataset's.

    `bytes` is its size. `rejected` says that all that was in it was rejected, `written` that records were made of it.
    """

    name: str
    fingerprint: str
    generation: int
    constants: str | None = None
    rejected: bool = False
    written: bool = True
    bytes: int = 0


def is_path_of(name: str, shown: str, path: bytes) -> bool:
    """Return whether a name that a dataset knows is of a file, which is `shown` so now."""
    whole = printable_path(path)
    return name == shown or whole == name or whole.endswith("/" + name.removeprefix("/"))


def read_held_sources(root: str, manifest: Manifest) -> Iterator[HeldSource]:
    """Yield the input files of one generation, published or not."""
    for _, document in _read_list(root, manifest):
        yield _held(manifest, document)


def _held(manifest: Manifest, document: dict[str, Any]) -> HeldSource:
    rejected, written = (bool(document[key]) for key in ("rejected", "written"))
    constants, size = document.get("constants"), document["bytes"]
    name, fingerprint = document["source"], document["fingerprint"]
    return HeldSource(name, fingerprint, manifest.generation, constants, rejected and not written, written, size)


def _read_list(root: str, manifest: Manifest) -> Iterator[tuple[int, dict[str, Any]]]:
    path = _place_of(root, manifest, manifest.source.list, "sources.jsonl")
    if path is not None:
        yield from read_source_lines(root, path)


def read_rejects(root: str, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the lines of a generation's reject file, published or not."""
    path = _place_of(root, manifest, manifest.rejects.path, "rejects.jsonl")
    if path is not None:
        for _, document in read_reject_lines(root, path):
            yield document


def _place_of(root: str, manifest: Manifest, path: str | None, name: str) -> str | None:
    """Return where a list of a generation is: in staging until it is published."""
    staged, storage = f"{manifest.run.staging}/{name}", storage_at(root)
    return staged if path is not None and not storage.lies_at(path) and storage.lies_at(staged) else path
