"""Put a manifest: its parts, and then, in one step that one writer wins, the document that names them.

    manifests/shards-….json  ... ──▶ durable ──▶ manifests/0000000N.json, if absent ──▶ are all parts there still?

A part may be there already: the generation before names it, or a run left it that lost or died, and `gc` is about to
remove it. So the commit checks again afterwards, and so does `gc`:

    commit    part is there ── puts manifest ── is the part there still?            else it is written again
    gc                  removes part ── does a manifest name it that is new?        then it is put back

Whichever of the two looks last sees what the other one did.
"""

from __future__ import annotations

from collections.abc import Collection

from ...errors import DamageError
from ...format.manifest.manifest import Manifest
from ...format.manifest.naming import generation_file
from ...format.manifest.parts import LIMITS, ManifestLimits, parse_part
from ...format.wording.sizes import format_size
from ..storage.contract import Storage


class Documents:
    """The documents of a manifest, serialized once."""

    def __init__(self, manifest: Manifest, limits: ManifestLimits = LIMITS) -> None:
        self._limits = limits
        self._path = generation_file("manifests", manifest.generation, "json")
        self._main, self._parts = manifest.to_documents()

    def problem(self) -> str | None:
        """Return the limit that no reader would take the manifest above, or None if it is below all."""
        limits, largest = self._limits, max(map(len, self._parts.values()), default=0)
        if len(self._main) > limits.bytes:
            return f"{format_size(len(self._main))}, over the limit of {format_size(limits.bytes)}"
        if len(self._parts) > limits.parts:
            return f"{len(self._parts)} parts, over the limit of {limits.parts}"
        if largest > limits.part_bytes:
            return f"a part of {format_size(largest)}, over the limit of {format_size(limits.part_bytes)}"
        try:
            for path, data in self._parts.items():
                parse_part(data, path, path)
        except DamageError as error:
            return f"a part that cannot be read ({error})"
        return None

    def put(self, storage: Storage, held: Collection[str] = ()) -> bool:
        """Create the manifest, if there is none of its number; return whether this run's manifest has the number.

        `held` are the parts that the generation before names, which have just been read.
        """
        for path, data in self._parts.items():
            # one that is there is of these bytes, or damaged
            if path not in held and not storage.put_if_absent(path, data) and storage.read(path) != data:
                storage.replace(path, data)
        if not storage.put_if_absent(self._path, self._main):
            return False
        there = {f"manifests/{name}" for name in storage.list("manifests")} if self._parts else set()
        for path in self._parts.keys() - there:
            storage.replace(path, self._parts[path])
        return True
