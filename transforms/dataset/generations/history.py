"""The history of a dataset: its generations, and what each of them added."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from ...errors import DamageError
from ...format.manifest.manifest import Manifest
from .manifest_files import PartCache, list_generations, read_manifest, replacements


@dataclass(frozen=True, slots=True)
class GenerationInfo:
    """One generation: what it added, and what the dataset held with it.

    `records`, `shards` and `bytes` are those of the shards that it added; `total_records` and `total_bytes` those of
    all its shards. `files` and `source_bytes` are what it read. One that was replaced (`replaced_by`) can no longer be
    read: the rows are gone, its manifest is left. `functions` are the user's own steps that its parent did not have,
    `left` those that only its parent had. If its manifest cannot be read, `problem` says why, and all else is zero or
    empty.
    """

    generation: int
    parent: int | None = None
    operation: str = ""
    created: str = ""
    records: int = 0
    shards: int = 0
    bytes: int = 0
    total_records: int = 0
    total_bytes: int = 0
    rejected: int = 0
    source_format: str = ""
    files: int = 0
    source_bytes: int = 0
    sources: str | None = None
    runner: str = ""
    problem: str | None = None
    replaced_by: int | None = None
    functions: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "generation": self.generation,
            "parent": self.parent,
            "operation": self.operation or None,
            "created": self.created or None,
            "added": {"records": self.records, "shards": self.shards, "bytes": self.bytes},
            "total": {"records": self.total_records, "bytes": self.total_bytes},
            "rejected": self.rejected,
            "source": {
                "format": self.source_format or None,
                "files": self.files,
                "bytes": self.source_bytes,
                "list": self.sources,
            },
            "runner": self.runner or None,
            "replaced_by": self.replaced_by,
            "functions": list(self.functions),
            "functions_left": list(self.left),
            "problem": self.problem,
        }


def list_history(path: str | os.PathLike[str]) -> list[GenerationInfo]:
    """Return the generations of the dataset in a folder, the first one first."""
    root = os.fspath(path)
    known = list_generations(root)
    if not known:
        return [_info(read_manifest(root))]  # a lone manifest.json, or none
    history, parts, known_functions = list[GenerationInfo](), PartCache(root), dict[int, Any]()
    for number in known:
        try:
            manifest = read_manifest(root, number, parts)
            functions = known_functions[number] = manifest.conversion.get("map", [])
            before = known_functions.get(manifest.parent or 0, functions)
            other = tuple(one["name"] for one in functions if one not in before)
            left = {one["name"] for one in before} - {one["name"] for one in functions}
            history.append(replace(_info(manifest), functions=other, left=tuple(sorted(left))))
        except DamageError as error:
            history.append(GenerationInfo(number, problem=str(error)))
    by = replacements({one.generation: one.parent for one in history if one.problem is None})
    return [replace(one, replaced_by=by.get(one.generation)) for one in history]


def _info(manifest: Manifest) -> GenerationInfo:
    added = manifest.own_shards
    return GenerationInfo(
        generation=manifest.generation,
        parent=manifest.parent,
        operation=manifest.operation,
        created=manifest.run.created,
        records=sum(shard.records for shard in added),
        shards=len(added),
        bytes=sum(shard.bytes for shard in added),
        total_records=sum(split.records for split in manifest.splits.values()),
        total_bytes=sum(split.bytes for split in manifest.splits.values()),
        rejected=manifest.counts.rejected,
        source_format=manifest.source.format,
        files=manifest.source.files,
        source_bytes=manifest.source.bytes,
        sources=manifest.source.list,
        runner=manifest.run.runner,
    )
