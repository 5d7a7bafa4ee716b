"""The list of sources: what became of each input file, one line of JSON a file (images: a folder).

    {"source": "pets/cat", "bytes": 93011, "fingerprint": "sha256:…", "files": 12,
     "read": 12, "written": 11, "rejected": 1, "dropped": 0, "notes": {"animated images, of which …": 3}}

`notes` count rows that are in order, and of which the user should know something; the key is there only if there are
any. They are kept here, and not in a log, so that a run can tell them whatever engine it ran on, and each row once,
however often its task was tried.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..errors import DamageError
from ..format.blocks import EntryCounts
from ..format.manifest import Manifest
from .accounting import Accounts
from .generations import read_json_lines
from .spec import EntryInfo


def source_lines(entries: Sequence[EntryInfo], accounts: Accounts) -> bytes:
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
        lines.append(json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
    return b"".join(lines)


def read_notes(root: str, manifest: Manifest) -> dict[str, int]:
    """Return how many rows of a published generation there are of each note, from its list of sources.

    Raises:
        DamageError: the list is missing, or a line of it is no JSON object.
    """
    notes: Counter[str] = Counter()
    if manifest.source.list is not None:
        for number, document in read_json_lines(root, manifest.source.list):
            found = document.get("notes", {})
            if not isinstance(found, dict) or any(type(count) is not int for count in found.values()):
                raise DamageError(f"{manifest.source.list}: line {number} has notes that are no counts")
            notes.update(found)
    return dict(sorted(notes.items()))
