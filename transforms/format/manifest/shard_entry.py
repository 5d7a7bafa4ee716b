"""A shard as manifests state it, and the line that it takes there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_dump: Final = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """One shard. `crc32c` is of the whole file, as 8 lower-case hex digits; `generation` is the one that added it."""

    path: str
    generation: int
    records: int
    bytes: int
    crc32c: str


def shard_list(shards: Iterable[ShardEntry]) -> str:
    return f"[{','.join(map(_line, shards))}]"


def _line(shard: ShardEntry) -> str:
    """Return the line of a shard; not by way of a dict, as there may be a million."""
    return (
        f'\n  {{"path": {_dump(shard.path)}, "generation": {shard.generation}, "records": {shard.records}, '
        f'"bytes": {shard.bytes}, "crc32c": {_dump(shard.crc32c)}}}'
    )
