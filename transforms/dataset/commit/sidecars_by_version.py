"""Replace the sidecars of a dataset in a store: without a lock, and never by those of an older generation.

    publisher of 5   sees version a ── lists: 5 is the latest ──────────────── put if still a ─▶ no: looks again
    publisher of 6                          commits 6 ── ... ── put: version b ─┘                lists: 6, and stops

A writer that replaces a file looks at its version first, then at the generations. So if a newer generation came
before, it is seen; and if it comes later, its publisher replaces what was put here.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import CommitError
from ...format.manifest.manifest import Manifest
from ...format.manifest.naming import generation_file, staged_sidecar
from ...format.sidecars.sidecar_files import in_publishing_order
from ..generations.manifest_files import list_generations
from ..storage.object_storage import ObjectStorage


def replace_sidecars(storage: ObjectStorage, manifest: Manifest) -> bool:
    """Replace all sidecars and `manifest.json`; return whether they are this generation's now, and no newer one's."""
    names = in_publishing_order(name for name in manifest.sidecars if not name.startswith("index/"))
    files: list[tuple[str, Callable[[], bytes | None]]] = [(name, _staged(storage, manifest, name)) for name in names]
    committed = generation_file("manifests", manifest.generation, "json")
    for name, contents in [*files, ("manifest.json", lambda: storage.read(committed))]:
        data = contents()
        if data is None:
            continue  # published by another process, which removed what was staged
        while True:
            version = storage.version(name)
            if list_generations(storage.root)[-1] != manifest.generation:
                return False
            if storage.replace_if(name, data, version):
                break
    return True


def _staged(storage: ObjectStorage, manifest: Manifest, name: str) -> Callable[[], bytes | None]:
    def read() -> bytes | None:
        path = staged_sidecar(manifest.run.staging, name)
        try:
            return storage.read(path)
        except FileNotFoundError:
            if storage.size(name) is None:
                raise CommitError(f"{storage.path(name)} was committed, but is neither there nor in {path}") from None
            return None

    return read
