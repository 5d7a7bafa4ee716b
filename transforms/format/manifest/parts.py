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
import json
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...errors import DamageError
from .naming import SHARD_PATH

# A shard as manifests state it, and the line that it takes there.


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


# The shards of a manifest in its canonical form, read by a pattern: a million of them in seconds.
#
#     "shards": [                                                                              "shards": ["<mark>:0"]
#       {"path": "train-00000.tfrecord", "generation": 1, "records": 9, "bytes": 63706, ...},  ──▶
#       {"path": "train-00001.tfrecord", "generation": 1, "records": 8, ...}]
#
# A list that is written exactly so, and whose values are all in range, is taken out of the document before that is
# parsed, and a mark nobody can foresee put in its place. Any other list stays, for the parser to take or to refuse
# with its reason. What is between the brackets are whole JSON objects, so the document is valid if it was before; and
# no string can hold such a list, as a string has no bare line end.


_NUMBER: Final = rb"[1-9][0-9]{0,17}"  # from 1, and below 2**63 whatever the digits
_VALUES: Final = (SHARD_PATH.pattern.encode(), _NUMBER, _NUMBER, _NUMBER, rb"[0-9a-f]{8}")
_LINE: Final = rb'\n  \{"path": "%b", "generation": %b, "records": %b, "bytes": %b, "crc32c": "%b"\}'
_ONE: Final = re.compile(_LINE % tuple(b"(%b)" % value for value in _VALUES))
_LINES: Final = rb"\[(%b(?:,%b)*+)\]" % (_LINE % _VALUES, _LINE % _VALUES)
_LIST: Final = re.compile(rb'"shards": ' + _LINES)
_LIST_ALONE: Final = re.compile(_LINES)


@dataclass(frozen=True, slots=True)
class ShardLists:
    """A document without the lists of shards that are written in the canonical form, and those that are not taken yet.

    One that nobody takes was where no list of shards belongs.
    """

    document: bytes
    lists: dict[str, tuple[ShardEntry, ...]] = field(default_factory=dict)

    def take(self, value: object) -> tuple[ShardEntry, ...] | None:
        """Return the list that a value of the parsed document stands for, once; None for any other value."""
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
            return self.lists.pop(value[0], None)
        return None


def take_shard_lists(data: bytes) -> ShardLists:
    mark = secrets.token_hex(16)
    lists: dict[str, tuple[ShardEntry, ...]] = {}

    def take(found: re.Match[bytes]) -> bytes:
        name = f"{mark}:{len(lists)}"
        lists[name] = tuple(map(_entry, _ONE.finditer(data, found.start(1), found.end(1))))
        return f'"shards": ["{name}"]'.encode()

    return ShardLists(_LIST.sub(take, data), lists)


def read_shard_list(data: bytes, start: int, end: int) -> tuple[ShardEntry, ...] | None:
    """Return the shards of a list that is written in the canonical form from `start` to `end`; None for all else."""
    found = _LIST_ALONE.fullmatch(data, start, end)
    return None if found is None else tuple(map(_entry, _ONE.finditer(data, found.start(1), found.end(1))))


def _entry(line: re.Match[bytes]) -> ShardEntry:
    path, generation, records, size, crc32c = line.groups()
    return ShardEntry(path.decode(), int(generation), int(records), int(size), crc32c.decode())


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
