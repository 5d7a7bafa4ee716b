"""The parts of a manifest: every full 10,000 shards of a split are in a document of their own.

    shards 0 to 9,999         manifests/shards-3b6f0a4c2e119b517c1e4c390b7e6d52.json
    shards 10,000 to 19,999   manifests/shards-8a1c5d5f9e0b47d2a6630f5e2b9c4d17.json
    shards 20,000 to 23,456   the manifest itself, which names the two

What is in which part follows from the list of shards alone, and the name of a part from its bytes. So an append
names the parts of the generation before, with no need to know of them, and a part that was read once is known for good:
no other bytes can have its name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...errors import DamageError
from .shard_entry import ShardEntry, shard_list
from .shard_lines import read_shard_list

PART_SHARDS: Final = 10_000
"""1.1 MB, read in 30 ms: a dataset of fewer shards is one document, and one of a million names a hundred."""

_HEAD: Final = '{"format": "shardmill.shards", "format_version": 1, "shards": '
_END: Final = ', "end": true}\n'
_PATH: Final = re.compile(r"manifests/shards-([0-9a-f]{32})\.json")
_NAMED: Final = re.compile(rb'"(manifests/shards-[0-9a-f]{32}\.json)"')


@dataclass(frozen=True, slots=True)
class ManifestLimits:
    """The most bytes of a manifest and of a part, and parts of a manifest: what is larger is refused before it is read.

    A million shards in one document take about 110 MB; a part has room for names as long as file systems have them.
    The parts are two million shards, which take 0.6 GB in memory.
    """

    bytes: int = 128 << 20
    part_bytes: int = 4 << 20
    parts: int = 200


LIMITS: Final = ManifestLimits()


@dataclass(frozen=True, slots=True)
class PartEntry:
    """One part, as the manifest names it: its path, and how many shards, records and bytes of shards it states."""

    path: str
    shards: int
    records: int
    bytes: int

    @classmethod
    def of(cls, path: str, shards: Sequence[ShardEntry]) -> PartEntry:
        return cls(path, len(shards), sum(shard.records for shard in shards), sum(shard.bytes for shard in shards))


@dataclass(frozen=True, slots=True)
class Part:
    """One part, as it is written."""

    entry: PartEntry
    data: bytes


def is_part_path(path: str) -> bool:
    """Return whether a part may have this path.

    >>> is_part_path("manifests/shards-3b6f0a4c2e119b517c1e4c390b7e6d52.json"), is_part_path("manifests/00000001.json")
    (True, False)
    """
    return _PATH.fullmatch(path) is not None


def parts_named_in(document: bytes) -> set[str]:
    """Return the paths of all parts that a manifest names, whatever else is in it.

    >>> parts_named_in(b'{"path": "manifests/shards-3b6f0a4c2e119b517c1e4c390b7e6d52.json", "sh')
    {'manifests/shards-3b6f0a4c2e119b517c1e4c390b7e6d52.json'}
    """
    return {path.decode() for path in _NAMED.findall(document)}


def in_parts(shards: Sequence[ShardEntry]) -> Iterator[Part]:
    """Yield the parts of a split's shards, in order; those after the last full part are in the manifest."""
    for start in range(0, len(shards) - PART_SHARDS + 1, PART_SHARDS):
        yield _part(shards[start : start + PART_SHARDS])


def behind_parts(shards: Sequence[ShardEntry]) -> Sequence[ShardEntry]:
    return shards[len(shards) // PART_SHARDS * PART_SHARDS :]


def parse_part(data: bytes, path: str, name: str, *, most_bytes: int = LIMITS.part_bytes) -> tuple[ShardEntry, ...]:
    """Raise `DamageError` where `path` was not made of these bytes; `name` is how messages call the file."""
    if len(data) > most_bytes:
        raise DamageError(f"{name}: over {most_bytes} bytes")
    if path != _path(data):
        raise DamageError(f"{name}: damaged: its bytes are not those that it is named by")
    head, end = _HEAD.encode(), _END.encode()
    shards = None
    if data.startswith(head) and data.endswith(end):
        shards = read_shard_list(data, len(head), len(data) - len(end))
    if shards is None or len(shards) != PART_SHARDS:
        raise DamageError(f"{name}: no list of {PART_SHARDS:,} shards in the canonical form")
    return shards


def _part(shards: Sequence[ShardEntry]) -> Part:
    data = f"{_HEAD}{shard_list(shards)}{_END}".encode()
    return Part(PartEntry.of(_path(data), shards), data)


def _path(data: bytes) -> str:
    return f"manifests/shards-{hashlib.sha256(data).hexdigest()[:32]}.json"
