"""Put a manifest: its parts, and then, in one step that one writer wins, the document that names them.

    manifests/shards-….json  ... ──▶ durable ──▶ manifests/0000000N.json, if absent ──▶ are all parts there still?

A part that nobody names may be there already, left by a run that lost or died, and `gc` about to remove it for its age.
So a part is written also if it is there, with the very bytes that it has, which makes it young. Only those that the
generation before names are left as they are: `gc` keeps what the latest generation needs, and as soon as there is a
later one this manifest cannot be put any more. If yet one is gone after the commit, it is written again.
"""

from __future__ import annotations

from collections.abc import Collection

from ..format.manifest import Manifest
from ..format.manifest_parser import MANIFEST_LIMIT
from ..format.manifest_parts import MOST_PARTS, PART_LIMIT
from ..format.naming import generation_file
from ..format.sizes import format_size
from .storage_contract import Storage


class Documents:
    """What there is to write of a manifest, serialized once."""

    def __init__(self, manifest: Manifest) -> None:
        self._path = generation_file("manifests", manifest.generation, "json")
        self._main, self._parts = manifest.to_documents()

    def problem(self) -> str | None:
        """Return the limit that no reader would take the manifest above, or None if it is below all."""
        largest = max(map(len, self._parts.values()), default=0)
        if len(self._main) > MANIFEST_LIMIT:
            return f"{format_size(len(self._main))}, over the limit of {format_size(MANIFEST_LIMIT)}"
        if len(self._parts) > MOST_PARTS:
            return f"{len(self._parts)} parts, over the limit of {MOST_PARTS}"
        if largest > PART_LIMIT:
            return f"a part of {format_size(largest)}, over the limit of {format_size(PART_LIMIT)}"
        return None

    def put(self, storage: Storage, held: Collection[str] = ()) -> bool:
        """Make the manifest, if there is none of its number; say whether it is ours.

        `held` are the parts that the generation before names, which have just been read.
        """
        for path, data in self._parts.items():
            if path not in held:
                storage.replace(path, data)
        if not storage.put_if_absent(self._path, self._main):
            return False
        there = {f"manifests/{name}" for name in storage.list("manifests")} if self._parts else set()
        for path in self._parts.keys() - there:
            storage.replace(path, self._parts[path])
        return True
