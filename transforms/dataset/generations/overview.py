"""A dataset at a glance: what its latest manifest states, without its parts, and which generations there are."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InputError
from ...format.manifest.manifest import Manifest
from ...format.manifest.naming import generation_file
from ...format.manifest.parser import parse_overview
from ...format.manifest.parts import LIMITS
from ...format.wording.printable import printable_path
from ..storage.storage_at import storage_at
from .manifest_files import list_generations, read_file


@dataclass(frozen=True, slots=True)
class Overview:
    """A dataset's contents: `manifest` has its totals, each part as one shard; `shards` is how many a split has."""

    path: str
    manifest: Manifest
    generations: tuple[int, ...]
    shards: dict[str, int]


def read_overview(root: str) -> Overview:
    """Return what the latest generation of a dataset holds: one list and one file are read, however large it is.

    Raises:
        InputError: the folder holds no dataset.
        DamageError: the manifest is damaged.
    """
    generations = list_generations(root)
    path = generation_file("manifests", generations[-1], "json") if generations else "manifest.json"
    if not generations and not storage_at(root).lies_at(path):
        raise InputError(f"{printable_path(root)}: no dataset: it has neither manifests/ nor manifest.json")
    manifest, shards = parse_overview(read_file(root, path, LIMITS.bytes), printable_path(f"{root}/{path}"))
    return Overview(root, manifest, generations or (manifest.generation,), shards)
