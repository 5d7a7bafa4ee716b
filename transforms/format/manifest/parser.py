"""Reading a manifest, strictly: whatever is not exactly what `Manifest.to_bytes` could have written is damage."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ...errors import DamageError
from ..flow.blocks import Narrowing
from ..schema.schema import Feature, Schema
from ..wording.printable import printable
from .manifest import (
    FORMAT,
    FORMAT_VERSION,
    Manifest,
    RejectSummary,
    RowCounts,
    RunInfo,
    ShardEntry,
    SourceSummary,
    SplitEntry,
)
from .naming import (
    DATASET_NAME,
    check_shard_name,
    is_list_path,
    is_safe_path,
    is_shard_path,
    is_sidecar_path,
    is_split_name,
    is_staging_path,
)
from .parts import MOST_PARTS, is_part_path
from .shard_lines import ShardLists, take_shard_lists
from .strict_json import JsonError, parse_json
from .strict_members import INTEGER_LIMIT, Members, Wrong

MANIFEST_LIMIT: Final = 128 << 20
"""Bytes: a million shards take about 110 MB; a larger document is refused before it is parsed."""

PartReader = Callable[[str], tuple[ShardEntry, ...]]
"""Gives the shards of the part of a path, or raises a `DamageError` that names it."""

_CRC: Final = re.compile(r"[0-9a-f]{8}")
_DIGEST: Final = re.compile(r"sum128:[0-9a-f]{32}")
_FINGERPRINT: Final = re.compile(r"sha256:[0-9a-f]{64}")
_VERSION: Final = re.compile(r"[0-9]{1,9}\.[0-9]{1,19}\.[0-9]{1,9}")
_TYPES: Final = {
    "int64": (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "date", "time", "timestamp",
        "duration", "label", "array_shape",
    ),
    "float": ("float16", "float32", "float64"),
    "bytes": ("string", "binary", "float64", "image", "array_data"),
}  # fmt: skip
"""What the values of each kind may mean."""

_DTYPE: Final = re.compile(r"[<|][biufcM][0-9]{1,2}(\[[a-zA-Z]{1,2}\])?")
_SHAPE_LIMIT: Final = 1 << 31
"""Values of a fixed shape: Arrow's lists are no longer, and no record could hold more."""

_MAX_RANK: Final = 64
"""NumPy's own limit."""


def _no_parts(path: str) -> tuple[ShardEntry, ...]:
    raise DamageError(f"{path}: missing")


def parse_manifest(data: bytes, name: str, read_part: PartReader = _no_parts) -> Manifest:
    """Return the manifest that is in `data`; `name` is how messages call the file.

    Raises:
        DamageError: the document is cut, malformed, of a newer format, or disagrees with itself or with its parts; or
            a part cannot be read.
    """
    return _parse(data, name, lambda: _Parts(read_part))


def parse_overview(data: bytes, name: str) -> tuple[Manifest, dict[str, int]]:
    """Return the manifest that is in `data` without its parts, and the number of shards of each split.

    Each part is one shard of its split here, with the records and bytes that are stated of it: the same totals, however
    many shards there are, and no other file is read.

    Raises:
        DamageError: the document is cut, malformed, of a newer format, or disagrees with itself.
    """
    made: list[_StatedParts] = []

    def parts() -> _StatedParts:
        made.append(_StatedParts())
        return made[-1]

    manifest = _parse(data, name, parts)
    stated = made[-1].shards
    counts = {
        split: sum(stated.get(shard.path, 1) for shard in entry.shards) for split, entry in manifest.splits.items()
    }
    return manifest, counts


def _parse(data: bytes, name: str, parts: Callable[[], _Parts]) -> Manifest:
    try:
        if len(data) > MANIFEST_LIMIT:
            raise Wrong(f"the manifest has {len(data)} bytes, more than {MANIFEST_LIMIT}")
        return _parse_canonical(data, parts) or _manifest(parse_json(data), ShardLists(data), parts())
    except (JsonError, Wrong) as error:
        raise DamageError(f"{name}: {error}") from error


def _parse_canonical(data: bytes, parts: Callable[[], _Parts]) -> Manifest | None:
    """Return the manifest, if its shards are written in the canonical form and nothing is wrong with it, else None."""
    shards = take_shard_lists(data)
    if not shards.lists:
        return None
    try:
        manifest = _manifest(parse_json(shards.document), shards, parts())
    except (JsonError, Wrong):
        return None  # parsed as a whole, it is reported with its right place
    return None if shards.lists else manifest


def _manifest(document: Any, shards: ShardLists, parts: _Parts) -> Manifest:
    top = Members(document, "")
    if top.text("format") != FORMAT:
        raise Wrong(f"format is not {FORMAT}: this is not a manifest of Shardmill")
    version = top.integer("format_version", 1)
    if version > FORMAT_VERSION:
        raise Wrong(f"format_version is {version}, this Shardmill reads up to {FORMAT_VERSION}: upgrade shardmill")
    manifest = Manifest(
        generation=top.integer("generation", 1),
        parent=top.optional("parent", lambda key: top.integer(key, 1)),
        operation=top.choice("operation", "create", "append", "merge"),
        name=top.text("name", DATASET_NAME),
        version=top.text("version", _VERSION),
        order=top.choice("order", "task", "source"),
        compression=top.choice("compression", "none", "gzip"),
        shard_size=top.integer("shard_size", 1),
        shard_name=_shard_name(top),
        config_fingerprint=top.text("config_fingerprint", _FINGERPRINT),
        schema_fingerprint=top.optional("schema_fingerprint", lambda key: top.text(key, _FINGERPRINT)),
        source=_source(top.members("source")),
        counts=_counts(top.members("counts")),
        rejects=_rejects(top.members("rejects")),
        schema=top.optional("schema", lambda key: _schema(top, key)),
        labels=top.mapping("labels", _texts),
        narrowed=top.items("narrowed", _narrowing),
        splits=top.mapping("splits", partial(_split, shards, parts)),
        sidecars=top.items("sidecars", _sidecar),
        run=_run(top.members("run")),
    )
    if top.any("end") is not True:
        raise Wrong("end is not true")
    top.end()
    _check_sums(manifest)
    return manifest


def _shard_name(top: Members) -> str:
    template = top.text("shard_name")
    try:
        return check_shard_name(template)
    except ValueError as error:
        raise Wrong(printable(error)) from error


def _source(members: Members) -> SourceSummary:
    source = SourceSummary(
        format=members.text("format"),
        files=members.integer("files"),
        bytes=members.integer("bytes"),
        list=members.optional("list", lambda key: _list_path(members, key, "sources")),
        skipped=members.mapping("skipped", _count),
    )
    members.end()
    return source


def _counts(members: Members) -> RowCounts:
    counts = RowCounts(*(members.integer(key) for key in ("read", "written", "rejected", "dropped")))
    members.end()
    return counts


def _rejects(members: Members) -> RejectSummary:
    rejects = RejectSummary(
        path=members.optional("path", lambda key: _list_path(members, key, "rejects")),
        records=members.integer("records"),
        by_code=members.mapping("by_code", _count),
    )
    members.end()
    return rejects


def _run(members: Members) -> RunInfo:
    run = RunInfo(
        created=members.text("created"),
        run_id=members.text("run_id"),
        commit_id=members.text("commit_id"),
        staging=members.path("staging", is_staging_path, ".staging/5f0c9b1e2a7d4c88"),
        source_fingerprint=members.text("source_fingerprint", _FINGERPRINT),
        runner=members.text("runner"),
        tool=members.mapping("tool", _text),
    )
    members.end()
    return run


def _schema(top: Members, key: str) -> Schema:
    features = top.items(key, _feature)
    names = [feature.name for feature in features]
    if names != sorted(set(names)):
        raise Wrong(f"{key} is not sorted by name, or has a name twice")
    return Schema(features)


def _feature(value: Any, where: str) -> Feature:
    members = Members(value, where)
    if any(0xD800 <= ord(sign) < 0xE000 for sign in members.text("name")):
        raise Wrong(f"{where}.name is not Unicode text, which the key of a feature is")
    kind = members.choice("kind", *_TYPES)
    members.choice("type", *_TYPES[kind])
    _check_shape(members.items("shape", _dimension), where)
    if type(members.any("nullable")) is not bool:
        raise Wrong(f"{where}.nullable is not true or false")
    if "unit" in value:
        members.choice("unit", "s", "ms", "us", "ns")
    for key, pattern in (("timezone", None), ("labels", None), ("dtype", _DTYPE)):
        if key in value:
            members.text(key, pattern)
    if "rank" in value and members.integer("rank") > _MAX_RANK:
        raise Wrong(f"{where}.rank is over {_MAX_RANK}")
    members.end()
    return Feature.from_json(value)


def _check_shape(shape: tuple[int, ...], where: str) -> None:
    """Refuse a shape that no values can have: readers allocate by it."""
    if shape != (-1,) and (-1 in shape or len(shape) > _MAX_RANK or math.prod(shape) >= _SHAPE_LIMIT):
        raise Wrong(f"{where}.shape is [{printable(', '.join(map(str, shape)))}], which no feature has")


def _narrowing(value: Any, where: str) -> Narrowing:
    members = Members(value, where)
    narrowing = Narrowing(
        name=members.text("name"),
        from_=members.text("from"),
        to=members.text("to"),
        values=members.integer("values"),
        max_relative_error=members.number("max_relative_error"),
        underflows=members.integer("underflows"),
    )
    members.end()
    return narrowing


def _split(lists: ShardLists, parts: _Parts, value: Any, where: str) -> SplitEntry:
    members = Members(value, where)
    head = {key: members.integer(key, 1) for key in ("records", "bytes", "unit_bytes")}
    digest = members.text("records_digest", _DIGEST)
    in_parts: list[ShardEntry] = []
    if "parts" in value:
        for shards in members.items("parts", parts.take):
            in_parts += shards
        if not in_parts:
            raise Wrong(f"{where}.parts is empty")
    inline = members.taken("shards", lists.take) or members.items("shards", _shard)
    members.end()
    return SplitEntry(**head, records_digest=digest, shards=(*in_parts, *inline))


class _Parts:
    """The parts that one document names: each once, and no more of them than memory has room for."""

    def __init__(self, read: PartReader) -> None:
        self._read = read
        self._taken: set[str] = set()

    def take(self, value: Any, where: str) -> tuple[ShardEntry, ...]:
        members = Members(value, where)
        path = members.path("path", is_part_path, f"manifests/shards-{'0' * 32}.json")
        stated = [members.integer(key, 1) for key in ("shards", "records", "bytes")]
        members.end()
        if path in self._taken:
            raise Wrong(f"{where}: {path} appears twice")
        if len(self._taken) == MOST_PARTS:
            raise Wrong(f"{where}: there are more than {MOST_PARTS} parts")
        self._taken.add(path)
        return self._shards(path, stated, where)

    def _shards(self, path: str, stated: list[int], where: str) -> tuple[ShardEntry, ...]:
        shards = self._read(path)
        if stated != [len(shards), sum(shard.records for shard in shards), sum(shard.bytes for shard in shards)]:
            raise Wrong(f"{where}: its shards, records or bytes are not those of {path}")
        return shards


class _StatedParts(_Parts):
    """The parts as the document states them: each is one shard; `shards` is how many it has, by its path."""

    def __init__(self) -> None:
        super().__init__(_no_parts)
        self.shards: dict[str, int] = {}

    def _shards(self, path: str, stated: list[int], where: str) -> tuple[ShardEntry, ...]:  # noqa: ARG002
        self.shards[path], records, size = stated
        return (ShardEntry(path, 1, records, size, "00000000"),)


def _shard(value: Any, where: str) -> ShardEntry:
    members = Members(value, where)
    shard = ShardEntry(
        path=members.path("path", is_shard_path, "train-00000.tfrecord"),
        generation=members.integer("generation", 1),
        records=members.integer("records", 1),
        bytes=members.integer("bytes", 1),
        crc32c=members.text("crc32c", _CRC),
    )
    members.end()
    return shard


def _count(value: Any, where: str) -> int:
    if type(value) is not int or not 0 <= value < INTEGER_LIMIT:
        raise Wrong(f"{where} is not a count")
    return value


def _dimension(value: Any, where: str) -> int:
    if type(value) is not int or not -1 <= value < INTEGER_LIMIT:
        raise Wrong(f"{where} is not a dimension")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise Wrong(f"{where} is not a string")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Wrong(f"{where} is not a list")
    return tuple(_text(item, f"{where}[{i}]") for i, item in enumerate(value))


def _list_path(members: Members, key: str, folder: str) -> str:
    return members.path(key, lambda path: is_list_path(path, folder), f"{folder}/00000001.jsonl")


def _sidecar(value: Any, where: str) -> str:
    if not isinstance(value, str) or not is_safe_path(value):
        raise Wrong(f'{where} is "{printable(value)}", not a path that stays in the folder')
    if not is_sidecar_path(value):
        raise Wrong(f'{where} is "{printable(value)}", which is the name of no sidecar')
    return value


def _check_sums(manifest: Manifest) -> None:
    """Refuse a manifest whose parts were not written together."""
    counts = manifest.counts
    if counts.read != counts.written + counts.rejected + counts.dropped:
        raise Wrong("counts: read is not written + rejected + dropped")
    if manifest.rejects.records != counts.rejected or (manifest.rejects.path is None) != (counts.rejected == 0):
        raise Wrong("rejects disagrees with counts.rejected")
    paths: set[str] = set()
    for name, split in manifest.splits.items():
        if not is_split_name(name):
            raise Wrong(f'"{printable(name)}" cannot name a split')
        if split.records != sum(s.records for s in split.shards) or split.bytes != sum(s.bytes for s in split.shards):
            raise Wrong(f"splits.{name}: its records or bytes are not the sum over its shards")
        for shard in split.shards:
            if shard.path in paths or shard.generation > manifest.generation:
                raise Wrong(f"splits.{name}: {shard.path} appears twice, or is of a later generation")
            paths.add(shard.path)
    if (manifest.schema is None) != (manifest.schema_fingerprint is None):
        raise Wrong("schema and schema_fingerprint disagree")
    if manifest.schema is not None and manifest.schema.fingerprint() != manifest.schema_fingerprint:
        raise Wrong("schema_fingerprint is not that of schema")
