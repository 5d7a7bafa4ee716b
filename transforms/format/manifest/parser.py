"""Read a manifest strictly: every member, no other, each of its type, and sums that agree; all else is damage."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import chain
from typing import Any, Final

from ...errors import DamageError
from ..batches.rows import Narrowing
from ..schema.column_types import is_kept_as, types_of_kind
from ..schema.schema import Feature, Pixels, Schema
from ..wording.hints import Command
from ..wording.printable import printable
from .manifest import (
    ALL_INDEXES,
    FORMAT,
    FORMAT_VERSION,
    LIMITS,
    Manifest,
    ManifestLimits,
    PartEntry,
    RejectSummary,
    RowCounts,
    RunInfo,
    ShardEntry,
    ShardLists,
    SourceSummary,
    SplitEntry,
    is_part_path,
    lengthened,
    take_details,
    take_shard_lists,
)
from .naming import (
    DATASET_NAME,
    check_shard_name,
    is_list_path,
    is_shard_path,
    is_sidecar_path,
    is_split_name,
    is_staging_path,
)
from .strict_json import (
    JsonError,
    ManifestProblem,
    Take,
    choice,
    integer,
    items,
    mapping,
    number,
    object_of,
    only,
    optional,
    parse_json,
    path,
    text,
)

PartReader = Callable[[str], tuple[ShardEntry, ...]]
"""Returns the shards of the part of a path, or raises a `DamageError` that names it."""

_CRC: Final = re.compile(r"[0-9a-f]{8}")
_DIGEST: Final = re.compile(r"sum128:[0-9a-f]{32}")
_FINGERPRINT: Final = re.compile(r"sha256:[0-9a-f]{64}")
_VERSION: Final = re.compile(r"[0-9]{1,9}\.[0-9]{1,19}\.[0-9]{1,9}")
_DTYPE: Final = re.compile(r"[<|][biufcM][0-9]{1,2}(\[[a-zA-Z]{1,2}\])?")
_SHAPE_LIMIT: Final = 1 << 31
"""Values of a fixed shape: Arrow's lists are no longer, and no record could hold more."""

_MAX_RANK: Final = 64
"""NumPy's own limit."""


def _no_parts(path: str) -> tuple[ShardEntry, ...]:
    raise DamageError(f"{path}: missing")


def parse_manifest(
    data: bytes, name: str, read_part: PartReader = _no_parts, limits: ManifestLimits = LIMITS
) -> Manifest:
    """Return the manifest that is in `data`; `name` is how messages call the file.

    Raises `DamageError`: the document is cut, malformed, of a newer format, or disagrees with itself or with its parts.
    """
    return _parse(data, name, lambda: _Parts(read_part, limits.parts), limits.bytes)


def parse_overview(data: bytes, name: str) -> tuple[Manifest, dict[str, int]]:
    """Return a manifest and the number of shards of each split, without reading its parts.

    Each part is one shard of its split here, with the records and bytes that are stated of it: the same totals, however
    many shards there are. Raises `DamageError` as `parse_manifest` does.
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


def _parse(data: bytes, name: str, parts: Callable[[], _Parts], most_bytes: int = LIMITS.bytes) -> Manifest:
    try:
        if len(data) > most_bytes:
            raise ManifestProblem(f" has {len(data)} bytes, more than {most_bytes}", "the manifest")
        return _parse_canonical(data, parts) or _manifest(parse_json(data), ShardLists(data), parts())
    except (JsonError, ManifestProblem) as error:
        raise DamageError(f"{name}: {error}") from error


def _parse_canonical(data: bytes, parts: Callable[[], _Parts]) -> Manifest | None:
    """Return the manifest, if its shards are written in the canonical form and nothing is wrong with it, else None."""
    shards = take_shard_lists(data)
    if not shards.lists:
        return None
    try:
        manifest = _manifest(parse_json(shards.document), shards, parts())
    except (JsonError, ManifestProblem):
        return None  # parsed as a whole, it is reported with its right place
    return None if shards.lists else manifest


def _manifest(document: Any, lists: ShardLists, parts: _Parts) -> Manifest:
    every = {**_MEMBERS, "splits": mapping(_split(lists, parts))}
    members: dict[str, Any] = object_of(dict, ("details", "conversion"), **every)(document)
    shards = [shard.path for split in members["splits"].values() for shard in split.shards]
    members["sidecars"] = lengthened(members["sidecars"], shards)
    manifest = Manifest(**{key: value for key, value in members.items() if key not in _FORMALITIES})
    _check_sums(manifest)
    return manifest


def _split(lists: ShardLists, parts: _Parts) -> Take[SplitEntry]:
    def entry(shards: tuple[ShardEntry, ...], parts: tuple[ShardEntry, ...] = (), **head: Any) -> SplitEntry:
        return SplitEntry(**head, shards=(*parts, *shards))

    return object_of(
        entry,
        ("parts",),
        records=integer(1),
        bytes=integer(1),
        unit_bytes=integer(1),
        records_digest=text(_DIGEST),
        parts=parts.take,
        shards=lambda value: lists.take(value) or _SHARDS(value),
    )


class _Parts:
    """The parts that one document names: each once, and no more of them than memory has room for."""

    def __init__(self, read: PartReader, most: int = LIMITS.parts) -> None:
        self._read, self._most = read, most
        self._taken: set[str] = set()

    def take(self, value: Any) -> tuple[ShardEntry, ...]:
        found = items(self._take)(value)
        if not found:
            raise ManifestProblem(" is empty")
        return tuple(chain.from_iterable(found))

    def _take(self, value: Any) -> tuple[ShardEntry, ...]:
        part = _PART(value)
        if part.path in self._taken:
            raise ManifestProblem(f": {part.path} appears twice")
        if len(self._taken) == self._most:
            raise ManifestProblem(f": there are more than {self._most} parts")
        self._taken.add(part.path)
        return self._shards(part)

    def _shards(self, part: PartEntry) -> tuple[ShardEntry, ...]:
        shards = self._read(part.path)
        if part != PartEntry.of(part.path, shards):
            raise ManifestProblem(f": its shards, records or bytes are not those of {part.path}")
        return shards


class _StatedParts(_Parts):
    """The parts as the document states them: each is one shard; `shards` is how many it has, by its path."""

    def __init__(self) -> None:
        super().__init__(_no_parts)
        self.shards: dict[str, int] = {}

    def _shards(self, part: PartEntry) -> tuple[ShardEntry, ...]:
        self.shards[part.path] = part.shards
        return (ShardEntry(part.path, 1, part.records, part.bytes, "00000000"),)


def _shard_name(value: Any) -> str:
    try:
        return check_shard_name(text()(value))
    except ValueError as error:
        raise ManifestProblem(printable(error).removeprefix("shard_name")) from error


def _list_path(folder: str) -> Take[str]:
    return path(lambda value: is_list_path(value, folder), f"a path like {folder}/00000001.jsonl")


def _shape(value: Any) -> tuple[int, ...]:
    """Take a shape, but none that no values can have: readers allocate by it."""
    shape = items(integer(-1))(value)
    if shape != (-1,) and (-1 in shape or len(shape) > _MAX_RANK or math.prod(shape) >= _SHAPE_LIMIT):
        raise ManifestProblem(f" is [{printable(', '.join(map(str, shape)))}], which no feature has")
    return shape


def _feature(**members: Any) -> Feature:
    feature = Feature(**members)
    if not is_kept_as(feature.type, feature.kind):
        choices = ", ".join(types_of_kind(feature.kind))
        raise ManifestProblem(f' is "{printable(feature.type)}", not one of {choices}', "type")
    return feature


def _schema(value: Any) -> Schema:
    features = _FEATURES(value)
    names = [feature.name for feature in features]
    if names != sorted(set(names)):
        raise ManifestProblem(" is not sorted by name, or has a name twice")
    return Schema(features)


_FEATURES: Final = items(
    object_of(
        _feature,
        ("unit", "timezone", "labels", "dtype", "rank", "pixels"),
        name=only(
            lambda value: isinstance(value, str) and not any("\ud800" <= sign < "\ue000" for sign in value),
            "Unicode text, which the key of a feature is",
        ),
        kind=choice("int64", "float", "bytes"),
        type=text(),
        shape=_shape,
        nullable=only(lambda value: isinstance(value, bool), "true or false"),
        unit=choice("s", "ms", "us", "ns"),
        timezone=text(),
        labels=text(),
        dtype=text(_DTYPE),
        rank=integer(0, _MAX_RANK),
        pixels=object_of(Pixels, (), dtype=text(), shape=items(integer(-1)), encoding=text()),
    )
)
_PART: Final = object_of(
    PartEntry,
    path=path(is_part_path, f"a path like manifests/shards-{'0' * 32}.json"),
    **dict.fromkeys(("shards", "records", "bytes"), integer(1)),
)
_SHARDS: Final = items(
    object_of(
        ShardEntry,
        path=path(is_shard_path, "a path like train-00000.tfrecord"),
        **dict.fromkeys(("generation", "records", "bytes"), integer(1)),
        crc32c=text(_CRC),
    )
)
_SIDECAR_PATH: Final = only(lambda value: isinstance(value, str) and is_sidecar_path(value), "the name of a sidecar")


def _sidecar(value: Any) -> str:
    return ALL_INDEXES if value == ALL_INDEXES else _SIDECAR_PATH(value)


_MEMBERS: Final[dict[str, Take[Any]]] = {
    "format": only(lambda value: value == FORMAT, f"{FORMAT}: this is not a manifest of Shardmill"),
    "format_version": only(
        lambda value: value == FORMAT_VERSION and type(value) is int,
        f"{FORMAT_VERSION}: convert again; or remove all but the shards, and run {Command('adopt')}",
    ),
    "generation": integer(1),
    "parent": optional(integer(1)),
    "operation": choice("create", "append", "merge"),
    "name": text(DATASET_NAME),
    "version": text(_VERSION),
    "order": choice("task", "source", "shuffled"),
    "compression": choice("none", "gzip"),
    "shard_size": integer(1),
    "shard_name": _shard_name,
    "config_fingerprint": text(_FINGERPRINT),
    "schema_fingerprint": optional(text(_FINGERPRINT)),
    "source": object_of(
        SourceSummary,
        format=text(),
        files=integer(),
        bytes=integer(),
        list=optional(_list_path("sources")),
        skipped=mapping(integer()),
    ),
    "counts": object_of(RowCounts, **dict.fromkeys(("read", "written", "rejected", "dropped"), integer())),
    "rejects": object_of(
        RejectSummary, path=optional(_list_path("rejects")), records=integer(), by_code=mapping(integer())
    ),
    "schema": optional(_schema),
    "labels": mapping(items(text())),
    "narrowed": items(
        object_of(
            Narrowing,
            **dict.fromkeys(("name", "from_", "to"), text()),
            values=integer(),
            max_relative_error=number(),
            underflows=integer(),
            integers_changed=optional(integer()),
        )
    ),
    "details": take_details,
    "conversion": only(lambda value: isinstance(value, dict) and bool(value), "an object with members"),
    "sidecars": items(_sidecar),
    "run": object_of(
        RunInfo,
        **dict.fromkeys(("created", "run_id", "commit_id", "runner"), text()),
        staging=path(is_staging_path, "a path like .staging/5f0c9b1e2a7d4c88"),
        source_fingerprint=text(_FINGERPRINT),
        tool=mapping(text()),
    ),
    "end": only(lambda value: value is True, "true"),
}
_FORMALITIES: Final = ("format", "format_version", "end")


def _check_sums(manifest: Manifest) -> None:
    """Refuse a manifest whose parts were not written together."""
    counts = manifest.counts
    if counts.read != counts.written + counts.rejected + counts.dropped:
        raise ManifestProblem(": read is not written + rejected + dropped", "counts")
    if manifest.rejects.records != counts.rejected or (manifest.rejects.path is None) != (counts.rejected == 0):
        raise ManifestProblem(" disagrees with counts.rejected", "rejects")
    paths: set[str] = set()
    for name, split in manifest.splits.items():
        if not is_split_name(name):
            raise ManifestProblem(" cannot name a split", f'"{printable(name)}"')
        if split.records != sum(s.records for s in split.shards) or split.bytes != sum(s.bytes for s in split.shards):
            raise ManifestProblem(": its records or bytes are not the sum over its shards", f"splits.{name}")
        for shard in split.shards:
            if shard.path in paths or shard.generation > manifest.generation:
                raise ManifestProblem(f": {shard.path} appears twice, or is of a later generation", f"splits.{name}")
            paths.add(shard.path)
    if (manifest.schema is None) != (manifest.schema_fingerprint is None):
        raise ManifestProblem(" and schema_fingerprint disagree", "schema")
    if manifest.schema is not None and manifest.schema.fingerprint() != manifest.schema_fingerprint:
        raise ManifestProblem(" is not that of schema", "schema_fingerprint")
