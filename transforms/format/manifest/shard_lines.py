r"""The shards of a manifest in its canonical form, read by a pattern: a million of them in seconds.

    "shards": [                                                                              "shards": ["<mark>:0"]
      {"path": "train-00000.tfrecord", "generation": 1, "records": 9, "bytes": 63706, ...},  ──▶
      {"path": "train-00001.tfrecord", "generation": 1, "records": 8, ...}]

A list that is written exactly so, and whose values are all in range, is taken out of the document before that is
parsed, and a mark nobody can foresee put in its place. Any other list stays, for the parser to take or to refuse with
its reason. What is between the brackets are whole JSON objects, so the document is valid if it was before; and no
string can hold such a list, as a string has no bare line end.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from typing import Final

from .naming import SHARD_PATH
from .shard_entry import ShardEntry

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
