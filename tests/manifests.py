"""A manifest for tests, of which each states what it is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shardmill.transforms.format.manifest.manifest import Manifest, RejectSummary, RowCounts, RunInfo, SourceSummary
from shardmill.transforms.format.schema.schema import Schema

_EMPTY = Manifest(
    generation=1,
    parent=None,
    operation="create",
    name="dataset",
    version="1.0.0",
    order="task",
    compression="none",
    shard_size=65536,
    shard_name="{split}-{index:05d}",
    config_fingerprint="sha256:" + "1" * 64,
    schema_fingerprint=None,
    source=SourceSummary("csv", 1, 10, "sources/00000001.jsonl"),
    counts=RowCounts(0, 0, 0, 0),
    rejects=RejectSummary(None, 0),
    schema=Schema(()),
    labels={},
    narrowed=(),
    splits={},
    sidecars=(),
    run=RunInfo("2026-01-31T12:00:00Z", "0" * 16, "id", ".staging/" + "0" * 16, "sha256:" + "0" * 64, "local", {}),
)


def manifest_with(**fields: Any) -> Manifest:
    """Return the manifest of a first generation with these fields; it has no records but for what they say."""
    return replace(_EMPTY, **fields)
