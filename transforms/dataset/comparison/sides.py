"""One side of a comparison: a generation of a dataset, by one document of its manifest and no list of shards."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...format.manifest.manifest import Manifest
from ...format.wording.printable import printable_path
from ...statistics.figures import Statistics
from ..generations.manifest_files import list_generations, read_overview
from ..generations.opened_generation import open_generation
from ..generations.statistics_file import read_stats
from ..shards.source_list import read_held_sources

_GENERATION: Final = re.compile(r"(.+)@([0-9]{1,19})")


@dataclass(frozen=True, slots=True)
class Side:
    """A generation; in `manifest` each part of the list of shards is one shard, and `shards` is how many there are."""

    path: str
    manifest: Manifest
    shards: dict[str, int]

    @classmethod
    def open(cls, name: str) -> Side:
        """Open `FOLDER`, whose latest generation it is, or `FOLDER@3`."""
        match = None if os.path.isdir(name) else _GENERATION.fullmatch(name)
        if match:
            open_generation(match[1], int(match[2]))  # refuses one that was replaced
        return cls._of(match[1], int(match[2])) if match else cls._of(name, None)

    @classmethod
    def _of(cls, path: str, generation: int | None) -> Side:
        found = read_overview(path.rstrip("/") or path, generation)
        return cls(found.path, found.manifest, found.shards)

    @property
    def name(self) -> str:
        return f"{printable_path(self.path)}, generation {self.manifest.generation}"

    @property
    def is_older(self) -> bool:
        """Whether the dataset has a later generation: statistics are those of the latest alone."""
        return any(one > self.manifest.generation for one in list_generations(self.path))

    def statistics(self) -> Statistics | None:
        return read_stats(self.path, self.manifest)

    def sources(self) -> dict[str, str]:
        held = (one for manifest in self._lineage() for one in read_held_sources(self.path, manifest))
        return {one.name: one.fingerprint for one in held}

    def _lineage(self) -> Iterator[Manifest]:
        side = self
        yield side.manifest
        while side.manifest.parent is not None and side.manifest.parent < side.manifest.generation:
            side = Side._of(self.path, side.manifest.parent)
            yield side.manifest
