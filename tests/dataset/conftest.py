from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.format.manifest.manifest import Manifest, RowCounts, ShardEntry, SourceSummary, SplitEntry
from shardmill.transforms.format.manifest.naming import shard_file_name
from shardmill.transforms.format.schema.schema import Schema
from shardmill.transforms.format.sidecars.sidecar_files import sidecar_files
from shardmill.transforms.format.tfrecord.framing import record_digests

from ..manifests import manifest_with

DatasetBuilder = Callable[..., Manifest]


def _build_dataset(
    root: Path,
    splits: Mapping[str, Sequence[Sequence[bytes]]],
    schema: Schema | None = None,
    *,
    labels: Mapping[str, tuple[str, ...]] | None = None,
    compression: str = "none",
    shard_size: int = 65536,
    image_formats: frozenset[str] | None = None,
    **changes: Any,
) -> Manifest:
    """Write a dataset without the sink: its shards hold the given payloads, its manifest states what they hold."""
    entries = {name: _write_split(root, name, shards, compression, shard_size) for name, shards in splits.items()}
    records = sum(entry.records for entry in entries.values())
    stated: dict[str, Any] = {
        "compression": compression,
        "shard_size": shard_size,
        "schema_fingerprint": None if schema is None else schema.fingerprint(),
        "source": SourceSummary("csv", 0, 0, None),
        "counts": RowCounts(records, records, 0, 0),
        "schema": schema,
        "labels": dict(labels or {}),
        "splits": entries,
    }
    sidecars = sidecar_files(manifest_with(**stated | changes), ("tfds", "tfx"), image_formats)
    manifest = manifest_with(**stated | {"sidecars": tuple(sorted(sidecars))} | changes)
    for name, data in sidecars.items():
        (root / name).write_bytes(data)
    (root / "manifests").mkdir(exist_ok=True)
    (root / "manifests" / f"{manifest.generation:08d}.json").write_bytes(manifest.to_bytes())
    (root / "manifest.json").write_bytes(manifest.to_bytes())
    return manifest


def _write_split(
    root: Path, name: str, shards: Sequence[Sequence[bytes]], compression: str, shard_size: int
) -> SplitEntry:
    written = []
    for index, payloads in enumerate(shards):
        file = shard_file_name("{split}-{index:05d}", name, index, len(shards), compression)
        write_records(os.fspath(root / file), payloads, compression)  # type: ignore[arg-type]
        data = (root / file).read_bytes()
        written.append(ShardEntry(file, 1, len(payloads), len(data), f"{crc32c(data):08x}"))
    payloads = [payload for shard in shards for payload in shard]
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    digest = record_digests(lengths, np.array([crc32c(payload) for payload in payloads], np.uint32))
    return SplitEntry(
        records=len(payloads),
        bytes=sum(shard.bytes for shard in written),
        unit_bytes=max([shard_size // 256, *(len(payload) + 16 for payload in payloads)]),
        records_digest=f"sum128:{digest:032x}",
        shards=tuple(written),
    )


@pytest.fixture
def build_dataset() -> DatasetBuilder:
    return _build_dataset
